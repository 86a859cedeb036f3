"""SyslogSourceConnector: syslog messages become records, as well as syslog can: at most once.

Syslog has no acknowledgement. What was received and is not yet in the topic is lost when the task
dies, and what is sent while nobody listens is lost too (over TCP the sender sees that).
"""

import threading
from datetime import UTC, datetime

from penstock.connect.connectors.syslog.listening import SyslogDatagram, SyslogListener
from penstock.connect.connectors.syslog.messages import read_message
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, SourceTask
from penstock.connect.plugins.declared import DeclaredSource
from penstock.connect.plugins.validators import AtLeast, NonEmptyText, OneOfWords, WithinRange
from penstock.connect.records import SourceRecord
from penstock.connect.values.logical import TIMESTAMP_SCHEMA, timestamp_ms_of
from penstock.connect.values.schema import (
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    map_schema,
    struct_schema,
)
from penstock.connect.values.struct import StructValue

MESSAGE = struct_schema(
    {
        "type": STRING_SCHEMA,
        "date": TIMESTAMP_SCHEMA.as_optional(),
        "facility": OPTIONAL_INT32_SCHEMA,
        "level": OPTIONAL_INT32_SCHEMA,
        "version": OPTIONAL_INT32_SCHEMA,
        "host": OPTIONAL_STRING_SCHEMA,
        "app_name": OPTIONAL_STRING_SCHEMA,
        "process_id": OPTIONAL_STRING_SCHEMA,
        "message_id": OPTIONAL_STRING_SCHEMA,
        "structured_data": map_schema(STRING_SCHEMA, map_schema(STRING_SCHEMA, STRING_SCHEMA)),
        "message": STRING_SCHEMA,
        "remote_address": STRING_SCHEMA,
    },
    name="io.confluent.syslog.Message",
)
_WAIT_S = 0.2
_CONFIG = ConfigDef(
    ConfigEntry(
        "topic",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "The topic that records go to.",
        validator=NonEmptyText(),
    ),
    ConfigEntry(
        "syslog.port",
        ConfigType.INT,
        NO_DEFAULT,
        Importance.HIGH,
        "The port to listen on, where the task runs. 0: one that is free.",
        validator=WithinRange(0, 65_535),
    ),
    ConfigEntry(
        "syslog.listener",
        ConfigType.STRING,
        "UDP",
        Importance.HIGH,
        "UDP or TCP.",
        validator=OneOfWords(("UDP", "TCP"), any_case=True),
    ),
    ConfigEntry(
        "syslog.listen.address",
        ConfigType.STRING,
        "0.0.0.0",
        Importance.MEDIUM,
        "The address to listen on.",
        validator=NonEmptyText(),
    ),
    ConfigEntry(
        "syslog.message.max.bytes",
        ConfigType.INT,
        65_535,
        Importance.LOW,
        "The longest message; what is behind is cut off.",
        validator=AtLeast(480),
    ),
    ConfigEntry(
        "syslog.queue.max.size",
        ConfigType.INT,
        10_000,
        Importance.LOW,
        "How many messages wait for the topic.",
        validator=AtLeast(1),
    ),
    ConfigEntry(
        "syslog.queue.batch.size",
        ConfigType.INT,
        1000,
        Importance.LOW,
        "How many messages are taken at a time, at most.",
        validator=AtLeast(1),
    ),
)


class SyslogSourceTask(SourceTask):
    """One port."""

    def __init__(self) -> None:
        self.listener: SyslogListener | None = None
        self._stopping = threading.Event()

    def start(self, config: Config) -> None:
        parsed = _CONFIG.parse(config)
        self._topic, self._batch = parsed["topic"], parsed["syslog.queue.batch.size"]
        self.listener = SyslogListener(
            parsed["syslog.listen.address"],
            parsed["syslog.port"],
            is_tcp=parsed["syslog.listener"].upper() == "TCP",
            size_max=parsed["syslog.message.max.bytes"],
            queue_max=parsed["syslog.queue.max.size"],
        )
        self.listener.open()

    def poll(self) -> list[SourceRecord] | None:
        assert self.listener is not None
        if self._stopping.is_set():
            return None
        return [self._record(one) for one in self.listener.messages(self._batch, _WAIT_S)]

    def stop(self) -> None:
        self._stopping.set()
        if self.listener is not None:
            self.listener.close()

    def _record(self, heard: SyslogDatagram) -> SourceRecord:
        text = heard.data.decode(errors="backslashreplace")
        read = read_message(text, datetime.now(UTC))
        names = [one.name for one in MESSAGE.fields[:-1]]
        values = [getattr(read, name) for name in names]
        return SourceRecord(
            topic=self._topic,
            key_schema=STRING_SCHEMA,
            key=heard.address,
            value_schema=MESSAGE,
            value=StructValue(MESSAGE, (*values, heard.address)),
            timestamp=None if read.date is None else max(0, timestamp_ms_of(read.date)),
            source_partition=None,
            source_offset=None,
        )


class SyslogSourceConnector(DeclaredSource):
    """One port, one task."""

    CONFIG = _CONFIG
    TASK = SyslogSourceTask
