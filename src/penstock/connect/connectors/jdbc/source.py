"""JdbcSourceConnector: new rows of tables, or of a query, asked for again and again.

In the modes with a column that counts up each row is read once, so that a worker can write it
exactly once. A row that is committed after one with a higher number or a later time is missed, as
with every source that asks: `timestamp.delay.interval.ms` leaves time for that.
"""

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from typing import Any, TypeVar

from penstock.connect.columnar.contract import COLUMN_BYTES, ColumnarSourceTask, ColumnBatch
from penstock.connect.connectors.jdbc.addresses import DatabaseAddress, Product
from penstock.connect.connectors.jdbc.connection import (
    DatabaseLink,
    FetchedRows,
    TableColumn,
    is_lost,
)
from penstock.connect.connectors.jdbc.dialects import Dialect
from penstock.connect.connectors.jdbc.queries import (
    RowPosition,
    RowQuery,
    SourceMode,
    resumable,
)
from penstock.connect.connectors.jdbc.row_columns import struct_column
from penstock.connect.connectors.jdbc.row_types import (
    FieldCodec,
    NumericMapping,
    field_codec,
    inferred_column,
    moment_of,
)
from penstock.connect.connectors.jdbc.source_settings import (
    CONFIG,
    UNSERVED,
    ensure_served,
    tables_of,
    validated,
)
from penstock.connect.errors.kinds import ConnectError, DataError, RetriableConnectError
from penstock.connect.plugins.config_def import CheckedConfig, ConfigDef
from penstock.connect.plugins.contract import (
    Config,
    ExactlyOnceSupport,
    SourceConnector,
)
from penstock.connect.records import SourceRecord
from penstock.connect.values.schema import Schema, struct_schema
from penstock.connect.values.struct import StructValue
from penstock.errors import PenstockError

log = logging.getLogger("penstock.connect.jdbc")
TASK_TABLES = "tables"
_SLICE_S = 0.2
_COLUMN_ROWS = 5_000  # Of one batch of columns.
T = TypeVar("T")
PlacedRows = Generator[tuple[SourceRecord, RowPosition], None, None]
PlacedBatches = Generator[tuple[ColumnBatch, RowPosition], None, None]


class JdbcSourceConnector(SourceConnector):
    """Tables are shared out among tasks; a query is one task's."""

    def __init__(self) -> None:
        self._config: Config = {}
        self._tables: list[str] = []

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def task_class(cls) -> type:
        return JdbcSourceTask

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        return validated(config)

    def start(self, config: Config) -> None:
        parsed = CONFIG.parse(config)
        ensure_served(config, UNSERVED)
        self._config = config
        if not parsed["query"]:
            self._tables = tables_of(parsed) or _listed(parsed)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        if not self._tables:
            return [dict(self._config)]
        count = min(max_tasks, len(self._tables))
        shares = [self._tables[at::count] for at in range(count)]
        return [{**self._config, TASK_TABLES: ",".join(share)} for share in shares]

    def exactly_once_support(self, config: Config) -> ExactlyOnceSupport:
        is_exact = SourceMode(CONFIG.parse(config)["mode"]).has_number
        return ExactlyOnceSupport.SUPPORTED if is_exact else ExactlyOnceSupport.UNSUPPORTED

    def alter_offsets(
        self, config: Config, offsets: Mapping[frozenset[tuple[str, Any]], Mapping[str, Any] | None]
    ) -> bool:
        for partition, offset in offsets.items():
            if offset is not None:
                if not dict(partition).keys() & {"table", "query"}:
                    raise ConnectError("Partition objects should contain the key 'table'")
                RowPosition.of_offset(offset)
        return True


def _listed(parsed: Mapping[str, Any]) -> list[str]:
    """All tables that the database has now, without those that are not wanted."""
    try:
        link = _linked(parsed)
    except Exception as error:
        raise ConnectError(f"The database cannot be asked for its tables: {error}") from error
    try:
        found = [one for one in link.tables() if one not in parsed["table.blacklist"]]
    finally:
        link.close()
    if not found:
        raise ConnectError("The database has no table to read.")
    return found


