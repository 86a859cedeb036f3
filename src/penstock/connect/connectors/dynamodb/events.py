"""Changes of a table, and items of its snapshot, as records in Debezium's envelope."""

import base64
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from penstock.connect.connectors.changes.drafts import ChangeDraft
from penstock.connect.connectors.changes.envelope import (
    SNAPSHOT_SCHEMA,
    RowOperation,
    envelope_schema,
)
from penstock.connect.connectors.dynamodb.items import (
    OPTIONAL_JSON,
    Item,
    ItemReader,
    item_json,
    item_shape,
    scalar_schema,
    schema_of_shape,
)
from penstock.connect.connectors.dynamodb.server import TableFacts
from penstock.connect.connectors.dynamodb.settings import DynamoSettings, ItemForm
from penstock.connect.errors.kinds import ConnectError, DataError
from penstock.connect.values.cache import SchemaCache
from penstock.connect.values.schema import (
    INT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    struct_schema,
)
from penstock.connect.values.struct import StructValue

VERSION = "3.2.0.Final"  # Of the envelope, which consumers look at.
_OPERATIONS = {
    "INSERT": RowOperation.CREATE,
    "MODIFY": RowOperation.UPDATE,
    "REMOVE": RowOperation.DELETE,
}
SOURCE = struct_schema(
    {
        "version": STRING_SCHEMA,
        "connector": STRING_SCHEMA,
        "name": STRING_SCHEMA,
        "ts_ms": INT64_SCHEMA,
        "snapshot": SNAPSHOT_SCHEMA,
        "db": STRING_SCHEMA,
        "sequence": OPTIONAL_STRING_SCHEMA,
        "ts_us": OPTIONAL_INT64_SCHEMA,
        "ts_ns": OPTIONAL_INT64_SCHEMA,
        "table": STRING_SCHEMA,
        "shard": OPTIONAL_STRING_SCHEMA,
        "event_id": OPTIONAL_STRING_SCHEMA,
        "view": OPTIONAL_STRING_SCHEMA,
        "principal": OPTIONAL_STRING_SCHEMA,
    },
    name="penstock.connector.dynamodb.Source",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamChange:
    """One change of a stream, without AWS's wrapping."""

    operation: RowOperation
    sequence: str
    at_ms: int
    event_id: str | None
    principal: str | None  # Who did it, where it was not a user: AWS itself removes what expires.
    keys: Item
    before: Item | None
    after: Item | None

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "StreamChange":
        """DataError for one that AWS does not send today."""
        found, name = told["dynamodb"], told["eventName"]
        if name not in _OPERATIONS:
            raise DataError(f"{name!r:.80} is no change that is known here")
        at = found.get("ApproximateCreationDateTime")
        return cls(
            operation=_OPERATIONS[name],
            sequence=found["SequenceNumber"],
            at_ms=int(at.timestamp() * 1000) if isinstance(at, datetime) else 0,
            event_id=told.get("eventID"),
            principal=(told.get("userIdentity") or {}).get("PrincipalId"),
            keys=found["Keys"],
            before=found.get("OldImage"),
            after=found.get("NewImage"),
        )


class EventMaker:
    """Makes the records of one table."""

    def __init__(self, settings: DynamoSettings, facts: TableFacts) -> None:
        self._settings = settings
        self._facts = facts
        self._topic = settings.topic(facts.name)
        self._reader = ItemReader(decimals=settings.decimals)
        self._key_schema = struct_schema(
            {name: scalar_schema(kind, settings.decimals) for name, kind in facts.key},
            name=f"{self._topic}.Key",
        )
        self._has_tombstones: bool = settings.given["tombstones.on.delete"]
        self._envelopes = SchemaCache(lambda row: envelope_schema(self._topic, row, SOURCE))

    def drafts(self, change: StreamChange, shard: str) -> list[ChangeDraft]:
        """The records of a change: none if it is left out, and two of a delete."""
        if change.operation.value in self._settings.skipped:
            return []
        source = self._source(
            at_ms=change.at_ms,
            snapshot="false",
            sequence=change.sequence,
            shard=shard,
            event_id=change.event_id,
            principal=change.principal,
        )
        made = self._draft(change.operation, change.keys, change.before, change.after, source)
        if change.operation is not RowOperation.DELETE or not self._has_tombstones:
            return [made]
        return [made, made._replace(value=None, value_schema=None)]

    def read_draft(self, item: Item, *, at_ms: int, is_last: bool) -> ChangeDraft:
        """The record of an item of a snapshot."""
        told = "last" if is_last else "true"
        source = self._source(at_ms=at_ms, snapshot=told)
        return self._draft(RowOperation.READ, item, None, item, source)

    def _draft(
        self,
        operation: RowOperation,
        keys: Item,
        before: Item | None,
        after: Item | None,
        source: StructValue,
    ) -> ChangeDraft:
        row, images = self._images(before, after)
        envelope = self._envelopes.get(row)
        now_ns = time.time_ns()
        now_us = now_ns // 1000
        value = StructValue(
            envelope, (*images, source, None, operation.value, now_us // 1000, now_us, now_ns)
        )
        key = self._reader.struct(self._key_schema, keys)
        if None in key.values:
            raise DataError(f"an item of {self._facts.name} has no whole key: {dict(keys)!r:.200}")
        return ChangeDraft(self._topic, self._key_schema, key, envelope, value)

    def _images(self, before: Item | None, after: Item | None) -> tuple[Schema, tuple[Any, Any]]:
        """Both images under one schema, because registries know a row by one name."""
        if self._settings.form is ItemForm.JSON:
            return OPTIONAL_JSON, (_json(before), _json(after))
        shape = item_shape([one for one in (before, after) if one is not None])
        row = schema_of_shape(shape, f"{self._topic}.Value", self._settings.decimals)
        first, second = (
            None if one is None else self._reader.struct(row, one) for one in (before, after)
        )
        return row, (first, second)

    def _source(
        self,
        *,
        at_ms: int,
        snapshot: str,
        sequence: str | None = None,
        shard: str | None = None,
        event_id: str | None = None,
        principal: str | None = None,
    ) -> StructValue:
        settings, facts = self._settings, self._facts
        values = (
            VERSION, "dynamodb", settings.prefix, at_ms, snapshot,
            settings.given["dynamodb.region"], sequence, at_ms * 1000, at_ms * 1_000_000,
            facts.name, shard, event_id, facts.view or None, principal,
        )  # fmt: skip
        return StructValue(SOURCE, values)


def key_text(facts: TableFacts, item: Item) -> str:
    """The key of an item as an offset keeps it."""
    found: dict[str, list[str]] = {}
    for name, kind in facts.key:
        value = item[name][kind]
        found[name] = [kind, base64.b64encode(value).decode() if kind == "B" else value]
    return json.dumps(found)


def key_of_text(text: str) -> dict[str, dict[str, Any]]:
    """The key that an offset has kept; ConnectError for a text that is none."""
    try:
        return {
            name: {kind: base64.b64decode(value, validate=True) if kind == "B" else str(value)}
            for name, (kind, value) in json.loads(text).items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise ConnectError(f"The offset has {text!r:.200}, which is no key: {error}") from error


def _json(item: Item | None) -> str | None:
    return None if item is None else item_json(item)
