"""What a worker knows and writes: configurations, statuses and offsets, in topics or in memory."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from penstock.client.admin import Admin
from penstock.client.producer.producer import Producer
from penstock.connect.group.session_keys import SessionKey
from penstock.connect.settings import StateTopics, WorkerSettings
from penstock.connect.store.config_records import (
    ConfigChange,
    LogEntry,
    LoggerSet,
    RestartWanted,
    decode_config,
)
from penstock.connect.store.config_state import ConfigState, StoredConnector
from penstock.connect.store.json_text import DamagedEntry
from penstock.connect.store.offset_file import OffsetFile
from penstock.connect.store.offset_records import canonical, decode_offset
from penstock.connect.store.state_log import ConnectLog, MemoryLog, TopicLog, prepare_topic
from penstock.connect.store.status_records import (
    RunStatus,
    StatusSet,
    TaskId,
    TopicUsed,
    decode_status,
    encode_status,
    encode_topic,
)
from penstock.connect.store.status_state import StatusState
from penstock.connect.store.topic_reader import TopicReader

_READ_S = 90.0


class ConnectStores:
    """The states, each changed by its reader alone, and the logs to write to."""

    def __init__(
        self,
        settings: WorkerSettings,
        on_change: Callable[[], None],
        on_wish: Callable[[RestartWanted | LoggerSet], None] = lambda _: None,
    ) -> None:
        """`on_wish` hears what workers are asked to do now; what was asked before is over."""
        self._settings = settings
        self._on_change = on_change
        self._on_wish = on_wish
        self._is_live = False
        self._lock = threading.Lock()
        self._config_state = ConfigState()
        self._status_state = StatusState()
        self._file = None if settings.offset_file is None else OffsetFile(settings.offset_file)
        self._config: ConnectLog
        self._status: ConnectLog
        if settings.topics is None:
            self._config, self._status = MemoryLog(self._take_config), MemoryLog(self._take_status)
        else:
            self._open_topics(settings.topics)
        self._is_live = True

    @property
    def connectors(self) -> Mapping[str, StoredConnector]:
        """All connectors; the mapping never changes, another one takes its place."""
        return self._config_state.connectors

    @property
    def logger_levels(self) -> dict[str, str]:
        """What the whole group was told about loggers."""
        with self._lock:
            return dict(self._config_state.loggers)

    @property
    def session_key(self) -> SessionKey | None:
        """With which workers sign now; None: no leader has made one yet."""
        with self._lock:
            document = self._config_state.session_key
        return None if document is None else SessionKey.of(document)

    @property
    def config_offset(self) -> int:
        """How far the config log was read, as workers tell it to each other."""
        return self._config.record_end

    def refresh(self, timeout_s: float) -> None:
        """Have all read that others have written; KafkaTimeoutError if it takes too long."""
        self._config.refresh(timeout_s)
        self._status.refresh(timeout_s)

    def write_config(self, records: Sequence[LogEntry]) -> None:
        """Append to the config log, as the leader; the state has them when it returns."""
        self._config.append(records, by_leader=True)

    def write_wishes(self, records: Sequence[LogEntry]) -> None:
        """Append what every worker may write: target states, levels of loggers."""
        self._config.append(records)

    def status(self, of: TaskId) -> RunStatus | None:
        """How one is; None: nothing is known of it."""
        with self._lock:
            return self._status_state.statuses.get(of)

    def statuses(self, connector: str) -> dict[TaskId, RunStatus]:
        """The connector and its tasks, in order."""
        with self._lock:
            state = self._status_state
            return {of: state.statuses[of] for of in state.of_connector(connector)}

    def set_status(self, of: TaskId, status: RunStatus | None) -> None:
        """Tell all how one is."""
        self._status.append([encode_status(of, status)])

    def topics(self, connector: str) -> list[str]:
        """The topics in use."""
        with self._lock:
            return self._status_state.topics_of(connector)

    def use_topic(self, used: TopicUsed) -> None:
        """Note one, or forget it."""
        self._status.append([encode_topic(used)])

    def source_offsets(self, connector: str, own_topic: str | None) -> list[dict[str, Any]]:
        """How far a source is, in the form of REST."""
        found: dict[bytes, dict[str, Any]] = {}

        def take(key: bytes | None, value: bytes | None) -> None:
            try:
                entry = decode_offset(key, value)
            except DamagedEntry:
                return
            if entry.connector != connector:
                return
            found.pop(canonical(entry.partition), None)
            if entry.offset is not None:
                told = {"partition": entry.partition, "offset": entry.offset}
                found[canonical(entry.partition)] = told

        self._read_offsets(take, own_topic)
        return list(found.values())

    def offset_records(self, connector: str) -> tuple[LogEntry, ...]:
        """What a standalone worker's task begins with."""
        return () if self._file is None else tuple(self._file.records())

    def write_offsets(self, records: Sequence[LogEntry], own_topic: str | None = None) -> None:
        """Keep offsets; returns when they are safe."""
        if self._file is not None:
            with self._lock:
                self._file.put(records)
            return
        assert self._settings.topics is not None
        settings = {**self._settings.client, "acks": "all", "enable.idempotence": "true"}
        with Producer(settings) as producer:
            topic = own_topic or self._settings.topics.offsets
            sent = [producer.send(topic, value=r.value, key=r.key) for r in records]
            producer.flush(_READ_S)
            for one in sent:
                one.result(_READ_S)

    def close(self) -> None:
        """Stop reading."""
        self._config.close()
        self._status.close()

    def _open_topics(self, topics: StateTopics) -> None:
        settings = self._settings
        with Admin(settings.client) as admin:
            prepare_topic(
                admin,
                topics.config,
                partitions=1,
                replication_factor=topics.config_replicas,
                single=True,
            )
            for name, partitions, replicas in (
                (topics.offsets, topics.offset_partitions, topics.offset_replicas),
                (topics.status, topics.status_partitions, topics.status_replicas),
            ):
                prepare_topic(admin, name, partitions=partitions, replication_factor=replicas)
        # As Apache does it: whoever leads next shuts out the one before.
        fenced = f"connect-cluster-{settings.group_id}" if settings.exactly_once_sources else None
        self._config = TopicLog(
            topics.config, settings.client, self._take_config, transactional_id=fenced
        )
        self._status = TopicLog(topics.status, settings.client, self._take_status)

    def _read_offsets(
        self, take: Callable[[bytes | None, bytes | None], None], own_topic: str | None
    ) -> None:
        if self._settings.topics is None:
            for record in self.offset_records(""):
                take(record.key, record.value)
            return
        for topic in filter(None, (self._settings.topics.offsets, own_topic)):
            with _reader(topic, self._settings.client) as reader:
                reader.read_to_end(take, timeout_s=_READ_S)

    def _take_config(self, key: bytes | None, value: bytes | None) -> None:
        change = decode_config(key, value)
        if change is not None:
            with self._lock:
                self._config_state.apply(change)
            self._tell_wish(change)
            self._on_change()

    def _tell_wish(self, change: ConfigChange) -> None:
        if self._is_live and isinstance(change, RestartWanted | LoggerSet):
            self._on_wish(change)

    def _take_status(self, key: bytes | None, value: bytes | None) -> None:
        change = decode_status(key, value)
        if isinstance(change, StatusSet | TopicUsed):
            with self._lock:
                self._status_state.apply(change)


@contextmanager
def _reader(topic: str, client: Mapping[str, str]) -> Iterator[TopicReader]:
    reader = TopicReader(topic, client)
    try:
        reader.open()
        yield reader
    finally:
        reader.close()
