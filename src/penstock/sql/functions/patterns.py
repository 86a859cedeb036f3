"""What a function takes and returns: types with blanks, and how arguments fill them.

A pattern is written as text: `ARRAY<T>`, `MAP<K, V>`, `DECIMAL` (of any precision), `STRING...`
(any number of them) and `LAMBDA<T, U>`, a lambda from T to U. A capital letter alone is a blank.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from penstock.sql.types.conversions import is_convertible
from penstock.sql.types.kinds import (
    DOUBLE,
    INTERVAL_UNIT,
    NUMBER_ORDER,
    PRIMITIVES,
    ArrayOf,
    DataType,
    DecimalOf,
    MapOf,
    StructOf,
    is_number,
    kind_name,
    shown,
)
from penstock.sql.types.shared_type import wider_number

_PIECES: Final = re.compile(r"\s*(\.\.\.|[A-Za-z_0-9]+|[<>,()])")
_EXACT_COST, _STEP_COST = 0, 10


@dataclass(frozen=True, slots=True)
class Exact:
    """One type and those that become it without a cast."""

    type: DataType

    def __str__(self) -> str:
        return str(self.type)


@dataclass(frozen=True, slots=True)
class AnyDecimal:
    """A DECIMAL of any precision and scale; as a result, that of the first argument that is one."""

    def __str__(self) -> str:
        return "DECIMAL"


@dataclass(frozen=True, slots=True)
class AnyStruct:
    """A STRUCT of any fields."""

    def __str__(self) -> str:
        return "STRUCT"


@dataclass(frozen=True, slots=True)
class Blank:
    """Any type, but the same wherever the letter stands."""

    letter: str

    def __str__(self) -> str:
        return self.letter


@dataclass(frozen=True, slots=True)
class ArrayPattern:
    """An array of what the pattern takes."""

    item: "Pattern"

    def __str__(self) -> str:
        return f"ARRAY<{self.item}>"


@dataclass(frozen=True, slots=True)
class MapPattern:
    """A map of what the patterns take."""

    key: "Pattern"
    value: "Pattern"

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class LambdaPattern:
    """A lambda; what it gives is known only when its body has been compiled."""

    inputs: tuple["Pattern", ...]
    result: "Pattern"

    def __str__(self) -> str:
        inputs = ", ".join(str(one) for one in self.inputs)
        return f"LAMBDA ({inputs}) => {self.result}"


Pattern: TypeAlias = (
    Exact | AnyDecimal | AnyStruct | Blank | ArrayPattern | MapPattern | LambdaPattern
)


@dataclass(frozen=True, slots=True)
class LambdaShape:
    """What is known of a lambda before its body is compiled."""

    parameters: int

    def __str__(self) -> str:
        return "LAMBDA"


ArgumentType: TypeAlias = DataType | LambdaShape | None


class Filled:
    """The blanks of a pattern as arguments fill them, and what the conversions cost."""

    def __init__(self) -> None:
        self.blanks: dict[str, DataType | None] = {}
        self.decimal: DecimalOf | None = None
        self.cost = 0
        self.blanks_used = 0

    def takes(self, pattern: Pattern, kind: ArgumentType) -> bool:
        """Whether an argument fits; blanks are filled on the way."""
        if isinstance(pattern, LambdaPattern):
            return isinstance(kind, LambdaShape) and kind.parameters == len(pattern.inputs)
        if kind is None or isinstance(kind, LambdaShape):
            return kind is None
        match pattern:
            case Exact():
                return self._takes_exact(pattern.type, kind)
            case AnyDecimal():
                return self._takes_decimal(kind)
            case AnyStruct():
                return isinstance(kind, StructOf)
            case Blank():
                return self._fill(pattern.letter, kind)
            case ArrayPattern():
                return isinstance(kind, ArrayOf) and self.takes(pattern.item, kind.item)
        return self._takes_map(pattern, kind)

    def _takes_map(self, pattern: MapPattern, kind: DataType) -> bool:
        if not isinstance(kind, MapOf):
            return False
        return self.takes(pattern.key, kind.key) and self.takes(pattern.value, kind.value)

    def _takes_exact(self, wanted: DataType, kind: DataType) -> bool:
        if wanted == kind:
            return True
        self.cost += _STEP_COST * _distance(kind, wanted)
        return is_convertible(kind, wanted)

    def _takes_decimal(self, kind: DataType) -> bool:
        if kind == DOUBLE or not is_number(kind):
            return False
        self.cost += _STEP_COST * _distance(kind, DecimalOf(1, 0))
        self.decimal = self.decimal or _decimal_for(kind)
        return True

    def _fill(self, letter: str, kind: DataType) -> bool:
        self.blanks_used += 1
        known = self.blanks.setdefault(letter, kind)
        if known is None or known == kind:
            self.blanks[letter] = kind
            return True
        if isinstance(known, DecimalOf) and isinstance(kind, DecimalOf):
            self.blanks[letter] = wider_number(known, kind)
            return True
        return False

    def type_of(self, pattern: Pattern) -> DataType | None:
        """The type that a pattern means now; a blank that nothing filled is NULL's."""
        match pattern:
            case Exact():
                return pattern.type
            case AnyDecimal():
                return self.decimal
            case Blank():
                return self.blanks.get(pattern.letter)
            case ArrayPattern():
                return ArrayOf(self.type_of(pattern.item))
            case MapPattern():
                return MapOf(self.type_of(pattern.key), self.type_of(pattern.value))
        return None


