"""A process that compacts logs beside the broker, so that the broker's one thread never does.

It reads lines of JSON from its standard input and answers with such lines:

    {"clean": job}           clean a log (`job.py`)
    {"bytes_per_s": rate}    read and write no faster than this from now on
    {"stop": true}           give the job up
        {"group": {"old": [base, ...], "new": [base, ...]}}   these `.cleaned` files are finished
    {"swapped": true}        they are in their place: go on
        {"done": {...}}      the log is clean up to `end_offset`, and how much there was to do
        {"failed": {"kind": ..., "why": ...}}   it is not, and whether to try again
        {"stopped": true}    it was given up
        {"starved": true}    others leave it no time: start it again with --hurried

One job at a time. It ends when its input ends, and with the broker's death at the latest.
"""

import json
import os
import select
import signal
import sys
import time
from dataclasses import asdict
from typing import Any, Final

from penstock.errors import CorruptRecord
from penstock.storage.compaction.job import FAILED_FOR_GOOD, FAILED_FOR_NOW, CleanJob
from penstock.storage.compaction.pace import Pace, Starved, Watch, step_back
from penstock.storage.compaction.rewrite import clean

HURRIED: Final = "--hurried"
_READ_BYTES: Final = 1 << 16
_DIE_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG

Message = dict[str, Any]


class Stopped(Exception):
    """The broker does not want the job done any more."""


class Channel:
    """Lines of JSON over two descriptors."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._received = b""

    def send(self, message: Message) -> None:
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        while data:
            data = data[os.write(self._write_fd, data) :]

    def receive(self, timeout_s: float | None) -> Message | None:
        """The next message; None: none came in time. EOFError: the broker is gone."""
        while b"\n" not in self._received:
            readable, _, _ = select.select([self._read_fd], [], [], timeout_s)
            if not readable:
                return None
            more = os.read(self._read_fd, _READ_BYTES)
            if not more:
                raise EOFError
            self._received += more
        line, _, self._received = self._received.partition(b"\n")
        message: Message = json.loads(line)
        return message


class Worker:
    """Cleans what it is told to."""

    def __init__(self, channel: Channel, *, is_hurried: bool) -> None:
        self._channel = channel
        self._watch = None if is_hurried else Watch(time.monotonic)
        self._pace = Pace(sys.float_info.max, listen=self._listen, now_s=time.monotonic)

    def run(self) -> None:
        """Until the input ends."""
        try:
            while True:
                message = self._channel.receive(None)
                if message is not None and "clean" in message:
                    self._channel.send(self._answer(CleanJob.decode(message["clean"])))
        except EOFError:
            pass

    def _answer(self, job: CleanJob) -> Message:
        try:
            return {"done": self._clean(job)}
        except Stopped:
            return {"stopped": True}
        except Starved:
            return {"starved": True}
        except (OSError, MemoryError) as error:
            return _failed(FAILED_FOR_NOW, error)
        except EOFError:
            raise
        except CorruptRecord as error:
            return _failed(FAILED_FOR_GOOD, error)
        except Exception as error:  # noqa: BLE001 - it would come again with every try.
            return _failed(FAILED_FOR_GOOD, error)

    def _clean(self, job: CleanJob) -> Message:
        if self._watch is not None:
            self._watch.begin()
        self._pace.total_bytes = 0
        self._pace.set_rate(job.bytes_per_s)
        outcome = clean(job, spend=self._pace.spend, hand_over=self._hand_over)
        return {**asdict(outcome), "io_bytes": self._pace.total_bytes}

    def _hand_over(self, old: list[int], new: list[int]) -> None:
        self._channel.send({"group": {"old": old, "new": new}})
        self._await_swap()

    def _await_swap(self) -> None:
        while True:
            message = self._channel.receive(None)
            if message is None:
                continue
            self._obey(message)
            if "swapped" in message:
                return

    def _listen(self, timeout_s: float) -> None:
        if self._watch is not None:
            self._watch.check()
        message = self._channel.receive(timeout_s)
        if message is not None:
            self._obey(message)

    def _obey(self, message: Message) -> None:
        if "stop" in message:
            raise Stopped
        if "bytes_per_s" in message:
            self._pace.set_rate(message["bytes_per_s"])


def _failed(kind: str, error: BaseException) -> Message:
    return {"failed": {"kind": kind, "why": f"{type(error).__name__}: {error}"}}


def _die_with_the_broker() -> None:
    """Where the kernel can: a worker that lives on could write beside its successor."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the broker, which tells us.
    is_hurried = HURRIED in sys.argv
    _die_with_the_broker()
    step_back(is_hurried=is_hurried)
    Worker(Channel(sys.stdin.fileno(), sys.stdout.fileno()), is_hurried=is_hurried).run()


if __name__ == "__main__":
    main()
