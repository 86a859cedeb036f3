"""TimestampConverter: timestamps between numbers, texts, and Connect's Date, Time, Timestamp."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, time
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.validators import OneOfWords
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
from penstock.connect.values.date_format import DateFormat
from penstock.connect.values.logical import (
    DATE,
    DATE_SCHEMA,
    DAY_MS,
    TIME,
    TIME_SCHEMA,
    TIMESTAMP,
    TIMESTAMP_SCHEMA,
    date_of,
    time_of,
    timestamp_of,
)
from penstock.connect.values.schema import (
    INT64_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaField,
    SchemaType,
)
from penstock.connect.values.shown import instant_ms
from penstock.connect.values.struct import StructValue
from penstock.errors import ConfigError

_PURPOSE = "converting timestamp formats"
_SCHEMAS = {
    "string": STRING_SCHEMA,
    "unix": INT64_SCHEMA,
    "Date": DATE_SCHEMA,
    "Time": TIME_SCHEMA,
    "Timestamp": TIMESTAMP_SCHEMA,
}
# Units in a millisecond; below one, how many milliseconds make a unit.
_PER_MS = {"nanoseconds": 1_000_000, "microseconds": 1_000, "milliseconds": 1, "seconds": 1}
_LONG_MAX = 2**63 - 1


class _TimestampConverter(SidedTransform):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._field = config["field"]
        self._target = config["target.type"]
        self._precision = config["unix.precision"]
        pattern = config["format"]
        if self._target == "string" and not pattern.strip():
            raise ConfigError(
                "TimestampConverter requires format option to be specified when using string "
                "timestamps"
            )
        self._format = DateFormat(pattern) if pattern.strip() else None
        self._schemas = SchemaCache(self._converted_schema)

    @classmethod
    def config_def(cls) -> ConfigDef:
        high, text = Importance.HIGH, ConfigType.STRING
        target = "What it becomes: string, unix, Date, Time or Timestamp."
        precision = "What a number counts: seconds, milliseconds, microseconds or nanoseconds."
        kinds = OneOfWords(tuple(_SCHEMAS))
        return ConfigDef(
            ConfigEntry("field", text, "", high, "The field; empty: the whole key or value."),
            ConfigEntry("target.type", text, NO_DEFAULT, high, target, validator=kinds),
            ConfigEntry(
                "format", text, "", Importance.MEDIUM, "A pattern of Java's SimpleDateFormat."
            ),
            ConfigEntry(
                "unix.precision",
                text,
                "milliseconds",
                Importance.LOW,
                precision,
                validator=OneOfWords(tuple(_PER_MS)),
            ),
            REPLACE_NULL,
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        value, schema = self.value_of(record), self.schema_of(record)
        if schema is None:
            return self.changed(record, None, self._without_schema(value))
        if not self._field:
            _kind_of(schema)
            updated = self._target_schema(schema)
            return self.changed(record, updated, self._converted(schema, value))
        updated = self._schemas.get(schema)
        struct = None if value is None else required_struct(value, _PURPOSE)
        made = None if struct is None else self._converted_struct(struct, updated)
        return self.changed(record, updated, made)

    def _without_schema(self, value: Any) -> Any:
        if value is None or not self._field:
            return self._converted(None, value)
        given = required_map(value, _PURPOSE)
        return {**given, self._field: self._converted(None, given.get(self._field))}

    def _converted_struct(self, struct: StructValue, updated: Schema) -> StructValue:
        values = []
        for one in struct.schema.fields:
            found = self.read(struct, one.name)
            is_it = one.name == self._field
            if is_it:
                _kind_of(one.schema)
            values.append(self._converted(one.schema, found) if is_it else found)
        return filled(updated, values)

    def _converted_schema(self, schema: Schema) -> Schema:
        fields = [
            SchemaField(one.name, self._target_schema(one.schema))
            if one.name == self._field
            else one
            for one in schema.fields
        ]
        made = with_fields(schema, fields)
        default: Any = schema.default
        if default is not None:
            default = self._converted_struct(required_struct(default, _PURPOSE), made)
        return replace(made, optional=schema.optional, default=default)

    def _target_schema(self, schema: Schema) -> Schema:
        target = _SCHEMAS[self._target]
        return target.as_optional() if schema.optional else target

    def _converted(self, schema: Schema | None, value: Any) -> Any:
        if value is None:
            return None
        return self._made(self._instant(schema, value))

    def _instant(self, schema: Schema | None, value: Any) -> int:
        """Milliseconds since the epoch."""
        if isinstance(value, date | time):
            return instant_ms(value)
        if isinstance(value, str):
            if self._format is None:
                raise DataError("TimestampConverter has no format to parse a string with")
            return self._format.parse(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return self._from_unix(value)
        raise DataError(
            f"TimestampConverter does not support {type(value).__name__} objects as timestamps"
        )

    def _from_unix(self, number: int) -> int:
        if self._precision == "seconds":
            return max(-_LONG_MAX - 1, min(_LONG_MAX, number * 1000))
        return _divided(number, _PER_MS[self._precision])

    def _made(self, ms: int) -> Any:
        match self._target:
            case "string":
                assert self._format is not None
                return self._format.format(ms)
            case "unix" if self._precision == "seconds":
                return _divided(ms, 1000)
            case "unix":
                made = ms * _PER_MS[self._precision]
                return max(-_LONG_MAX - 1, min(_LONG_MAX, made))
            case "Date":
                return date_of(ms // DAY_MS)
            case "Time":
                return time_of(ms % DAY_MS)
        return timestamp_of(ms)


class TimestampConverterKey(_TimestampConverter):
    """In the key."""

    IS_KEY = True


class TimestampConverterValue(_TimestampConverter):
    """In the value."""


def _kind_of(schema: Schema) -> None:
    """Refuse a schema that is of no kind of timestamp."""
    plain = schema.type in (SchemaType.STRING, SchemaType.INT64)
    if schema.name not in (TIMESTAMP, DATE, TIME) and not plain:
        raise DataError(
            f"Schema {schema.type} does not correspond to a known timestamp type format"
        )


def _divided(number: int, by: int) -> int:
    """Java's division, towards zero."""
    return -(-number // by) if number < 0 else number // by
