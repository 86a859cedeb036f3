"""TimestampRouter: a topic made of the topic and the record's time."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import ConfigDef, ConfigEntry, ConfigType, Importance
from penstock.connect.plugins.contract import Transform
from penstock.connect.records import ConnectRecord
from penstock.connect.values.date_format import DateFormat


class TimestampRouter(Transform):
    """Sends records to a topic by their time."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._topic = config["topic.format"]
        self._format = DateFormat(config["timestamp.format"])

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The form of the topic, and of the time in it."""
        text, high = ConfigType.STRING, Importance.HIGH
        topic = "The topic, with ${topic} and ${timestamp} in the place of those."
        pattern = "A pattern of Java's SimpleDateFormat for the timestamp."
        return ConfigDef(
            ConfigEntry("topic.format", text, "${topic}-${timestamp}", high, topic),
            ConfigEntry("timestamp.format", text, "yyyyMMdd", high, pattern),
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record with its new topic."""
        if record.timestamp is None:
            raise DataError(f"Timestamp missing on record of topic {record.topic}")
        at = self._format.format(record.timestamp)
        topic = self._topic.replace("${topic}", record.topic).replace("${timestamp}", at)
        return replace(record, topic=topic)
