"""What differs between stores of objects: settings, how one is opened, and what it is called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.connect.connectors.objects.store import ObjectStore
from penstock.connect.plugins.config_def import (
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.validators import AtLeast


def _as_it_is(checked: CheckedConfig) -> CheckedConfig:
    return checked


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreKind:
    """S3, or HDFS."""

    name: str  # The first part of its settings' names.
    config: ConfigDef
    place: str  # The setting that says which store it is: offsets call it so.
    opened: Callable[[Mapping[str, Any]], ObjectStore]
    sink_config: ConfigDef = field(default_factory=ConfigDef)  # What its sinks have besides.
    checked: Callable[[CheckedConfig], CheckedConfig] = _as_it_is

    @property
    def poll_entry(self) -> ConfigEntry:
        """How often a source looks."""
        return ConfigEntry(
            self.poll_name,
            ConfigType.LONG,
            60_000,
            Importance.MEDIUM,
            "How long after they were listed the folders are listed again.",
            validator=AtLeast(0),
        )

    @property
    def poll_name(self) -> str:
        """The setting of that."""
        return f"{self.name}.poll.interval.ms"

    def check(self, parsed: Mapping[str, Any]) -> None:
        """Raise if the store of these settings is not there or does not let us in."""
        store = self.opened(parsed)
        try:
            store.check()
        finally:
            store.close()
