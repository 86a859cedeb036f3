"""The cleaning process itself, spoken to over its pipes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import can_be_read, eventually
from tests.unit.storage.compacted import COMPACT, LIMITS, begin, keyed, read_keyed
from tests.unit.storage.made import append, new_log

from penstock.storage.compaction.cleaner import Cleaning
from penstock.storage.log.log import Log

ANSWER_S = 120.0


class Worker:
    """The broker's end of the pipes."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock.storage.compaction.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )

    def tell(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def clean(self, cleaning: Cleaning, **limits: Any) -> None:
        job = cleaning.job(replace(LIMITS, **limits), now_ms=0)
        self.tell({"clean": json.loads(job.encode())})

    def hear(self, timeout_s: float = ANSWER_S) -> dict[str, Any] | None:
        """The next answer; None: none in time."""
        assert self.process.stdout is not None
        if not can_be_read(self.process.stdout, timeout_s):
            return None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture
def worker() -> Iterator[Worker]:
    started = Worker()
    yield started
    started.process.kill()
    started.process.wait()


def a_log(root: Path, *, batches: int = 200, value: bytes = b"v" * 20) -> Log:
    log = new_log(root, replace(COMPACT, segment_bytes=100_000))
    for number in range(batches):
        append(log, keyed([(b"k%d" % (number % 7), value), (b"once%d" % number, b"1")]))
    log.roll(0)
    return log


def begun(log: Log) -> Cleaning:
    cleaning = begin(log)
    assert cleaning is not None
    return cleaning


def test_it_cleans_one_log_after_the_other(log_dir: Path, worker: Worker) -> None:
    for name in ("one", "two"):
        (log_dir / name).mkdir()
        log = a_log(log_dir / name)
        cleaning = begun(log)
        worker.clean(cleaning, bytes_per_s=sys.float_info.max)
        answer = worker.hear()
        assert answer is not None and "group" in answer, answer
        assert cleaning.swap(answer["group"]["old"], answer["group"]["new"], 0)
        worker.tell({"swapped": True})
        answer = worker.hear()
        assert answer is not None and answer["done"]["end_offset"] == log.log_end_offset, answer
        assert answer["done"]["key_count"] == 207
        keys = [key for _, key, _ in read_keyed(log)]
        assert len(keys) == len(set(keys)) == 207


def test_it_waits_for_the_swap_before_it_goes_on(log_dir: Path, worker: Worker) -> None:
    log = a_log(log_dir)
    worker.clean(begun(log), bytes_per_s=1e12)
    answer = worker.hear()
    assert answer is not None and "group" in answer
    assert worker.hear(0.2) is None
    worker.tell({"stop": True})
    assert worker.hear() == {"stopped": True}


def test_a_broken_log_is_reported_as_such(log_dir: Path, worker: Worker) -> None:
    log = a_log(log_dir)
    data = bytearray(log.segments[0].log_path.read_bytes())
    data[500] ^= 1
    log.segments[0].log_path.write_bytes(data)
    worker.clean(begun(log), bytes_per_s=1e12)
    answer = worker.hear()
    assert answer is not None and answer["failed"]["kind"] == "corrupt", answer
    assert "CRC" in answer["failed"]["why"]


def test_a_missing_file_is_worth_another_try(log_dir: Path, worker: Worker) -> None:
    log = a_log(log_dir)
    cleaning = begun(log)
    job = json.loads(cleaning.job(replace(LIMITS, bytes_per_s=1e12), now_ms=0).encode())
    job["directory"] = str(log_dir / "nowhere")
    worker.tell({"clean": job})
    answer = worker.hear()
    assert answer is not None and answer["failed"]["kind"] == "trouble", answer


def test_the_rate_holds_it_back_and_may_change_meanwhile(log_dir: Path, worker: Worker) -> None:
    log = a_log(log_dir, batches=300)
    size = log.size_bytes
    worker.clean(begun(log), bytes_per_s=size / 3600)
    assert worker.hear(0.5) is None
    worker.tell({"bytes_per_s": 1e12})
    answer = worker.hear()
    assert answer is not None and "group" in answer


def test_a_throttled_cleaning_can_be_stopped(log_dir: Path, worker: Worker) -> None:
    log = a_log(log_dir)
    worker.clean(begun(log), bytes_per_s=10)
    assert worker.hear(0.3) is None
    worker.tell({"stop": True})
    assert worker.hear() == {"stopped": True}
    assert not list(log.dir.glob("*.cleaned"))


def test_it_ends_with_its_input_even_in_the_middle_of_work(log_dir: Path, worker: Worker) -> None:
    log = a_log(log_dir)
    worker.clean(begun(log), bytes_per_s=10)
    assert worker.hear(0.3) is None
    assert worker.process.stdin is not None
    worker.process.stdin.close()
    assert worker.process.wait(ANSWER_S) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel has no such promise")
def test_it_dies_with_the_process_that_started_it(log_dir: Path) -> None:
    """Even if somebody else still holds the pipe, so that its input does not end."""
    program = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.executable, '-m', 'penstock.storage.compaction.worker'],"
        " stdin=sys.stdin, stdout=subprocess.PIPE)\n"
        "print(p.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    try:
        eventually(lambda: _has_set_up(pid))
    finally:
        parent.kill()
        parent.wait()
    eventually(lambda: not _is_alive(pid))


def _has_set_up(pid: int) -> bool:
    """It steps back last of all, also where these tests have a low priority themselves."""
    lowered = min(os.getpriority(os.PRIO_PROCESS, 0) + 10, 19)
    is_idle = hasattr(os, "SCHED_IDLE") and os.sched_getscheduler(pid) == os.SCHED_IDLE
    return is_idle or os.getpriority(os.PRIO_PROCESS, pid) == lowered > os.nice(0)


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_an_interrupt_of_the_terminal_is_left_to_the_broker(worker: Worker) -> None:
    eventually(lambda: _has_set_up(worker.process.pid))
    worker.process.send_signal(signal.SIGINT)
    assert worker.hear(0.2) is None
    assert worker.process.poll() is None