def _linked(parsed: Mapping[str, Any]) -> DatabaseLink:
    password = parsed["connection.password"]
    address = DatabaseAddress.of(parsed["connection.url"])
    return DatabaseLink(
        address, parsed["connection.user"], None if password is None else str(password)
    )


@dataclass(slots=True, kw_only=True)
class AskedTable:
    """One table, or the query, and how far it was read."""

    name: str
    topic: str
    partition: Mapping[str, str]
    query: RowQuery
    position: RowPosition
    due_s: float = 0.0  # When it is asked next.
    rows: PlacedRows | None = None  # Of an answer that is not read to its end.
    batches: PlacedBatches | None = None  # The same in the columnar lane.
    known: tuple[tuple[TableColumn, ...], list[FieldCodec], Schema] | None = None

    @property
    def is_open(self) -> bool:
        """Whether an answer is being read."""
        return self.rows is not None or self.batches is not None


class JdbcSourceTask(ColumnarSourceTask):
    """Asks its tables in turn."""

    def __init__(self) -> None:
        self._parsed: Mapping[str, Any] = {}
        self._asked: list[AskedTable] = []
        self._link: DatabaseLink | None = None
        self._failures = 0
        self._stopping = threading.Event()

    def start(self, config: Config) -> None:
        self._parsed = CONFIG.parse(config)
        if self._parsed["query"]:
            self._asked = [self._asked_query()]
            return
        names = [word for word in config.get(TASK_TABLES, "").split(",") if word]
        self._asked = [self._asked_table(name) for name in names or tables_of(self._parsed)]

    def poll(self) -> list[SourceRecord] | None:
        return self._safely(self._taken) or None

    @classmethod
    def refuses_columns(cls, config: Config) -> str | None:
        mode = SourceMode(CONFIG.parse(config)["mode"])
        return f"mode={mode} looks at the times of single rows." if mode.has_time else None

    def poll_columns(self) -> list[ColumnBatch]:
        return self._safely(self._taken_columns)

    def _safely(self, take: Callable[[], list[T]]) -> list[T]:
        try:
            found = take()
        except PenstockError:
            raise
        except Exception as error:
            raise self._failed(error) from error
        self._failures = 0
        return found

    def stop(self) -> None:
        self._stopping.set()
        self._hang_up()

    def _hang_up(self) -> None:
        """Give up answers that are not read to their end; a `poll` at work ends with an error."""
        for asked in self._asked:
            answers, asked.rows, asked.batches = (asked.rows, asked.batches), None, None
            for answer in filter(None, answers):
                with suppress(Exception):
                    answer.close()
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _asked_table(self, name: str) -> AskedTable:
        dialect = _dialect(self._parsed)
        short = name.rpartition(".")[2]
        partition = {"protocol": "1", "table": name}
        query = self._query(f"SELECT * FROM {dialect.quoted(name)}")
        return self._made(name, f"{self._parsed['topic.prefix']}{short}", partition, query)

    def _asked_query(self) -> AskedTable:
        query = self._query(self._parsed["query"])
        return self._made("query", self._parsed["topic.prefix"], {"query": "query"}, query)

    def _made(
        self, name: str, topic: str, partition: Mapping[str, str], query: RowQuery
    ) -> AskedTable:
        offset = self.context.offset_reader.offset(partition)
        position = RowPosition.of_offset(offset)
        return AskedTable(
            name=name, topic=topic, partition=partition, query=query, position=position
        )

    def _query(self, selected: str) -> RowQuery:
        return RowQuery(
            mode=SourceMode(self._parsed["mode"]),
            selected=selected,
            number_column=self._parsed["incrementing.column.name"],
            time_columns=tuple(self._parsed["timestamp.column.name"]),
        )

    def _taken(self) -> list[SourceRecord]:
        """What the table that is due longest has; after a wait where none is due."""
        asked = self._due()
        if asked is None:
            return []
        if asked.rows is None:
            asked.rows = self._records(asked, *self._answer(asked))
        count = self._parsed["batch.max.rows"]
        taken = list(islice(asked.rows, count))
        if taken:
            asked.position = taken[-1][1]
        records = [record for record, _ in taken]
        if len(records) < count:
            asked.rows = None
            self._end_answer(asked)
        return records

    def _taken_columns(self) -> list[ColumnBatch]:
        asked = self._due()
        if asked is None:
            return []
        if asked.batches is None:
            asked.batches = self._column_batches(asked, *self._answer(asked))
        for batch, position in asked.batches:
            asked.position = position
            return [batch]
        asked.batches = None
        self._end_answer(asked)
        return []

    def _due(self) -> AskedTable | None:
        """The table to read on; None, after a wait: none is due."""
        asked = min(self._asked, key=lambda one: (not one.is_open, one.due_s))
        wait_s = 0.0 if asked.is_open else asked.due_s - time.monotonic()
        if wait_s > 0:
            self._stopping.wait(min(wait_s, _SLICE_S))
            return None
        return asked

    def _end_answer(self, asked: AskedTable) -> None:
        asked.due_s = time.monotonic() + self._parsed["poll.interval.ms"] / 1000
        if self._link is not None:
            self._link.commit()  # The next question sees what is new.

    def _answer(self, asked: AskedTable) -> tuple[tuple[TableColumn, ...], FetchedRows]:
        if self._link is None:
            self._link = _linked(self._parsed)
        columns = () if asked.name == "query" else tuple(self._link.columns(asked.name))
        delay = timedelta(milliseconds=self._parsed["timestamp.delay.interval.ms"])
        until = self._now(self._link) - delay if asked.query.mode.has_time else datetime.now(UTC)
        text, values = asked.query.text(self._link.dialect, asked.position, until)
        values = [_as_asked(self._link, value) for value in values]
        return columns, self._link.stream(text, values, self._parsed["batch.max.rows"])

    def _now(self, link: DatabaseLink) -> datetime:
        """The clock of the database, which wrote the rows' times."""
        if link.address.product is Product.SQLITE:
            return datetime.now(UTC)
        return moment_of(link.ask("SELECT CURRENT_TIMESTAMP(6)")[0][0])

    def _records(
        self, asked: AskedTable, columns: tuple[TableColumn, ...], stream: FetchedRows
    ) -> PlacedRows:
        rows, names, codecs, schema = self._described(asked, columns, stream)
        found = (
            (self._record(asked, codecs, schema, row), self._position(asked, names, row))
            for row in rows
        )
        for record, position in resumable(found, asked.position, asked.query.mode):
            yield replace(record, source_offset=position.offset()), position

    def _described(
        self, asked: AskedTable, columns: tuple[TableColumn, ...], stream: FetchedRows
    ) -> tuple[Iterator[tuple[Any, ...]], list[str], list[FieldCodec], Schema]:
        """The rows, and what their columns are called and read with."""
        rows, names = iter(stream), [name for name, _ in stream.described]
        if not columns:
            first = list(islice(rows, 100))
            columns = tuple(_told(stream, first))
            rows = chain(first, rows)
        by_name = {one.name: one for one in columns}
        codecs, schema = self._codecs(asked, tuple(by_name[name] for name in names))
        return rows, names, codecs, schema

    def _column_batches(
        self, asked: AskedTable, columns: tuple[TableColumn, ...], stream: FetchedRows
    ) -> PlacedBatches:
        rows, names, codecs, schema = self._described(asked, columns, stream)
        for taken in _gathered(rows):
            position = self._position(asked, names, taken[-1])
            values = struct_column(schema, codecs, taken)
            if values is None:
                values = [self._struct(asked, codecs, schema, row) for row in taken]
            batch = ColumnBatch(
                topic=asked.topic,
                partition=None,
                schema=schema,
                values=values,
                timestamp_ms=None,
                source_partition=asked.partition,
                source_offset=position.offset(),
            )
            yield batch, position

    def _codecs(
        self, asked: AskedTable, columns: tuple[TableColumn, ...]
    ) -> tuple[list[FieldCodec], Schema]:
        if asked.known is None or asked.known[0] != columns:
            mapping = NumericMapping(self._parsed["numeric.mapping"])
            codecs = [field_codec(one, mapping) for one in columns]
            schema = struct_schema({one.name: one.schema for one in codecs}, name=asked.name)
            asked.known = (columns, codecs, schema)
        return asked.known[1], asked.known[2]

    def _position(self, asked: AskedTable, names: list[str], row: tuple[Any, ...]) -> RowPosition:
        """Behind this row."""
        query, by_name = asked.query, dict(zip(names, row, strict=True))
        number = _number(asked, by_name) if query.mode.has_number else None
        moments = [by_name.get(name) for name in query.time_columns]
        found = next((one for one in moments if one is not None), None)
        if query.mode.has_time and found is None:
            raise ConnectError(f"Table {asked.name} has no time in {row!r:.300}")
        return RowPosition(number=number, at=moment_of(found) if query.mode.has_time else None)

    def _record(
        self, asked: AskedTable, codecs: list[FieldCodec], schema: Schema, row: tuple[Any, ...]
    ) -> SourceRecord:
        return SourceRecord(
            topic=asked.topic,
            value_schema=schema,
            value=self._struct(asked, codecs, schema, row),
            source_partition=asked.partition,
            source_offset=None,
        )

    def _struct(
        self, asked: AskedTable, codecs: list[FieldCodec], schema: Schema, row: tuple[Any, ...]
    ) -> StructValue:
        values = []
        for codec, value in zip(codecs, row, strict=True):
            try:
                values.append(None if value is None else codec.read(value))
            except (ArithmeticError, TypeError, ValueError, DataError) as error:
                raise ConnectError(
                    f"Table {asked.name}, column {codec.name}: {value!r:.200} cannot be read"
                    f" ({error}); the row is {row!r:.300}"
                ) from error
        return StructValue(schema, tuple(values))

    def _failed(self, error: Exception) -> ConnectError:
        """What the worker should do; questions begin anew behind the last record."""
        self._hang_up()
        self._failures += 1
        if not is_lost(error):
            return ConnectError(f"The database refuses: {type(error).__name__}: {error}")
        if self._failures >= self._parsed["connection.attempts"]:
            return ConnectError(f"The database was tried {self._failures} times: {error}")
        log.warning("The database is asked again: %s", error)
        self._stopping.wait(self._parsed["connection.backoff.ms"] / 1000)
        return RetriableConnectError(str(error))


