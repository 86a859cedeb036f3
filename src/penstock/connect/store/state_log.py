"""A log of records that say what holds: a compacted topic of the cluster, or a list in memory.

Who writes waits until its own reader has passed what was written, so that the state that others
look at never lags behind an answer. Only the reader changes a state.

What the leader of a group writes can be shut out (KIP-618): its producer has a transactional id,
and whoever leads next takes it. What any worker may write goes without.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from penstock.client.admin import Admin
from penstock.client.errors import KafkaTimeoutError
from penstock.client.operations.topics import NewTopic
from penstock.client.producer.producer import Producer
from penstock.connect.store.config_records import LogEntry
from penstock.connect.store.topic_reader import Take, TopicReader
from penstock.errors import (
    ConfigError,
    InvalidReplicationFactor,
    PenstockError,
    TopicExists,
    UnknownTopicOrPartition,
)

log = logging.getLogger("penstock.connect")

_PAUSE_S = 0.5
_TIMEOUT_S = 90.0


class ConnectLog(Protocol):
    """What the stores need of a log."""

    def append(self, records: Sequence[LogEntry], *, by_leader: bool = False) -> None:
        """Keep records, the leader's all or none; they have been read when it returns."""

    def refresh(self, timeout_s: float) -> None:
        """Have everything read that is there now."""

    @property
    def record_end(self) -> int:
        """The offset behind the last record that was read, of the first partition."""

    def close(self) -> None:
        """Stop reading."""


class MemoryLog:
    """For standalone mode: what is appended is taken, and gone with the process."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._lock = threading.Lock()

    def append(self, records: Sequence[LogEntry], *, by_leader: bool = False) -> None:
        with self._lock:
            for record in records:
                self._take(record.key, record.value)

    def refresh(self, timeout_s: float) -> None:
        return

    @property
    def record_end(self) -> int:
        return 0

    def close(self) -> None:
        return


class TopicLog:
    """A topic, read by a thread of its own from the beginning on."""

    def __init__(
        self,
        topic: str,
        client: Mapping[str, str],
        take: Take,
        *,
        transactional_id: str | None = None,  # Of the leader; None: it cannot be shut out.
    ) -> None:
        self._topic = topic
        self._take = take
        self._has_read = threading.Condition()
        self._stopping = threading.Event()
        self._writing = threading.Lock()
        self._client = client
        self._transactional_id = transactional_id
        self._producer: Producer[bytes, bytes] = Producer({**client, **_producing(None)})
        self._leading: Producer[bytes, bytes] | None = None  # None: this worker wrote nothing yet.
        self._looking = threading.Lock()
        self._looker: TopicReader | None = None  # Asks how far the topic goes.
        self._reader = TopicReader(topic, client)
        self._reader.open()
        self._reader.read_to_end(self._take_one, timeout_s=_TIMEOUT_S)
        self._thread = threading.Thread(target=self._follow, name=f"reader of {topic}", daemon=True)
        self._thread.start()

    def append(self, records: Sequence[LogEntry], *, by_leader: bool = False) -> None:
        if not records:
            return
        with self._writing:
            if by_leader and self._transactional_id is not None:
                stored = self._write_as_leader(records)
            else:
                stored = self._send(self._producer, records)
        with self._has_read:
            if not self._has_read.wait_for(lambda: self._is_past(stored), _TIMEOUT_S):
                raise KafkaTimeoutError(
                    f"What was written to {self._topic} was not read back within {_TIMEOUT_S:g} s."
                )

    def refresh(self, timeout_s: float) -> None:
        deadline_s = time.monotonic() + timeout_s
        ends = [(partition, end - 1) for partition, end in self._ends().items() if end]
        with self._has_read:
            left_s = max(0.0, deadline_s - time.monotonic())
            if not self._has_read.wait_for(lambda: self._is_past(ends), left_s):
                raise KafkaTimeoutError(f"{self._topic} was not read to its end in time.")

    @property
    def record_end(self) -> int:
        return self._reader.record_ends.get(0, 0)

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._reader.close()
        if self._looker is not None:
            self._looker.close()
        for producer in (self._producer, self._leading):
            if producer is not None:
                producer.close(1.0)

    def _ends(self) -> dict[int, int]:
        with self._looking:
            if self._looker is None:
                self._looker = TopicReader(self._topic, self._client)
                self._looker.open()
            return self._looker.ends()

    def _is_past(self, stored: Sequence[tuple[int, int]]) -> bool:
        return all(self._reader.positions[partition] > offset for partition, offset in stored)

    def _write_as_leader(self, records: Sequence[LogEntry]) -> list[tuple[int, int]]:
        """One transaction; its first shuts out who led before, a failed one lets the place go."""
        if self._leading is None:
            self._leading = Producer({**self._client, **_producing(self._transactional_id)})
        try:
            with self._leading.transaction():
                return self._send(self._leading, records)
        except PenstockError:
            producer, self._leading = self._leading, None
            producer.close(1.0)
            raise

    def _send(
        self, producer: "Producer[bytes, bytes]", records: Sequence[LogEntry]
    ) -> list[tuple[int, int]]:
        sent = [
            producer.send(self._topic, value=record.value, key=record.key) for record in records
        ]
        producer.flush(_TIMEOUT_S)
        return [(one.partition, one.offset) for one in (future.result() for future in sent)]

    def _follow(self) -> None:
        while not self._stopping.is_set():
            try:
                self._reader.read(self._take_one)
            except PenstockError as error:
                log.warning("Reading %s failed, and is tried again: %s", self._topic, error)
                self._stopping.wait(_PAUSE_S)
            with self._has_read:
                self._has_read.notify_all()

    def _take_one(self, key: bytes | None, value: bytes | None) -> None:
        try:
            self._take(key, value)
        except PenstockError as error:
            log.warning("A record %r of %s is left out: %s", key, self._topic, error)


def prepare_topic(
    admin: Admin, name: str, *, partitions: int, replication_factor: int, single: bool = False
) -> None:
    """Create a compacted topic, or look at the one there is; ConfigError if it cannot serve."""
    try:
        found = len(admin.describe_topics([name])[name].partitions)
    except UnknownTopicOrPartition:
        _create(admin, name, partitions, replication_factor)
        found = partitions
    if single and found != 1:
        raise ConfigError(
            f"Topic '{name}' supplied via the 'config.storage.topic' property is required to have a"
            " single partition in order to guarantee consistency of connector configurations, but"
            f" found {found} partitions."
        )


def _create(admin: Admin, name: str, partitions: int, factor: int) -> None:
    brokers = len(admin.describe_cluster().brokers)
    if factor > brokers:
        log.warning("The topic %s gets %d of %d replicas: no more brokers", name, brokers, factor)
    new = NewTopic(
        name=name,
        partitions=partitions,
        replication_factor=min(factor, brokers),
        configs={"cleanup.policy": "compact"},
    )
    try:
        admin.create_topics([new])
    except TopicExists:
        pass  # Another worker was faster.
    except InvalidReplicationFactor as error:
        raise ConfigError(f"The topic {name} could not be created: {error}") from error


def _producing(transactional_id: str | None) -> dict[str, str]:
    chosen = {"acks": "all", "enable.idempotence": "true", "linger.ms": "0"}
    if transactional_id is not None:
        chosen["transactional.id"] = transactional_id
    return chosen
