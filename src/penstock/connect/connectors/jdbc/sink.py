"""JdbcSinkConnector: records into rows, exactly once where the offsets are kept beside them.

One transaction of the database has the rows of a batch and the offsets behind them. What Kafka
brings again after a crash is below those offsets, and is left out.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any

from penstock.connect.connectors.jdbc.addresses import DatabaseAddress, Product
from penstock.connect.connectors.jdbc.connection import DatabaseLink, is_lost
from penstock.connect.connectors.jdbc.sink_rows import TargetRow, place_of, row_of
from penstock.connect.connectors.jdbc.sink_settings import (
    CONFIG,
    UNSERVED,
    InsertMode,
    validated,
)
from penstock.connect.connectors.jdbc.source_settings import ensure_served
from penstock.connect.errors.kinds import ConnectError, DataError, RetriableConnectError
from penstock.connect.plugins.config_def import CheckedConfig, ConfigDef
from penstock.connect.plugins.contract import Config, SinkConnector, SinkTask
from penstock.connect.records import SinkRecord
from penstock.errors import PenstockError
from penstock.records.topic_partition import TopicPartition

log = logging.getLogger("penstock.connect.jdbc")


class JdbcSinkConnector(SinkConnector):
    """Each task writes the partitions that the group gives it."""

    def __init__(self) -> None:
        self._config: Config = {}

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def task_class(cls) -> type:
        return JdbcSinkTask

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        return validated(config)

    def start(self, config: Config) -> None:
        CONFIG.parse(config)
        ensure_served(config, UNSERVED)
        self._config = config

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self._config) for _ in range(max_tasks)]

    def alter_offsets(self, config: Config, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Offsets in the database follow those of the group."""
        parsed = CONFIG.parse(config)
        if not parsed["offsets.table"]:
            return True
        link = _linked(parsed)
        try:
            beside = OffsetsBeside(link, parsed["offsets.table"], config.get("name", ""))
            for at, offset in offsets.items():
                beside.move(at.topic, at.partition, offset)
            link.commit()
        finally:
            link.close()
        return True


class OffsetsBeside:
    """The table of offsets, in the database of the rows."""

    def __init__(self, link: DatabaseLink, table: str, sink: str) -> None:
        self._link = link
        self._table = link.dialect.quoted(table)
        self._sink = sink
        text = "VARCHAR(190)" if link.address.product is Product.MYSQL else "TEXT"
        link.run(
            f"CREATE TABLE IF NOT EXISTS {self._table} (sink {text} NOT NULL, topic {text} NOT"
            " NULL, part INT NOT NULL, next_offset BIGINT NOT NULL,"
            " PRIMARY KEY (sink, topic, part))"
        )
        link.commit()

    def next(self, topic: str, partition: int) -> int:
        """The first offset whose record is not there yet; others wait until the commit."""
        mark = self._link.dialect.mark
        lock = "" if self._link.address.product is Product.SQLITE else " FOR UPDATE"
        rows = self._link.ask(
            f"SELECT next_offset FROM {self._table} WHERE sink = {mark} AND topic = {mark}"
            f" AND part = {mark}{lock}",
            (self._sink, topic, partition),
        )
        return int(rows[0][0]) if rows else 0

    def move(self, topic: str, partition: int, offset: int | None) -> None:
        """Everything below is there; None: forget what was known."""
        mark = self._link.dialect.mark
        self._link.run(
            f"DELETE FROM {self._table} WHERE sink = {mark} AND topic = {mark} AND part = {mark}",
            (self._sink, topic, partition),
        )
        if offset is not None:
            self._link.run(
                f"INSERT INTO {self._table} VALUES ({mark}, {mark}, {mark}, {mark})",
                (self._sink, topic, partition, offset),
            )


def _linked(parsed: Mapping[str, Any]) -> DatabaseLink:
    password = parsed["connection.password"]
    address = DatabaseAddress.of(parsed["connection.url"])
    return DatabaseLink(
        address, parsed["connection.user"], None if password is None else str(password)
    )


