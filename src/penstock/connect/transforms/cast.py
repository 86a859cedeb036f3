"""Cast: fields, or the whole key or value, to another type, with Java's own rules for numbers."""

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
    InvalidValue,
)
from penstock.connect.records import ConnectRecord
from penstock.connect.transforms.sides import (
    REPLACE_NULL,
    SidedTransform,
    filled,
    required_map,
    required_struct,
    with_fields,
)
from penstock.connect.values.cache import SchemaCache
from penstock.connect.values.java_numbers import (
    BITS,
    parse_real,
    parse_whole,
    single,
    whole_of,
    wrapped,
)
from penstock.connect.values.logical import DECIMAL, is_logical, plain_of
from penstock.connect.values.schema import Schema, SchemaField, SchemaType
from penstock.connect.values.shown import scalar_text
from penstock.errors import ConfigError

_PURPOSE = "cast types"
_OUTPUTS = (*BITS, SchemaType.FLOAT32, SchemaType.FLOAT64, SchemaType.BOOLEAN, SchemaType.STRING)


class _SpecCheck:
    def ensure_valid(self, name: str, value: Any) -> None:
        if not value:
            raise ConfigError("Must specify at least one field to cast.")
        parse_spec(value)

    def __str__(self) -> str:
        return "list of colon-delimited pairs, e.g. foo:bar,abc:xyz"


def parse_spec(spec: list[str]) -> dict[str | None, SchemaType]:
    """Fields with the types they are cast to; None stands for the whole value."""
    casts: dict[str | None, SchemaType] = {}
    for one in spec:
        parts = one.split(":")
        if len(parts) > 2:
            raise InvalidValue("renames", spec, f"Invalid rename mapping: {one}")
        field = parts[0].strip() if len(parts) == 2 else None
        casts[field] = _output_type(parts[-1].strip())
    if None in casts and len(spec) > 1:
        raise ConfigError(
            "Cast transformations that specify a type to cast the entire value to "
            "may ony specify a single cast in their spec"
        )
    return casts


def _output_type(word: str) -> SchemaType:
    try:
        found = SchemaType(word.upper())
    except ValueError:
        raise ConfigError(f"Invalid type found in casting spec: {word}") from None
    if found not in _OUTPUTS:
        raise ConfigError(
            f"Cast transformation does not support casting to {found}; "
            f"supported types are [{', '.join(_OUTPUTS)}]"
        )
    return found


class _Cast(SidedTransform):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._casts = parse_spec(config["spec"])
        self._whole = self._casts.get(None)
        self._schemas = SchemaCache(self._cast_schema)

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConfigEntry(
                "spec",
                ConfigType.LIST,
                NO_DEFAULT,
                Importance.HIGH,
                "Fields and the types to cast them to, field1:type,field2:type, or one type for "
                "the whole key or value: int8, int16, int32, int64, float32, float64, boolean or "
                "string. Bytes can become strings only.",
                validator=_SpecCheck(),
            ),
            REPLACE_NULL,
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        value, schema = self.value_of(record), self.schema_of(record)
        if value is None:
            return record
        if schema is None:
            return self.changed(record, None, self._without_schema(value))
        updated = self._schemas.get(schema)
        if self._whole is not None:
            return self.changed(record, updated, cast_value(schema, value, self._whole))
        struct = required_struct(value, _PURPOSE)
        values = [
            self._cast_field(one, self.read(struct, one.name)) for one in struct.schema.fields
        ]
        return self.changed(record, updated, filled(updated, values))

    def _without_schema(self, value: Any) -> Any:
        if self._whole is not None:
            return cast_value(None, value, self._whole)
        given = required_map(value, _PURPOSE)
        cast = {
            name: cast_value(None, given.get(name), kind)
            for name, kind in self._casts.items()
            if name is not None
        }
        return {**given, **cast}

    def _cast_field(self, field: SchemaField, value: Any) -> Any:
        kind = self._casts.get(field.name)
        return value if kind is None else cast_value(field.schema, value, kind)

    def _cast_schema(self, schema: Schema) -> Schema:
        if self._whole is not None:
            made = Schema(
                type=self._whole,
                name=schema.name,
                version=schema.version,
                doc=schema.doc,
                parameters=schema.parameters,
            )
        else:
            made = with_fields(schema, [self._field_schema(one) for one in schema.fields])
        default = cast_value(schema, schema.default, made.type)
        return replace(made, optional=schema.optional, default=default)

    def _field_schema(self, field: SchemaField) -> SchemaField:
        kind = self._casts.get(field.name)
        if kind is None:
            return field
        default = cast_value(field.schema, field.schema.default, kind)
        made = Schema(type=kind, optional=field.schema.optional, default=default)
        return SchemaField(field.name, made)


class CastKey(_Cast):
    """Casts the key."""

    IS_KEY = True


class CastValue(_Cast):
    """Casts the value."""


def cast_value(schema: Schema | None, value: Any, kind: SchemaType) -> Any:
    """A value as another type; DataError where Java has no such cast."""
    if value is None:
        return None
    if not _is_castable(schema, value):
        shown = type(value).__name__ if schema is None else schema.type
        raise DataError(f"Cast transformation does not support casting from {shown}")
    if kind is SchemaType.STRING:
        return _text_of(schema, value)
    plain = value
    if schema is not None and is_logical(schema) and schema.name != DECIMAL:
        plain = plain_of(schema, value)
    try:
        return _CASTS[kind](plain, kind)
    except ValueError:
        raise DataError(f"Value ({value}) was out of range for requested data type") from None


def _is_castable(schema: Schema | None, value: Any) -> bool:
    if schema is not None:
        return schema.type.is_primitive
    return isinstance(value, bool | int | float | str | bytes | bytearray | memoryview)


def _text_of(schema: Schema | None, value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    return value if isinstance(value, str) else scalar_text(schema, value)


def _to_whole(value: Any, kind: SchemaType) -> int:
    bits = BITS[kind]
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        return parse_whole(value, bits)
    if isinstance(value, float):
        return whole_of(value, bits)
    return wrapped(int(_number(value)), bits)


def _to_real(value: Any, kind: SchemaType) -> float:
    real = parse_real(value) if isinstance(value, str) else float(_number(value))
    return single(real) if kind is SchemaType.FLOAT32 else real


def _to_boolean(value: Any, kind: SchemaType) -> bool:
    if isinstance(value, str):
        return value.lower() == "true"
    if isinstance(value, float):
        return whole_of(value, 64) != 0
    return value if isinstance(value, bool) else wrapped(int(_number(value)), 64) != 0


def _number(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        raise DataError(f"Unexpected type in Cast transformation: {type(value).__name__}")
    return value


_CASTS = {
    **dict.fromkeys(BITS, _to_whole),
    SchemaType.FLOAT32: _to_real,
    SchemaType.FLOAT64: _to_real,
    SchemaType.BOOLEAN: _to_boolean,
}
