"""StringConverter: values as the text Java would print, and text as text."""

import base64
import codecs
from collections.abc import Mapping
from typing import Any

from penstock.connect.converters.settings import CONVERTER_TYPE, converter_type
from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import (
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
    Width,
)
from penstock.connect.plugins.contract import Converter, SchemaAndValue
from penstock.connect.values.schema import OPTIONAL_STRING_SCHEMA, Schema
from penstock.connect.values.shown import scalar_text
from penstock.connect.values.struct import StructValue
from penstock.errors import ConfigError


class StringConverter(Converter):
    """Kafka's StringConverter."""

    def __init__(self, config: Mapping[str, Any], *, is_key: bool) -> None:
        super().__init__(config, is_key=is_key)
        parsed = self.config_def().parse({**config, **converter_type(is_key)})
        try:
            self._codec = codecs.lookup(parsed["converter.encoding"]).name
        except LookupError:
            raise ConfigError(f"Invalid encoding {parsed['converter.encoding']}") from None

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The encoding."""
        encoding = ConfigEntry(
            "converter.encoding",
            ConfigType.STRING,
            "UTF-8",
            Importance.HIGH,
            "The encoding of the text.",
            width=Width.MEDIUM,
            display_name="Encoding",
        )
        return ConfigDef(CONVERTER_TYPE, encoding)

    @property
    def is_utf8(self) -> bool:
        """Whether its texts are Arrow's."""
        return self._codec == "utf-8"

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """The bytes of a value's text."""
        return None if value is None else java_text(schema, value).encode(self._codec, "replace")

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The text of some bytes."""
        text = None if data is None else bytes(data).decode(self._codec, "replace")
        return OPTIONAL_STRING_SCHEMA, text


def java_text(schema: Schema | None, value: Any) -> str:
    """What Java's toString gives; bytes, for which that is no use, in base64."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    if isinstance(value, StructValue):
        parts = (f"{f.name}={java_text(f.schema, v)}" for f, v in value.items() if v is not None)
        return "Struct{" + ",".join(parts) + "}"
    items = None if schema is None else schema.value_schema
    if isinstance(value, list | tuple):
        return "[" + ", ".join(java_text(items, one) for one in value) + "]"
    if isinstance(value, dict):
        keys = None if schema is None else schema.key_schema
        pairs = (f"{java_text(keys, k)}={java_text(items, v)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    try:
        return scalar_text(schema, value)
    except DataError:
        return str(value)
