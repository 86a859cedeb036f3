"""RegexRouter: a topic that matches a pattern gets another name."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Transform
from penstock.connect.plugins.validators import ValidPattern
from penstock.connect.records import ConnectRecord
from penstock.security.java_patterns import compile_java, expand


class RegexRouter(Transform):
    """Sends records to a topic by the name of their own."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._pattern = compile_java("regex", config["regex"])
        self._replacement = config["replacement"]

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The pattern, and what a topic that matches it becomes."""
        text, high = ConfigType.STRING, Importance.HIGH
        words = "A regular expression that the whole topic must match."
        check = ValidPattern()
        return ConfigDef(
            ConfigEntry("regex", text, NO_DEFAULT, high, words, validator=check),
            ConfigEntry("replacement", text, NO_DEFAULT, high, "The new name; $1 is a group."),
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record with its new topic, or as it was."""
        if self._pattern.fullmatch(record.topic) is None:
            return record
        # Java looks for the first match again, which may be shorter than the whole.
        match = self._pattern.search(record.topic)
        assert match is not None
        middle = expand(match, self._replacement)
        topic = record.topic[: match.start()] + middle + record.topic[match.end() :]
        return replace(record, topic=topic)
