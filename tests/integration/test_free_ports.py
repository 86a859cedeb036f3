"""Ports for servers under test: two processes that start servers at once never get the same one."""

import subprocess

from tests.support.processes import BLOCK_SIZE, ROOT, free_port, python

ASK = f"""
from tests.support.processes import free_port
print(*(free_port() for _ in range({BLOCK_SIZE})), flush=True)
input()
"""


def test_processes_that_run_at_once_are_given_different_ports() -> None:
    started = [
        subprocess.Popen(
            [python(), "-c", ASK], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(3)
    ]
    told = [free_port() for _ in range(BLOCK_SIZE)]
    try:
        for process in started:
            assert process.stdout is not None
            told += map(int, process.stdout.readline().split())
    finally:
        for process in started:
            process.communicate(b"\n")
    assert len(told) == 4 * BLOCK_SIZE
    rows = [set(told[at : at + BLOCK_SIZE]) for at in range(0, len(told), BLOCK_SIZE)]
    assert len(set().union(*rows)) == sum(map(len, rows))
    # A port comes again only where one that somebody listens on was passed over.
    assert all(len(row) > BLOCK_SIZE // 2 for row in rows)
