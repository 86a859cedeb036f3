"""Random histories of a compacted log, against a list of everything that was ever written."""

import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.storage.compacted import COMPACT, LIMITS, clean_once, keyed, read_committed
from tests.unit.storage.made import MEMORY, Batch, append, marker, new_log, read_batches, reopened

from penstock.records.batch import read_records
from penstock.records.compression import Codec
from penstock.storage.log.log import Log

KEYS = [b"a", b"b", b"c", b"d", b"e"]
PRODUCERS = (7, 8)
RETENTION_MS = COMPACT.delete_retention_ms

records = st.lists(
    st.tuples(st.sampled_from(KEYS), st.sampled_from([b"v" * 10, b"w" * 30, None])),
    min_size=1,
    max_size=4,
)
steps = st.one_of(
    st.tuples(st.just("write"), records, st.sampled_from([Codec.NONE, Codec.NONE, Codec.GZIP])),
    st.tuples(st.just("idempotent"), records),
    st.tuples(st.just("transactional"), st.sampled_from(PRODUCERS), records),
    st.tuples(st.just("end"), st.sampled_from(PRODUCERS), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(
        st.just("clean"), st.sampled_from([0, 1, 700, RETENTION_MS]), st.sampled_from([1, 4])
    ),
    st.tuples(st.just("restart"), st.booleans()),
)

IDEMPOTENT = 5


@dataclass
class Written:
    """One record, and what became of it."""

    offset: int
    batch_offset: int
    key: bytes
    value: bytes | None
    producer_id: int = -1
    is_visible: bool | None = True  # None: its transaction is open.
    cleaned_ms: int | None = None  # When its batch was first met by the cleaner; None: not yet.


@dataclass
class World:
    """The log, and what should be in it."""

    log: Log
    now_ms: int = 0
    written: list[Written] = field(default_factory=list)
    sequences: dict[int, int] = field(default_factory=dict)
    last_clean_ms: int | None = None

    def write(
        self, batch: Batch, entries: list[tuple[bytes, bytes | None]], **facts: object
    ) -> None:
        base = append(self.log, batch, now_ms=self.now_ms).base_offset
        for number, (key, value) in enumerate(entries):
            self.written.append(Written(base + number, base, key, value, **facts))  # type: ignore[arg-type]

    def producer(self, producer_id: int, count: int) -> tuple[int, int, int]:
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + count
        return producer_id, 0, sequence

    def step(self, name: str, *arguments: object) -> None:
        getattr(self, f"step_{name}")(*arguments)

    def step_write(self, entries: list[tuple[bytes, bytes | None]], codec: Codec) -> None:
        self.write(keyed(entries, codec=codec), entries)

    def step_idempotent(self, entries: list[tuple[bytes, bytes | None]]) -> None:
        producer = self.producer(IDEMPOTENT, len(entries))
        self.write(keyed(entries, producer=producer), entries, producer_id=IDEMPOTENT)

    def step_transactional(self, pid: int, entries: list[tuple[bytes, bytes | None]]) -> None:
        batch = keyed(entries, producer=self.producer(pid, len(entries)), is_transactional=True)
        self.write(batch, entries, producer_id=pid, is_visible=None)

    def step_end(self, pid: int, is_commit: bool) -> None:
        append(self.log, marker(pid, 0, is_commit=is_commit), now_ms=self.now_ms)
        for one in self.written:
            if one.producer_id == pid and one.is_visible is None:
                one.is_visible = is_commit

    def step_roll(self) -> None:
        self.log.roll(self.now_ms)

    def step_clean(self, later_ms: int, keys_max: int) -> None:
        """Sometimes with so little memory that it takes many rounds."""
        self.now_ms += later_ms
        limits = LIMITS if keys_max > 1 else replace(LIMITS, map_bytes=1, load_factor=0.05)
        outcome = clean_once(self.log, now_ms=self.now_ms, limits=limits)
        if outcome is not None:
            self.last_clean_ms = self.now_ms
            for one in self.written:
                if one.batch_offset < outcome.end_offset and one.cleaned_ms is None:
                    one.cleaned_ms = self.now_ms

    def step_restart(self, is_clean: bool) -> None:
        cleaned_offset = self.log.cleaned_offset
        self.log = reopened(self.log, clean=is_clean, now_ms=self.now_ms)
        self.log.cleaned_offset = cleaned_offset

    # What must hold

    def newest(self) -> dict[bytes, Written]:
        """Of every key, the last record that readers of committed records see."""
        stable = self.log.last_stable_offset
        return {one.key: one for one in self.written if one.is_visible and one.offset < stable}

    def check(self) -> None:
        self.check_order()
        self.check_newest()
        self.check_clean_section()
        self.check_dirty_section()
        self.check_any_start()

    def check_order(self) -> None:
        """Offsets only grow, and a record is what it always was."""
        known = {one.offset: (one.key, one.value) for one in self.written}
        last = -1
        for header, data in read_batches(self.log):
            assert header.base_offset > last
            last = header.last_offset
            if header.is_control:
                continue
            for record in read_records(data):
                assert known[record.offset] == (record.key, record.value)
                assert header.base_offset <= record.offset <= header.last_offset

    def check_newest(self) -> None:
        """The last value of a key is always there; its tombstone, as long as it must be."""
        seen = dict(read_committed(self.log))
        for one in self.newest().values():
            if one.value is not None or not self.may_be_gone(one):
                assert seen[one.offset] == one.value, one

    def may_be_gone(self, tombstone: Written) -> bool:
        return (
            tombstone.cleaned_ms is not None
            and self.last_clean_ms is not None
            and self.last_clean_ms >= tombstone.cleaned_ms + RETENTION_MS
        )

    def check_clean_section(self) -> None:
        """Behind the cleaner there is one record of a key, and none of an aborted transaction."""
        cleaned = self.log.cleaned_offset or 0
        seen = {offset for offset, _ in read_committed(self.log) if offset < cleaned}
        here = [one for one in self.written if one.offset < cleaned and one.offset in seen]
        assert all(one.is_visible for one in here)
        keys = [one.key for one in here]
        assert len(keys) == len(set(keys))

    def check_dirty_section(self) -> None:
        """A reader that keeps up sees every record."""
        cleaned = self.log.cleaned_offset or 0
        seen = {offset for offset, _ in read_committed(self.log)}
        stable = self.log.last_stable_offset
        for one in self.written:
            if one.is_visible and cleaned <= one.offset < stable:
                assert one.offset in seen

    def check_any_start(self) -> None:
        """Every offset stays valid: reading from it gives what comes at or after it."""
        everything = read_committed(self.log)
        for start in range(self.log.log_start_offset, self.log.last_stable_offset):
            from_here = read_committed(self.log, start)
            assert from_here == [found for found in everything if found[0] >= start]

    def check_producers_survive(self) -> None:
        """The batches alone, without snapshots, tell as much of the producers as before."""
        before = {e.producer_id: (e.producer_epoch, e.last_sequence) for e in self.log.producers()}
        seen = read_committed(self.log)
        for path in self.log.dir.glob("*.snapshot"):
            path.unlink()
        again = reopened(self.log, clean=False, recovery_point=0, now_ms=self.now_ms)
        after = {e.producer_id: (e.producer_epoch, e.last_sequence) for e in again.producers()}
        assert after == before
        assert read_committed(again) == seen
        assert again.log_end_offset == self.log.log_end_offset


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
@given(st.lists(steps, min_size=5, max_size=40))
def test_compaction_keeps_the_last_value_of_every_key(history: list[tuple[object, ...]]) -> None:
    root = Path(tempfile.mkdtemp(prefix="penstock-", dir=MEMORY))
    try:
        config = replace(COMPACT, segment_bytes=400)
        world = World(new_log(root, config))
        for name, *arguments in history:
            world.step(str(name), *arguments)
            if name in ("clean", "restart"):
                world.check()
        world.step_roll()
        for later_ms in (0, RETENTION_MS):
            world.step_clean(later_ms, 4)
            world.check()
        world.check_producers_survive()
    finally:
        shutil.rmtree(root)
