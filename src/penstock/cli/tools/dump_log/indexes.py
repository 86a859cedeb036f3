"""The small files beside a segment: indexes, checked against the log, and producer snapshots."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct

from penstock.cli.tools.dump_log.batches import batches
from penstock.errors import CommandError, CorruptRecord
from penstock.records.batch import HEADER_BYTES, BatchHeader, read_header
from penstock.storage.producers.snapshot import read_snapshot
from penstock.storage.segments.transaction_index import ENTRY_BYTES, TransactionIndex

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_INT_MAX = 2**31 - 1


@dataclass(slots=True)
class Faults:
    """What was found wrong, by file; told at the end."""

    offsets: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    times: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    disorder: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    gaps: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def print(self) -> None:
        """Tell all of it, in Kafka's words."""
        _tell(self.offsets, "Mismatches in", "Index offset: {}, log offset: {}")
        _tell(self.times, "Found timestamp mismatch in", "Index timestamp: {}, log timestamp: {}")
        _tell(
            self.disorder,
            "Found out of order timestamp in",
            "Index timestamp: {}, Previously indexed timestamp: {}",
        )
        _tell(self.gaps, "Non-consecutive offsets in", "{} is followed by {}")


def offset_index(path: Path, start: int, options: argparse.Namespace, faults: Faults) -> None:
    """Print a `.index` file, or only check it."""
    if path.stat().st_size == 0:
        print(f"{path} is empty.")
        return
    if options.index_sanity_check:
        _check_size(path, _OFFSET_ENTRY)
        return
    log = path.with_suffix(".log")
    wrong = faults.offsets.setdefault(str(path), [])
    for relative, position in _entries(path, _OFFSET_ENTRY, offset_at=0):
        header = _header_at(log, position)
        if header is not None and header.last_offset != start + relative:
            wrong.append((start + relative, header.last_offset))
        if not options.verify_index_only:
            print(f"offset: {start + relative} position: {position}")


def time_index(path: Path, start: int, options: argparse.Namespace, faults: Faults) -> None:
    """Print a `.timeindex` file, or only check it."""
    if options.index_sanity_check:
        _check_size(path, _TIME_ENTRY)
        return
    newest = _newest_by_offset(path.with_suffix(".log"))
    wrong = faults.times.setdefault(str(path), [])
    disorder = faults.disorder.setdefault(str(path), [])
    before = -1
    for timestamp, relative in _entries(path, _TIME_ENTRY, offset_at=1):
        stored = newest(start + relative)
        if stored is not None and stored != timestamp:
            wrong.append((timestamp, stored))
        if timestamp < before:
            disorder.append((timestamp, before))
        before = timestamp
        if not options.verify_index_only:
            print(f"timestamp: {timestamp} offset: {start + relative}")


def transaction_index(path: Path) -> None:
    """Print a `.txnindex` file."""
    index = TransactionIndex(str(path), count=path.stat().st_size // ENTRY_BYTES)
    for entry in index.entries():
        print(
            f"version: 0 producerId: {entry.producer_id} firstOffset: {entry.first_offset} "
            f"lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}"
        )


def producer_snapshot(path: Path) -> None:
    """Print a `.snapshot` file."""
    try:
        entries = read_snapshot(path)
    except CorruptRecord as error:
        raise CommandError(f"{path} is not a producer snapshot: {error}.") from error
    for entry in entries:
        since = entry.open_since
        first = "OptionalLong.empty" if since is None else f"OptionalLong[{since}]"
        line = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch} "
            f"coordinatorEpoch: {entry.coordinator_epoch} currentTxnFirstOffset: {first} "
            f"lastTimestamp: {entry.last_timestamp} "
        )
        if entry.batches:
            batch = entry.batches[0]
            line += (
                f"firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence} "
                f"lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta} "
                f"timestamp: {batch.timestamp}"
            )
        print(line)


class _NewestByOffset:
    """The newest timestamp of the batch that holds an offset; reads the log once, forwards."""

    def __init__(self, log: Path) -> None:
        found = batches(log, bytes_max=_INT_MAX) if log.is_file() else iter(())
        self._headers: Iterator[BatchHeader] = (batch.header for batch in found)
        self._current: BatchHeader | None = None

    def __call__(self, offset: int) -> int | None:
        while self._current is None or self._current.last_offset < offset:
            self._current = next(self._headers, None)
            if self._current is None:
                return None
        return self._current.max_timestamp


def _newest_by_offset(log: Path) -> _NewestByOffset:
    return _NewestByOffset(log)


def _entries(path: Path, layout: Struct, *, offset_at: int) -> Iterator[tuple[int, int]]:
    """Entries up to the preallocated zeros behind them."""
    data = path.read_bytes()
    whole = data[: len(data) // layout.size * layout.size]
    for number, entry in enumerate(layout.iter_unpack(whole)):
        if entry[offset_at] == 0 and number > 0:
            return
        if not any(entry):
            return
        yield entry


def _header_at(log: Path, position: int) -> BatchHeader | None:
    """The header of the batch at a position; None without a log to look into."""
    if not log.is_file():
        return None
    with log.open("rb") as file:
        file.seek(position)
        head = file.read(HEADER_BYTES)
    return read_header(head) if len(head) == HEADER_BYTES else None


def _check_size(path: Path, layout: Struct) -> None:
    size = path.stat().st_size
    if size % layout.size:
        raise CommandError(
            f"{path} is corrupt: its size {size} is not a multiple of {layout.size}."
        )
    print(f"{path} passed sanity check.")


def _tell(found: dict[str, list[tuple[int, int]]], title: str, form: str) -> None:
    for name, pairs in found.items():
        if pairs:
            print(f"{title} :{name}")
            for first, second in pairs:
                print(f"  {form.format(first, second)}")
