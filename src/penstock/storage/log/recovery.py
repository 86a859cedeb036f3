"""Bringing a log back from its directory: quickly after a clean stop, carefully after a crash.

After a clean stop the files are what they should be, and no batch is read: the recovery point and
the producer snapshot both name the log's end. After a crash everything from the recovery point on
is read and checked (length, magic, CRC, offsets), the first batch that fails and all behind it are
cut off, and the indexes, the producers and the leader epochs are made to fit what is left. So the
longest valid prefix survives. In both cases a missing or broken index is built anew.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from penstock.errors import CorruptRecord
from penstock.records.batch import BatchHeader
from penstock.storage.log.config import LogConfig
from penstock.storage.log.leader_epochs import EpochStart, LeaderEpochs
from penstock.storage.producers import snapshot as producer_snapshot
from penstock.storage.producers.kept import ProducerState
from penstock.storage.producers.producers import ProducerTable
from penstock.storage.segments import offset_index, time_index, transaction_index
from penstock.storage.segments.batch_scan import read_headers, verified_batches
from penstock.storage.segments.file_slice import read_exactly
from penstock.storage.segments.files import SegmentFile, finish_interrupted
from penstock.storage.segments.segment import INT_MAX, LOG_SUFFIX, SUFFIXES, CorruptIndex, Segment

Report = Callable[[str], None]


class LoadedLog(NamedTuple):
    """A log as its directory holds it."""

    segments: list[Segment]
    producers: ProducerState
    epochs: LeaderEpochs
    log_start_offset: int
    log_end_offset: int
    recovery_point: int


class Loading(NamedTuple):
    """What all steps of one load need."""

    directory: Path
    config: LogConfig
    now_ms: int
    is_clean: bool
    recovery_point: int
    log_start_offset: int
    report: Report

    @property
    def prefix(self) -> str:
        return f"[LogLoader partition={self.directory.name}, dir={self.directory.parent}]"


def load_log(loading: Loading) -> LoadedLog:
    """Open what is in the directory; an empty one gets its first segment."""
    directory = loading.directory
    files = finish_interrupted(directory, loading.report)
    snapshots = [f.base_offset for f in files if f.kind == producer_snapshot.SUFFIX]
    producers = ProducerState(directory, snapshots)
    segments, broken = _open_segments(loading, files)
    epochs = _load_epochs(loading, segments)
    for segment in broken:
        if loading.is_clean or not _is_unflushed(segment, segments, loading):
            _rebuild(segment, segments, producers, loading)
    if loading.is_clean:
        end_offset = _clean_end_offset(loading, segments, producers)
    else:
        end_offset = _recover(loading, segments, producers, epochs)
    if not segments or end_offset < loading.log_start_offset:
        return _start_empty(loading, segments, producers, epochs, end_offset)
    return _finish(loading, segments, producers, epochs, end_offset)


def _open_segments(
    loading: Loading, files: list[SegmentFile]
) -> tuple[list[Segment], list[Segment]]:
    """The segments in order, and those whose indexes are missing or cannot be right."""
    sizes: dict[int, dict[str, int]] = {}
    for file in files:
        sizes.setdefault(file.base_offset, {})[file.kind] = file.size
    segments, broken = [], []
    for base_offset, known in sizes.items():
        if LOG_SUFFIX not in known:
            _remove_orphans(loading, base_offset, known)
            continue
        segment = Segment(
            loading.directory,
            base_offset,
            loading.config,
            created_ms=loading.now_ms,
            sizes=[known.get(kind, 0) for kind in SUFFIXES],
        )
        segments.append(segment)
        if not _have_indexes_sane_sizes(known):
            broken.append(segment)
    if segments and segments[-1] not in broken and not _are_indexes_sane(segments[-1]):
        broken.append(segments[-1])
    return segments, broken


def _remove_orphans(loading: Loading, base_offset: int, known: Iterable[str]) -> None:
    for kind in known:
        if kind != producer_snapshot.SUFFIX:
            path = loading.directory / f"{base_offset:020d}{kind}"
            loading.report(f"Removed {path}, an index without a log")
            path.unlink()


def _have_indexes_sane_sizes(known: dict[str, int]) -> bool:
    return (
        known.get(offset_index.SUFFIX, -1) % offset_index.ENTRY_BYTES == 0
        and known.get(time_index.SUFFIX, -1) % time_index.ENTRY_BYTES == 0
        and known.get(transaction_index.SUFFIX, 0) % transaction_index.ENTRY_BYTES == 0
    )


def _are_indexes_sane(segment: Segment) -> bool:
    return (
        segment.offsets.is_sane(segment.size)
        and segment.times.is_sane()
        and segment.transactions.is_sane(segment.base_offset)
    )


def _is_unflushed(segment: Segment, segments: list[Segment], loading: Loading) -> bool:
    """Whether recovery goes through the segment anyway."""
    following = [s for s in segments if s.base_offset > segment.base_offset]
    return not following or following[0].base_offset > loading.recovery_point


# Building indexes anew


def reindex(segment: Segment) -> None:
    """Build the indexes of offsets and timestamps anew, as far as batches can be followed."""
    segment.reset_indexes()
    with suppress(CorruptRecord):  # What is behind the damage is reported when it is read.
        for position, header in read_headers(segment.file, 0, segment.size):
            _index(segment, position, header)
    segment.write_indexes()


def _index(segment: Segment, position: int, header: BatchHeader) -> None:
    segment.index_batch(position, header.size_bytes, header.last_offset, header.max_timestamp)


def _rebuild(
    segment: Segment, segments: list[Segment], producers: ProducerState, loading: Loading
) -> None:
    """All three indexes of a segment that recovery does not come to."""
    loading.report(f"Rebuilding the indexes of {segment.log_path}")
    reindex(segment)
    segment.transactions.reset()
    table = _table_at(segment, segments, producers, loading)
    try:
        for _, header, batch in _replayed(segment, 0):
            aborted = table.replay(header, batch)
            if aborted:
                segment.transactions.append(aborted)
    except CorruptRecord as error:
        loading.report(f"{segment.log_path} is damaged and cannot be read to its end: {error}")
    segment.close_for_append()


def _replayed(
    segment: Segment, position: int
) -> Iterator[tuple[int, BatchHeader, memoryview | None]]:
    """Headers, with the body of control batches, which is small."""
    file = segment.file
    for at, header in read_headers(file, position, segment.size):
        batch = None
        if header.producer_id >= 0 and header.is_control:
            batch = memoryview(read_exactly(file.fd, at, header.size_bytes))
        yield at, header, batch


def _table_at(
    segment: Segment, segments: list[Segment], producers: ProducerState, loading: Loading
) -> ProducerTable:
    """The producers as they were where a segment begins."""
    _load_producers(
        loading, producers, segments, loading.log_start_offset, segment.base_offset, is_deep=True
    )
    return producers.table


def _load_producers(
    loading: Loading,
    producers: ProducerState,
    segments: list[Segment],
    log_start_offset: int,
    end_offset: int,
    *,
    is_deep: bool,
) -> None:
    """A usable snapshot, and what came after it."""
    if not loading.is_clean:
        loading.report(
            f"{loading.prefix} Loading producer state till offset {end_offset} with message "
            "format version 2"
        )
    producers.load(
        log_start_offset=log_start_offset,
        snapshot_offset_max=deep_snapshot(segments, end_offset) if is_deep else end_offset,
        now_ms=loading.now_ms,
        expiration_ms=loading.config.producer_id_expiration_ms,
        report=loading.report,
    )
    replay_producers(segments, producers.table, end_offset)


def deep_snapshot(segments: Iterable[Segment], end_offset: int) -> int:
    """The newest snapshot to begin with where a whole segment shall be replayed.

    A snapshot knows a producer's last batch only. A producer that retries after a crash may send
    five batches again, so we begin a segment earlier, and know them all.
    """
    bases = [segment.base_offset for segment in segments if segment.base_offset < end_offset]
    return bases[-2] if len(bases) > 1 else 0


def replay_producers(segments: Iterable[Segment], table: ProducerTable, end_offset: int) -> None:
    """Bring the table up to `end_offset` from the batches behind its own end."""
    ordered = list(segments)
    for number, segment in enumerate(ordered):
        following = ordered[number + 1].base_offset if number + 1 < len(ordered) else end_offset
        if table.end_offset < min(following, end_offset):
            _replay_segment(segment, table, end_offset)
    table.end_offset = max(table.end_offset, end_offset)


def _replay_segment(segment: Segment, table: ProducerTable, end_offset: int) -> None:
    try:
        start = segment.position_of(table.end_offset)
    except CorruptIndex:
        start = 0
    with suppress(CorruptRecord):  # What cannot be read tells nothing of producers.
        for _, header, batch in _replayed(segment, start):
            if header.base_offset >= end_offset:
                break
            if header.last_offset >= table.end_offset:
                table.replay(header, batch)


# After a clean stop


def _clean_end_offset(loading: Loading, segments: list[Segment], producers: ProducerState) -> int:
    """Where the log ends: at most an index interval of batch headers is read to know."""
    if not segments:
        return loading.log_start_offset
    active = segments[-1]
    if not active.size:
        return active.base_offset
    try:
        return active.next_offset()
    except CorruptIndex:
        _rebuild(active, segments, producers, loading)
        return active.next_offset()


# After a crash


def _recover(
    loading: Loading, segments: list[Segment], producers: ProducerState, epochs: LeaderEpochs
) -> int:
    """Check everything from the recovery point on and cut off what is not whole."""
    unflushed = [s for s in segments if _is_unflushed(s, segments, loading)]
    if not unflushed:
        return loading.log_start_offset
    table = _table_at(unflushed[0], segments, producers, loading)
    known = dict(epochs.entries)
    # A power cut can bring back records that were truncated, while the epoch file says that they
    # are gone. So the epochs of what is checked here are read from its batches.
    found = _flushed_epochs(loading, segments[: -len(unflushed)], epochs, unflushed[0].base_offset)
    end_offset = unflushed[0].base_offset
    for number, segment in enumerate(unflushed):
        if number and _is_hole(unflushed[number - 1], end_offset, segment, loading.config):
            loading.report(f"Nothing is left of offsets {end_offset} to {segment.base_offset}")
            _drop(loading, segments, unflushed[number:], producers)
            break
        loading.report(
            f"{loading.prefix} Recovering unflushed segment {segment.base_offset}. "
            f"{number}/{len(unflushed)} recovered for {loading.directory.name}."
        )
        end_offset = max(end_offset, segment.base_offset)
        reason, end_offset = _recover_segment(segment, table, found, known, end_offset)
        if reason is not None:
            loading.report(f"{reason}; the log ends at offset {end_offset} now")
            _drop(loading, segments, unflushed[number + 1 :], producers)
            break
    epochs.replace(tuple(found))
    table.end_offset = end_offset
    return end_offset


def _flushed_epochs(
    loading: Loading, flushed: list[Segment], epochs: LeaderEpochs, end_offset: int
) -> list[EpochStart]:
    """The history of the segments that need no check, which end at an offset.

    When a log's beginning is deleted, its history is cut off on disk at once, but where it begins
    is noted later, and files may keep their names until then. A crash in between brings records
    back that the history has lost; their batches tell it again.
    """
    noted = [e for e in epochs.entries if e.start_offset < end_offset]
    if not flushed or not epochs.entries:
        return noted
    first_offset = epochs.entries[0].start_offset
    if first_offset <= max(loading.log_start_offset, flushed[0].base_offset):
        return noted
    loading.report(
        f"{loading.prefix} Reading the leader epochs before offset {first_offset} from the batches"
    )
    before = [segment for segment in flushed if segment.base_offset < first_offset]
    lost = [e for e in _epochs_of(before) if e.start_offset < first_offset]
    latest = lost[-1].epoch if lost else -1
    return lost + [e for e in noted if e.epoch > latest]


def _is_hole(before: Segment, end_offset: int, segment: Segment, config: LogConfig) -> bool:
    """Whether records are missing between two segments, though every batch is whole.

    A segment begins where the one before it ends. There are two exceptions: compaction removed the
    last records, or the next offset was too far away for the older segment's index.
    """
    is_too_far = segment.base_offset - before.base_offset > INT_MAX
    return end_offset < segment.base_offset and not is_too_far and not config.is_compacted


def _recover_segment(
    segment: Segment,
    table: ProducerTable,
    epochs: list[EpochStart],
    known: Mapping[int, int],
    end_offset: int,
) -> tuple[str | None, int]:
    """Why the segment was cut (None: it is whole), and the offset after its last batch."""
    reason = None
    valid_bytes = 0
    segment.open_for_append()
    segment.reset_indexes()
    segment.transactions.reset()
    try:
        for position, header, batch in verified_batches(segment.file, 0, segment.size):
            _check_order(segment, header, end_offset)
            aborted = table.replay(header, batch)
            if aborted:
                segment.transactions.append(aborted)
            _note_epoch(header, epochs, known, end_offset)
            _index(segment, position, header)
            valid_bytes, end_offset = position + header.size_bytes, header.next_offset
    except CorruptRecord as error:
        reason = (
            f"Found invalid batches in {segment.log_path} at byte {valid_bytes}: {error}; "
            f"cut off {segment.size - valid_bytes} bytes"
        )
    segment.truncate_bytes(valid_bytes)
    segment.close_for_append()
    return reason, end_offset


def _note_epoch(
    header: BatchHeader, epochs: list[EpochStart], known: Mapping[int, int], end_offset: int
) -> None:
    """The batches are the truth; a start that was noted holds as far as it fits between them."""
    epoch, offset = header.leader_epoch, header.base_offset
    while epochs and epochs[-1].epoch > epoch:
        epochs.pop()
    latest = epochs[-1].epoch if epochs else -1
    if epoch == latest:
        return
    epochs += [  # Epochs in between may have begun without writing a record.
        EpochStart(noted, start)
        for noted, start in sorted(known.items())
        if latest < noted < epoch and end_offset <= start < offset
    ]
    start_offset = known.get(epoch, offset)
    if not end_offset <= start_offset <= offset:
        start_offset = offset
    epochs.append(EpochStart(epoch, start_offset))


def _check_order(segment: Segment, header: BatchHeader, end_offset: int) -> None:
    if header.base_offset < end_offset or header.last_offset - segment.base_offset > INT_MAX:
        raise CorruptRecord(
            f"a batch of offsets {header.base_offset} to {header.last_offset} follows {end_offset}"
        )


def _drop(
    loading: Loading, segments: list[Segment], dropped: list[Segment], producers: ProducerState
) -> None:
    for segment in dropped:
        loading.report(f"Removed segment {segment.log_path}, which follows invalid batches")
        segments.remove(segment)
        segment.delete()
        producers.delete_snapshot(segment.base_offset)


# Epochs, and the end of every load


def _load_epochs(loading: Loading, segments: list[Segment]) -> LeaderEpochs:
    """The history from its file; from the batches, if the file is gone or broken."""
    epochs = LeaderEpochs(loading.directory)
    try:
        epochs.load()
    except (FileNotFoundError, CorruptRecord) as error:
        if any(segment.size for segment in segments):
            loading.report(f"Rebuilding the leader epochs of {loading.directory}: {error}")
            epochs.replace(tuple(_epochs_of(segments)))
    return epochs


def _epochs_of(segments: list[Segment]) -> Iterator[EpochStart]:
    latest = -1
    for segment in segments:
        try:
            for _, header in read_headers(segment.file, 0, segment.size):
                if header.leader_epoch > latest:
                    latest = header.leader_epoch
                    yield EpochStart(latest, header.base_offset)
        except CorruptRecord:
            continue  # Recovery or a later read reports the damage.


def _start_empty(
    loading: Loading,
    segments: list[Segment],
    producers: ProducerState,
    epochs: LeaderEpochs,
    end_offset: int,
) -> LoadedLog:
    """No segment, or all of them before the log's start: begin with an empty one there."""
    start = loading.log_start_offset
    if segments:
        loading.report(
            f"Removed all segments of {loading.directory}: they end at offset {end_offset}, "
            f"before the log's start offset {start}"
        )
    for segment in segments:
        segment.delete()
    producers.restart_at(start)
    epochs.clear()
    first = Segment.create(loading.directory, start, loading.config, now_ms=loading.now_ms)
    return LoadedLog([first], producers, epochs, start, start, min(loading.recovery_point, start))


def _finish(
    loading: Loading,
    segments: list[Segment],
    producers: ProducerState,
    epochs: LeaderEpochs,
    end_offset: int,
) -> LoadedLog:
    start = max(loading.log_start_offset, segments[0].base_offset)
    epochs.drop_after_end(end_offset)
    epochs.truncate_from_start(start)
    producers.remove_stray_snapshots(segment.base_offset for segment in segments)
    producers.drop_outside(start, end_offset)
    if loading.is_clean:  # Recovery went through the batches already.
        _load_producers(loading, producers, segments, start, end_offset, is_deep=False)
    segments[-1].open_for_append()
    recovery_point = end_offset if loading.is_clean else min(loading.recovery_point, end_offset)
    return LoadedLog(segments, producers, epochs, start, end_offset, recovery_point)
