"""The broker's end of its decoding processes: starts them, hands over batches, replaces the dead.

A process has one batch at a time. If it dies or hangs over a batch, another one tries that batch
again, because somebody may have killed the first; a batch over which two of them died is to blame.
"""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.records.batch import read_header
from penstock.records.schema_check import RecordFlaw, SchemasAway
from penstock.schemas.checking.frames import SIZE, message, read_answer, task_head

log = logging.getLogger("penstock.validation")

WAITING_BYTES_MAX: Final = 128 << 20
_WORKER: Final = "penstock.schemas.checking.worker"
_TRIES: Final = 2
_ANSWER_BYTES_MAX: Final = 1 << 30
_GRACE_S: Final = 5.0  # A process ends itself when its time is up; this is for one that cannot.


class WorkerDied(Exception):
    """A decoding process ended, or hung, before it answered."""


class DecodeWorker:
    """One decoding process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._input, self._output = process.stdin, process.stdout

    @classmethod
    async def start(cls, settings: Mapping[str, Any]) -> "DecodeWorker":
        """A process that knows which registry to ask; secrets do not go on its command line."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            _WORKER,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        worker = cls(process)
        worker._input.write(message(settings))
        return worker

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    async def ask(self, sides: Sequence[bool], batch: memoryview) -> bytes:
        """The answer to one task; raises WorkerDied."""
        try:
            self._input.write(task_head(sides, len(batch)))
            self._input.write(batch)
            await self._input.drain()
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

    async def flaws(self, sides: Sequence[bool], batch: memoryview) -> list[RecordFlaw]:
        """What is wrong with the records of a batch; SchemasAway if nobody can tell."""
        if self._waiting_bytes and self._waiting_bytes + len(batch) > WAITING_BYTES_MAX:
            raise SchemasAway("too many batches wait to be decoded")
        self._waiting_bytes += len(batch)
        try:
            async with self._free:
                return await self._try_twice(sides, batch)
        finally:
            self._waiting_bytes -= len(batch)

    async def close(self) -> None:
        """End all processes."""
        workers = [*self._idle, *self._busy]
        self._idle.clear()
        for worker in workers:
            await worker.kill()

    async def _try_twice(self, sides: Sequence[bool], batch: memoryview) -> list[RecordFlaw]:
        reason = ""
        for _ in range(_TRIES):
            try:
                return read_answer(await self._ask_one(sides, batch))
            except WorkerDied as error:
                self.deaths += 1
                reason = str(error)
                log.warning("A batch could not be decoded: %s", reason)
        told = f"two processes could not decode the batch: {reason}"
        return [
            RecordFlaw(index, sides[-1], told, "penstock.schemas.checking.workers.WorkerDied")
            for index in range(read_header(batch).record_count)
        ]

    async def _ask_one(self, sides: Sequence[bool], batch: memoryview) -> bytes:
        worker = await self._take()
        self._busy.add(worker)
        is_done = False
        try:
            async with asyncio.timeout(self._limit_s + _GRACE_S):
                answer = await worker.ask(sides, batch)
            is_done = True
            return answer
        except TimeoutError:
            raise WorkerDied(f"the process {worker.pid} did not answer in time") from None
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
