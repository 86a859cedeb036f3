"""Random column expressions of a given type, and random records for them."""

import random
from typing import Any

from penstock.streams.columns.expression import (
    Column,
    coalesce,
    col,
    concat,
    lit,
    struct,
    when,
)
from penstock.streams.columns.resolve import RecordType
from penstock.streams.values.column_types import STRING, declared_type
from penstock.streams.values.records import StreamRecord

FIELDS = {
    "a": "long",
    "b": "long",
    "x": "double",
    "y": "double",
    "s": "string",
    "t": "string",
    "yes": "boolean",
    "inner": {"deep": "long", "word": "string"},
}
RECORD = RecordType(key=STRING, value=declared_type(FIELDS))
LONGS = (0, 1, -1, 2, 7, 10, -13, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1)
DOUBLES = (0.0, -0.0, 1.0, -1.5, 0.1, 1e308, -1e308, 1e-300, 2.0**63, -(2.0**63), 9e18, 123456.789)
TEXTS = (
    "",
    " ",
    "a",
    "Straße",
    "ΣΑΣ",
    "été 𝄞",
    "it's \\ \n",
    "12",
    "-7",
    "+3.5",
    "1e3",
    "1e400",
    ".5",
    "5\n",
    " 5",
    "9223372036854775808",
    "true",
    "TRUE",
    "NaN",
    "0x1",
    "1d",
)


def random_record(chance: random.Random) -> StreamRecord:
    def maybe(values: tuple[Any, ...]) -> Any:
        return None if chance.random() < 0.15 else chance.choice(values)

    inner = {"deep": maybe(LONGS), "word": maybe(TEXTS)}
    value = {
        "a": maybe(LONGS),
        "b": maybe(LONGS),
        "x": maybe((*DOUBLES, float("nan"), float("inf"), float("-inf"))),
        "y": maybe(DOUBLES),
        "s": maybe(TEXTS),
        "t": maybe(TEXTS),
        "yes": maybe((True, False)),
        "inner": None if chance.random() < 0.2 else inner,
    }
    return StreamRecord(
        key=maybe(TEXTS),
        value=None if chance.random() < 0.05 else value,
        timestamp_ms=chance.choice((0, 5, 1_700_000_000_000)),
    )


def random_column(chance: random.Random, kind: str, depth: int) -> Column:
    """An expression of a type: long, double, string or boolean."""
    return _leaf(chance, kind) if depth == 0 else _node(chance, kind, depth - 1)


def _leaf(chance: random.Random, kind: str) -> Column:
    choices: dict[str, list[Any]] = {
        "long": [col("a"), col("value.b"), col("inner.deep"), col("timestamp"), *LONGS],
        "double": [col("x"), col("y"), *DOUBLES],
        "string": [col("key"), col("s"), col("t"), col("value.inner.word"), *TEXTS],
        "boolean": [col("yes"), col("s").is_null(), True, False],
    }
    return lit(chance.choice(choices[kind]))


def _node(chance: random.Random, kind: str, depth: int) -> Column:
    def some(of: str) -> Column:
        return random_column(chance, of, chance.randint(0, depth))

    def number() -> Column:
        return some(chance.choice(("long", "double")))

    def any_kind() -> str:
        return chance.choice(("long", "double", "string", "boolean"))

    shared = [
        lambda: when(some("boolean"), some(kind)),
        lambda: when(some("boolean"), some(kind)).when(some("boolean"), None).otherwise(some(kind)),
        lambda: coalesce(some(kind), some(kind)),
        lambda: struct(one=some(kind), other=some(any_kind())).field("one"),
    ]
    made: Column = chance.choice([*_MORE[kind](chance, some, number), *shared])()
    return made


def _longs(chance: random.Random, some: Any, number: Any) -> list[Any]:
    return [
        lambda: some("long") + some("long"),
        lambda: some("long") - some("long"),
        lambda: some("long") * some("long"),
        lambda: some("long") % some("long"),
        lambda: -some("long"),
        lambda: abs(some("long")),
        lambda: some("string").length(),
        lambda: some(chance.choice(("double", "string", "boolean"))).cast("long"),
    ]


def _doubles(chance: random.Random, some: Any, number: Any) -> list[Any]:
    return [
        lambda: number() + some("double"),
        lambda: some("double") - number(),
        lambda: number() * some("double"),
        lambda: number() / number(),
        lambda: some("double") % some("double"),
        lambda: -some("double"),
        lambda: abs(some("double")),
        lambda: some(chance.choice(("long", "string"))).cast("double"),
    ]


def _strings(chance: random.Random, some: Any, number: Any) -> list[Any]:
    return [
        lambda: some("string").upper(),
        lambda: some("string").lower(),
        lambda: some("string").trim(),
        lambda: concat(some("string"), some("string"), some("string")),
        lambda: some("string").substring(chance.randint(1, 4), chance.randint(0, 5)),
        lambda: some("string").replace(chance.choice(("a", "ß", "'", "1")), "<\\>"),
        lambda: some(chance.choice(("long", "boolean"))).cast("string"),
    ]


def _booleans(chance: random.Random, some: Any, number: Any) -> list[Any]:
    def compared() -> Column:
        kind = chance.choice(("long", "double", "string", "boolean", "number"))
        one, other = (number(), number()) if kind == "number" else (some(kind), some(kind))
        sign = chance.choice(("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"))
        found: Column = getattr(one, sign)(other)
        return found

    return [
        compared,
        compared,
        lambda: some("boolean") & some("boolean"),
        lambda: some("boolean") | some("boolean"),
        lambda: ~some("boolean"),
        lambda: some(chance.choice(("long", "double", "string", "boolean"))).is_null(),
        lambda: some("string").contains(some("string")),
        lambda: some("string").starts_with(some("string")),
        lambda: some("string").ends_with(some("string")),
        lambda: some("long").is_in(1, 7, -1),
        lambda: some(chance.choice(("long", "string"))).cast("boolean"),
    ]


_MORE = {"long": _longs, "double": _doubles, "string": _strings, "boolean": _booleans}
