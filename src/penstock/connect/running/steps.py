"""Between a task's records and a topic's bytes: transforms and converters, with their settings.

A connector's own converters come before the worker's, as in Connect. What fails here is tolerated,
retried or put aside as `errors.*` says.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from penstock.client.values import ConsumerRecord, ProducerRecord
from penstock.connect.errors.dead_letters import FailedStep, RecordOrigin
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.errors.tolerating import TolerantRun
from penstock.connect.plugins.contract import (
    Converter,
    HeaderConverter,
    Predicate,
    Transform,
)
from penstock.connect.plugins.lookup import PluginKind, find_plugin
from penstock.connect.records import (
    ConnectRecord,
    Header,
    SinkRecord,
    SourceRecord,
    TimestampType,
)
from penstock.schemas.dead_letters import FailureStage

R = TypeVar("R", bound=ConnectRecord)
_SIMPLE_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_PUT_CLASS = "org.apache.kafka.connect.sink.SinkTask"  # Connect's name for whoever takes records.


class Converters:
    """Those of a task, for keys, values and headers."""

    def __init__(self, connector: Mapping[str, str], worker: Mapping[str, str]) -> None:
        self.key_class, self.key = _converter("key.converter", connector, worker, is_key=True)
        self.value_class, self.value = _converter("value.converter", connector, worker)
        self.header_class, self.header = _header_converter(connector, worker)

    def close(self) -> None:
        """End them."""
        for one in (self.key, self.value, self.header):
            one.close()

    def to_producer(self, record: SourceRecord) -> "ProducerRecord[bytes, bytes]":
        """A record as the producer takes it."""
        topic = record.topic
        return ProducerRecord(
            topic=topic,
            key=self.key.from_connect(topic, record.key_schema, record.key),
            value=self.value.from_connect(topic, record.value_schema, record.value),
            partition=record.partition,
            timestamp_ms=record.timestamp,
            headers=tuple(
                (one.name, self.header.from_connect_header(topic, one.name, one.schema, one.value))
                for one in record.headers
            ),
        )

    def to_sink(self, record: "ConsumerRecord[bytes, bytes]") -> SinkRecord:
        """A record as the consumer brought it."""
        topic = record.topic
        key_schema, key = self.key.to_connect(topic, record.key)
        value_schema, value = self.value.to_connect(topic, record.value)
        headers = []
        for name, data in record.headers:
            schema, found = self.header.to_connect_header(topic, name, data)
            headers.append(Header(name, schema, found))
        return SinkRecord(
            topic=topic,
            partition=record.partition,
            key_schema=key_schema,
            key=key,
            value_schema=value_schema,
            value=value,
            timestamp=record.timestamp_ms,
            headers=tuple(headers),
            offset=record.offset,
            timestamp_type=TimestampType(record.timestamp_type),
            original_topic=topic,
            original_partition=record.partition,
            original_offset=record.offset,
        )

    def failing_out(self, record: SourceRecord) -> tuple[FailureStage, str]:
        """Which converter does not take a record, and its class."""
        topic = record.topic
        return self._failing(
            partial(self.key.from_connect, topic, record.key_schema, record.key),
            partial(self.value.from_connect, topic, record.value_schema, record.value),
        )

    def failing_in(self, record: "ConsumerRecord[bytes, bytes]") -> tuple[FailureStage, str]:
        """Which converter does not take a record's bytes, and its class."""
        topic = record.topic
        return self._failing(
            partial(self.key.to_connect, topic, record.key),
            partial(self.value.to_connect, topic, record.value),
        )

    def _failing(
        self, of_key: Callable[[], object], of_value: Callable[[], object]
    ) -> tuple[FailureStage, str]:
        if not _works(of_key):
            return FailureStage.KEY_CONVERTER, self.key_class
        if not _works(of_value):
            return FailureStage.VALUE_CONVERTER, self.value_class
        return FailureStage.HEADER_CONVERTER, self.header_class