def _distance(kind: DataType, wanted: DataType) -> int:
    if is_number(kind) and is_number(wanted):
        return abs(NUMBER_ORDER.index(kind_name(wanted)) - NUMBER_ORDER.index(kind_name(kind)))
    return 1


def _decimal_for(kind: DataType) -> DecimalOf:
    if isinstance(kind, DecimalOf):
        return kind
    return DecimalOf(10 if kind_name(kind) == "INTEGER" else 19, 0)


@dataclass(frozen=True, slots=True)
class Signature:
    """The patterns of the parameters and of the result; the last parameter may be repeated."""

    parameters: tuple[Pattern, ...]
    result: Pattern
    is_variadic: bool = False

    def fill(self, arguments: Sequence[ArgumentType]) -> Filled | None:
        """The blanks as these arguments fill them; None if they do not fit."""
        patterns = self.patterns_for(len(arguments))
        filled = Filled()
        if patterns is None:
            return None
        fits = all(filled.takes(p, kind) for p, kind in zip(patterns, arguments, strict=True))
        return filled if fits else None

    def patterns_for(self, count: int) -> tuple[Pattern, ...] | None:
        """One pattern for each of so many arguments; None if there cannot be so many."""
        fixed = len(self.parameters)
        if not self.is_variadic:
            return self.parameters if count == fixed else None
        if count < fixed - 1:
            return None
        return self.parameters[:-1] + self.parameters[-1:] * (count - fixed + 1)

    def __str__(self) -> str:
        dots = "..." if self.is_variadic else ""
        return f"({', '.join(str(one) for one in self.parameters)}{dots}) -> {self.result}"


def signature(text: str, structs: Mapping[str, StructOf] | None = None) -> Signature:
    """Read `(ARRAY<T>, STRING...) -> T`; names in `structs` stand for those types."""
    return _Reader(text, structs or {}).signature()


class _Reader:
    def __init__(self, text: str, structs: Mapping[str, StructOf]) -> None:
        self._text, self._structs = text, structs
        self._words = _PIECES.findall(text.replace("->", " "))
        self._at = 0

    def signature(self) -> Signature:
        self._expect("(")
        parameters: list[Pattern] = []
        is_variadic = False
        while not self._skip(")"):
            parameters.append(self._pattern())
            is_variadic = self._skip("...")
            self._skip(",")
        return Signature(tuple(parameters), self._pattern(), is_variadic)

    def _pattern(self) -> Pattern:
        word = self._words[self._at]
        self._at += 1
        if word in ("ARRAY", "MAP", "LAMBDA"):
            return self._nested(word)
        if word in self._structs:
            return Exact(self._structs[word])
        if word in PRIMITIVES:
            return Exact(PRIMITIVES[word])
        if word == INTERVAL_UNIT.name:
            return Exact(INTERVAL_UNIT)
        if word in _ANY:
            return _ANY[word]
        if len(word) == 1 and word.isupper():
            return Blank(word)
        raise ValueError(f"{word} is no type: {self._text}")

    def _nested(self, word: str) -> Pattern:
        self._expect("<")
        inner = [self._pattern()]
        while self._skip(","):
            inner.append(self._pattern())
        self._expect(">")
        if word == "ARRAY":
            return ArrayPattern(*inner)
        return MapPattern(*inner) if word == "MAP" else LambdaPattern(tuple(inner[:-1]), inner[-1])

    def _skip(self, word: str) -> bool:
        found = bool(self._words[self._at] == word)
        self._at += found
        return found

    def _expect(self, word: str) -> None:
        if not self._skip(word):
            raise ValueError(f"{word} is missing: {self._text}")


_ANY: Final[Mapping[str, Pattern]] = {"DECIMAL": AnyDecimal(), "STRUCT": AnyStruct()}


def shown_arguments(arguments: Sequence[ArgumentType]) -> str:
    """`(INTEGER, LAMBDA)`, as errors show it."""
    return f"({', '.join(_shown(kind) for kind in arguments)})"


def _shown(kind: ArgumentType) -> str:
    return str(kind) if isinstance(kind, LambdaShape) else shown(kind)
