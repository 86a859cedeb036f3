"""RabbitMQSourceConnector: messages of queues become records, at least once.

A message is acknowledged when its record is in the topic; what was not acknowledged comes again.
The server gives so many at a time as `rabbitmq.prefetch.count` says, so a topic that is slow fills
no memory.
"""

import threading
from typing import Any

from penstock.connect.connectors.rabbitmq.client import (
    CONNECTION,
    LIBRARIES,
    RabbitServer,
    check_connection,
)
from penstock.connect.connectors.wiring.deliveries import DeliveredRecord
from penstock.connect.errors.kinds import RetriableConnectError
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, SourceTask
from penstock.connect.plugins.declared import DeclaredSource, dealt
from penstock.connect.plugins.validators import DistinctItems, NonEmptyText, WithinRange
from penstock.connect.records import Header, SourceRecord
from penstock.connect.values.schema import BOOLEAN_SCHEMA, BYTES_SCHEMA, STRING_SCHEMA

_WAIT_S = 0.2
_CONFIG = CONNECTION + ConfigDef(
    ConfigEntry(
        "rabbitmq.queue",
        ConfigType.LIST,
        NO_DEFAULT,
        Importance.HIGH,
        "The queues to read, shared out among the tasks.",
        validator=DistinctItems(),
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
        "rabbitmq.prefetch.count",
        ConfigType.INT,
        500,
        Importance.MEDIUM,
        "How many messages may be on their way without an acknowledgement.",
        validator=WithinRange(1, 65_535),
    ),
)


class RabbitMQSourceTask(SourceTask):
    """Consumes; `commit_record` acknowledges."""

    def __init__(self) -> None:
        self._server: RabbitServer | None = None
        self._came: list[DeliveredRecord] = []
        self._stopping = threading.Event()

    def start(self, config: Config) -> None:
        parsed = _CONFIG.parse(config)
        self._topic, self._queues = parsed["kafka.topic"], parsed["rabbitmq.queue"]
        self._prefetch = parsed["rabbitmq.prefetch.count"]
        self._server = RabbitServer(parsed)

    def poll(self) -> list[SourceRecord] | None:
        assert self._server is not None
        if self._stopping.is_set():
            return None
        if not self._server.is_open:
            self._consume()
        self._server.serve(_WAIT_S)
        came, self._came = self._came, []
        return list(came)

    def commit_record(
        self, record: SourceRecord, *, partition: int | None, offset: int | None
    ) -> None:
        assert self._server is not None and isinstance(record, DeliveredRecord)
        if not self._server.is_open or record.connection != self._server.connection:
            return  # It comes again.
        try:
            with self._server.asked():
                self._server.channel.basic_ack(record.tag)
        except RetriableConnectError:
            return  # The next poll connects, and gets it again.

    def stop(self) -> None:
        self._stopping.set()
        if self._server is not None:
            self._server.close()

    def _consume(self) -> None:
        assert self._server is not None
        self._came.clear()
        self._server.open()
        with self._server.asked():
            self._server.channel.basic_qos(prefetch_count=self._prefetch)
            for queue in self._queues:
                self._server.channel.basic_consume(queue, self._take)

    def _take(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        assert self._server is not None
        self._came.append(
            DeliveredRecord(
                topic=self._topic,
                key_schema=STRING_SCHEMA,
                key=method.routing_key,
                value_schema=BYTES_SCHEMA,
                value=body,
                timestamp=properties.timestamp * 1000 if properties.timestamp else None,
                headers=_headers(method, properties),
                source_partition=None,
                source_offset=None,
                connection=self._server.connection,
                tag=method.delivery_tag,
            )
        )


def _headers(method: Any, properties: Any) -> tuple[Header, ...]:
    """Where a message came from, what it is, and its own headers."""
    found = [
        Header("rabbitmq.exchange", STRING_SCHEMA, method.exchange),
        Header("rabbitmq.routing.key", STRING_SCHEMA, method.routing_key),
        Header("rabbitmq.redelivered", BOOLEAN_SCHEMA, bool(method.redelivered)),
    ]
    for name in ("content_type", "message_id", "correlation_id", "reply_to"):
        value = getattr(properties, name)
        if value is not None:
            found.append(Header(f"rabbitmq.{name.replace('_', '.')}", STRING_SCHEMA, value))
    for name, value in (properties.headers or {}).items():
        text = value if isinstance(value, str) else repr(value)
        found.append(Header(f"rabbitmq.header.{name}", STRING_SCHEMA, text))
    return tuple(found)


class RabbitMQSourceConnector(DeclaredSource):
    """Queues are dealt out; where there are more tasks, several read one queue."""

    CONFIG = _CONFIG
    TASK = RabbitMQSourceTask
    libraries = LIBRARIES

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        return check_connection(_CONFIG.validate(config), config)

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        hands = dealt(self.parsed["rabbitmq.queue"], max_tasks)
        each = [hands[n % len(hands)] for n in range(max_tasks)]
        return [{**self.config, "rabbitmq.queue": ",".join(names)} for names in each]
