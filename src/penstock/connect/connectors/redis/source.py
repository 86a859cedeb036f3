"""RedisStreamSourceConnector: entries of Redis streams become records, exactly once.

The offset is the id of the last entry that is in the topic, kept by the worker: no consumer group
is made, and nothing is written to Redis. Entries that were trimmed before they were read are gone.
"""

import threading
from collections.abc import Mapping
from typing import Any

from penstock.connect.connectors.redis.client import (
    CONNECTION,
    LIBRARIES,
    RedisServer,
    check_connection,
)
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, ExactlyOnceSupport, SourceTask
from penstock.connect.plugins.declared import DeclaredSource, dealt
from penstock.connect.plugins.validators import AtLeast, DistinctItems, Judged, NonEmptyText
from penstock.connect.records import SourceRecord
from penstock.connect.values.schema import STRING_SCHEMA, map_schema, struct_schema
from penstock.connect.values.struct import StructValue

STREAM, OFFSET = "stream", "offset"
ENTRY = struct_schema(
    {
        "id": STRING_SCHEMA,
        "stream": STRING_SCHEMA,
        "body": map_schema(STRING_SCHEMA, STRING_SCHEMA),
    },
    name="com.redis.kafka.connect.stream.Value",
)


def _wrong_id(text: str | None) -> str | None:
    first, _, second = (text or "").partition("-")
    is_id = first.isdigit() and (not second or second.isdigit())
    return None if text == "$" or is_id else "it is neither an id (1700000000000-0) nor $"


_CONFIG = CONNECTION + ConfigDef(
    ConfigEntry(
        "redis.stream.name",
        ConfigType.LIST,
        NO_DEFAULT,
        Importance.HIGH,
        "The streams to read, shared out among the tasks.",
        validator=DistinctItems(),
    ),
    ConfigEntry(
        "topic",
        ConfigType.STRING,
        "${stream}",
        Importance.HIGH,
        "The topic that records go to; ${stream} is the stream.",
        validator=NonEmptyText(),
    ),
    ConfigEntry(
        "redis.stream.offset",
        ConfigType.STRING,
        "0-0",
        Importance.MEDIUM,
        "Where to begin: behind an id, 0-0 for everything, $ for what comes from now on.",
        validator=Judged(_wrong_id, "an id of an entry, or $"),
    ),
    ConfigEntry(
        "redis.stream.block",
        ConfigType.INT,
        200,
        Importance.LOW,
        "How many milliseconds to wait for something new.",
        validator=AtLeast(1),
    ),
    ConfigEntry(
        "batch.size",
        ConfigType.INT,
        500,
        Importance.LOW,
        "How many entries of a stream are read at a time, at most.",
        validator=AtLeast(1),
    ),
)


class RedisStreamSourceTask(SourceTask):
    """Reads its streams on from the ids that were committed."""

    def __init__(self) -> None:
        self._server: RedisServer | None = None
        self._ids: dict[str, str] = {}  # The last id of each stream that a record was made of.
        self._stopping = threading.Event()

    def start(self, config: Config) -> None:
        parsed = _CONFIG.parse(config)
        self._topic, self._block_ms = parsed["topic"], parsed["redis.stream.block"]
        self._batch = parsed["batch.size"]
        self._server = RedisServer(parsed)
        for stream in parsed["redis.stream.name"]:
            kept = self.context.offset_reader.offset({STREAM: stream})
            first = parsed["redis.stream.offset"] if kept is None else str(kept[OFFSET])
            self._ids[stream] = self._last_id(stream) if first == "$" else first

    def poll(self) -> list[SourceRecord] | None:
        assert self._server is not None
        if self._stopping.is_set():
            return None
        with self._server.asked():
            ids: Any = dict(self._ids)
            found: Any = self._server.client.xread(ids, count=self._batch, block=self._block_ms)
        rows = found.items() if isinstance(found, dict) else found or []
        records = [
            self._record(_text(stream), entry) for stream, each in rows for entry in _flat(each)
        ]
        for one in records:
            assert one.source_partition is not None and one.source_offset is not None
            self._ids[one.source_partition[STREAM]] = one.source_offset[OFFSET]
        return records

    def stop(self) -> None:
        self._stopping.set()
        if self._server is not None:
            self._server.close()

    def _last_id(self, stream: str) -> str:
        assert self._server is not None
        with self._server.asked():
            found: Any = self._server.client.xrevrange(stream, count=1)
        return _text(found[0][0]) if found else "0-0"

    def _record(self, stream: str, entry: tuple[bytes, dict[bytes, bytes] | None]) -> SourceRecord:
        name = _text(entry[0])
        body = {_text(key): _text(value) for key, value in (entry[1] or {}).items()}
        return SourceRecord(
            topic=self._topic.replace("${stream}", stream),
            key_schema=STRING_SCHEMA,
            key=name,
            value_schema=ENTRY,
            value=StructValue(ENTRY, (name, stream, body)),
            timestamp=int(name.partition("-")[0]),
            source_partition={STREAM: stream},
            source_offset={OFFSET: name},
        )


def _flat(entries: Any) -> list[Any]:
    """Entries of a stream; RESP3 has a list around them."""
    is_nested = bool(entries) and isinstance(entries[0], list)
    return [one for each in entries for one in each] if is_nested else list(entries)


def _text(found: bytes) -> str:
    """Bytes that are no UTF-8 are shown as \\xNN, so that no entry stops a stream."""
    return found.decode(errors="backslashreplace")


class RedisStreamSourceConnector(DeclaredSource):
    """Streams are dealt out to the tasks."""

    CONFIG = _CONFIG
    TASK = RedisStreamSourceTask
    libraries = LIBRARIES

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        return check_connection(_CONFIG.validate(config), config)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        hands = dealt(self.parsed["redis.stream.name"], max_tasks)
        return [{**self.config, "redis.stream.name": ",".join(names)} for names in hands]

    def exactly_once_support(self, config: Config) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, config: Config, offsets: Mapping[frozenset[tuple[str, Any]], Mapping[str, Any] | None]
    ) -> bool:
        for partition, offset in offsets.items():
            if offset is None:
                continue
            found = offset.get(OFFSET)
            if STREAM not in dict(partition) or _wrong_id(str(found)) or found == "$":
                raise ConnectError(f"A partition has '{STREAM}', an offset '{OFFSET}' with an id")
        return True
