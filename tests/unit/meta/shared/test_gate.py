"""Who may write: one at a time, by name, and a silent holder not for ever."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from penstock.meta.shared.gate import Holder, WriterGate
from penstock.meta.store import StoreUnavailable

HOLD = """
import sys, time
from pathlib import Path
from penstock.meta.shared.gate import WriterGate
gate = WriterGate(Path(sys.argv[1]), timeout_s=60)
gate.session_id = 7
with gate.held():
    print("held", flush=True)
    time.sleep(600)
"""


def holding(path: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    process.stdout.close()
    return process


def test_one_holds_it_at_a_time(tmp_path: Path) -> None:
    gates = [WriterGate(tmp_path / "lock", timeout_s=60) for _ in range(2)]
    inside: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            with gates[number].held():
                inside.append(number)
                assert inside == [number]
                inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for gate in gates:
        gate.close()


def test_a_name_stands_there_only_while_its_process_has_the_lock(tmp_path: Path) -> None:
    gate = WriterGate(tmp_path / "lock", timeout_s=60)
    assert gate._holder() is None
    gate.session_id = 5
    with gate.held():
        holder = gate._holder()
        assert holder is not None and holder.session_id == 5
    assert gate._holder() is None
    gate.close()


def test_what_a_killed_process_held_is_free(tmp_path: Path) -> None:
    process = holding(tmp_path / "lock")
    gate = WriterGate(tmp_path / "lock", timeout_s=60)
    assert gate._holder() == Holder(session_id=7, pid=process.pid)
    process.kill()
    process.wait()
    with gate.held():
        pass
    gate.close()


def test_a_silent_holder_is_killed_and_one_that_is_heard_is_not(tmp_path: Path) -> None:
    process = holding(tmp_path / "lock")
    patient = WriterGate(tmp_path / "lock", timeout_s=0.2)
    with pytest.raises(StoreUnavailable, match="nothing was written"), patient.held():
        pass
    assert process.poll() is None
    process.send_signal(signal.SIGSTOP)
    gate = WriterGate(tmp_path / "lock", timeout_s=60, is_silent=lambda session_id: session_id == 7)
    with gate.held():
        pass
    assert process.wait(60) == -signal.SIGKILL
    gate.close()
    patient.close()
