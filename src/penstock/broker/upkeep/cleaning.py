"""Compaction beside the event loop: as many cleaning processes as `log.cleaner.threads` says.

This starts the processes when there is something to clean, hands them one log at a time, swaps in
what they have made, and ends them when they are idle for long. What is to be cleaned, and how, is
`storage/compaction`; a line of theirs is described in `storage/compaction/worker.py`.
"""

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any, Final

from penstock.broker.context import Broker
from penstock.broker.slices import TimeSlice
from penstock.broker.upkeep.threads import in_thread
from penstock.errors import KafkaStorage
from penstock.storage.compaction.cleaner import Cleaner, CleanerLimits, Cleaning
from penstock.storage.compaction.job import FAILED_FOR_GOOD
from penstock.telemetry.metrics import Gauge

log = logging.getLogger("kafka.log.LogCleaner")

_WORKER: Final = "penstock.storage.compaction.worker"
_HURRIED: Final = "--hurried"
_LINE_BYTES_MAX: Final = 64 << 20
_TICK_S: Final = 1.0  # A changed setting acts within this.
_IDLE_S_MAX: Final = 30.0
_GOODBYE_S: Final = 5.0
_MAP_BYTES_MAX: Final = 2**31 - 1
_IO_BYTES_MIN: Final = 64 << 10  # Less would cost more system calls than it saves memory.
_MB: Final = 1_000_000

Message = dict[str, Any]


class WorkerGone(Exception):
    """A cleaning process ended in the middle of its work."""


