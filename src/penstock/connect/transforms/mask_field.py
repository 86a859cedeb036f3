"""MaskField: values that nobody may see become empty, zero, or a replacement."""

import decimal
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.validators import DistinctItems, NonEmptyText
from penstock.connect.records import ConnectRecord
from penstock.connect.transforms.sides import (
    REPLACE_NULL,
    SidedTransform,
    filled,
    required_map,
    required_struct,
)
from penstock.connect.values.java_numbers import BITS, low_bits, parse_decimal, single
from penstock.connect.values.logical import date_of, time_of, timestamp_of
from penstock.connect.values.schema import Schema, SchemaType

_PURPOSE = "mask fields"
_EMPTY: dict[type, Any] = {
    bool: False,
    int: 0,
    float: 0.0,
    str: "",
    decimal.Decimal: decimal.Decimal(0),
    date: date_of(0),
    time: time_of(0),
    datetime: timestamp_of(0),
}


class _MaskField(SidedTransform):
    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._fields = frozenset(config["fields"])
        self._replacement = config["replacement"]

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConfigEntry(
                "fields",
                ConfigType.LIST,
                NO_DEFAULT,
                Importance.HIGH,
                "Fields to mask.",
                validator=DistinctItems(),
            ),
            ConfigEntry(
                "replacement",
                ConfigType.STRING,
                None,
                Importance.LOW,
                "What stands in the place of numbers and texts.",
                validator=NonEmptyText(),
            ),
            REPLACE_NULL,
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        value, schema = self.value_of(record), self.schema_of(record)
        if schema is None:
            given = required_map(value, _PURPOSE)
            masked = {name: self._masked(None, given.get(name)) for name in self._fields}
            return self.changed(record, None, {**given, **masked})
        struct = required_struct(value, _PURPOSE)
        values = []
        for one in struct.schema.fields:
            found = self.read(struct, one.name)
            values.append(self._masked(one.schema, found) if one.name in self._fields else found)
        return self.changed(record, schema, filled(struct.schema, values))

    def _masked(self, schema: Schema | None, value: Any) -> Any:
        if value is None:
            return None
        if self._replacement is not None:
            return _replaced(schema, value, self._replacement)
        if isinstance(value, list | dict):
            return type(value)()
        if type(value) not in _EMPTY:
            raise DataError(f"Cannot mask value of type: {type(value).__name__}")
        return _EMPTY[type(value)]


class MaskFieldKey(_MaskField):
    """Masks fields of the key."""

    IS_KEY = True


class MaskFieldValue(_MaskField):
    """Masks fields of the value."""


def _replaced(schema: Schema | None, value: Any, text: str) -> Any:
    if isinstance(value, str):
        return text
    if isinstance(value, bool) or not isinstance(value, int | float | decimal.Decimal):
        raise DataError(
            f"Cannot mask value of type {type(value).__name__} with custom replacement."
        )
    try:
        number = parse_decimal(text)
    except ValueError:
        raise DataError(f"Unable to convert {text} to number") from None
    if isinstance(value, decimal.Decimal):
        return number
    if isinstance(value, float):
        is_single = schema is not None and schema.type is SchemaType.FLOAT32
        return single(float(number)) if is_single else float(number)
    return low_bits(number, 64 if schema is None else BITS[schema.type])
