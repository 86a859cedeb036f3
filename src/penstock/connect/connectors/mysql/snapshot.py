"""The rows of tables, each a record of the operation `r`, all as they were at one place of the log.

A snapshot that was broken off begins anew: its rows then come twice, as with Debezium.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pymysql
from pymysql.cursors import SSCursor

from penstock.connect.connectors.changes.envelope import RowOperation, as_last
from penstock.connect.connectors.changes.settings import FailureMode
from penstock.connect.connectors.mysql.column_types import ColumnFacts
from penstock.connect.connectors.mysql.positions import BinlogPosition
from penstock.connect.connectors.mysql.server import MyServer
from penstock.connect.connectors.mysql.settings import BinlogSettings
from penstock.connect.connectors.mysql.shapes import MyTable, table_of
from penstock.connect.errors.kinds import ConnectError, DataError
from penstock.connect.records import SourceRecord

log = logging.getLogger("penstock.connect.mysql")


class MySnapshotReader:
    """One transaction over all tables, on a connection of its own."""

    def __init__(self, settings: BinlogSettings, server: MyServer) -> None:
        self._settings = settings
        self._partition = settings.partition
        self._server = server
        self._reader = MyServer(settings)
        self._place = self._reader.begin_snapshot()
        self._tables = server.tables()
        self._records = self._all()

    @property
    def position(self) -> BinlogPosition:
        """Where the stream begins."""
        return replace(self._place, is_snapshot=False)

    def take(self, count: int) -> list[SourceRecord]:
        """The next records; fewer than asked for: the snapshot is done."""
        made = []
        for record in self._records:
            made.append(record)
            if len(made) >= count:
                break
        return made

    def close(self) -> None:
        """End the transaction."""
        with suppress(pymysql.Error, OSError):
            self._reader.close()

    def _all(self) -> Iterator[SourceRecord]:
        """Every row; the last one's position is that of the stream."""
        held: SourceRecord | None = None
        for database, name in self._tables:
            columns = self._server.columns(database, name)
            key = self._server.key(database, name)
            table = table_of(database, name, columns, key, self._settings)
            for sent in self._rows(database, name, columns):
                record = self._record(table, sent)
                if record is None:
                    continue
                if held is not None:
                    yield held
                held = record
        if held is not None:
            offset = self.position.offset(ts_sec=int(time.time()))
            yield replace(held, source_offset=offset, value=as_last(held.value))

    def _rows(
        self, database: str, name: str, columns: list[ColumnFacts]
    ) -> Iterator[tuple[Any, ...]]:
        # As a double a FLOAT has all its digits; as it is, the server shows six.
        listed = ", ".join(
            f"{_quoted(one.name)} + 0e0" if one.kind == "float" else _quoted(one.name)
            for one in columns
        )
        with self._reader.cursor(SSCursor) as cursor:
            cursor.execute(f"SELECT {listed} FROM {_quoted(database)}.{_quoted(name)}")
            while rows := cursor.fetchmany(self._settings.given["snapshot.fetch.size"]):
                yield from rows

    def _record(self, table: MyTable, sent: tuple[Any, ...]) -> SourceRecord | None:
        """A row's record; None: it cannot be read, and the settings say to go on."""
        now_ns = time.time_ns()
        try:
            row = table.row(sent)
        except DataError as error:
            self._tell_poison(error)
            return None
        key = table.captured.key(row)
        source = table.source(
            self._settings,
            us=now_ns // 1000,
            snapshot="true",
            server_id=0,
            gtid=None,
            file=self._place.file,
            pos=self._place.pos,
            row=0,
        )
        return SourceRecord(
            topic=table.captured.topic,
            key_schema=None if key is None else table.captured.key_schema,
            key=key,
            value_schema=table.captured.envelope,
            value=table.captured.event(RowOperation.READ, None, row, source, now_ns),
            source_partition=self._partition,
            source_offset=self._place.offset(ts_sec=now_ns // 1_000_000_000),
        )

    def _tell_poison(self, error: DataError) -> None:
        sentence = f"A row of the snapshot cannot be made a record: {error}"
        if self._settings.failures is FailureMode.FAIL:
            raise ConnectError(
                f"{sentence} (event.processing.failure.handling.mode=skip leaves it out)"
            ) from error
        if self._settings.failures is FailureMode.WARN:
            log.warning("%s; it is left out", sentence)


def _quoted(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))
