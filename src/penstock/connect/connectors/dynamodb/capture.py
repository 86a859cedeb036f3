"""One table under capture: its snapshot, then its shards, step by step.

A step is one request to the server. It either brings records or raises and leaves everything as it
was, so whoever calls can always go on with the same step.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.connect.connectors.changes.drafts import ChangeDraft
from penstock.connect.connectors.changes.settings import FailureMode, SnapshotMode
from penstock.connect.connectors.dynamodb.events import EventMaker, StreamChange
from penstock.connect.connectors.dynamodb.positions import (
    ShardPosition,
    SnapshotState,
    TableMark,
    shard_partition,
    table_partition,
)
from penstock.connect.connectors.dynamodb.scanning import ItemScan
from penstock.connect.connectors.dynamodb.server import (
    ChangesTrimmed,
    DynamoServer,
    IteratorExpired,
    ShardPage,
    TableFacts,
    table_troubles,
)
from penstock.connect.connectors.dynamodb.settings import DynamoSettings, GapMode, StreamStart
from penstock.connect.connectors.dynamodb.shards import StreamShard, ancestors, shards_to_read
from penstock.connect.errors.kinds import ConnectError, DataError
from penstock.connect.plugins.contract import OffsetReader
from penstock.connect.records import SourceRecord

log = logging.getLogger("penstock.connect.dynamodb")
RETENTION_MS = 24 * 3_600_000  # AWS removes nothing that is younger.
MARGIN_MS = 60_000  # Changes are dated approximately; so many before a snapshot are read as well.
_RELIST_S = 10.0


@dataclass(slots=True, kw_only=True)
class ShardCursor:
    """A shard that is being read."""

    shard: StreamShard
    position: ShardPosition | None
    start: StreamStart = StreamStart.TRIM_HORIZON  # Where it begins without a position.
    iterator: str | None = None  # None: to be asked for.
    due_s: float = 0.0
    idle_ms: int = 0  # When the server last had nothing more, by its clock; 0: it has.


class TableCapture:
    """From where the offsets say that the table was left."""

    def __init__(
        self,
        settings: DynamoSettings,
        server: DynamoServer,
        offsets: OffsetReader,
        table: str,
        clock_s: Callable[[], float],
    ) -> None:
        self._settings, self._server, self._offsets = settings, server, offsets
        self._clock_s = clock_s
        self._facts = _captured(server.table(table), settings)
        self._maker = EventMaker(settings, self._facts)
        self._positions: dict[str, ShardPosition] = {}  # Behind what was polled, by shard.
        self._shards: dict[str, StreamShard] = {}
        self._finished: set[str] = set()
        self._cursors: dict[str, ShardCursor] = {}
        self._relist_s: float | None = None  # When shards are listed again; None: not now.
        self._is_stream_open = False
        self._scan: ItemScan | None = None
        kept = offsets.offset(table_partition(table))
        self._is_marked = kept is not None  # Whether a record has carried the mark.
        self._mark = self._first_mark() if kept is None else TableMark.of_offset(kept)
        # Nothing was ever read of the table, and no snapshot comes before its changes.
        self._is_first = kept is None and self._mark.snapshot is SnapshotState.NONE
        self._begin()

    # What the task calls -------------------------------------------------------------------------

    def due_s(self) -> float | None:
        """When there is something to do; None: never again."""
        if self._scan is not None:
            return 0.0
        if self._settings.snapshot is SnapshotMode.INITIAL_ONLY:
            return None
        if not self._is_stream_open:
            return 0.0
        times = [one.due_s for one in self._cursors.values()]
        return min([*times, *([] if self._relist_s is None else [self._relist_s])])

    def step(self) -> list[SourceRecord]:
        """One request, for what is due first."""
        if self._scan is not None:
            return self._scan_step(self._scan)
        if not self._is_stream_open:
            self._open_stream()
            return []
        now_s = self._clock_s()
        if self._relist_s is not None and self._relist_s <= now_s:
            self._relist()
            return []
        cursor = min(self._cursors.values(), key=lambda one: one.due_s)
        return self._shard_step(cursor)

    def seen_mark(self) -> TableMark | None:
        """The mark for a heartbeat; None: not all that is there has been read."""
        times = [one.idle_ms for one in self._cursors.values()]
        if self._scan is not None or not times or not all(times):
            return None
        self._mark = replace(self._mark, seen_ms=min(times))
        self._is_marked = True
        return self._mark

    # Where to begin ------------------------------------------------------------------------------

    def _begin(self) -> None:
        mark = self._mark
        if mark.snapshot is SnapshotState.RUNNING and self._has_snapshots:
            is_other = mark.stream != self._facts.stream  # Whose changes since then nobody knows.
            self._start_scan(self._first_mark() if is_other else mark)

    @property
    def _has_snapshots(self) -> bool:
        return self._settings.snapshot is not SnapshotMode.NEVER

    def _first_mark(self) -> TableMark:
        stream, since_ms = self._facts.stream, max(0, self._facts.now_ms - MARGIN_MS)
        if self._has_snapshots:
            return TableMark(stream=stream, snapshot=SnapshotState.RUNNING, since_ms=since_ms)
        is_latest = self._settings.start is StreamStart.LATEST
        since_ms = since_ms if is_latest else 0
        return TableMark(stream=stream, snapshot=SnapshotState.NONE, since_ms=since_ms)

    def _meet_gap(self, reason: str) -> None:
        """Changes are or may be lost: as the settings say."""
        sentence = (
            f"{reason} Changes may have been removed before they were read, which AWS does after"
            " 24 hours."
        )
        if self._settings.gaps is GapMode.FAIL:
            raise ConnectError(
                f"{sentence} Set stream.gap.handling.mode to snapshot or continue, or stop the"
                " connector and delete its offsets for a new beginning."
            )
        self._facts = self._asked_facts()
        if self._settings.gaps is GapMode.SNAPSHOT:
            log.warning("%s A new snapshot begins.", sentence)
            self._is_marked = False
            self._start_scan(self._first_mark())
            return
        log.warning("%s The oldest change that is there comes next.", sentence)
        self._mark = replace(self._mark, seen_ms=self._facts.now_ms)
        if self._mark.stream != self._facts.stream:
            self._is_marked = False
            self._mark = replace(self._mark, stream=self._facts.stream, shard="", position=None)

    def _asked_facts(self) -> TableFacts:
        return _captured(self._server.table(self._facts.name), self._settings)

    def _meet_stream(self) -> bool:
        """Whether the stream is read on: not while a snapshot must be made first."""
        self._facts = self._asked_facts()
        if self._facts.stream != self._mark.stream:
            self._positions.clear()  # They are of the other stream.
            self._meet_gap(f"The table {self._facts.name} has another stream than before.")
        return self._scan is None

    # Snapshot ------------------------------------------------------------------------------------

    def _start_scan(self, mark: TableMark) -> None:
        self._scan = ItemScan(self._settings, self._server, self._facts, mark)
        self._mark = mark
        self._is_stream_open = False
        self._cursors.clear()

    def _scan_step(self, scan: ItemScan) -> list[SourceRecord]:
        records = scan.step()
        self._is_marked = self._is_marked or bool(records)
        if scan.is_done:
            self._mark, self._scan = scan.mark, None
        return records

    # Shards --------------------------------------------------------------------------------------

    def _open_stream(self) -> None:
        """List the shards and find out where each was left."""
        if not self._meet_stream():
            return
        shards = self._server.shards(self._facts)
        positions = {name: found for name in shards if (found := self._position(name)) is not None}
        start = self._settings.start if self._is_first else StreamStart.TRIM_HORIZON
        if not self._is_first and not positions and not self._is_covered(self._facts.now_ms):
            self._meet_gap(f"No change of {self._facts.name} was read for a day.")
            if self._scan is not None:
                return
        self._shards, self._positions = shards, positions
        self._finished = ancestors(shards, positions)
        for name, one in shards.items():
            position = positions.get(name)
            is_read = position is not None and not position.part and position.sequence == one.last
            if is_read or (start is StreamStart.LATEST and one.is_closed):
                self._finished.add(name)
        self._is_stream_open, self._is_first = True, False
        self._open_cursors(start)

    def _position(self, shard: str) -> ShardPosition | None:
        """Where a shard was left: by this task, by its offset, or by the mark that came first."""
        found = self._positions.get(shard)
        if found is not None:
            return found
        kept = self._offsets.offset(shard_partition(self._facts.name, self._facts.stream, shard))
        found = None if kept is None else ShardPosition.of_offset(kept)
        mark = self._mark
        if mark.position is None or (mark.stream, mark.shard) != (self._facts.stream, shard):
            return found
        return mark.position if found is None or found.is_behind(mark.position) else found

    def _is_covered(self, now_ms: int) -> bool:
        """Whether all that AWS may have removed is older than what was read or is left out."""
        return now_ms - max(self._mark.since_ms, self._mark.seen_ms) < RETENTION_MS

    def _open_cursors(self, start: StreamStart = StreamStart.TRIM_HORIZON) -> None:
        for one in shards_to_read(self._shards, self._finished):
            if one.id not in self._cursors:
                position = self._positions.get(one.id)
                self._cursors[one.id] = ShardCursor(shard=one, position=position, start=start)
        parents = {one.parent for one in self._shards.values()}
        is_waiting = any(name in self._shards and name not in parents for name in self._finished)
        is_waiting = is_waiting or not self._cursors
        self._relist_s = self._clock_s() + _RELIST_S if is_waiting else None

    def _relist(self) -> None:
        """Look for children of shards that have ended; forget what is not listed any more."""
        if not self._cursors and self._asked_facts().stream != self._mark.stream:
            self._is_stream_open = False  # The next step opens the other one.
            return
        self._shards = self._server.shards(self._facts)
        self._finished &= self._shards.keys()
        kept = self._shards.keys() | self._cursors.keys()
        self._positions = {name: one for name, one in self._positions.items() if name in kept}
        self._open_cursors()

    def _shard_step(self, cursor: ShardCursor) -> list[SourceRecord]:
        count, name = self._settings.given["stream.records.max"], cursor.shard.id
        try:
            if cursor.iterator is None:
                cursor.iterator = self._iterator(cursor)
            page = self._server.changes(self._facts, name, cursor.iterator, count)
        except IteratorExpired:
            log.info("The iterator of %s expired; a new one goes on from the same place.", name)
            cursor.iterator, cursor.start = None, StreamStart.TRIM_HORIZON
            return []
        except ChangesTrimmed as error:
            self._meet_trimmed(cursor, error)
            return []
        return self._taken(cursor, page)

    def _iterator(self, cursor: ShardCursor) -> str:
        if cursor.position is None:
            kind, sequence = cursor.start.value, None
        else:
            kind = "AT_SEQUENCE_NUMBER" if cursor.position.part else "AFTER_SEQUENCE_NUMBER"
            sequence = cursor.position.sequence
        return self._server.iterator(self._facts, cursor.shard.id, kind, sequence)

    def _meet_trimmed(self, cursor: ShardCursor, error: ChangesTrimmed) -> None:
        if not self._is_covered(self._server.table(self._facts.name).now_ms):
            self._meet_gap(f"{error}.")
        if self._scan is None:
            cursor.iterator, cursor.position = None, None
            cursor.start = StreamStart.TRIM_HORIZON

    def _taken(self, cursor: ShardCursor, page: ShardPage) -> list[SourceRecord]:
        """The records of a page; the cursor moves behind them."""
        records: list[SourceRecord] = []
        for told in page.changes:
            try:
                self._take_change(cursor, told, records)
            except DataError:
                if not records:
                    raise
                cursor.iterator = None  # The next step begins with this change, and raises.
                return records
        cursor.iterator, cursor.idle_ms = page.iterator, 0 if page.changes else page.now_ms
        if page.iterator is None:
            self._finish(cursor)
        elif not page.changes:
            cursor.due_s = self._clock_s() + self._settings.given["poll.interval.ms"] / 1000
        else:
            cursor.due_s = self._clock_s()
        return records

    def _take_change(
        self, cursor: ShardCursor, told: dict[str, object], records: list[SourceRecord]
    ) -> None:
        shard = cursor.shard.id
        done = cursor.position
        change, drafts = self._drafts(shard, told)
        is_begun = done is not None and done.part and done.sequence == change
        first = done.part if done is not None and is_begun else 0
        for at in range(first, len(drafts)):
            part = at + 1 if at + 1 < len(drafts) else 0
            position = ShardPosition(sequence=change, part=part)
            records.append(self._placed(drafts[at], shard, position))
        cursor.position = self._positions[shard] = ShardPosition(sequence=change)

    def _drafts(self, shard: str, told: dict[str, object]) -> tuple[str, list[ChangeDraft]]:
        """The sequence number of a change and its records; none if it is left out."""
        sequence = str(told["dynamodb"]["SequenceNumber"])  # type: ignore[index]
        try:
            change = StreamChange.of(told)
            if 0 < change.at_ms < self._mark.since_ms:
                return sequence, []
            return sequence, self._maker.drafts(change, shard)
        except DataError as error:
            where = f"table {self._facts.name}, shard {shard}, change {sequence}"
            if self._settings.failures is FailureMode.FAIL:
                raise DataError(f"{where}: {error}") from error
            if self._settings.failures is FailureMode.WARN:
                log.warning("A change is left out: %s: %s", where, error)
            return sequence, []

    def _placed(self, draft: ChangeDraft, shard: str, position: ShardPosition) -> SourceRecord:
        if not self._is_marked:
            self._is_marked = True
            self._mark = replace(self._mark, shard=shard, position=position)
            return draft.placed(table_partition(self._facts.name), self._mark.offset())
        partition = shard_partition(self._facts.name, self._facts.stream, shard)
        return draft.placed(partition, position.offset())

    def _finish(self, cursor: ShardCursor) -> None:
        """A shard was read to its end: now its children may be."""
        del self._cursors[cursor.shard.id]
        self._finished.add(cursor.shard.id)
        self._open_cursors()
        if self._relist_s is not None:
            self._relist_s = self._clock_s()  # Its children are not listed yet, or were not then.


def _captured(facts: TableFacts, settings: DynamoSettings) -> TableFacts:
    troubles = table_troubles(facts)
    if troubles and settings.snapshot is not SnapshotMode.INITIAL_ONLY:
        raise ConnectError(" ".join(troubles))
    return facts
