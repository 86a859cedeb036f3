"""A table as its records have it, made of what the binary log or the catalog tells of its columns.

The log must have the names of columns (`binlog_row_metadata=FULL`): so a change always has the
shape that its table had then, and no history of schemas is kept.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.connect.connectors.changes.envelope import (
    SNAPSHOT_SCHEMA,
    CapturedColumn,
    CapturedTable,
    captured_table,
)
from penstock.connect.connectors.changes.fitting import reader_for
from penstock.connect.connectors.mysql.column_types import ColumnFacts, codec_of
from penstock.connect.connectors.mysql.settings import BinlogSettings
from penstock.connect.values.schema import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    struct_schema,
)
from penstock.connect.values.struct import StructValue

VERSION = "3.2.0.Final"  # Of the envelope, which consumers look at.
_SOURCES = {
    product: struct_schema(
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
            "table": OPTIONAL_STRING_SCHEMA,
            "server_id": INT64_SCHEMA,
            "gtid": OPTIONAL_STRING_SCHEMA,
            "file": STRING_SCHEMA,
            "pos": INT64_SCHEMA,
            "row": INT32_SCHEMA,
            "thread": OPTIONAL_INT64_SCHEMA,
            "query": OPTIONAL_STRING_SCHEMA,
        },
        name=f"io.debezium.connector.{product}.Source",
    )
    for product in ("mariadb", "mysql")
}
# The log's numbers of types; texts and bytes are told apart by their character set.
_KINDS = {
    1: "tinyint", 2: "smallint", 9: "mediumint", 3: "int", 8: "bigint", 4: "float", 5: "double",
    246: "decimal", 7: "timestamp", 17: "timestamp", 12: "datetime", 18: "datetime", 11: "time",
    19: "time", 10: "date", 13: "year", 16: "bit", 247: "enum", 248: "set", 245: "json",
    255: "geometry",
}  # fmt: skip
_STRING = 254
_GEOMETRIES = ("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring",
               "multipolygon", "geometrycollection", "geomcollection")  # fmt: skip
_SAME_WORD = frozenset((*_KINDS.values(), "uuid", "inet4", "inet6"))
_ONLY_CATALOG = frozenset({"uuid", "inet4", "inet6"})  # Mere bytes to the log.
_LABEL = re.compile(r"'((?:[^']|'')*)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class MyTable:
    """A captured table, and what stands for nulls that are none."""

    captured: CapturedTable
    database: str
    name: str
    zeros: tuple[tuple[int, Any], ...]  # Places of dates that cannot be null, with their zero.

    def row(self, sent: Sequence[Any]) -> StructValue:
        """A row as it was sent; dates of zeros, which come as nulls, are what Debezium writes."""
        row = self.captured.row(sent)
        if not any(row.values[at] is None for at, _ in self.zeros):
            return row
        values = list(row.values)
        for at, zero in self.zeros:
            values[at] = zero if values[at] is None else values[at]
        return StructValue(row.schema, tuple(values))

    def source(
        self,
        settings: BinlogSettings,
        *,
        us: int,
        snapshot: str,
        server_id: int,
        gtid: str | None,
        file: str,
        pos: int,
        row: int,
    ) -> StructValue:
        """The block that says where a change was found."""
        values = (
            VERSION, settings.product, settings.prefix, us // 1000, snapshot, self.database, None,
            us, us * 1000, self.name, server_id, gtid, file, pos, row, None, None,
        )  # fmt: skip
        return StructValue(_SOURCES[settings.product], values)


def table_of(
    database: str,
    name: str,
    columns: Sequence[ColumnFacts],
    key: Sequence[str],
    settings: BinlogSettings,
) -> MyTable:
    """The shape of a table whose rows have these columns in their order."""
    captured: list[CapturedColumn] = []
    zeros: list[tuple[int, Any]] = []
    for at, facts in enumerate(columns):
        if facts.name not in key and not settings.choice.has_column(database, name, facts.name):
            continue
        codec = codec_of(facts, settings.modes)
        if codec.zero is not None and not facts.is_nullable:
            zeros.append((len(captured), codec.zero))
        schema = codec.schema.as_optional() if facts.is_nullable else codec.schema
        read = reader_for(schema, codec.read)
        captured.append(CapturedColumn(name=facts.name, schema=schema, read=read, place=at))
    made = captured_table(
        label=f"{database}.{name}",
        topic=settings.topic(database, name),
        columns=captured,
        key=key,
        source=_SOURCES[settings.product],
        names={},
    )
    return MyTable(captured=made, database=database, name=name, zeros=tuple(zeros))


def facts_of_log(
    columns: Sequence[Any], nullable: bytes, catalog: Mapping[str, ColumnFacts]
) -> list[ColumnFacts]:
    """Columns as a TABLE_MAP event has them; the catalog knows of some bytes what they are."""
    return [
        _of_log(one, bool(nullable[at // 8] & (1 << at % 8)), catalog.get(one.name))
        for at, one in enumerate(columns)
    ]


def _of_log(column: Any, is_nullable: bool, known: ColumnFacts | None) -> ColumnFacts:
    kind = _KINDS.get(column.type)
    precision = getattr(column, "precision", 0) or getattr(column, "bits", 0)
    if kind is None:
        is_binary = column.character_set_name == "binary"
        if is_binary and known is not None and known.kind in _ONLY_CATALOG:
            return known
        kind = "binary" if is_binary else "text"
        precision = column.max_length if is_binary and column.type == _STRING else 0
    labels = column.enum_values[1:] if column.enum_values else column.set_values or ()
    return ColumnFacts(
        name=column.name,
        kind=kind,
        unsigned=bool(column.unsigned),
        precision=precision,
        scale=getattr(column, "decimals", 0) or getattr(column, "fsp", 0),
        labels=tuple(labels),
        is_nullable=is_nullable,
    )


def facts_of_catalog(row: Mapping[str, Any]) -> ColumnFacts:
    """A column as information_schema.columns has it."""
    word, whole = row["data_type"].lower(), row["column_type"]
    is_text = row["character_set_name"] is not None and word not in ("enum", "set", "json")
    if word in _GEOMETRIES:
        kind = "geometry"
    elif is_text:
        kind = "text"
    else:
        kind = word if word in _SAME_WORD else "binary"
    length = row["character_maximum_length"] if word == "binary" else 0
    return ColumnFacts(
        name=row["column_name"],
        kind=kind,
        unsigned="unsigned" in whole.lower(),
        precision=length or (row["numeric_precision"] if word in ("decimal", "bit") else 0) or 0,
        scale=(row["numeric_scale"] if word == "decimal" else row["datetime_precision"]) or 0,
        labels=_labels(whole) if word in ("enum", "set") else (),
        is_nullable=row["is_nullable"] == "YES",
    )


def _labels(column_type: str) -> tuple[str, ...]:
    return tuple(one.replace("''", "'") for one in _LABEL.findall(column_type))
