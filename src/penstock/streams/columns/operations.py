"""What each operation means: on Python's values, and as Spark SQL. Both must give the same.

Null in gives null out, unless the operation is about null. What has no result, a sum that is too
large for a long or a division by zero, is null; numbers that are no numbers compare as in Spark:
NaN equals itself and is the greatest. Spark's `try_` functions do the same.
"""

import math
import re
from collections.abc import Callable
from typing import Any

LONG_MAX, LONG_MIN = 2**63 - 1, -(2**63)
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE = re.compile(r"[+-]?[0-9]+")
NUMBER_SQL = r"^[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?\\z"
WHOLE_SQL = r"^[+-]?[0-9]+\\z"

Function = Callable[..., Any]


def _long(value: int) -> int | None:
    return value if LONG_MIN <= value <= LONG_MAX else None


def _number(value: Any) -> Any:
    return _long(value) if isinstance(value, int) else value


def _divided(one: float, other: float) -> float | None:
    return None if other == 0 else one / other


def _remainder(one: Any, other: Any) -> Any:
    if other == 0:
        return None
    if isinstance(one, int):
        left = abs(one) % abs(other)
        return -left if one < 0 else left
    if math.isinf(one) or math.isnan(one) or math.isnan(other):
        return math.nan
    return math.fmod(one, other)


def _rank(value: Any) -> Any:
    """NaN after all other numbers, and equal to itself."""
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def _compared(function: Callable[[Any, Any], bool]) -> Function:
    def compare(one: Any, other: Any) -> bool:
        if isinstance(one, float):
            return function(_rank(one), _rank(other))
        if isinstance(one, str):  # Spark compares the bytes of UTF-8.
            return function(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))
        return function(one, other)

    return compare


STRICT: dict[str, Function] = {
    "+": lambda one, other: _number(one + other),
    "-": lambda one, other: _number(one - other),
    "*": lambda one, other: _number(one * other),
    "/": _divided,
    "%": _remainder,
    "negate": lambda one: _number(-one),
    "abs": lambda one: _number(abs(one)),
    "=": _compared(lambda one, other: one == other),
    "<>": _compared(lambda one, other: one != other),
    "<": _compared(lambda one, other: one < other),
    "<=": _compared(lambda one, other: one <= other),
    ">": _compared(lambda one, other: one > other),
    ">=": _compared(lambda one, other: one >= other),
    "not": lambda one: not one,
    "upper": str.upper,
    "lower": str.lower,
    "trim": lambda text: text.strip(" "),
    "length": len,
    "contains": lambda text, part: part in text,
    "starts with": str.startswith,
    "ends with": str.endswith,
    "concat": lambda *texts: "".join(texts),
}


def conjunction(one: Any, other: Any) -> bool | None:
    """And, where null is unknown."""
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def disjunction(one: Any, other: Any) -> bool | None:
    """Or, where null is unknown."""
    if one is True or other is True:
        return True
    return None if one is None or other is None else False


def _whole_part(value: float) -> int | None:
    return int(value) if -(2.0**63) <= value < 2.0**63 else None


def _long_of_text(text: str) -> int | None:
    return _long(int(text)) if WHOLE.fullmatch(text) else None


def _double_of_text(text: str) -> float | None:
    return float(text) if NUMBER.fullmatch(text) else None


CASTS: dict[tuple[str, str], Function] = {
    ("long", "double"): float,
    ("long", "string"): str,
    ("long", "boolean"): bool,
    ("double", "long"): _whole_part,
    ("boolean", "long"): int,
    ("boolean", "string"): lambda value: "true" if value else "false",
    ("string", "long"): _long_of_text,
    ("string", "double"): _double_of_text,
    ("string", "boolean"): lambda text: {"true": True, "false": False}.get(text),
}

SQL: dict[str, str] = {
    "+": "try_add({0}, {1})",
    "-": "try_subtract({0}, {1})",
    "*": "try_multiply({0}, {1})",
    "/": "try_divide({0}, {1})",
    "%": "try_mod({0}, {1})",
    "=": "({0} = {1})",
    "<>": "({0} <> {1})",
    "<": "({0} < {1})",
    "<=": "({0} <= {1})",
    ">": "({0} > {1})",
    ">=": "({0} >= {1})",
    "and": "({0} AND {1})",
    "or": "({0} OR {1})",
    "not": "(NOT {0})",
    "is null": "({0} IS NULL)",
    "upper": "upper({0})",
    "lower": "lower({0})",
    "trim": "trim({0})",
    "length": "cast(length({0}) AS BIGINT)",
    "contains": "contains({0}, {1})",
    "starts with": "startswith({0}, {1})",
    "ends with": "endswith({0}, {1})",
}
NEGATE_SQL = {"long": "try_subtract(0L, {0})", "double": "(-{0})"}
ABS_SQL = {
    "long": "CASE WHEN {0} < 0 THEN try_subtract(0L, {0}) ELSE {0} END",
    "double": "abs({0})",
}
CASTS_SQL: dict[tuple[str, str], str] = {
    ("long", "double"): "cast({0} AS DOUBLE)",
    ("long", "string"): "cast({0} AS STRING)",
    ("long", "boolean"): "({0} <> 0)",
    ("double", "long"): "CASE WHEN {0} >= -9.223372036854775808E18D"
    " AND {0} < 9.223372036854775808E18D THEN try_cast({0} AS BIGINT) END",
    ("boolean", "long"): "cast({0} AS BIGINT)",
    ("boolean", "string"): "cast({0} AS STRING)",
    ("string", "long"): f"CASE WHEN {{0}} RLIKE '{WHOLE_SQL}' THEN try_cast({{0}} AS BIGINT) END",
    (
        "string",
        "double",
    ): f"CASE WHEN {{0}} RLIKE '{NUMBER_SQL}' THEN try_cast({{0}} AS DOUBLE) END",
    ("string", "boolean"): "CASE {0} WHEN 'true' THEN true WHEN 'false' THEN false END",
}
