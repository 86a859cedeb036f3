"""A table as its records have it: made of what the stream or the catalog tells of its columns.

Records have the key of the primary key; without one, of the index that is the replica identity. A
column that is outside of the key may be missing from old rows, and a large one from new rows, so it
is optional unless old rows have all columns (`REPLICA IDENTITY FULL`) and it is never null.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.connect.connectors.changes.envelope import (
    SNAPSHOT_SCHEMA,
    CapturedColumn,
    CapturedTable,
    captured_table,
)
from penstock.connect.connectors.changes.fitting import reader_for
from penstock.connect.connectors.postgres.column_types import PgType, codec_of
from penstock.connect.connectors.postgres.pgoutput import RelationTold, SentColumn
from penstock.connect.connectors.postgres.settings import CaptureSettings
from penstock.connect.values.schema import (
    INT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaType,
    struct_schema,
)
from penstock.connect.values.struct import StructValue

VERSION = "3.2.0.Final"  # Of the envelope, which consumers look at.
SOURCE_SCHEMA = struct_schema(
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
        "schema": STRING_SCHEMA,
        "table": STRING_SCHEMA,
        "txId": OPTIONAL_INT64_SCHEMA,
        "lsn": OPTIONAL_INT64_SCHEMA,
        "xmin": OPTIONAL_INT64_SCHEMA,
    },
    name="io.debezium.connector.postgresql.Source",
)
# Types whose values are ordered here as PostgreSQL orders them, texts by COLLATE "C".
ORDERED_TYPES = frozenset({"int2", "int4", "int8", "text", "varchar", "uuid"})
COLLATED_TYPES = frozenset({"text", "varchar"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogColumn:
    """A column as the catalog has it now."""

    name: str
    type_oid: int
    modifier: int
    not_null: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    """A table as the catalog has it now."""

    columns: tuple[CatalogColumn, ...]
    key: tuple[str, ...]  # The primary key, in its order.
    identity: str  # d: primary key, n: nothing, f: all columns, i: an index.


@dataclass(frozen=True, slots=True, kw_only=True)
class PgTable:
    """A captured table, and whether a snapshot of it can be taken up at a key."""

    captured: CapturedTable
    schema: str
    name: str
    is_ordered: bool

    def source(
        self, settings: CaptureSettings, *, us: int, snapshot: str, xid: int | None, lsn: int
    ) -> StructValue:
        """The block that says where a change was found."""
        values = (
            VERSION, "postgresql", settings.prefix, us // 1000, snapshot,
            settings.given["database.dbname"], f'["{lsn}","{lsn}"]', us, us * 1000,
            self.schema, self.name, xid, lsn, None,
        )  # fmt: skip
        return StructValue(SOURCE_SCHEMA, values)


def table_of(
    relation: RelationTold,
    catalog: CatalogTable,
    type_of: Callable[[int], PgType],
    settings: CaptureSettings,
) -> PgTable:
    """The shape of a table whose columns come as a relation tells them."""
    key = _key(relation, catalog)
    columns = [
        _column(at, sent, relation, catalog, key, type_of, settings)
        for at, sent in enumerate(relation.columns)
        if sent.name in key
        or settings.choice.has_column(relation.schema, relation.table, sent.name)
    ]
    types = {sent.name: type_of(sent.type_oid).name for sent in relation.columns}
    captured = captured_table(
        label=f"{relation.schema}.{relation.table}",
        topic=settings.topic(relation.schema, relation.table),
        columns=columns,
        key=key,
        source=SOURCE_SCHEMA,
        names={},
    )
    is_ordered = bool(key) and all(types[name] in ORDERED_TYPES for name in key)
    return PgTable(
        captured=captured, schema=relation.schema, name=relation.table, is_ordered=is_ordered
    )


def told_by_catalog(schema: str, name: str, catalog: CatalogTable) -> RelationTold:
    """A table as its relation message would tell it."""
    whole = catalog.identity == "f"
    columns = tuple(
        SentColumn(one.name, one.type_oid, one.modifier, whole or one.name in catalog.key)
        for one in catalog.columns
    )
    return RelationTold(0, schema, name, catalog.identity, columns)


def _key(relation: RelationTold, catalog: CatalogTable) -> Sequence[str]:
    sent = [one.name for one in relation.columns]
    if catalog.key and all(name in sent for name in catalog.key):
        return catalog.key
    if relation.identity == "f":
        return ()
    return [one.name for one in relation.columns if one.in_identity]


def _column(
    at: int,
    sent: SentColumn,
    relation: RelationTold,
    catalog: CatalogTable,
    key: Sequence[str],
    type_of: Callable[[int], PgType],
    settings: CaptureSettings,
) -> CapturedColumn:
    codec = codec_of(type_of(sent.type_oid), sent.modifier, settings.modes)
    not_null = any(one.name == sent.name and one.not_null for one in catalog.columns)
    is_always_sent = sent.name in key or (relation.identity == "f" and not_null)
    schema = codec.schema if is_always_sent else codec.schema.as_optional()
    return CapturedColumn(
        name=sent.name,
        schema=schema,
        read=reader_for(schema, codec.read),
        unsent=_placeholder(codec.schema, settings),
        place=at,
    )


def _placeholder(schema: Schema, settings: CaptureSettings) -> str | bytes | None:
    """What stands for a large value that was not sent; None where only null can."""
    text = str(settings.given["unavailable.value.placeholder"])
    if schema.type is SchemaType.STRING:
        return text
    return text.encode() if schema.type is SchemaType.BYTES and schema.name is None else None
