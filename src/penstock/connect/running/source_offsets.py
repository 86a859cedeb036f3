"""Where a source's offsets are: in a topic that the task reads and writes, or with its worker."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from penstock.connect.running.channel import TaskChannel
from penstock.connect.store.config_records import LogEntry
from penstock.connect.store.json_text import DamagedEntry
from penstock.connect.store.offset_records import canonical, decode_offset
from penstock.connect.store.topic_reader import TopicReader

_READ_S = 120.0  # Also the time for transactions of others that are open in the topic.


class SourceOffsets:
    """What was committed for the partitions of one connector, before the task started or since."""

    def __init__(self, connector: str) -> None:
        self._connector = connector
        self._known: dict[bytes, dict[str, Any]] = {}

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """A record of the offset topic; those of other connectors are passed over."""
        try:
            entry = decode_offset(key, value)
        except DamagedEntry:
            return
        if entry.connector != self._connector:
            return
        if entry.offset is None:
            self._known.pop(canonical(entry.partition), None)
        else:
            self._known[canonical(entry.partition)] = entry.offset

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        found = self._known.get(canonical(partition))
        return None if found is None else dict(found)

    def offsets(self, partitions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        return [self.offset(one) for one in partitions]

    def all_offsets(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        return [(json.loads(key), dict(offset)) for key, offset in self._known.items()]


class OffsetKeeper(Protocol):
    """Keeps the offsets of a task that does not write them in its transactions."""

    def keep(self, records: Sequence[LogEntry]) -> None:
        """Return when they are safe."""


class WorkerKeeper:
    """Of a standalone worker: it has the file."""

    def __init__(self, channel: TaskChannel) -> None:
        self._channel = channel

    def keep(self, records: Sequence[LogEntry]) -> None:
        self._channel.keep_offsets(records)


def read_offsets(topic: str, client: Mapping[str, str], known: SourceOffsets) -> None:
    """Everything in the offset topic now; call it after predecessors were fenced."""
    reader = TopicReader(topic, client)
    try:
        reader.open()
        reader.read_to_end(known.take, timeout_s=_READ_S)
    finally:
        reader.close()