def _works(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except Exception:  # noqa: BLE001  (a converter may raise anything; only which one is asked)
        return False
    return True


def _converter(
    name: str, connector: Mapping[str, str], worker: Mapping[str, str], *, is_key: bool = False
) -> tuple[str, Converter]:
    class_name, settings = _chosen(name, connector, worker, "")
    plugin = find_plugin(PluginKind.CONVERTER, class_name)
    return plugin.name, plugin.load()(settings, is_key=is_key)


def _header_converter(
    connector: Mapping[str, str], worker: Mapping[str, str]
) -> tuple[str, HeaderConverter]:
    class_name, settings = _chosen("header.converter", connector, worker, _SIMPLE_HEADERS)
    plugin = find_plugin(PluginKind.HEADER_CONVERTER, class_name)
    return plugin.name, plugin.load()(settings)


def _chosen(
    name: str, connector: Mapping[str, str], worker: Mapping[str, str], default: str
) -> tuple[str, dict[str, Any]]:
    """The class and its settings, both from the one who names the class."""
    source = connector if connector.get(name) else worker
    prefix = f"{name}."
    settings = {k.removeprefix(prefix): v for k, v in source.items() if k.startswith(prefix)}
    return source.get(name) or default, settings


class _Step(NamedTuple):
    """A transform behind its predicate."""

    class_name: str
    transform: Transform
    is_meant: Callable[[ConnectRecord], bool]

    def apply(self, record: R) -> R | None:
        found = self.transform.apply(record) if self.is_meant(record) else record
        return cast("R | None", found)


class TransformRow:
    """The transforms of a connector in their order, each behind its predicate."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._row = [_transform(config, name) for name in _words(config.get("transforms", ""))]

    def apply(self, record: R) -> R | None:
        """What is left of a record; None: one of them dropped it."""
        found: Any = record
        for _, transform, is_meant in self._row:
            if is_meant(found):
                found = transform.apply(found)
            if found is None:
                return None
        return cast(R, found)

    def __iter__(self) -> Iterator[_Step]:
        return iter(self._row)

    def close(self) -> None:
        """End them."""
        for step in self._row:
            step.transform.close()


class DeadLetterWriter(Protocol):
    """Where records go that were put aside."""

    def settle(self) -> None:
        """Wait until they are safe."""


class TaskSteps:
    """The steps of one task, in the order of its direction."""

    def __init__(
        self,
        connector: Mapping[str, str],
        worker: Mapping[str, str],
        tolerant: TolerantRun,
        letters: "DeadLetterWriter",
    ) -> None:
        self.converters = Converters(connector, worker)
        self._transforms = TransformRow(connector)
        self._tolerant = tolerant
        self._letters = letters

    def to_producer(self, record: SourceRecord) -> "ProducerRecord[bytes, bytes] | None":
        """Transformed and converted; None: it was dropped, or put aside."""
        try:
            found = self._transforms.apply(record)
            return None if found is None else self.converters.to_producer(found)
        except Exception:  # noqa: BLE001  (step by step, so that the failing one is known)
            return self._slowly_to_producer(record)

    def to_sink(self, record: "ConsumerRecord[bytes, bytes]") -> SinkRecord | None:
        """Converted and transformed; None: it was dropped, or put aside."""
        try:
            return self._transforms.apply(self.converters.to_sink(record))
        except Exception:  # noqa: BLE001  (step by step, so that the failing one is known)
            return self._slowly_to_sink(record)

    def report(self, record: SinkRecord, error: Exception) -> None:
        """Put a record aside that the target refused; the task's ErrantRecordReporter."""
        origin = RecordOrigin(
            topic=record.original_topic or record.topic,
            partition=record.original_partition,
            offset=record.original_offset,
            timestamp_ms=record.timestamp,
            key=self.converters.key.from_connect(record.topic, record.key_schema, record.key),
            value=self.converters.value.from_connect(
                record.topic, record.value_schema, record.value
            ),
        )
        tolerant = self._tolerant
        if not tolerant.policy.tolerates:
            raise ConnectError(f"The target refused a record: {error}") from error
        failed = FailedStep(
            stage=FailureStage.TASK_PUT,
            step_class=_PUT_CLASS,
            error=error,
            origin=origin,
            connector=tolerant.connector,
            task=tolerant.task,
        )
        tolerant.counts.skipped += 1
        tolerant.report(failed)

    def settle(self) -> None:
        """Wait until what was put aside is safe."""
        self._letters.settle()

    def _slowly_to_producer(self, record: SourceRecord) -> "ProducerRecord[bytes, bytes] | None":
        origin = RecordOrigin()
        found = self._transformed(record, origin)
        if found is None:
            return None
        stage, class_name = self.converters.failing_out(found)
        convert = partial(self.converters.to_producer, found)
        made = self._tolerant.run(stage, class_name, convert, origin)
        return None if made is None else made.value

    def _slowly_to_sink(self, record: "ConsumerRecord[bytes, bytes]") -> SinkRecord | None:
        origin = _origin(record)
        stage, class_name = self.converters.failing_in(record)
        convert = partial(self.converters.to_sink, record)
        made = self._tolerant.run(stage, class_name, convert, origin)
        return None if made is None else self._transformed(made.value, origin)

    def _transformed(self, record: R, origin: RecordOrigin) -> R | None:
        """What is left behind all transforms; None: one dropped it, or it was put aside."""
        found = record
        for step in self._transforms:
            apply = partial(step.apply, found)
            made = self._tolerant.run(FailureStage.TRANSFORMATION, step.class_name, apply, origin)
            if made is None or made.value is None:
                return None
            found = made.value
        return found

    def close(self) -> None:
        """End all."""
        self._transforms.close()
        self.converters.close()


def _origin(record: "ConsumerRecord[bytes, bytes]") -> RecordOrigin:
    return RecordOrigin(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=record.key,
        value=record.value,
        headers=tuple(record.headers),
    )


def _transform(config: Mapping[str, str], name: str) -> _Step:
    settings = _below(config, f"transforms.{name}.")
    plugin = find_plugin(PluginKind.TRANSFORM, settings.get("type", ""))
    kind = plugin.load()
    made: Transform = kind(kind.config_def().parse(settings))
    return _Step(plugin.name, made, _predicate(config, settings))


def _predicate(
    config: Mapping[str, str], settings: Mapping[str, str]
) -> Callable[[ConnectRecord], bool]:
    name = settings.get("predicate")
    if not name:
        return lambda _: True
    own = _below(config, f"predicates.{name}.")
    kind = find_plugin(PluginKind.PREDICATE, own.get("type", "")).load()
    made: Predicate = kind(kind.config_def().parse(own))
    wanted = settings.get("negate", "false").strip().lower() != "true"
    return lambda record: made.test(record) is wanted


def _below(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {k.removeprefix(prefix): v for k, v in config.items() if k.startswith(prefix)}


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
