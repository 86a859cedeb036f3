"""RabbitMQSinkConnector: records become messages of an exchange, at least once.

The server confirms each message before the next is sent (publisher confirms), so what `put` has
taken is safe. A message that no queue takes is put aside, or ends the task.
"""

from penstock.connect.connectors.rabbitmq.client import (
    CONNECTION,
    LIBRARIES,
    RabbitServer,
    check_connection,
)
from penstock.connect.connectors.wiring.payloads import each_or_aside, filled, payload_of, text_of
from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import (
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, SinkTask
from penstock.connect.plugins.declared import DeclaredSink
from penstock.connect.plugins.validators import OneOfWords
from penstock.connect.records import SinkRecord

_KEY_BYTES_MAX = 255
_CONFIG = CONNECTION + ConfigDef(
    ConfigEntry(
        "rabbitmq.exchange",
        ConfigType.STRING,
        "",
        Importance.HIGH,
        "The exchange. Empty: the default one, where the routing key is the name of a queue.",
    ),
    ConfigEntry(
        "rabbitmq.routing.key",
        ConfigType.STRING,
        "${topic}",
        Importance.HIGH,
        "The routing key of a message; ${topic} and ${key} are the record's.",
    ),
    ConfigEntry(
        "rabbitmq.delivery.mode",
        ConfigType.STRING,
        "PERSISTENT",
        Importance.MEDIUM,
        "Whether a message survives a restart of the server, in a queue that does.",
        validator=OneOfWords(("PERSISTENT", "TRANSIENT"), any_case=True),
    ),
)


class RabbitMQSinkTask(SinkTask):
    """Publishes with confirms."""

    def __init__(self) -> None:
        self._server: RabbitServer | None = None

    def start(self, config: Config) -> None:
        parsed = _CONFIG.parse(config)
        self._exchange, self._template = parsed["rabbitmq.exchange"], parsed["rabbitmq.routing.key"]
        self._mode = 2 if parsed["rabbitmq.delivery.mode"].upper() == "PERSISTENT" else 1
        self._server = RabbitServer(parsed)

    def put(self, records: list[SinkRecord]) -> None:
        assert self._server is not None
        if records and not self._server.is_open:
            self._server.open()
            with self._server.asked():
                self._server.channel.confirm_delivery()
        each_or_aside(self.context, records, self._publish)

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    def _publish(self, record: SinkRecord) -> None:
        assert self._server is not None
        import pika
        from pika.exceptions import NackError, UnroutableError

        key = filled(self._template, record)
        if len(key.encode()) > _KEY_BYTES_MAX:
            raise DataError(f"the routing key {key[:40]}... has more than {_KEY_BYTES_MAX} bytes")
        body = payload_of(record.value_schema, record.value) or b""
        headers = {one.name: text_of(one.schema, one.value) for one in record.headers}
        properties = pika.BasicProperties(delivery_mode=self._mode, headers=headers or None)
        with self._server.asked():
            try:
                self._server.channel.basic_publish(
                    self._exchange, key, body, properties, mandatory=True
                )
            except UnroutableError as error:
                raise DataError(f"no queue takes the routing key {key}") from error
            except NackError as error:
                raise DataError(f"the server refuses the message: {error!r}") from error


class RabbitMQSinkConnector(DeclaredSink):
    """Each task has a connection of its own."""

    CONFIG = _CONFIG
    TASK = RabbitMQSinkTask
    libraries = LIBRARIES

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        return check_connection(_CONFIG.validate(config), config)
