"""Column expressions as the user writes them: `col("cents") > 100`, `col("name").upper()`.

An expression is data without a type: a word for what is computed, and what it is computed from. It
gets its types where it is used, from the serdes of the stream (`resolve.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.streams.values.column_types import ColumnTypeError

Literal = str | int | float | bool | bytes | None


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """Something that can be computed from a record."""

    operation: str
    operands: "tuple[Column, ...]" = ()
    detail: Any = None  # A literal, the path of a field, a type's name, names of fields.

    def __add__(self, other: Any) -> "Column":
        return self._with("+", other)

    def __radd__(self, other: Any) -> "Column":
        return lit(other)._with("+", self)

    def __sub__(self, other: Any) -> "Column":
        return self._with("-", other)

    def __rsub__(self, other: Any) -> "Column":
        return lit(other)._with("-", self)

    def __mul__(self, other: Any) -> "Column":
        return self._with("*", other)

    def __rmul__(self, other: Any) -> "Column":
        return lit(other)._with("*", self)

    def __truediv__(self, other: Any) -> "Column":
        return self._with("/", other)

    def __rtruediv__(self, other: Any) -> "Column":
        return lit(other)._with("/", self)

    def __mod__(self, other: Any) -> "Column":
        """The remainder, with the sign of the dividend."""
        return self._with("%", other)

    def __neg__(self) -> "Column":
        return self._with("negate")

    def __abs__(self) -> "Column":
        return self._with("abs")

    def __eq__(self, other: Any) -> "Column":  # type: ignore[override]
        return self._with("=", other)

    def __ne__(self, other: Any) -> "Column":  # type: ignore[override]
        return self._with("<>", other)

    def __lt__(self, other: Any) -> "Column":
        return self._with("<", other)

    def __le__(self, other: Any) -> "Column":
        return self._with("<=", other)

    def __gt__(self, other: Any) -> "Column":
        return self._with(">", other)

    def __ge__(self, other: Any) -> "Column":
        return self._with(">=", other)

    def __and__(self, other: Any) -> "Column":
        return self._with("and", other)

    def __or__(self, other: Any) -> "Column":
        return self._with("or", other)

    def __invert__(self) -> "Column":
        return self._with("not")

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise ColumnTypeError("a column has no truth yet: write & for and, | for or, ~ for not")

    def is_null(self) -> "Column":
        """Whether there is nothing."""
        return self._with("is null")

    def is_not_null(self) -> "Column":
        """Whether there is something."""
        return ~self.is_null()

    def is_in(self, *values: Any) -> "Column":
        """Whether it equals one of the values."""
        if not values:
            raise ColumnTypeError("is_in needs a value at least")
        found: Column = self == values[0]
        for value in values[1:]:
            found = found | (self == value)
        return found

    def upper(self) -> "Column":
        """The text in capitals."""
        return self._with("upper")

    def lower(self) -> "Column":
        """The text in small letters."""
        return self._with("lower")

    def trim(self) -> "Column":
        """The text without spaces at its ends."""
        return self._with("trim")

    def length(self) -> "Column":
        """How many characters a text has, or how many bytes."""
        return self._with("length")

    def contains(self, other: Any) -> "Column":
        """Whether the text holds another."""
        return self._with("contains", other)

    def starts_with(self, other: Any) -> "Column":
        """Whether the text begins with another."""
        return self._with("starts with", other)

    def ends_with(self, other: Any) -> "Column":
        """Whether the text ends with another."""
        return self._with("ends with", other)

    def substring(self, start: int, length: int) -> "Column":
        """So many characters from a place; the first is 1."""
        if start < 1 or length < 0:
            raise ColumnTypeError("substring starts at 1, and its length is not negative")
        return Column("substring", (self,), (start, length))

    def replace(self, old: str, new: str) -> "Column":
        """The text with each `old` as `new`."""
        if not old:
            raise ColumnTypeError("replace needs a text to look for")
        return Column("replace", (self,), (old, new))

    def cast(self, type_name: str) -> "Column":
        """As another type: null where it cannot be."""
        return Column("cast", (self,), type_name)

    def field(self, name: str) -> "Column":
        """A field of a struct."""
        return Column("field", (self,), name)

    def otherwise(self, other: Any) -> "Column":
        """What a `when` gives where no condition holds."""
        if self.operation != "case" or len(self.operands) % 2:
            raise ColumnTypeError("otherwise belongs behind when(...)")
        return Column("case", (*self.operands, lit(other)))

    def when(self, condition: "Column", value: Any) -> "Column":
        """One more condition of a `when`."""
        if self.operation != "case" or len(self.operands) % 2:
            raise ColumnTypeError("when(...).when(...) comes before otherwise")
        return Column("case", (*self.operands, condition, lit(value)))

    def _with(self, operation: str, *others: Any) -> "Column":
        return Column(operation, (self, *map(lit, others)))


def col(path: str) -> Column:
    """A column of the record: `key`, `value`, `timestamp`, or a field.

    `value.address.city` and `key.id` name fields; any other first word is a field of the value.
    """
    first, *rest = path.split(".")
    if not all((first, *rest)):
        raise ColumnTypeError(f"{path!r} names no column")
    if first in ("key", "value", "timestamp"):
        found = Column("record", (), first)
    else:
        found, rest = Column("record", (), "value"), [first, *rest]
    for name in rest:
        found = found.field(name)
    return found


def lit(value: Any) -> Column:
    """A literal; a column stays what it is."""
    if isinstance(value, Column):
        return value
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return Column("literal", (), value)
    raise ColumnTypeError(f"{value!r} is neither a column nor a number, text, boolean or bytes")


def when(condition: Column, value: Any) -> Column:
    """The value where the condition holds, else null, or what `otherwise` says."""
    return Column("case", (condition, lit(value)))


def coalesce(*values: Any) -> Column:
    """The first that is not null."""
    return Column("coalesce", tuple(map(lit, values)))


def concat(*values: Any) -> Column:
    """The texts one behind the other; null where one is null."""
    return Column("concat", tuple(map(lit, values)))


def struct(**fields: Any) -> Column:
    """A JSON object of such fields."""
    if not fields:
        raise ColumnTypeError("struct needs a field at least")
    return Column("struct", tuple(map(lit, fields.values())), tuple(fields))


def columns_in(given: Sequence[Any]) -> bool:
    """Whether all are columns."""
    return all(isinstance(one, Column) for one in given)
