"""The settings of the JSON converter."""

from dataclasses import replace
from typing import Any

from penstock.connect.converters.settings import CONVERTER_TYPE
from penstock.connect.plugins.config_def import (
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
    Width,
)
from penstock.connect.plugins.validators import OneOfWords

_SCHEMAS = "Schemas"
_SERIALIZATION = "Serialization"


def _entry(
    name: str, kind: ConfigType, default: Any, importance: Importance, doc: str, **more: Any
) -> ConfigEntry:
    return replace(ConfigEntry(name, kind, default, importance, doc), width=Width.MEDIUM, **more)


JSON_SETTINGS = ConfigDef(
    CONVERTER_TYPE,
    _entry(
        "schemas.enable",
        ConfigType.BOOLEAN,
        True,
        Importance.HIGH,
        "Whether each value has its schema with it.",
        group=_SCHEMAS,
        order=0,
        display_name="Enable Schemas",
    ),
    _entry(
        "schemas.cache.size",
        ConfigType.INT,
        1000,
        Importance.HIGH,
        "How many schemas are kept. Here it is taken and not needed.",
        group=_SCHEMAS,
        order=1,
        display_name="Schema Cache Size",
    ),
    _entry(
        "schema.content",
        ConfigType.STRING,
        None,
        Importance.HIGH,
        "One schema for all values, which then are read and written without theirs.",
        group=_SCHEMAS,
        order=2,
        display_name="Schema Content",
    ),
    _entry(
        "decimal.format",
        ConfigType.STRING,
        "BASE64",
        Importance.LOW,
        "How decimals are written: BASE64 or NUMERIC. Both are read.",
        group=_SERIALIZATION,
        order=0,
        display_name="Decimal Format",
        validator=OneOfWords(("BASE64", "NUMERIC"), any_case=True),
    ),
    _entry(
        "replace.null.with.default",
        ConfigType.BOOLEAN,
        True,
        Importance.LOW,
        "Whether a null is the default of its schema, where that has one.",
        group=_SERIALIZATION,
        order=1,
        display_name="Replace null with default",
    ),
)
