"""The rows of tables, each a record of the operation `r`, in an order that can be resumed.

All tables are read in one transaction, so they fit together. Where a table's key can be ordered
here as PostgreSQL orders it, a snapshot that was broken off goes on behind the last row; other
tables are read again from their start. `snapshot_marks.py` tells why nothing is told twice.
"""

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
from psycopg import sql
from psycopg.abc import Buffer
from psycopg.adapt import Loader

from penstock.connect.connectors.changes.envelope import RowOperation, as_last
from penstock.connect.connectors.changes.settings import FailureMode
from penstock.connect.connectors.postgres.pgoutput import lsn_of
from penstock.connect.connectors.postgres.positions import CapturePosition, after_key
from penstock.connect.connectors.postgres.server import PgServer
from penstock.connect.connectors.postgres.settings import CaptureSettings
from penstock.connect.connectors.postgres.shapes import (
    COLLATED_TYPES,
    PgTable,
    table_of,
    told_by_catalog,
)
from penstock.connect.connectors.postgres.snapshot_marks import (
    KeyValues,
    SnapshotMarks,
    SnapshotPart,
    VisibleIds,
)
from penstock.connect.errors.kinds import ConnectError, DataError
from penstock.connect.records import SourceRecord

log = logging.getLogger("penstock.connect.postgres")


class SentText(Loader):
    """A value as the server wrote it, as the stream has it too."""

    def load(self, data: Buffer) -> str:
        return bytes(data).decode()


class SnapshotReader:
    """One transaction over all tables that are left."""

    def __init__(
        self, settings: CaptureSettings, server: PgServer, position: CapturePosition
    ) -> None:
        self._settings = settings
        self._partition = settings.partition
        self._server = server
        self._connection = psycopg.connect(**settings.connection())
        self._connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self._position = self._begin(position)
        self._records = self._all()

    @property
    def position(self) -> CapturePosition:
        """Where the stream begins when there was no row at all."""
        return _done(self._position)

    def take(self, count: int) -> list[SourceRecord]:
        """The next records; none: the snapshot is done."""
        made = []
        for record in self._records:
            made.append(record)
            if len(made) >= count:
                break
        return made

    def close(self) -> None:
        """End the transaction."""
        self._connection.close()

    def _begin(self, position: CapturePosition) -> CapturePosition:
        """The position with this transaction as one more part."""
        shown = self._ask("SELECT pg_current_snapshot()::text")
        until = lsn_of(self._ask("SELECT pg_current_wal_insert_lsn()::text"))
        labels = tuple(f"{schema}.{name}" for schema, name in self._server.tables())
        marks = position.marks or SnapshotMarks(tables=labels)
        if not marks.tables:
            return replace(position, marks=None)
        table = position.table or marks.tables[0]
        part = SnapshotPart(table=table, after=position.after, visible=VisibleIds.of(shown))
        return replace(position, marks=marks.with_part(part, until_lsn=until), table=table)

    def _ask(self, question: str) -> str:
        row = self._connection.execute(question).fetchone()
        assert row is not None
        return str(row[0])

    def _all(self) -> Iterator[SourceRecord]:
        """Every row; the last one's position is that of the whole snapshot."""
        held: SourceRecord | None = None
        for table, sent, offset in self._rows():
            record = self._record(table, sent, offset)
            if record is None:
                continue  # It cannot be read, and is left out.
            if held is not None:
                yield held
            held = record
        if held is not None:
            offset = self.position.offset(ts_usec=_now_us())
            yield replace(held, source_offset=offset, value=as_last(held.value))

    def _rows(self) -> Iterator[tuple[PgTable, tuple[Any, ...], dict[str, Any]]]:
        """Rows as they were sent, with the offset of their table."""
        marks = self._position.marks
        if marks is None:
            return
        start = marks.tables.index(self._position.table or marks.tables[0])
        there = {f"{schema}.{name}": (schema, name) for schema, name in self._server.tables()}
        for label in marks.tables[start:]:
            if label in there:
                after = self._position.after if label == self._position.table else None
                yield from self._rows_of(*there[label], after)

    def _rows_of(
        self, schema: str, name: str, after: KeyValues | None
    ) -> Iterator[tuple[PgTable, tuple[Any, ...], dict[str, Any]]]:
        lock = sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(sql.Identifier(schema, name))
        self._connection.execute(lock)  # From here on its shape stays.
        catalog = self._server.table(schema, name)
        table = table_of(
            told_by_catalog(schema, name, catalog), catalog, self._server.type, self._settings
        )
        for column in catalog.columns:
            self._connection.adapters.register_loader(column.type_oid, SentText)
        offset = replace(self._position, table=table.captured.label, after=None).offset()
        with self._connection.cursor(name="snapshot") as cursor:
            cursor.itersize = self._settings.given["snapshot.fetch.size"]
            cursor.execute(*self._question(table, catalog.columns, after))
            for sent in cursor:
                yield table, sent, offset

    def _question(
        self, table: PgTable, columns: Any, after: KeyValues | None
    ) -> tuple[sql.Composed, tuple[Any, ...]]:
        names = sql.SQL(", ").join(sql.Identifier(one.name) for one in columns)
        question = sql.SQL("SELECT {} FROM {}").format(
            names, sql.Identifier(table.schema, table.name)
        )
        if not table.is_ordered:
            return question, ()
        kinds = {one.name: self._server.type(one.type_oid).name for one in columns}
        key = [one.name for one in table.captured.key_schema.fields]  # type: ignore[union-attr]
        ordered = [
            sql.SQL('{} COLLATE "C"' if kinds[name] in COLLATED_TYPES else "{}").format(
                sql.Identifier(name)
            )
            for name in key
        ]
        listed = sql.SQL(", ").join(ordered)
        if after is not None:
            places = sql.SQL(", ").join(sql.Placeholder() for _ in key)
            question += sql.SQL(" WHERE ({}) > ({})").format(listed, places)
        return question + sql.SQL(" ORDER BY ") + listed, after or ()

    def _record(
        self, table: PgTable, sent: tuple[Any, ...], offset: dict[str, Any]
    ) -> SourceRecord | None:
        """A row's record; None: it cannot be read, and the settings say to go on."""
        captured, now_ns = table.captured, time.time_ns()
        try:
            row = captured.row(sent)
        except DataError as error:
            self._tell_poison(error)
            return None
        key = captured.key(row)
        offset = {**offset, "ts_usec": now_ns // 1000}
        if table.is_ordered and key is not None:
            offset |= after_key(key.values)
        source = table.source(
            self._settings,
            us=now_ns // 1000,
            snapshot="true",
            xid=None,
            lsn=self._position.lsn_commit,
        )
        return SourceRecord(
            topic=captured.topic,
            key_schema=None if key is None else captured.key_schema,
            key=key,
            value_schema=captured.envelope,
            value=captured.event(RowOperation.READ, None, row, source, now_ns),
            source_partition=self._partition,
            source_offset=offset,
        )

    def _tell_poison(self, error: DataError) -> None:
        sentence = f"A row of the snapshot cannot be made a record: {error}"
        if self._settings.failures is FailureMode.FAIL:
            raise ConnectError(
                f"{sentence} (event.processing.failure.handling.mode=skip leaves it out)"
            ) from error
        if self._settings.failures is FailureMode.WARN:
            log.warning("%s; it is left out", sentence)


def _done(position: CapturePosition) -> CapturePosition:
    return CapturePosition(lsn_commit=position.lsn_commit, marks=position.marks)


def _now_us() -> int:
    return time.time_ns() // 1000
