"""The WITH clause: which properties there are, what their values may be, what they exclude."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import DataFormat, KeyWindow
from penstock.sql.language.expressions import Literal
from penstock.sql.language.words import UNITS_MS

FORMATS: Final = (
    "KAFKA", "JSON", "DELIMITED", "AVRO", "PROTOBUF", "JSON_SR", "PROTOBUF_NOSR", "NONE",
)  # fmt: skip
INFERRING: Final = frozenset({"AVRO", "PROTOBUF", "JSON_SR"})  # A registry has their schemas.
_UNWRAPPED: Final = frozenset({"KAFKA", "NONE"})
_MAY_UNWRAP: Final = frozenset({"JSON", "JSON_SR", "AVRO", "PROTOBUF", "PROTOBUF_NOSR"})
_DELIMITERS: Final = {"SPACE": " ", "TAB": "\t"}
_EVERYWHERE: Final = {
    "KAFKA_TOPIC": str, "FORMAT": str, "KEY_FORMAT": str, "VALUE_FORMAT": str, "PARTITIONS": int,
    "REPLICAS": int, "RETENTION_MS": int, "TIMESTAMP": str, "TIMESTAMP_FORMAT": str,
    "WRAP_SINGLE_VALUE": bool, "KEY_DELIMITER": str, "VALUE_DELIMITER": str,
    "KEY_SCHEMA_ID": int, "VALUE_SCHEMA_ID": int, "KEY_SCHEMA_FULL_NAME": str,
    "VALUE_SCHEMA_FULL_NAME": str, "CLEANUP_POLICY": str,
}  # fmt: skip
_OF_SOURCES: Final = {
    **_EVERYWHERE,
    "WINDOW_TYPE": str,
    "WINDOW_SIZE": str,
    "SOURCED_BY_CONNECTOR": str,
}
_OF_INSERTS: Final = {"QUERY_ID": str}
_KINDS: Final = {str: "a string", int: "a whole number", bool: "TRUE or FALSE"}


@dataclass(frozen=True, slots=True)
class GivenProperties:
    """Properties that are known and of the right type; what they mean is asked by name."""

    values: Mapping[str, Any]

    @classmethod
    def of_source(cls, given: Mapping[str, Literal]) -> "GivenProperties":
        """Those of CREATE STREAM and TABLE."""
        return cls(_checked(given, _OF_SOURCES))

    @classmethod
    def of_query(cls, given: Mapping[str, Literal]) -> "GivenProperties":
        """Those of CREATE ... AS."""
        return cls(_checked(given, _EVERYWHERE))

    @classmethod
    def of_insert(cls, given: Mapping[str, Literal]) -> "GivenProperties":
        """Those of INSERT INTO."""
        return cls(_checked(given, _OF_INSERTS))

    def get(self, name: str) -> Any:
        """The value, or None."""
        return self.values.get(name)

    def key_format(self, default: DataFormat | None, *, has_key: bool) -> DataFormat:
        """The format of the key; a record without key columns has none."""
        name = self._format("KEY_FORMAT") or (default.name if default else "KAFKA")
        if not has_key:
            if self._format("KEY_FORMAT") not in (None, "NONE") and "FORMAT" not in self.values:
                raise StatementRefused(
                    f"Key format {name} was given, but there is no key column: leave KEY_FORMAT "
                    "out, or add a column with the role KEY"
                )
            return DataFormat("NONE")
        if name == "NONE":
            if self._format("KEY_FORMAT") == "NONE":
                raise StatementRefused("The 'NONE' format can only be used when no columns are "
                                       "defined. Got: a key column")  # fmt: skip
            name = "KAFKA"
        same = default if default is not None and default.name == name else DataFormat(name)
        return DataFormat(
            name,
            delimiter=self._delimiter("KEY_DELIMITER", name) or same.delimiter,
            is_wrapped=False,
            schema_id=self.get("KEY_SCHEMA_ID"),
            schema_name=self.get("KEY_SCHEMA_FULL_NAME"),
        )

    def value_format(self, default: DataFormat | None) -> DataFormat:
        """The format of the value."""
        name = self._format("VALUE_FORMAT") or (default.name if default else None)
        if name is None:
            raise StatementRefused(
                "Statement is missing the 'VALUE_FORMAT' property from the WITH clause. Either "
                "provide one or set a default via the 'ksql.persistence.default.format.value' "
                "config."
            )
        same = default if default is not None and default.name == name else DataFormat(name)
        return DataFormat(
            name,
            delimiter=self._delimiter("VALUE_DELIMITER", name) or same.delimiter,
            is_wrapped=self._is_wrapped(name, default=same.is_wrapped),
            schema_id=self.get("VALUE_SCHEMA_ID"),
            schema_name=self.get("VALUE_SCHEMA_FULL_NAME"),
        )

    def window(self) -> KeyWindow | None:
        """The windows that keys carry."""
        kind, size = self.get("WINDOW_TYPE"), self.get("WINDOW_SIZE")
        if kind is None:
            if size is not None:
                raise StatementRefused("'WINDOW_SIZE' is given without 'WINDOW_TYPE'.")
            return None
        kind = kind.upper()
        if kind == "SESSION":
            if size is not None:
                raise StatementRefused("'WINDOW_SIZE' should not be set for SESSION windows.")
            return KeyWindow("SESSION")
        if kind not in ("TUMBLING", "HOPPING"):
            raise StatementRefused(
                f"Invalid value {kind} for property WINDOW_TYPE: String must be one of: SESSION, "
                "HOPPING, TUMBLING"
            )
        if size is None:
            raise StatementRefused(
                f"{kind} windows require 'WINDOW_SIZE' to be provided in the WITH clause. For "
                "example: 'WINDOW_SIZE'='10 SECONDS'"
            )
        return KeyWindow(kind, _span_ms(size))

    def _format(self, name: str) -> str | None:
        both = self.get("FORMAT")
        if both is not None and self.get(name) is not None:
            raise StatementRefused(f"Cannot supply both '{name}' and 'FORMAT' properties, as "
                                   f"'FORMAT' sets both key and value formats.")  # fmt: skip
        found = both if both is not None else self.get(name)
        if found is None:
            return None
        if found.upper() not in FORMATS:
            raise StatementRefused(f"Unknown format: {found.upper()}")
        return str(found.upper())

    def _delimiter(self, name: str, format_name: str) -> str | None:
        given = self.get(name)
        if given is None:
            return None
        if format_name != "DELIMITED":
            raise StatementRefused(
                f"{format_name} does not support the following configs: [delimiter]"
            )
        sign = _DELIMITERS.get(given.upper(), given)
        if len(sign) != 1:
            raise StatementRefused(f"Invalid delimiter value: '{given}' is not one character, "
                                   "SPACE or TAB")  # fmt: skip
        return str(sign)

    def _is_wrapped(self, name: str, *, default: bool) -> bool:
        given = self.get("WRAP_SINGLE_VALUE")
        if given is None:
            return False if name in _UNWRAPPED else default
        if name not in _MAY_UNWRAP:
            raise StatementRefused(
                f"Format '{name}' does not support 'WRAP_SINGLE_VALUE' set to "
                f"'{str(given).lower()}'."
            )
        return bool(given)


def _checked(given: Mapping[str, Literal], known: Mapping[str, type]) -> dict[str, Any]:
    """The values by name; StatementRefused for what is unknown or of another type."""
    values: dict[str, Any] = {}
    for name, literal in given.items():
        kind = known.get(name.upper())
        if kind is None:
            raise StatementRefused(f"Invalid config variable(s) in the WITH clause: {name}",
                                   place=literal.at)  # fmt: skip
        values[name.upper()] = _typed(name, literal, kind)
    return values


def _typed(name: str, literal: Literal, kind: type) -> Any:
    value = literal.value
    if kind is bool and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if kind is int and isinstance(value, str) and value.strip().lstrip("-").isdigit():
        value = int(value)
    if type(value) is not kind:
        reason = f"Invalid value {literal} for property {name}: it must be {_KINDS[kind]}"
        raise StatementRefused(reason, place=literal.at)
    counts = name.upper() in ("PARTITIONS", "REPLICAS")
    if isinstance(value, int) and counts and not 0 < value < 1 << 31:
        reason = f"Invalid number of {name.lower()} in WITH clause: {value}"
        raise StatementRefused(reason, place=literal.at)
    return value


def _span_ms(text: str) -> int:
    words = text.upper().split()
    unit = UNITS_MS.get(words[1].removesuffix("S")) if len(words) == 2 else None
    if unit is None or not words[0].isdigit() or int(words[0]) < 1:
        raise StatementRefused(f"Invalid duration: '{text}'. Use a form such as '10 SECONDS'.")
    return int(words[0]) * unit
