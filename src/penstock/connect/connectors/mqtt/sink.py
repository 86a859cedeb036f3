"""MqttSinkConnector: records become messages, at least once (QoS 1 or 2).

Offsets are committed when the server has acknowledged every message before them.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.connect.connectors.mqtt.client import MqttConnection, topic_name_error
from penstock.connect.connectors.mqtt.settings import (
    CONNECTION,
    LIBRARIES,
    MqttSettings,
    check_tls,
)
from penstock.connect.connectors.wiring.payloads import each_or_aside, filled, payload_of
from penstock.connect.errors.kinds import ConnectError, DataError, RetriableConnectError
from penstock.connect.plugins.config_def import (
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, SinkTask
from penstock.connect.plugins.declared import DeclaredSink
from penstock.connect.plugins.validators import NonEmptyText, WithinRange
from penstock.connect.records import SinkRecord
from penstock.records.topic_partition import TopicPartition

if TYPE_CHECKING:
    from paho.mqtt.client import MQTTMessageInfo

_LOOK_S = 0.02
_CONFIG = CONNECTION + ConfigDef(
    ConfigEntry(
        "mqtt.topic",
        ConfigType.STRING,
        "${topic}",
        Importance.HIGH,
        "The MQTT topic of a message; ${topic} and ${key} are the record's.",
        validator=NonEmptyText(),
    ),
    ConfigEntry(
        "mqtt.qos",
        ConfigType.INT,
        1,
        Importance.HIGH,
        "0: at most once. 1 and 2: at least once; a record that is sent again is a new message.",
        validator=WithinRange(0, 2),
    ),
    ConfigEntry(
        "mqtt.retained.enabled",
        ConfigType.BOOLEAN,
        False,
        Importance.MEDIUM,
        "Whether the server keeps the last message of a topic; a null value deletes it.",
    ),
)


class MqttSinkTask(SinkTask):
    """Publishes, and waits for the server's word before offsets are committed."""

    def __init__(self) -> None:
        self._connection: MqttConnection | None = None
        self._sent: list[MQTTMessageInfo] = []

    def start(self, config: Config) -> None:
        parsed = _CONFIG.parse(config)
        settings = MqttSettings.of(parsed, config)
        self._template, self._qos = parsed["mqtt.topic"], parsed["mqtt.qos"]
        self._retained, self._timeout_s = parsed["mqtt.retained.enabled"], settings.timeout_s
        self._connection = MqttConnection(settings)
        self._connection.open()

    def put(self, records: list[SinkRecord]) -> None:
        assert self._connection is not None
        self._connection.check()
        if records and not self._connection.is_up:
            raise RetriableConnectError("The MQTT server is out of reach; it is called again.")
        each_or_aside(self.context, records, self._publish)

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        assert self._connection is not None
        give_up_s = time.monotonic() + self._timeout_s
        while not all(map(_is_there, self._sent)):
            if time.monotonic() > give_up_s:
                raise ConnectError("The MQTT server has not acknowledged all messages in time.")
            self._connection.wait_briefly(_LOOK_S)
        self._sent.clear()

    def stop(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _publish(self, record: SinkRecord) -> None:
        assert self._connection is not None
        topic = filled(self._template, record)
        wrong = topic_name_error(topic)
        if wrong is not None:
            raise DataError(wrong)
        payload = payload_of(record.value_schema, record.value) or b""
        self._sent.append(
            self._connection.publish(topic, payload, qos=self._qos, retain=self._retained)
        )


def _is_there(sent: "MQTTMessageInfo") -> bool:
    try:
        return sent.is_published()
    except (RuntimeError, ValueError) as error:
        raise ConnectError(f"A message did not get to the MQTT server: {error}") from error


class MqttSinkConnector(DeclaredSink):
    """Each task has a session of its own."""

    CONFIG = _CONFIG
    TASK = MqttSinkTask
    libraries = LIBRARIES

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        return check_tls(_CONFIG.validate(config), config)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{**self.config, "penstock.task": str(n)} for n in range(max_tasks)]
