"""Sources: a topic's records become rows, with their keys, headers, times and places."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from penstock.sql.analysis.checking import TypeChecker
from penstock.sql.analysis.logical import SourceRead
from penstock.sql.catalog.relations import (
    ROWOFFSET,
    ROWPARTITION,
    ROWTIME,
    WINDOWEND,
    WINDOWSTART,
    RelationColumn,
    TimeColumn,
)
from penstock.sql.formats.moments import timestamp_ms
from penstock.sql.language.expressions import ColumnName, FunctionCall, Literal
from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import STRING
from penstock.streams import SerdeError, StreamRecord, Windowed
from penstock.streams.values.records import Intake


def intake_of(source: SourceRead, checker: TypeChecker) -> Intake:
    """What makes rows of the records of a stream's or table's topic."""
    relation, prefix = source.relation, source.prefix
    keys = [prefix + column.name for column in relation.columns.keys]
    values = [(column.name, prefix + column.name) for column in relation.columns.values]
    headers = [(prefix + column.name, column) for column in relation.columns.headers]
    time_of = None if relation.time is None else record_time(relation.time, checker)
    if time_of is None and not prefix and not headers and relation.key_window is None:
        return _plain_intake(keys)

    def intake(record: StreamRecord, partition: int, offset: int) -> StreamRecord:
        if time_of is not None and record.value is not None:
            record = record.at(time_of(_plain(record, relation.columns.keys)))
        if record.value is None:
            return record
        row = dict.fromkeys(keys)
        key = record.key
        if isinstance(key, Windowed):
            row[prefix + WINDOWSTART] = key.window.start_ms
            row[prefix + WINDOWEND] = key.window.end_ms
            key = key.key
        if key is not None:
            row.update(zip(keys, key, strict=True))
        row.update((name, record.value.get(column)) for column, name in values)
        row.update((name, _header(record, column)) for name, column in headers)
        row[prefix + ROWTIME] = record.timestamp_ms
        row[prefix + ROWPARTITION] = partition
        row[prefix + ROWOFFSET] = offset
        return record.with_value(row)

    return intake


def _plain_intake(keys: list[str]) -> Intake:
    """The same where the value's columns are the row's: the value becomes the row."""
    only = keys[0] if len(keys) == 1 else None

    def intake(record: StreamRecord, partition: int, offset: int) -> StreamRecord:
        row, key = record.value, record.key
        if row is None:
            return record
        if only is not None:
            row[only] = None if key is None else key[0]
        else:
            row.update(dict.fromkeys(keys) if key is None else zip(keys, key, strict=True))
        row[ROWTIME] = record.timestamp_ms
        row[ROWPARTITION] = partition
        row[ROWOFFSET] = offset
        return record

    return intake


def _plain(record: StreamRecord, keys: tuple[RelationColumn, ...]) -> dict[str, Any]:
    key = record.key.key if isinstance(record.key, Windowed) else record.key
    named = {} if key is None else dict(zip((c.name for c in keys), key, strict=True))
    return {**named, **record.value}


def _header(record: StreamRecord, column: RelationColumn) -> Any:
    if column.role == "HEADERS":
        return [{"KEY": name, "VALUE": value} for name, value in record.headers]
    found = [value for name, value in record.headers if name == column.header]
    return found[-1] if found else None


def record_time(time: TimeColumn, checker: TypeChecker) -> Callable[[Mapping[str, Any]], int]:
    """The time that a column says; SerdeError where it says none."""
    column_ms = column_time(time, checker)

    def time_of(row: Mapping[str, Any]) -> int:
        try:
            made = column_ms(row.get(time.name))
        except RowFailure as failure:
            raise SerdeError(f"the column {time.name}: {failure.reason}") from None
        if made is None or made < 0:
            raise SerdeError(f"the column {time.name} has no time: {row.get(time.name)!r}")
        return made

    return time_of


def column_time(time: TimeColumn, checker: TypeChecker) -> Callable[[Any], int | None]:
    """Milliseconds of a BIGINT, a TIMESTAMP or a text in a format; None for NULL."""
    parse = None
    if time.format is not None:
        call = FunctionCall("STRINGTOTIMESTAMP", (ColumnName("T"), Literal(time.format)))
        parse = checker.compiled(call, {"T": STRING}).evaluate

    def milliseconds(value: Any) -> int | None:
        if isinstance(value, str) and parse is not None:
            value = parse({"T": value})
        return timestamp_ms(value) if isinstance(value, datetime) else value

    return milliseconds
