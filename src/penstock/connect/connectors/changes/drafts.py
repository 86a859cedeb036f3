"""Records of one change, before the position behind them is known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.connect.connectors.changes.envelope import CapturedTable, RowOperation
from penstock.connect.records import Header, SourceRecord
from penstock.connect.values.schema import Schema
from penstock.connect.values.struct import StructValue

_NEW_KEY, _OLD_KEY = "__debezium.newkey", "__debezium.oldkey"
HasSeen = Callable[[StructValue | None], bool]


class ChangeDraft(NamedTuple):
    """A record without its position."""

    topic: str
    key_schema: Schema | None
    key: StructValue | None
    value_schema: Schema | None
    value: StructValue | None
    headers: tuple[Header, ...] = ()

    def placed(self, partition: Mapping[str, Any], offset: Mapping[str, Any]) -> SourceRecord:
        """The record."""
        return SourceRecord(
            topic=self.topic,
            key_schema=self.key_schema,
            key=self.key,
            value_schema=self.value_schema,
            value=self.value,
            headers=self.headers,
            source_partition=partition,
            source_offset=offset,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundChange:
    """Where and when a change was found; `has_seen` tells of a key that a snapshot told it."""

    table: CapturedTable
    source: StructValue
    now_ns: int
    has_seen: HasSeen = lambda _: False


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftMaker:
    """Makes drafts as the settings want them."""

    skipped: frozenset[str]  # Operations that are left out.
    tombstones: bool

    def created(
        self, found: FoundChange, after: StructValue, headers: tuple[Header, ...] = ()
    ) -> list[ChangeDraft]:
        """A row that came."""
        return self._single(found, RowOperation.CREATE, None, after, headers)

    def updated(
        self, found: FoundChange, before: StructValue | None, after: StructValue
    ) -> list[ChangeDraft]:
        """A row that changed, under the same key."""
        return self._single(found, RowOperation.UPDATE, before, after)

    def deleted(
        self, found: FoundChange, before: StructValue, *headers: Header
    ) -> list[ChangeDraft]:
        """A row that went, with a tombstone for compaction."""
        key = found.table.key(before)
        if RowOperation.DELETE in self.skipped or found.has_seen(key):
            return []
        made = [_draft(found, RowOperation.DELETE, before, None, key, headers)]
        if self.tombstones and key is not None:
            made.append(made[0]._replace(value=None, value_schema=None, headers=()))
        return made

    def moved(
        self, found: FoundChange, before: StructValue, after: StructValue
    ) -> list[ChangeDraft]:
        """A row under another key: one that went, and one that came."""
        table = found.table
        went = Header(_NEW_KEY, table.key_schema, table.key(after))
        came = Header(_OLD_KEY, table.key_schema, table.key(before))
        return [*self.deleted(found, before, went), *self.created(found, after, (came,))]

    def truncated(self, found: FoundChange) -> list[ChangeDraft]:
        """A table that was emptied."""
        if RowOperation.TRUNCATE in self.skipped:
            return []
        return [_draft(found, RowOperation.TRUNCATE, None, None, None, ())]

    def _single(
        self,
        found: FoundChange,
        operation: RowOperation,
        before: StructValue | None,
        after: StructValue,
        headers: tuple[Header, ...] = (),
    ) -> list[ChangeDraft]:
        key = found.table.key(after)
        if operation in self.skipped or found.has_seen(key):
            return []
        return [_draft(found, operation, before, after, key, headers)]


def _draft(
    found: FoundChange,
    operation: RowOperation,
    before: StructValue | None,
    after: StructValue | None,
    key: StructValue | None,
    headers: tuple[Header, ...],
) -> ChangeDraft:
    table = found.table
    return ChangeDraft(
        table.topic,
        None if key is None else table.key_schema,
        key,
        table.envelope,
        table.event(operation, before, after, found.source, found.now_ns),
        headers,
    )
