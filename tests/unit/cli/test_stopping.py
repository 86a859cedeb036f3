"""Tools end when they are told to, however often and at whatever moment they are told."""

import signal
import subprocess
import sys

PROGRAM = """
import os, signal
from penstock.cli.stopping import stop_on_signals

stop = stop_on_signals()
while not stop.wait(0.0001):  # Nearly always inside the lock that the event is made of.
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)
print("stopped")
"""


def test_a_storm_of_signals_stops_a_tool_in_good_order() -> None:
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr


def test_the_first_signal_is_enough() -> None:
    program = PROGRAM.replace("    os.kill(os.getpid(), signal.SIGINT)\n", "")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, (signal.Signals(-done.returncode), done.stderr)
