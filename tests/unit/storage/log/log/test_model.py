"""The log against a list: whatever is done to both, they agree."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.storage.made import (
    MEMORY,
    Batch,
    append,
    batch,
    new_log,
    read_batches,
    read_values,
    reopened,
)

from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log


class LogMachine(RuleBasedStateMachine):
    """`batches` are the batches that must be in the log, as (first offset, values)."""

    log: Log

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="penstock-", dir=MEMORY))
        self.batches: list[tuple[int, list[bytes]]] = []
        self.start = self.end = 0
        self.epochs: list[tuple[int, int]] = [(0, 0)]
        self.last_epoch = 0
        self.written = 0

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    @initialize(
        segment_bytes=st.sampled_from([300, 1000, 100_000]),
        interval_bytes=st.sampled_from([0, 100, 4096]),
        index_bytes=st.sampled_from([40, 4096]),
    )
    def open_a_new_log(self, segment_bytes: int, interval_bytes: int, index_bytes: int) -> None:
        config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval_bytes,
            segment_index_bytes=index_bytes,
            retention_ms=-1,
        )
        self.log = new_log(self.root, config)

    def _batch(self, count: int, **more: int) -> tuple[Batch, list[bytes]]:
        values = [b"value %d" % (self.written + number) for number in range(count)]
        self.written += count
        return batch(values, **more), values  # type: ignore[arg-type]

    @rule(count=st.integers(1, 5))
    def the_leader_appends(self, count: int) -> None:
        one, values = self._batch(count)
        appended = append(self.log, one, leader_epoch=self.epochs[-1][0])
        assert (appended.base_offset, appended.last_offset) == (self.end, self.end + count - 1)
        self._grew(self.end, values)

    @rule(counts=st.lists(st.integers(1, 3), min_size=1, max_size=4), gap=st.integers(0, 2))
    def the_follower_appends(self, counts: list[int], gap: int) -> None:
        offset, batches, epoch = self.end + gap, [], self.epochs[-1][0]
        for count in counts:
            one, values = self._batch(count, base_offset=offset, leader_epoch=epoch)
            batches.append(one)
            self._grew(offset, values)
            offset += count
        self.log.append_as_follower(batches, now_ms=0)
        self.log.high_watermark = self.log.log_end_offset

    def _grew(self, offset: int, values: list[bytes]) -> None:
        self.batches.append((offset, values))
        self.end = offset + len(values)

    @rule()
    def a_new_leader_is_elected(self) -> None:
        self.last_epoch += 1
        self.log.assign_epoch_start(self.last_epoch, self.end)
        self.epochs = [entry for entry in self.epochs if entry[1] < self.end]
        self.epochs.append((self.last_epoch, self.end))

    @rule()
    def the_log_rolls(self) -> None:
        self.log.roll(now_ms=0)

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def the_tail_is_cut_off(self, data: st.DataObject) -> None:
        cut = data.draw(st.sampled_from([offset for offset, _ in self.batches]), label="cut")
        self.log.truncate_to(cut)
        self.batches = [(offset, values) for offset, values in self.batches if offset < cut]
        self._ends_at(cut)

    def _ends_at(self, offset: int) -> None:
        self.end = offset
        self.start = min(self.start, offset)
        self.epochs = [entry for entry in self.epochs if entry[1] < offset]
        self.a_new_leader_is_elected()  # As a partition does after each cut or restart.

    @rule(data=st.data())
    def records_are_deleted(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end), label="offset")
        self.log.delete_records_before(offset)
        self.start = max(self.start, offset)
        before = [entry for entry in self.epochs if entry[1] <= self.start]
        if before:
            self.epochs = [(before[-1][0], self.start), *self.epochs[len(before) :]]

    @rule()
    def retention_removes_what_is_before_the_start(self) -> None:
        self.log.retain(now_ms=0)
        self.log.delete_expired_files(now_ms=1 << 60)

    @rule(offset=st.integers(0, 2000))
    def everything_is_replaced(self, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset)
        self.batches, self.start, self.epochs = [], offset, []
        self._ends_at(offset)

    @rule(is_clean=st.booleans(), is_flushed=st.booleans())
    def the_process_starts_anew(self, is_clean: bool, is_flushed: bool) -> None:
        if is_flushed:
            self.log.flush()
        self.log = reopened(self.log, clean=is_clean)
        self.end = min(self.end, self.log.log_end_offset)  # A gap at the end is not in the files.
        self._ends_at(self.end)

    @invariant()
    def they_agree(self) -> None:
        if not hasattr(self, "log"):
            return
        expected = [
            (offset + number, value)
            for offset, values in self.batches
            for number, value in enumerate(values)
            if offset + number >= self.start
        ]
        assert self.log.log_end_offset == self.end
        assert self.log.log_start_offset == self.start
        assert read_values(self.log) == expected
        assert list(self.log.epochs) == self.epochs
        if expected:
            self._reads_from_anywhere(expected)

    def _reads_from_anywhere(self, expected: list[tuple[int, bytes]]) -> None:
        middle = expected[len(expected) // 2][0]
        assert read_values(self.log, middle) == [pair for pair in expected if pair[0] >= middle]
        small = read_batches(self.log, middle, bytes_max=1)
        assert [data.tobytes() for _, data in small] == [
            data.tobytes() for _, data in read_batches(self.log, middle)
        ]


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