class JdbcSinkTask(SinkTask):
    """Writes in `put`, so there is nothing to flush."""

    def __init__(self) -> None:
        self._parsed: Mapping[str, Any] = {}
        self._sink = ""
        self._product = Product.SQLITE
        self._link: DatabaseLink | None = None
        self._offsets: OffsetsBeside | None = None
        self._columns: dict[str, set[str]] = {}  # Of tables that are known to be there.
        self._failures = 0

    def start(self, config: Config) -> None:
        self._parsed = CONFIG.parse(config)
        self._product = DatabaseAddress.of(self._parsed["connection.url"]).product
        self._sink = config.get("name", "")

    def put(self, records: list[SinkRecord]) -> None:
        size = self._parsed["batch.size"]
        for at in range(0, len(records), size):
            self._put(records[at : at + size])

    def stop(self) -> None:
        self._hang_up()

    def _put(self, records: list[SinkRecord]) -> None:
        try:
            self._write(records)
        except RetriableConnectError:
            raise
        except Exception as error:  # noqa: BLE001  (each library has errors of its own)
            self._judge(records, error)
        self._failures = 0

    def _judge(self, records: list[SinkRecord], error: Exception) -> None:
        """Try again later, or find the record that is bad."""
        if not isinstance(error, PenstockError) and is_lost(error):
            raise self._lost(error) from error
        if self._link is not None:
            with suppress(Exception):
                self._link.rollback()
        if len(records) > 1:
            for record in records:
                self._put([record])
            return
        self._refuse(records[0], error)

    def _refuse(self, record: SinkRecord, error: Exception) -> None:
        topic, partition, offset = place_of(record)
        sentence = f"The record at {topic}-{partition}, offset {offset} makes no row: {error}"
        reporter = self.context.errant_record_reporter
        if reporter is None:
            raise ConnectError(sentence) from error
        reporter.report(record, DataError(sentence))

    def _lost(self, error: Exception) -> ConnectError:
        self._hang_up()
        self._failures += 1
        if self._failures > self._parsed["max.retries"]:
            return ConnectError(f"The database was tried {self._failures} times: {error}")
        log.warning("The database is tried again: %s", error)
        self.context.set_timeout_ms(self._parsed["retry.backoff.ms"])
        return RetriableConnectError(str(error))

    def _hang_up(self) -> None:
        if self._link is not None:
            self._link.close()
        self._link = self._offsets = None
        self._columns.clear()

    # One transaction -----------------------------------------------------------------------------

    def _write(self, records: list[SinkRecord]) -> None:
        link = self._connected()
        rows = [(self._table(one), row_of(one, self._parsed, self._product)) for one in records]
        for table, row in rows:
            self._ensure_columns(link, table, row)
        link.commit()  # Some products end transactions where tables are made.
        new = self._not_seen(records)
        chosen = [rows[at] for at in new]
        for (table, names, _), alike in groupby(chosen, _shape):
            statement, values = self._statement(link, table, names, [row for _, row in alike])
            link.run_many(statement, values)
        self._remember(records)
        link.commit()

    def _connected(self) -> DatabaseLink:
        if self._link is None:
            self._link = _linked(self._parsed)
            if self._parsed["offsets.table"]:
                self._offsets = OffsetsBeside(self._link, self._parsed["offsets.table"], self._sink)
        return self._link

    def _table(self, record: SinkRecord) -> str:
        return str(self._parsed["table.name.format"]).replace("${topic}", record.topic)

    def _not_seen(self, records: Sequence[SinkRecord]) -> list[int]:
        """The places of records that are not in the database."""
        if self._offsets is None:
            return list(range(len(records)))
        seen: dict[tuple[str, int], int] = {}
        found = []
        for at, record in enumerate(records):
            topic, partition, offset = place_of(record)
            if (topic, partition) not in seen:
                seen[topic, partition] = self._offsets.next(topic, partition)
            if offset >= seen[topic, partition]:
                found.append(at)
        return found

    def _remember(self, records: Sequence[SinkRecord]) -> None:
        if self._offsets is None:
            return
        ends: dict[tuple[str, int], int] = {}
        for record in records:
            topic, partition, offset = place_of(record)
            ends[topic, partition] = max(offset + 1, ends.get((topic, partition), 0))
        for (topic, partition), end in ends.items():
            if end > self._offsets.next(topic, partition):
                self._offsets.move(topic, partition, end)

    def _statement(
        self, link: DatabaseLink, table: str, names: tuple[str, ...], rows: list[TargetRow]
    ) -> tuple[str, list[list[Any]]]:
        dialect, key = link.dialect, rows[0].key
        mode = InsertMode(self._parsed["insert.mode"])
        if rows[0].is_deletion:
            return dialect.delete(table, key), [list(row.values) for row in rows]
        if mode is InsertMode.INSERT:
            return dialect.insert(table, names), [list(row.values) for row in rows]
        if mode is InsertMode.UPSERT:
            return dialect.upsert(table, names, key), [list(row.values) for row in rows]
        order = [*(name for name in names if name not in key), *key]
        return dialect.update(table, names, key), [[row.value(n) for n in order] for row in rows]

    # Tables --------------------------------------------------------------------------------------

    def _ensure_columns(self, link: DatabaseLink, table: str, row: TargetRow) -> None:
        known = self._columns.get(table)
        if known is not None and known.issuperset(row.names):
            return
        there = {one.name for one in link.columns(table)}
        if not there:
            self._create(link, table, row)
        elif not there.issuperset(row.names):
            self._evolve(link, table, row, there)
        self._columns[table] = there | set(row.names)

    def _create(self, link: DatabaseLink, table: str, row: TargetRow) -> None:
        if not self._parsed["auto.create"]:
            raise ConnectError(f"The table {table} is not there, and auto.create is false.")
        if row.is_deletion:
            raise DataError(f"The table {table} is not there, so that no row can be deleted.")
        link.run(link.dialect.create(table, row.columns))

    def _evolve(self, link: DatabaseLink, table: str, row: TargetRow, there: set[str]) -> None:
        lacking = [one for one in row.columns if one.name not in there]
        if not self._parsed["auto.evolve"]:
            names = ", ".join(one.name for one in lacking)
            raise ConnectError(f"The table {table} lacks {names}, and auto.evolve is false.")
        for one in lacking:
            if not one.schema.optional:
                raise DataError(f"The field {one.name} is new and must be optional to be added.")
            link.run(link.dialect.add(table, one))


def _shape(item: tuple[str, TargetRow]) -> tuple[str, tuple[str, ...], bool]:
    table, row = item
    return table, row.names, row.is_deletion
