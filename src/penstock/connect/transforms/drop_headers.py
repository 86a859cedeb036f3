"""DropHeaders: headers of some names are left out."""

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
from penstock.connect.plugins.validators import DistinctItems
from penstock.connect.records import ConnectRecord


class DropHeaders(Transform):
    """Leaves headers out."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._names = frozenset(config["headers"])

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The names."""
        return ConfigDef(
            ConfigEntry(
                "headers",
                ConfigType.LIST,
                NO_DEFAULT,
                Importance.HIGH,
                "Names of the headers to leave out.",
                validator=DistinctItems(),
            )
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        """The record without them."""
        kept = tuple(one for one in record.headers if one.name not in self._names)
        return replace(record, headers=kept)