def _gathered(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Rows in lists of at most _COLUMN_ROWS, and of about COLUMN_BYTES where they are large."""
    found: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        found.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(found) == _COLUMN_ROWS or size >= COLUMN_BYTES:
            yield found
            found, size = [], 0
    if found:
        yield found


def _dialect(parsed: Mapping[str, Any]) -> Dialect:
    return Dialect(DatabaseAddress.of(parsed["connection.url"]).product)


def _number(asked: AskedTable, row: Mapping[str, Any]) -> int:
    value = row.get(asked.query.number_column)
    if not isinstance(value, int):
        raise ConnectError(
            f"Table {asked.name} has {value!r} in {asked.query.number_column}, which must count up"
        )
    return value


def _told(stream: FetchedRows, first: list[tuple[Any, ...]]) -> Iterator[TableColumn]:
    for at, (name, word) in enumerate(stream.described):
        if word is None:
            yield inferred_column(name, [row[at] for row in first])
        else:
            yield TableColumn(name=name, type=word, scale=None, precision=None, is_nullable=True)


def _as_asked(link: DatabaseLink, value: Any) -> Any:
    """A value as the product compares it."""
    if isinstance(value, datetime):
        bare = value.replace(tzinfo=None)
        return bare.isoformat(" ") if link.address.product is Product.SQLITE else bare
    return value
