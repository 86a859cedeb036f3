"""The topic of the commands: one partition that keeps everything, written by one at a time.

Its name is ksqlDB's. Whoever begins to write fences whoever wrote before
(`client/wire/fenced_writer.py`), with a record that means nothing; once that has been read, nothing
of an earlier writer can come any more.
"""

import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Final

from penstock.client.operations.offsets import OffsetSpec, list_offsets
from penstock.client.operations.topics import (
    NewTopic,
    create_topics,
    delete_topics,
    describe_topics,
)
from penstock.client.values import OffsetAndTimestamp, TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.fenced_writer import FencedWriter, WriteOutcomeUnknown, WriterFenced
from penstock.errors import CommandError, TopicExists, UnknownTopicOrPartition
from penstock.records.record import Record
from penstock.sql.asking.records import committed_records
from penstock.sql.running.command_records import (
    CommandFenced,
    CommandRecord,
    CommandRefused,
    read_command,
    runner_key,
    runner_of,
)
from penstock.sql.running.ports import LoggedCommand

log = logging.getLogger("penstock.sql")

_TIMEOUT_MS: Final = 30_000
_FOR_EVER: Final = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


def command_topic(service_id: str) -> str:
    """The name of a service's topic of commands."""
    return f"_confluent-ksql-{service_id}_command_topic"


class CommandTopic:
    """The log of one service. Not for several threads."""

    def __init__(
        self, cluster: ClusterClient, client: Mapping[str, str], service_id: str, replicas: int
    ) -> None:
        self.topic = command_topic(service_id)
        self._at = TopicPartition(self.topic, 0)
        self._cluster = cluster
        self._client = client
        self._replicas = replicas
        self._writer = FencedWriter(cluster, self._at, f"penstock-sql.{self.topic}")
        self._is_writer = False
        self._next = 0  # The first offset that was not read.
        self._runner: str | None = None  # Who runs the queries, as far as was read.
        self._ahead: list[LoggedCommand] = []  # Read by a claim, and taken by nobody yet.

    def ensure(self) -> None:
        """Create the topic if there is none; CommandError for one with several partitions."""
        try:
            found = describe_topics(self._cluster, [self.topic])[self.topic]
        except UnknownTopicOrPartition:
            self._create()
            return
        if len(found.partitions) != 1:
            raise CommandError(
                f"The topic {self.topic} has {len(found.partitions)} partitions, and commands need "
                "one order: choose another ksql.service.id."
            )

    def _create(self) -> None:
        new = NewTopic(
            name=self.topic, partitions=1, replication_factor=self._replicas, configs=_FOR_EVER
        )
        try:
            create_topics(self._cluster, [new], timeout_ms=_TIMEOUT_MS)
        except TopicExists:
            return  # Somebody was faster.

    def enter(self) -> Sequence[LoggedCommand]:
        """Become the writer if it is not us already; what came since the last reading."""
        if not self._is_writer:
            self._writer.begin()
            self._writer.append([_record(b"writer", None)])
            self._is_writer = True
        return self.read()

    def read(self) -> Sequence[LoggedCommand]:
        """What came since the last reading."""
        found = [*self._ahead, *self._read()]
        self._ahead = []
        return found

    def claim(self, server_id: str) -> str | None:
        """Log that this server runs the queries; who did before, by all that was logged."""
        self._ahead = list(self.enter())
        before = self._runner
        if before != server_id:
            self._store(_record(runner_key(server_id), None))
            self._runner = server_id
        return before

    def append(self, command: CommandRecord) -> int:
        """Store a command; its offset."""
        return self._store(_record(*command.encoded()))

    def _store(self, record: Record) -> int:
        try:
            return self._writer.append([record])
        except WriterFenced as error:
            self._is_writer = False
            raise CommandFenced(
                "Another server of this service writes to the command log; try again."
            ) from error
        except WriteOutcomeUnknown as error:
            self._is_writer = False
            raise CommandRefused(
                f"Nobody knows whether the command was logged: {error}. Look, then try again."
            ) from error

    def delete(self) -> None:
        """Remove the topic; another server may have been faster."""
        self._is_writer, self._runner = False, None
        self._next = 0
        with contextlib.suppress(UnknownTopicOrPartition):
            delete_topics(self._cluster, [self.topic], timeout_ms=_TIMEOUT_MS)

    def _read(self) -> list[LoggedCommand]:
        found = []
        for record in committed_records(self._client, self._at, self._next, self._end()):
            self._next = record.offset + 1
            self._runner = runner_of(record.key, record.value) or self._runner
            try:
                command = read_command(record.key, record.value)
            except CommandRefused as error:
                log.error("Offset %d of %s is passed over: %s", record.offset, self.topic, error)
                continue
            if command is not None:
                found.append(LoggedCommand(record.offset, command))
        return found

    def _end(self) -> int:
        wanted = {self._at: int(OffsetSpec.LATEST)}
        found = list_offsets(self._cluster, wanted, timeout_ms=_TIMEOUT_MS)[self._at]
        if isinstance(found, OffsetAndTimestamp):
            return found.offset
        raise found or CommandError(f"The end of {self.topic} is not known.")


def _record(key: bytes, value: bytes | None) -> Record:
    return Record(0, time.time_ns() // 1_000_000, key, value)
