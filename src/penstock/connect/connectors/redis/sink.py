"""RedisSinkConnector: records become keys of Redis, exactly once.

The records of a partition and the offset behind them are written in one transaction of Redis
(MULTI), which is only done while the offset is the one that was read (WATCH): what comes again is
known, and a task that others have replaced writes nothing.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from penstock.connect.connectors.redis.client import (
    CONNECTION,
    LIBRARIES,
    RedisServer,
    check_connection,
)
from penstock.connect.connectors.wiring.payloads import payload_of, put_aside, text_of
from penstock.connect.errors.kinds import ConnectError, DataError
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, SinkTask
from penstock.connect.plugins.declared import DeclaredSink
from penstock.connect.plugins.validators import NonEmptyText, OneOfWords
from penstock.connect.records import SinkRecord
from penstock.connect.values.schema import Schema
from penstock.connect.values.struct import StructValue
from penstock.records.topic_partition import TopicPartition

_BATCH_MAX = 1000
_KEYED = ("SET", "HSET")  # A key of Redis for each record; the others gather records in one.
_CONFIG = CONNECTION + ConfigDef(
    ConfigEntry(
        "redis.command",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "What becomes of a record: SET, HSET, XADD, LPUSH, RPUSH or SADD.",
        validator=OneOfWords(("SET", "HSET", "XADD", "LPUSH", "RPUSH", "SADD"), any_case=True),
    ),
    ConfigEntry(
        "redis.keyspace",
        ConfigType.STRING,
        "${topic}",
        Importance.MEDIUM,
        "The key of Redis; SET and HSET add the record's key to it. ${topic} is replaced.",
    ),
    ConfigEntry(
        "redis.separator",
        ConfigType.STRING,
        ":",
        Importance.LOW,
        "Between redis.keyspace and the record's key.",
    ),
    ConfigEntry(
        "redis.offsets",
        ConfigType.STRING,
        "penstock:offsets",
        Importance.LOW,
        "The beginning of the keys that keep offsets; the connector's name, the topic and the "
        "partition follow.",
        validator=NonEmptyText(),
    ),
)


class RedisSinkTask(SinkTask):
    """Writes each partition in transactions of its own."""

    def __init__(self) -> None:
        self._server: RedisServer | None = None

    def start(self, config: Config) -> None:
        parsed = _CONFIG.parse(config)
        self._command = parsed["redis.command"].upper()
        self._space, self._between = parsed["redis.keyspace"], parsed["redis.separator"]
        self._offsets = f"{parsed['redis.offsets']}:{config.get('name', 'sink')}"
        self._server = RedisServer(parsed)

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        assert self._server is not None
        known = {}
        for at in partitions:
            with self._server.asked():
                found: Any = self._server.client.get(offset_key(self._offsets, at))
            if found is not None:
                known[at] = int(found)
        self.context.seek(known)

    def put(self, records: list[SinkRecord]) -> None:
        for at, group in groupby(sorted(records, key=_source_of), key=_source_of):
            row = sorted(group, key=lambda one: one.offset)
            for first in range(0, len(row), _BATCH_MAX):
                self._write(at, row[first : first + _BATCH_MAX])

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    def _write(self, at: TopicPartition, records: list[SinkRecord]) -> None:
        assert self._server is not None
        from redis.exceptions import WatchError

        key = offset_key(self._offsets, at)
        with self._server.asked(), self._server.client.pipeline(transaction=True) as pipe:
            pipe.watch(key)  # type: ignore[no-untyped-call]
            known: Any = pipe.get(key)
            new = [one for one in records if known is None or one.offset >= int(known)]
            pipe.multi()
            queued = [one for one in new if self._queue(pipe, one)]
            if not new:
                return
            pipe.set(key, new[-1].offset + 1)
            try:
                answers = pipe.execute(raise_on_error=False)
            except WatchError as error:
                raise ConnectError(f"Another task writes {at}: {error}") from error
        self._judge(key, queued, answers)

    def _queue(self, pipe: Any, record: SinkRecord) -> bool:
        """Whether a record is one command of the transaction."""
        try:
            command = self._command_of(record)
        except DataError as error:
            put_aside(self.context, record, error)
            return False
        if command is not None:
            pipe.execute_command(*command)
        return command is not None

    def _command_of(self, record: SinkRecord) -> list[Any] | None:
        space = self._space.replace("${topic}", record.topic)
        if self._command not in _KEYED:
            return None if record.value is None else [self._command, space, *self._parts(record)]
        name = text_of(record.key_schema, record.key)
        if not name:
            raise DataError("the record has no key")
        key = f"{space}{self._between}{name}" if space else name
        return ["DEL", key] if record.value is None else [self._command, key, *self._parts(record)]

    def _parts(self, record: SinkRecord) -> list[Any]:
        if self._command not in ("HSET", "XADD"):
            return [payload_of(record.value_schema, record.value)]
        fields = _fields(record.value)
        if not fields:
            raise DataError(f"{self._command} needs a value with fields")
        flat = [part for name, value in fields.items() for part in (name, value)]
        return flat if self._command == "HSET" else ["*", *flat]

    def _judge(self, key: str, queued: list[SinkRecord], answers: list[Any]) -> None:
        """What Redis refused: put aside, or the task ends at its place."""
        assert self._server is not None
        for record, answer in zip(queued, answers, strict=False):
            if not isinstance(answer, Exception):
                continue
            try:
                put_aside(self.context, record, answer)
            except DataError:
                with self._server.asked():
                    self._server.client.set(key, record.offset)
                raise


def offset_key(prefix: str, at: TopicPartition) -> str:
    """Where the offset of a partition is kept."""
    return f"{prefix}:{at.topic}:{at.partition}"


def _fields(value: Any) -> dict[str, bytes]:
    """The fields of a struct or a map, as Redis has them; nulls are left out."""
    listed: list[tuple[str, Schema | None, Any]]
    if isinstance(value, StructValue):
        listed = [(one.name, one.schema, part) for one, part in value.items()]
    elif isinstance(value, dict):
        listed = [(str(name), None, part) for name, part in value.items()]
    else:
        raise DataError(f"a {type(value).__name__} has no fields")
    made = {name: payload_of(schema, part) for name, schema, part in listed}
    return {name: part for name, part in made.items() if part is not None}


def _source_of(record: SinkRecord) -> TopicPartition:
    own = record.partition or 0
    partition = own if record.original_partition is None else record.original_partition
    return TopicPartition(record.original_topic or record.topic, partition)


class RedisSinkConnector(DeclaredSink):
    """Each task writes its partitions."""

    CONFIG = _CONFIG
    TASK = RedisSinkTask
    libraries = LIBRARIES

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        return check_connection(_CONFIG.validate(config), config)

    def alter_offsets(self, config: Config, offsets: Mapping[TopicPartition, int | None]) -> bool:
        parsed = _CONFIG.parse(config)
        prefix = f"{parsed['redis.offsets']}:{config.get('name', 'sink')}"
        server = RedisServer(parsed)
        try:
            with server.asked():
                for at, offset in offsets.items():
                    if offset is None:
                        server.client.delete(offset_key(prefix, at))
                    else:
                        server.client.set(offset_key(prefix, at), offset)
        finally:
            server.close()
        return True
