"""Where a field is: a name (V1), or names with dots between them, in backticks if need be (V2)."""

from collections.abc import Mapping
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.config_def import ConfigEntry, ConfigType, Importance
from penstock.connect.plugins.validators import OneOfWords
from penstock.connect.values.schema import Schema, SchemaField
from penstock.connect.values.struct import StructValue
from penstock.errors import ConfigError

SYNTAX_VERSION = ConfigEntry(
    "field.syntax.version",
    ConfigType.STRING,
    "V1",
    Importance.HIGH,
    "V1: fields of the topmost level alone. V2: nested fields by their names with dots between "
    "them; a name with a dot in it is written in backticks.",
    validator=OneOfWords(("V1", "V2"), any_case=True),
)


class FieldPath:
    """The names that lead to one field."""

    __slots__ = ("steps", "text")

    def __init__(self, text: str, version: str) -> None:
        self.text = text
        self.steps = (text,) if version.upper() == "V1" else tuple(_steps(text))

    def field_of(self, schema: Schema) -> SchemaField | None:
        """The field inside a schema; None: it is not there."""
        found: SchemaField | None = None
        for step in self.steps:
            found = (schema if found is None else found.schema).field(step)
            if found is None:
                return None
        return found

    def in_struct(self, struct: StructValue, *, with_default: bool) -> Any:
        """The value inside a struct; None: it or one on the way is null or not there."""
        current: Any = struct
        for step in self.steps:
            if not isinstance(current, StructValue):
                raise DataError(f"Only Struct objects supported for [nested field access], {step}")
            if current.schema.place(step) is None:
                return None
            current = current[step] if with_default else current.get_without_default(step)
            if current is None:
                return None
        return current

    def in_map(self, given: Mapping[str, Any]) -> Any:
        """The value inside maps; None: it or one on the way is null or not there."""
        current: Any = given
        for step in self.steps:
            if not isinstance(current, dict):
                raise DataError(f"Only Map objects supported for [nested field access], at {step}")
            current = current.get(step)
            if current is None:
                return None
        return current


def _steps(path: str) -> list[str]:
    steps: list[str] = []
    at = 0
    while at < len(path):
        if path[at] == "`":
            step, at = _quoted_step(path, at)
            steps.append(step)
            continue
        end = path.find(".", at)
        steps.append(path[at:] if end < 0 else path[at:end])
        at = len(path) if end < 0 else end + 1
    if path.endswith("."):
        steps.append("")
    return steps


def _quoted_step(path: str, opening: int) -> tuple[str, int]:
    """A name in backticks: it ends at one that is followed by a dot or by nothing.

    A backslash in front of a backtick and a dot keeps them in the name.
    """
    name, start, at = "", opening + 1, opening + 1
    while True:
        at = path.find("`", at)
        is_last = at == len(path) - 1
        escaped = at > 0 and path[at - 1] == "\\"
        if at < 0 or (is_last and escaped):
            raise ConfigError(
                f"Incomplete backtick pair in path: [{path}], consider adding a backslash before "
                f"backtick at position {opening} to escape it"
            )
        if is_last:
            return name + path[start:at], at + 1
        if path[at + 1] == "." and not escaped:
            return name + path[start:at], at + 2
        if path[at + 1] == ".":
            name += path[start : at - 1] + "`"
            start = at + 1
        at += 1
