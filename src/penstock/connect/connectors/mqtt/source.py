"""MqttSourceConnector: messages of an MQTT server become records, at least once.

The session is kept by the server, and a message is acknowledged when its record is in the topic:
what was not acknowledged comes again. With several tasks the subscription is a shared one, and
order holds within a task only.
"""

import threading
from typing import Any

from penstock.connect.connectors.mqtt.client import (
    MqttConnection,
    MqttMessage,
    topic_filter_error,
)
from penstock.connect.connectors.mqtt.settings import (
    CONNECTION,
    LIBRARIES,
    MqttSettings,
    check_tls,
)
from penstock.connect.connectors.wiring.deliveries import DeliveredRecord
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, SourceTask
from penstock.connect.plugins.declared import DeclaredSource
from penstock.connect.plugins.validators import (
    AllOf,
    AtLeast,
    Judged,
    NonEmptyList,
    NonEmptyText,
    WithinRange,
)
from penstock.connect.records import Header, SourceRecord
from penstock.connect.values.schema import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    INT32_SCHEMA,
    STRING_SCHEMA,
)

_TASK, _SHARED = "penstock.task", "penstock.mqtt.shared"  # Of a task's own configuration.
_WAIT_S = 0.2


def _wrong_topics(topics: list[str] | None) -> str | None:
    return next(filter(None, (topic_filter_error(one) for one in topics or [])), None)


_CONFIG = CONNECTION + ConfigDef(
    ConfigEntry(
        "mqtt.topics",
        ConfigType.LIST,
        NO_DEFAULT,
        Importance.HIGH,
        "The MQTT topics to subscribe to; + and # are allowed.",
        validator=AllOf((NonEmptyList(), Judged(_wrong_topics, "filters of MQTT topics"))),
    ),
    ConfigEntry(
        "kafka.topic",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "The topic that records go to.",
        validator=NonEmptyText(),
    ),
    ConfigEntry(
        "mqtt.qos",
        ConfigType.INT,
        1,
        Importance.HIGH,
        "0: at most once. 1: at least once, also for messages published with 2; 2 is not taken, "
        "because its handshake lets the server forget a message before it is in the topic.",
        validator=WithinRange(0, 1),
    ),
    ConfigEntry(
        "mqtt.clean.session.enabled",
        ConfigType.BOOLEAN,
        False,
        Importance.HIGH,
        "Whether the server forgets us when the connection ends: messages are then lost meanwhile.",
    ),
    ConfigEntry(
        "records.buffer.max.batch.size",
        ConfigType.INT,
        1000,
        Importance.LOW,
        "How many messages are taken at a time, at most.",
        validator=AtLeast(1),
    ),
)


class MqttSourceTask(SourceTask):
    """One session; `commit_record` acknowledges."""

    def __init__(self) -> None:
        self._connection: MqttConnection | None = None
        self._stopping = threading.Event()

    def start(self, config: Config) -> None:
        parsed = _CONFIG.parse(config)
        self._topic = parsed["kafka.topic"]
        self._batch = parsed["records.buffer.max.batch.size"]
        group = config.get(_SHARED)
        before = f"$share/{group}/" if group else ""
        self._connection = MqttConnection(
            MqttSettings.of(parsed, config),
            subscriptions=[(before + one, parsed["mqtt.qos"]) for one in parsed["mqtt.topics"]],
            keeps_session=not parsed["mqtt.clean.session.enabled"],
        )
        self._connection.open()

    def poll(self) -> list[SourceRecord] | None:
        assert self._connection is not None
        if self._stopping.is_set():
            return None
        return [self._record(one) for one in self._connection.messages(self._batch, _WAIT_S)]

    def commit_record(
        self, record: SourceRecord, *, partition: int | None, offset: int | None
    ) -> None:
        assert self._connection is not None and isinstance(record, DeliveredRecord)
        if record.qos and record.connection == self._connection.connection:
            self._connection.acknowledge(record.tag, record.qos)

    def stop(self) -> None:
        self._stopping.set()
        if self._connection is not None:
            self._connection.close()

    def _record(self, message: MqttMessage) -> DeliveredRecord:
        return DeliveredRecord(
            topic=self._topic,
            key_schema=STRING_SCHEMA,
            key=message.topic,
            value_schema=BYTES_SCHEMA,
            value=message.payload,
            headers=(
                Header("mqtt.message.id", INT32_SCHEMA, message.mid),
                Header("mqtt.qos", INT32_SCHEMA, message.qos),
                Header("mqtt.retained", BOOLEAN_SCHEMA, message.retained),
                Header("mqtt.duplicate", BOOLEAN_SCHEMA, message.duplicate),
            ),
            source_partition=None,
            source_offset=None,
            connection=message.connection,
            tag=message.mid,
            qos=message.qos,
        )


class MqttSourceConnector(DeclaredSource):
    """As many tasks as allowed, which share the subscription."""

    CONFIG = _CONFIG
    TASK = MqttSourceTask
    libraries = LIBRARIES

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        checked = check_tls(_CONFIG.validate(config), config)
        is_shared = _count(config.get("tasks.max")) > 1
        if is_shared and config.get("mqtt.version", "3.1.1") != "5":
            return checked.with_error(
                "mqtt.version", "Several tasks need shared subscriptions, which version 5 has."
            )
        return checked

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        shared: dict[str, Any] = dict(self.config)
        if max_tasks > 1:
            shared[_SHARED] = config_name(self.config)
        return [{**shared, _TASK: str(n)} for n in range(max_tasks)]


def config_name(config: Config) -> str:
    """What a shared subscription is called by: no slash, + or # may be in it."""
    name = config.get("name", "penstock-connect")
    return "".join("_" if sign in "/+#" else sign for sign in name)


def _count(text: str | None) -> int:
    return int(text) if text and text.strip().isdigit() else 1
