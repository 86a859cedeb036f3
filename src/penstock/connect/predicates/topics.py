"""TopicNameMatches: a record of a topic that matches a pattern."""

from collections.abc import Mapping
from typing import Any

from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Predicate
from penstock.connect.plugins.validators import AllOf, NonEmptyText, ValidPattern
from penstock.connect.records import ConnectRecord
from penstock.security.java_patterns import compile_java


class TopicNameMatches(Predicate):
    """Whether the whole name of the topic matches."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._pattern = compile_java("pattern", config["pattern"])

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The pattern."""
        return ConfigDef(
            ConfigEntry(
                "pattern",
                ConfigType.STRING,
                NO_DEFAULT,
                Importance.MEDIUM,
                "A regular expression that the topic must match.",
                validator=AllOf((NonEmptyText(), ValidPattern())),
            )
        )

    def test(self, record: ConnectRecord) -> bool:
        """Whether it matches."""
        return self._pattern.fullmatch(record.topic) is not None
