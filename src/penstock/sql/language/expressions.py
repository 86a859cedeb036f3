"""Expressions as frozen values. `str` writes one as text that is read back to the same value.

Operators write parentheses around operands that are operators themselves: longer than needed, never
ambiguous. Where a node stood in the text does not count when two are compared.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

from penstock.sql.language.names import quoted, quoted_string
from penstock.sql.language.place import Place
from penstock.sql.language.types import SqlType


@dataclass(frozen=True, slots=True)
class Literal:
    """NULL, a truth value, a number or a string. Integers, decimals and doubles are three kinds."""

    value: bool | int | Decimal | float | str | None
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        match self.value:
            case None:
                return "NULL"
            case bool():
                return str(self.value).upper()
            case float():
                return f"{self.value:E}"
            case Decimal():
                text = f"{self.value:f}"
                return text if "." in text else f"{text}."
            case str():
                return quoted_string(self.value)
        return str(self.value)

    def __eq__(self, other: object) -> bool:
        """1, 1.0 and TRUE are different literals, and so are 1.0 and 1.00."""
        if not isinstance(other, Literal):
            return NotImplemented
        return type(self.value) is type(other.value) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash((type(self.value), str(self)))


@dataclass(frozen=True, slots=True)
class ColumnName:
    """A column, or a parameter of a lambda; `source` is what stands before the dot."""

    name: str
    source: str | None = None
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        name = quoted(self.name)
        return name if self.source is None else f"{quoted(self.source)}.{name}"


@dataclass(frozen=True, slots=True)
class FieldOf:
    """`record->field`."""

    record: "Expression"
    name: str
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{_operand(self.record)}->{quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class ItemOf:
    """`container[index]`."""

    container: "Expression"
    index: "Expression"
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{_operand(self.container)}[{self.index}]"


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function and its arguments, of which some may be lambdas. `COUNT(*)` has a Star."""

    function: str
    arguments: tuple["Expression | Lambda | Star", ...]
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{quoted(self.function)}({_listed(self.arguments)})"


@dataclass(frozen=True, slots=True)
class Star:
    """`*`, `source.*` or `record->*`."""

    source: str | None = None
    record: "Expression | None" = None
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.record is not None:
            return f"{_operand(self.record)}->*"
        return "*" if self.source is None else f"{quoted(self.source)}.*"


@dataclass(frozen=True, slots=True)
class Lambda:
    """`x => body` or `(x, y) => body`."""

    parameters: tuple[str, ...]
    body: "Expression"
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"({_listed(quoted(p) for p in self.parameters)}) => {self.body}"


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic, comparison, AND and OR: `operator` is the sign or the word."""

    operator: str
    left: "Expression"
    right: "Expression"
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{_operand(self.left)} {self.operator} {_operand(self.right)}"


@dataclass(frozen=True, slots=True)
class Unary:
    """`-`, `+` and NOT."""

    operator: str
    operand: "Expression"
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        space = " " if self.operator == "NOT" else ""
        return f"{self.operator}{space}{_operand(self.operand)}"


@dataclass(frozen=True, slots=True)
class IsNull:
    """`value IS [NOT] NULL`."""

    value: "Expression"
    is_negated: bool = False
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{_operand(self.value)} IS {_not(self.is_negated)}NULL"


@dataclass(frozen=True, slots=True)
class Between:
    """`value [NOT] BETWEEN low AND high`."""

    value: "Expression"
    low: "Expression"
    high: "Expression"
    is_negated: bool = False
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        bounds = f"{_operand(self.low)} AND {_operand(self.high)}"
        return f"{_operand(self.value)} {_not(self.is_negated)}BETWEEN {bounds}"


@dataclass(frozen=True, slots=True)
class InList:
    """`value [NOT] IN (...)`."""

    value: "Expression"
    choices: tuple["Expression", ...]
    is_negated: bool = False
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{_operand(self.value)} {_not(self.is_negated)}IN ({_listed(self.choices)})"


@dataclass(frozen=True, slots=True)
class Like:
    """`value [NOT] LIKE pattern [ESCAPE character]`."""

    value: "Expression"
    pattern: "Expression"
    escape: str | None = None
    is_negated: bool = False
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        escape = "" if self.escape is None else f" ESCAPE {quoted_string(self.escape)}"
        return (
            f"{_operand(self.value)} {_not(self.is_negated)}LIKE {_operand(self.pattern)}{escape}"
        )


@dataclass(frozen=True, slots=True)
class Case:
    """With an operand its conditions are values to compare it with."""

    operand: "Expression | None"
    branches: tuple[tuple["Expression", "Expression"], ...]
    otherwise: "Expression | None"
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        operand = "" if self.operand is None else f" {self.operand}"
        branches = "".join(f" WHEN {when} THEN {then}" for when, then in self.branches)
        otherwise = "" if self.otherwise is None else f" ELSE {self.otherwise}"
        return f"CASE{operand}{branches}{otherwise} END"


@dataclass(frozen=True, slots=True)
class Cast:
    """`CAST(value AS type)`."""

    value: "Expression"
    type: SqlType
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"CAST({self.value} AS {self.type})"


@dataclass(frozen=True, slots=True)
class NewArray:
    """`ARRAY[1, 2]`."""

    items: tuple["Expression", ...]
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"ARRAY[{_listed(self.items)}]"


@dataclass(frozen=True, slots=True)
class NewMap:
    """`MAP('a' := 1)`."""

    entries: tuple[tuple["Expression", "Expression"], ...]
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"MAP({_listed(f'{key} := {value}' for key, value in self.entries)})"


@dataclass(frozen=True, slots=True)
class NewStruct:
    """`STRUCT(a := 1)`."""

    fields: tuple[tuple[str, "Expression"], ...]
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"STRUCT({_listed(f'{quoted(name)} := {value}' for name, value in self.fields)})"


Expression: TypeAlias = (
    Literal | ColumnName | FieldOf | ItemOf | FunctionCall | Binary | Unary | IsNull | Between
    | InList | Like | Case | Cast | NewArray | NewMap | NewStruct
)  # fmt: skip

_OPERATORS = (Binary, Unary, IsNull, Between, InList, Like)


def _operand(expression: object) -> str:
    needs_brackets = isinstance(expression, _OPERATORS) or (
        isinstance(expression, Literal) and str(expression).startswith("-")
    )
    return f"({expression})" if needs_brackets else str(expression)


def _listed(items: object) -> str:
    return ", ".join(str(item) for item in items)  # type: ignore[attr-defined]


def _not(is_negated: bool) -> str:
    return "NOT " if is_negated else ""
