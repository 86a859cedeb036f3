"""Converters of headers: SimpleHeaderConverter, and those of values that do headers too."""

from collections.abc import Mapping
from typing import Any, ClassVar

from penstock.connect.converters.json import JsonConverter
from penstock.connect.converters.numbers import ByteArrayConverter
from penstock.connect.converters.text import StringConverter
from penstock.connect.plugins.config_def import ConfigDef
from penstock.connect.plugins.contract import Converter, HeaderConverter, SchemaAndValue
from penstock.connect.values.parsed import parse_value
from penstock.connect.values.schema import STRING_SCHEMA, Schema
from penstock.connect.values.shown import text_form


class SimpleHeaderConverter(HeaderConverter):
    """Headers as text; what is read is the number, date, list or map that it looks like."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        """It has no settings."""
        return ConfigDef()

    def from_connect_header(
        self, topic: str, name: str, schema: Schema | None, value: Any
    ) -> bytes | None:
        """The text of a value."""
        return None if value is None else text_form(schema, value).encode()

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """The value of a text; bytes that are no text stay bytes."""
        if data is None:
            return None, None
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return STRING_SCHEMA, data.decode(errors="replace")
        return parse_value(text)


class _ConvertedHeaders(HeaderConverter):
    CONVERTER: ClassVar[type[Converter]]

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._converter = self.CONVERTER(config, is_key=False)

    @classmethod
    def config_def(cls) -> ConfigDef:
        return cls.CONVERTER.config_def()

    def from_connect_header(
        self, topic: str, name: str, schema: Schema | None, value: Any
    ) -> bytes | None:
        return self._converter.from_connect(topic, schema, value)

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        return self._converter.to_connect(topic, data)


class JsonHeaders(_ConvertedHeaders):
    """Headers as JSON."""

    CONVERTER = JsonConverter


class StringHeaders(_ConvertedHeaders):
    """Headers as text."""

    CONVERTER = StringConverter


class ByteArrayHeaders(_ConvertedHeaders):
    """Headers as bytes."""

    CONVERTER = ByteArrayConverter
