"""InsertHeader: a header with a fixed value, whose type is what its text looks like."""

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
from penstock.connect.plugins.validators import NotNull
from penstock.connect.records import ConnectRecord, Header
from penstock.connect.values.parsed import parse_value


class InsertHeader(Transform):
    """Adds a header."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._header = Header(config["header"], *parse_value(config["value.literal"]))

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The name and the value."""
        text, high, check = ConfigType.STRING, Importance.HIGH, NotNull()
        value = "The value, which becomes the number, date, list, map or text it looks like."
        return ConfigDef(
            ConfigEntry("header", text, NO_DEFAULT, high, "The header.", validator=check),
            ConfigEntry("value.literal", text, NO_DEFAULT, high, value, validator=check),
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record with one header more, even if it has one of that name."""
        return replace(record, headers=(*record.headers, self._header))