class WorkerProcess:
    """One cleaning process, spoken to in lines of JSON."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._input = process.stdin
        self._output = process.stdout

    @classmethod
    async def start(cls, *, is_hurried: bool) -> "WorkerProcess":
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            _WORKER,
            *([_HURRIED] if is_hurried else []),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LINE_BYTES_MAX,
        )
        return cls(process)

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    def tell(self, message: Message) -> None:
        self.tell_line(json.dumps(message, separators=(",", ":")))

    def tell_line(self, line: str) -> None:
        self._input.write(line.encode() + b"\n")

    async def hear(self) -> Message:
        """The next answer."""
        line = await self._output.readline()
        if not line.endswith(b"\n"):
            raise WorkerGone(f"the cleaning process {self._process.pid} ended unexpectedly")
        answer: Message = json.loads(line)
        return answer

    async def dismiss(self) -> None:
        """Let it end by itself, which it does when its input ends."""
        self._input.close()
        try:
            await asyncio.wait_for(self._process.wait(), _GOODBYE_S)
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


class Lane:
    """Cleans one log after the other with one process."""

    def __init__(self, number: int, house: "CleaningHouse") -> None:
        self.number = number
        self.is_cleaning = False
        self.last: Message = {}  # The process's report on its last log.
        self._house = house
        self._worker: WorkerProcess | None = None  # None: not needed at the moment.
        self._bytes_per_s = 0.0  # As the process knows it.
        self._is_hurried = False  # Whether the last process found the machine too busy.

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        busy_s = loop.time()
        try:
            while True:
                if await self._try_to_clean():
                    busy_s = loop.time()
                    continue
                if loop.time() - busy_s > _IDLE_S_MAX:
                    await self._dismiss()
                    self._is_hurried = False
                await self._pause()
        finally:
            await self._kill()

    async def _pause(self) -> None:
        """For `log.cleaner.backoff.ms`, which may change meanwhile."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        while True:
            backoff_s = self._house.broker.config.log_cleaner_backoff_ms / 1000
            left_s = began_s + backoff_s - loop.time()
            await asyncio.sleep(max(0, min(left_s, _TICK_S)))
            if left_s <= _TICK_S:
                return

    # The process

    async def _ready_worker(self) -> WorkerProcess:
        if self._worker is None or not self._worker.is_running:
            self._worker = await WorkerProcess.start(is_hurried=self._is_hurried)
        return self._worker

    async def _dismiss(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.dismiss()

    async def _kill(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.kill()

    def set_rate(self, bytes_per_s: float) -> None:
        """Our part of what all cleaners may read and write changed."""
        if self.is_cleaning and self._worker is not None and bytes_per_s != self._bytes_per_s:
            self._bytes_per_s = bytes_per_s
            self._worker.tell({"bytes_per_s": bytes_per_s})

    # Cleaning

    async def _try_to_clean(self) -> bool:
        try:
            return await self._clean_next()
        except Exception:
            log.exception("Cleaner %d failed and will try again", self.number)
            return False

    async def _choose(self) -> Cleaning | None:
        cleaner, broker, pace = self._house.cleaner, self._house.broker, TimeSlice()
        now_ms = broker.now_ms()
        examined = []
        for dirty in cleaner.examined(list(broker.log_dirs.logs()), now_ms):
            examined.append(dirty)
            await pace.breathe()
        return cleaner.choose_of(examined, now_ms)

    async def _clean_next(self) -> bool:
        """Whether a log was cleaned, so that there may be more to do at once."""
        cleaning = await self._choose()
        if cleaning is None:
            return False
        partition = cleaning.log.topic_partition
        self.is_cleaning = True
        is_cleaned = False
        try:
            is_cleaned = await self._clean(cleaning)
        except (KafkaStorage, OSError, WorkerGone) as error:
            self._house.failures += 1
            log.error("%s could not be cleaned and will be tried again: %s", partition, error)
        finally:
            self.is_cleaning = False
            if not is_cleaned:
                await self._kill()  # Before its files go.
                await asyncio.to_thread(cleaning.drop_unfinished)
            cleaning.close()
        return is_cleaned

    async def _clean(self, cleaning: Cleaning) -> bool:
        broker, dirty = self._house.broker, cleaning.dirty
        worker = await self._ready_worker()
        limits = self._house.limits()
        self._bytes_per_s = limits.bytes_per_s
        job = await asyncio.to_thread(_described, cleaning, limits, broker.now_ms())
        log.info(
            "Cleaner %d: Beginning cleaning of log %s, dirty from offset %d to %d (%d of %d bytes)",
            self.number,
            cleaning.log.topic_partition,
            dirty.first_dirty,
            dirty.end_offset,
            dirty.dirty_bytes,
            dirty.clean_bytes + dirty.dirty_bytes,
        )
        worker.tell_line(job)
        while True:
            answer = await worker.hear()
            if "group" not in answer:
                return await self._take_end(cleaning, answer)
            group = answer["group"]
            is_swapped = await in_thread(cleaning.swap, group["old"], group["new"], broker.now_ms())
            worker.tell({"swapped": True} if is_swapped else {"stop": True})

    async def _take_end(self, cleaning: Cleaning, answer: Message) -> bool:
        partition = cleaning.log.topic_partition
        if "done" in answer:
            self.last = answer["done"]
            cleaning.finish(self.last["end_offset"])
            await in_thread(self._house.broker.log_dirs.write_cleaned_offsets)
            log.info("Cleaner %d: %s", self.number, _summary(cleaning, self.last))
            return True
        if "starved" in answer:
            log.info("The cleaning of %s begins again: it got too little time", partition)
            self._is_hurried = True
            await self._dismiss()
            return True
        if "failed" not in answer:
            log.info("The cleaning of %s was given up: the log changed under it", partition)
            return False
        kind, why = answer["failed"]["kind"], answer["failed"]["why"]
        if kind == FAILED_FOR_GOOD:
            cleaning.give_up(why)
            log.warning(
                "Unexpected error while cleaning log %s. Marking its partition as uncleanable; "
                "it is served as before and will not be compacted until the broker is started "
                "again: %s",
                partition,
                why,
            )
        elif cleaning.log.failure is None:
            self._house.failures += 1
            log.error("%s could not be cleaned and will be tried again: %s", partition, why)
        return False


def _described(cleaning: Cleaning, limits: CleanerLimits, now_ms: int) -> str:
    """The line that tells a process what to do; that of a log of many segments is long."""
    return f'{{"clean":{cleaning.job(limits, now_ms).encode()}}}'


def _summary(cleaning: Cleaning, done: Message) -> str:
    dirty = cleaning.dirty
    before = dirty.clean_bytes + dirty.dirty_bytes
    total_s = max(done["total_s"], 0.001)
    return (
        f"Cleaned log {cleaning.log.topic_partition} (dirty section = [{dirty.first_dirty}, "
        f"{done['end_offset']}]): {before / _MB:.1f} MB of log in {total_s:.1f} seconds "
        f"({before / _MB / total_s:.1f} MB/s), {done['key_count']} keys, "
        f"{done['map_share']:.1%} of the buffer, {done['written_bytes'] / _MB:.1f} MB written anew"
    )


class CleaningHouse:
    """All cleaners of a broker."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.cleaner = Cleaner()
        self.failures = 0  # Cleanings that broke off and will be tried again.
        self._lanes: list[Lane] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Keep the number of cleaners and their rate as the settings say, until cancelled."""
        try:
            while True:
                try:
                    await self._adjust()
                except Exception:
                    log.exception("The number of cleaners could not be changed")
                await asyncio.sleep(_TICK_S)
        finally:
            await self._end(0)

    async def _adjust(self) -> None:
        config = self.broker.config
        wanted = config.log_cleaner_threads if config.log_cleaner_enable else 0
        await self._end(wanted)
        for number in range(len(self._lanes), wanted):
            lane = Lane(number, self)
            self._lanes.append(lane)
            self._tasks.append(asyncio.create_task(lane.run(), name=f"cleaner {number}"))
        bytes_per_s = self.limits().bytes_per_s
        for lane in self._lanes:
            lane.set_rate(bytes_per_s)

    async def _end(self, wanted: int) -> None:
        """End the cleaners beyond a number."""
        ending, self._tasks = self._tasks[wanted:], self._tasks[:wanted]
        del self._lanes[wanted:]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    def limits(self) -> CleanerLimits:
        """What one cleaner may use: memory is shared by all, the rate by those at work."""
        config = self.broker.config
        threads = max(1, config.log_cleaner_threads)
        busy = max(1, sum(lane.is_cleaning for lane in self._lanes))
        return CleanerLimits(
            map_bytes=min(config.log_cleaner_dedupe_buffer_size // threads, _MAP_BYTES_MAX),
            load_factor=min(max(config.log_cleaner_io_buffer_load_factor, 0.01), 1.0),
            io_bytes=max(config.log_cleaner_io_buffer_size // threads // 2, _IO_BYTES_MIN),
            bytes_per_s=config.log_cleaner_io_max_bytes_per_second / busy,
        )

    # What a scrape sees

    def gauges(self) -> Iterator[Gauge]:
        cleaner, now_ms = self.cleaner, self.broker.now_ms()
        since_ms = 0 if cleaner.chosen_ms is None else now_ms - cleaner.chosen_ms
        done = [lane.last for lane in self._lanes if lane.last]
        read = sum(last["io_bytes"] - last["written_bytes"] for last in done)
        written = sum(last["written_bytes"] for last in done)
        for name, value in (
            ("manager_max_dirty_percent", int(100 * cleaner.largest_dirty_share)),
            ("manager_time_since_last_run_ms", since_ms),
            ("_max_compaction_delay_secs", cleaner.longest_overdue_ms // 1000),
            ("_max_clean_time_secs", max((int(last["total_s"]) for last in done), default=0)),
            (
                "_max_buffer_utilization_percent",
                max((int(100 * last["map_share"]) for last in done), default=0),
            ),
            ("_cleaner_recopy_percent", 100 * written // read if read else 0),
            ("_failed_cleanings", self.failures),
        ):
            yield Gauge(f"kafka_log_logcleaner{name}", {}, value)
        yield from self._uncleanable()

    def _uncleanable(self) -> Iterator[Gauge]:
        for path in self.broker.log_dirs.paths:
            sizes = [
                partition_log.size_bytes
                for partition_log, _ in self.cleaner.uncleanable.values()
                if partition_log.dir.parent == path
            ]
            labels = {"logDirectory": str(path)}
            prefix = "kafka_log_logcleanermanager_uncleanable"
            yield Gauge(f"{prefix}_partitions_count", labels, len(sizes))
            yield Gauge(f"{prefix}_bytes", labels, sum(sizes))


async def keep_clean(broker: Broker) -> None:
    """Compact logs until cancelled."""
    house = CleaningHouse(broker)
    broker.metrics.watch(house.gauges)
    await house.run()
