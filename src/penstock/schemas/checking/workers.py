"""The broker's end of its decoding processes: starts them, hands over batches, replaces the dead.

A process has one batch at a time. If it dies or hangs over a batch, another one tries that batch
again, because somebody may have killed the first, or the machine was busy. A batch over which three
of them died, or two hung, is to blame.
"""

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.errors import RequestTimedOut
from penstock.records.batch import read_header
from penstock.records.schema_check import RecordFlaw, SchemasAway
from penstock.schemas.checking.frames import SIZE, message, read_answer, task_head

log = logging.getLogger("penstock.validation")

WAITING_BYTES_MAX: Final = 128 << 20
_WORKER: Final = "penstock.schemas.checking.worker"
_BLAME_MAX: Final = 3
_DEATH, _DELAY = 1, 2  # What each adds to it.
_ANSWER_BYTES_MAX: Final = 1 << 30
_START_S: Final = 60.0
_GRACE_S: Final = 5.0  # A process ends itself when its time is up; this is for one that cannot.


class WorkerDied(Exception):
    """A decoding process ended, or hung, before it answered."""

    def __init__(self, reason: str, blame: int = _DEATH) -> None:
        super().__init__(reason)
        self.blame = blame


class DecodeWorker:
    """One decoding process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._input, self._output = process.stdin, process.stdout

    @classmethod
    async def start(cls, settings: Mapping[str, Any]) -> "DecodeWorker":
        """A process that is ready; SchemasAway if none starts, which is not the batch's fault.

        It is told which registry to ask; secrets do not go on its command line.
        """
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-m", _WORKER)
        try:
            process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        except OSError as error:
            raise SchemasAway(f"a decoding process cannot be started: {error}") from error
        worker = cls(process)
        worker._input.write(message(settings))
        is_ready = False
        try:
            async with asyncio.timeout(_START_S):
                await worker._hear()
            is_ready = True
        except (WorkerDied, TimeoutError) as error:
            raise SchemasAway(f"a decoding process did not start: {error}") from error
        finally:
            if not is_ready:
                await worker.kill()
        return worker

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    @property
    def ran_out_of_time(self) -> bool:
        """Whether its own clock ended it."""
        return self._process.returncode == -signal.SIGALRM

    async def ask(self, head: bytes, batch: memoryview) -> bytes:
        """The answer to one task; raises WorkerDied."""
        try:
            self._input.write(head)
            self._input.write(batch)
            await self._input.drain()
        except OSError as error:
            raise WorkerDied(f"the process {self.pid} ended unexpectedly") from error
        return await self._hear()

    async def _hear(self) -> bytes:
        try:
            (size,) = SIZE.unpack(await self._output.readexactly(SIZE.size))
            if size > _ANSWER_BYTES_MAX:
                raise WorkerDied(f"the process {self.pid} answers nonsense")
            return await self._output.readexactly(size)
        except (OSError, asyncio.IncompleteReadError) as error:
            raise WorkerDied(f"the process {self.pid} ended unexpectedly") from error

    async def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


class DecodeWorkers:
    """As many processes as the settings say, started when there is something to decode."""

    def __init__(self, settings: Mapping[str, Any], *, count: int, limit_s: float) -> None:
        self._settings = {**settings, "limit_s": limit_s}
        self._limit_s = limit_s
        self._free = asyncio.Semaphore(count)
        self._idle: list[DecodeWorker] = []
        self._busy: set[DecodeWorker] = set()
        self._waiting_bytes = 0
        self.deaths = 0

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in (*self._idle, *self._busy)]

    async def flaws(
        self, sides: Sequence[bool], batch: memoryview, skipped: Sequence[int] = ()
    ) -> list[RecordFlaw]:
        """What is wrong with the records of a batch; SchemasAway if nobody can tell."""
        if self._waiting_bytes and self._waiting_bytes + len(batch) > WAITING_BYTES_MAX:
            raise RequestTimedOut("too many batches wait to be decoded")  # Producers try again.
        self._waiting_bytes += len(batch)
        try:
            async with self._free:
                return await self._try_twice(sides, batch, skipped)
        finally:
            self._waiting_bytes -= len(batch)

    async def close(self) -> None:
        """End all processes."""
        workers = [*self._idle, *self._busy]
        self._idle.clear()
        for worker in workers:
            await worker.kill()

    async def _try_twice(
        self, sides: Sequence[bool], batch: memoryview, skipped: Sequence[int]
    ) -> list[RecordFlaw]:
        head = task_head(sides, len(batch), skipped)
        blame, reason = 0, ""
        while blame < _BLAME_MAX:
            try:
                return read_answer(await self._ask_one(head, batch))
            except WorkerDied as error:
                self.deaths += 1
                blame += error.blame
                reason = str(error)
                log.warning("A batch could not be decoded: %s", reason)
        told = f"no process could decode the batch: {reason}"
        return [
            RecordFlaw(index, sides[-1], told, "penstock.schemas.checking.workers.WorkerDied")
            for index in range(read_header(batch).record_count)
        ]

    async def _ask_one(self, head: bytes, batch: memoryview) -> bytes:
        worker = await self._take()
        self._busy.add(worker)
        is_done = False
        try:
            async with asyncio.timeout(self._limit_s + _GRACE_S):
                answer = await worker.ask(head, batch)
            is_done = True
            return answer
        except (WorkerDied, TimeoutError) as error:
            await worker.kill()
            if isinstance(error, TimeoutError) or worker.ran_out_of_time:
                late = f"the process {worker.pid} did not answer in time"
                raise WorkerDied(late, _DELAY) from None
            raise
        finally:
            # A process whose answer nobody waited for would give it to the next who asks.
            self._busy.discard(worker)
            if is_done:
                self._idle.append(worker)
            else:
                await worker.kill()

    async def _take(self) -> DecodeWorker:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_running:
                return worker
            await worker.kill()
        return await DecodeWorker.start(self._settings)
