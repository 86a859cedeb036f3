"""From pgoutput's messages to records, with the position behind each; it never waits.

The records of one change (a delete with its tombstone, say) leave together, and only when the next
message is known: if that ends the transaction, their position is the one behind it.
"""

import logging
from collections.abc import Callable
from typing import Any

from penstock.connect.connectors.changes.drafts import ChangeDraft, DraftMaker, FoundChange
from penstock.connect.connectors.changes.envelope import UNSENT
from penstock.connect.connectors.changes.settings import FailureMode
from penstock.connect.connectors.postgres.pgoutput import (
    RelationTold,
    RowChanged,
    SentRow,
    TablesTruncated,
    TransactionBegun,
    TransactionEnded,
    decode_message,
    lsn_text,
)
from penstock.connect.connectors.postgres.positions import CapturePosition
from penstock.connect.connectors.postgres.settings import CaptureSettings
from penstock.connect.connectors.postgres.shapes import PgTable
from penstock.connect.errors.kinds import ConnectError, DataError
from penstock.connect.records import SourceRecord
from penstock.connect.values.struct import StructValue

log = logging.getLogger("penstock.connect.postgres")
ShapeOf = Callable[[RelationTold], PgTable | None]


class ChangesFeed:
    """One run through a slot, from a position on."""

    def __init__(
        self, settings: CaptureSettings, shape_of: ShapeOf, position: CapturePosition
    ) -> None:
        self._settings = settings
        self._shape_of = shape_of
        self._tables: dict[int, PgTable | None] = {}
        self._done = position  # Up to here all records were given out, or are held.
        self._skip = (position.lsn, position.event)
        self._partition = settings.partition
        self._make = DraftMaker(
            skipped=settings.skipped, tombstones=settings.given["tombstones.on.delete"]
        )
        self._begun: TransactionBegun | None = None
        self._event = 0
        self._held: list[ChangeDraft] = []
        self._held_event = 0  # What of the open transaction is done with them; 0: none are held.
        self._sources: dict[str, StructValue] = {}  # Of the open transaction, by table.

    @property
    def is_between(self) -> bool:
        """Whether no transaction is open, so that a heartbeat can have a position."""
        return self._begun is None

    def idle(self, lsn: int) -> CapturePosition:
        """All up to here was seen; where a heartbeat's offset stands."""
        self._done = CapturePosition(
            lsn_commit=max(lsn, self._done.lsn_commit), marks=self._done.passed(lsn).marks
        )
        return self._done

    def release(self) -> list[SourceRecord]:
        """What is held, because the next message will not be taken."""
        ready = self._placed(self._position())
        self._held = []
        return ready

    def take(self, data: bytes, now_ns: int) -> list[SourceRecord]:
        """The records that are ready after one more message."""
        match decode_message(data):
            case RowChanged() as change:
                return self._take_row(change, now_ns)
            case TransactionBegun() as begun:
                self._begun, self._event, self._held_event = begun, 0, 0
                self._sources.clear()
                self._done = self._done.passed(begun.commit_lsn)
            case TransactionEnded() as ended:
                return self._end(ended)
            case RelationTold() as relation:
                self._tables[relation.oid] = self._shape_of(relation)
            case TablesTruncated() as truncated:
                return self._take_truncation(truncated, now_ns)
        return []

    def _take_row(self, change: RowChanged, now_ns: int) -> list[SourceRecord]:
        self._event += 1
        table = self._table(change.oid)
        if table is None or self._is_done():
            return []
        try:
            made = self._drafts(table, change, now_ns)
        except DataError as error:
            self._tell_poison(error)
            return []
        return self._hold(made)

    def _take_truncation(self, change: TablesTruncated, now_ns: int) -> list[SourceRecord]:
        self._event += 1
        if self._is_done():
            return []
        tables = [table for oid in change.oids if (table := self._table(oid)) is not None]
        made = [self._make.truncated(self._found(table, now_ns)) for table in tables]
        return self._hold([draft for drafts in made for draft in drafts])

    def _end(self, ended: TransactionEnded) -> list[SourceRecord]:
        self._done = CapturePosition(lsn_commit=ended.end_lsn, marks=self._done.marks)
        ready = self._placed(self._done)
        self._held, self._held_event, self._begun = [], 0, None
        return ready

    def _hold(self, made: list[ChangeDraft]) -> list[SourceRecord]:
        """Give out those of the last change, and keep these instead."""
        if not made:
            return []
        ready = self._placed(self._position()) if self._held else []
        self._held, self._held_event = made, self._event
        return ready

    def _position(self) -> CapturePosition:
        """Behind what is held."""
        if self._held_event:
            assert self._begun is not None
            lsn, event = self._begun.commit_lsn, self._held_event
            self._done = self._done.inside(lsn, event)
        return self._done

    def _placed(self, position: CapturePosition) -> list[SourceRecord]:
        if not self._held:
            return []
        begun = self._begun
        assert begun is not None
        offset = position.offset(txId=begun.xid, ts_usec=begun.committed_us)
        return [one.placed(self._partition, offset) for one in self._held]

    def _is_done(self) -> bool:
        assert self._begun is not None
        lsn, event = self._skip
        return self._begun.commit_lsn == lsn and self._event <= event

    def _table(self, oid: int) -> PgTable | None:
        if oid not in self._tables:
            raise ConnectError(f"A change of table {oid} came before the table's shape.")
        return self._tables[oid]

    # Records of one change -----------------------------------------------------------------------

    def _drafts(self, table: PgTable, change: RowChanged, now_ns: int) -> list[ChangeDraft]:
        captured, found = table.captured, self._found(table, now_ns)
        if change.new is None:
            assert change.old is not None
            return self._make.deleted(found, captured.row(change.old))
        sent = change.new
        if change.old is not None and change.old_is_whole:
            sent = _completed(sent, change.old)
        after = captured.row(sent)
        if change.old is None:
            if change.is_insert:
                return self._make.created(found, after)
            return self._make.updated(found, None, after)
        before = captured.row(change.old)
        old_key = captured.key(before)
        if old_key is not None and old_key != captured.key(after):
            return self._make.moved(found, before, after)
        return self._make.updated(found, before if change.old_is_whole else None, after)

    def _found(self, table: PgTable, now_ns: int) -> FoundChange:
        source = self._source(table)
        if self._done.marks is None:
            return FoundChange(table=table.captured, source=source, now_ns=now_ns)
        return FoundChange(
            table=table.captured,
            source=source,
            now_ns=now_ns,
            has_seen=lambda key: self._has_seen(table, key),
        )

    def _source(self, table: PgTable) -> StructValue:
        """The same for all changes of a table in one transaction."""
        found = self._sources.get(table.captured.label)
        if found is None:
            begun = self._begun
            assert begun is not None
            found = self._sources[table.captured.label] = table.source(
                self._settings,
                us=begun.committed_us,
                snapshot="false",
                xid=begun.xid,
                lsn=begun.commit_lsn,
            )
        return found

    def _has_seen(self, table: PgTable, key: StructValue | None) -> bool:
        marks = self._done.marks
        if marks is None:
            return False
        assert self._begun is not None
        values: Any = key.values if key is not None and table.is_ordered else None
        return marks.has_seen(table.captured.label, values, self._begun.xid)

    def _tell_poison(self, error: DataError) -> None:
        assert self._begun is not None
        place = f"transaction {self._begun.xid} at {lsn_text(self._begun.commit_lsn)}"
        sentence = f"Change {self._event} of {place} cannot be made a record: {error}"
        if self._settings.failures is FailureMode.FAIL:
            raise ConnectError(
                f"{sentence} (event.processing.failure.handling.mode=skip leaves it out)"
            ) from error
        if self._settings.failures is FailureMode.WARN:
            log.warning("%s; it is left out", sentence)


def _completed(new: SentRow, old: SentRow) -> SentRow:
    """Large values that did not change are those of the old row."""
    return tuple([b if a is UNSENT else a for a, b in zip(new, old, strict=True)])
