"""DynamoDbSourceConnector: items of tables, then their changes from DynamoDB Streams.

The position is in Kafka alone, in the transaction of the records. Tables are dealt out to the
tasks; all shards of a table are read by one task, which so can keep parents before children.
"""

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any

from penstock.connect.connectors.changes.capturing import Patience
from penstock.connect.connectors.changes.envelope import heartbeat
from penstock.connect.connectors.changes.settings import SnapshotMode
from penstock.connect.connectors.checks import is_resolved, with_errors
from penstock.connect.connectors.dynamodb.capture import TableCapture
from penstock.connect.connectors.dynamodb.positions import check_altered, table_partition
from penstock.connect.connectors.dynamodb.server import DynamoServer, Gone, table_troubles
from penstock.connect.connectors.dynamodb.settings import (
    CONFIG,
    TABLES,
    DynamoSettings,
    validated,
)
from penstock.connect.errors.kinds import ConnectError, RetriableConnectError
from penstock.connect.plugins.config_def import CheckedConfig
from penstock.connect.plugins.contract import Config, ExactlyOnceSupport, SourceTask
from penstock.connect.plugins.declared import DeclaredSource, dealt
from penstock.connect.plugins.libraries import missing_libraries
from penstock.connect.records import SourceRecord

log = logging.getLogger("penstock.connect.dynamodb")
LIBRARIES = {"boto3": "boto3"}
_POLL_S = 0.5  # How long one poll goes on, about: pause, stop and commits happen in between.


class DynamoDbSourceTask(SourceTask):
    """Reads its tables in turn."""

    libraries = LIBRARIES

    def __init__(self) -> None:
        self._settings: DynamoSettings | None = None
        self._server: DynamoServer | None = None
        self._captures: dict[str, TableCapture] = {}
        self._failure: ConnectError | None = None  # Raised when what came before it is sent.
        self._failures = 0
        self._heartbeat_s = time.monotonic()
        self._stopping = threading.Event()

    def start(self, config: Config) -> None:
        lacking = missing_libraries(type(self))
        if lacking:
            raise ConnectError(" ".join(lacking))
        self._settings = DynamoSettings.of(config)

    def poll(self) -> list[SourceRecord] | None:
        assert self._settings is not None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        records: list[SourceRecord] = []
        try:
            self._read(self._settings, records)
        except RetriableConnectError as error:
            if not records:
                self._lose(error, self._settings)
        except ConnectError as error:
            if not records:
                raise
            self._failure = error
        else:
            self._failures = 0
        return records or self._heartbeats(self._settings) or None

    def stop(self) -> None:
        self._stopping.set()
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def _read(self, settings: DynamoSettings, records: list[SourceRecord]) -> None:
        """Steps of all tables in turn, until there is enough, or nothing for a while."""
        give_up_s, count = time.monotonic() + _POLL_S, settings.given["max.batch.size"]
        while not self._stopping.is_set():
            now_s = time.monotonic()
            dues = [self._step(settings, table, now_s, records) for table in settings.tables]
            if len(records) >= count or time.monotonic() >= give_up_s:
                return
            next_s = min(dues, default=give_up_s)
            if records and next_s > now_s:
                return
            self._stopping.wait(max(0.0, min(next_s, give_up_s) - time.monotonic()))

    def _step(
        self, settings: DynamoSettings, table: str, now_s: float, records: list[SourceRecord]
    ) -> float:
        """One step of a table, if one is due; the answer is when the next one is."""
        capture = self._captures.get(table)
        if capture is None:
            capture = self._captures[table] = self._opened(settings, table)
        due_s = capture.due_s()
        if due_s is not None and due_s <= now_s:
            records += capture.step()
            due_s = capture.due_s()
        return float("inf") if due_s is None else due_s

    def _opened(self, settings: DynamoSettings, table: str) -> TableCapture:
        if self._server is None:
            self._server = DynamoServer(settings)
        reader = self.context.offset_reader
        return TableCapture(settings, self._server, reader, table, time.monotonic)

    def _heartbeats(self, settings: DynamoSettings) -> list[SourceRecord]:
        """Records that keep the positions of tables that do not change."""
        interval_s = settings.given["heartbeat.interval.ms"] / 1000
        if not interval_s or time.monotonic() - self._heartbeat_s < interval_s:
            return []
        made = []
        for table, capture in self._captures.items():
            mark = capture.seen_mark()
            if mark is not None:
                now_ms = time.time_ns() // 1_000_000
                topic, partition = settings.heartbeat_topic, table_partition(table)
                made.append(heartbeat(topic, settings.prefix, now_ms, partition, mark.offset()))
        if made:
            self._heartbeat_s = time.monotonic()
        return made

    def _lose(self, error: RetriableConnectError, settings: DynamoSettings) -> None:
        """Raise what the worker should do about a server that is away or refuses for now."""
        given = settings.given
        patience = Patience(
            given["errors.max.retries"], given["retriable.restart.connector.wait.ms"]
        )
        self._failures += 1
        if 0 <= patience.tries < self._failures:
            raise ConnectError(f"The server was tried {self._failures} times: {error}") from error
        log.warning("The server for %s: %s; tried again", settings.prefix, error)
        self._stopping.wait(patience.pause_ms / 1000)
        raise error


class DynamoDbSourceConnector(DeclaredSource):
    """Tables are dealt out to the tasks."""

    CONFIG = CONFIG
    TASK = DynamoDbSourceTask
    libraries = LIBRARIES

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        """Also, with settings that are right, that the tables are there and have streams."""
        checked = validated(config)
        if checked.error_count or missing_libraries(cls) or not is_resolved(config):
            return checked
        return with_errors(checked, _server_errors(DynamoSettings.of(config)))

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        hands = dealt(self.parsed[TABLES], max_tasks)
        return [{**self.config, TABLES: ",".join(names)} for names in hands]

    def exactly_once_support(self, config: Config) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, config: Config, offsets: Mapping[frozenset[tuple[str, Any]], Mapping[str, Any] | None]
    ) -> bool:
        for partition, offset in offsets.items():
            if offset is not None:
                check_altered(dict(partition), offset)
        return True


def _server_errors(settings: DynamoSettings) -> list[tuple[str, str]]:
    """What the server says of the tables, by setting."""
    server, found = DynamoServer(settings), []
    try:
        for table in settings.tables:
            try:
                facts = server.table(table)
            except Gone as error:
                found.append((TABLES, f"The table {table} is not there: {error}"))
                continue
            if settings.snapshot is not SnapshotMode.INITIAL_ONLY:
                found += [(TABLES, sentence) for sentence in table_troubles(facts)]
    except ConnectError as error:
        found.append(("dynamodb.service.endpoint", f"The server cannot be asked: {error}"))
    finally:
        server.close()
    return found
