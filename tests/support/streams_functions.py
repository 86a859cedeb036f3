"""Small functions that topologies of tests are made of; each has its twin in StreamsJudge.java."""

from collections.abc import Callable
from typing import Any

from penstock.streams import JoinWindows


def java(value: Any) -> str:
    """A value as Java puts it into text."""
    return "null" if value is None else str(value)


def join(left: Any, right: Any) -> str:
    return f"{java(left)}+{java(right)}"


def plus(text: str) -> Callable[[Any], str]:
    return lambda value: java(value) + text


def is_even(key: Any, value: Any) -> bool:
    return value is not None and int(value[-1]) % 2 == 0


def group(key: Any, value: Any) -> str | None:
    return None if value in (None, "9") else f"g{value[0]}"


def near(difference_ms: int, grace_ms: int) -> JoinWindows:
    return JoinWindows.of(difference_ms, grace_ms=grace_ms)


def first_letter(value: Any) -> str | None:
    return None if value in (None, "9") else f"k{value[0]}"


def odd_letter(key: Any, value: Any) -> str | None:
    return None if value is None or is_even(key, value) else f"k{value[0]}"


def three_is_none(key: Any, value: Any, total: Any) -> str | None:
    return None if value == "3" else total + value
