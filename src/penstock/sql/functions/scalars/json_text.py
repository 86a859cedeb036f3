"""Texts that are JSON: what they hold, and values as JSON."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from penstock.sql.functions.catalogue import Catalogue
from penstock.sql.types.text import double_text, plain_text

catalogue = Catalogue("JSON")
_STEPS: Final = re.compile(
    r"""
    \.(?P<name>[^.\[\]'"]+)
    | \[(?P<index>-?\d+)\]
    | \[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]
    """,
    re.VERBOSE,
)
_MISSING: Final = object()


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def parse_json(text: str) -> Any:
    """The value of a JSON text; raises ValueError."""
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=Decimal)
    except RecursionError:
        raise ValueError("the JSON is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"Invalid JSON format: {error}") from None


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, parse_float=Decimal)


def json_of(value: Any) -> str:
    """A value as JSON without spaces; dates and times as texts, bytes as base64."""
    if isinstance(value, Mapping):
        inner = (f"{_quoted(_key(key))}:{json_of(one)}" for key, one in value.items())
        return f"{{{','.join(inner)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(json_of(one) for one in value)}]"
    return _scalar_json(value)


def _key(key: Any) -> str:
    return key if isinstance(key, str) else plain_text(key)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _scalar_json(value: Any) -> str:
    match value:
        case None:
            return "null"
        case str():
            return _quoted(value)
        case bytes():
            return _quoted(base64.b64encode(value).decode())
        case datetime() | date() | time():
            return _quoted(plain_text(value))
        case float():
            text = double_text(value)
            return text if value == value and abs(value) != float("inf") else _quoted(text)
    return plain_text(value)


@catalogue.scalar(
    "EXTRACTJSONFIELD",
    "(STRING, STRING) -> STRING",
    about="What lies at a path such as $.log.items[0] of a JSON text; NULL if nothing does.",
)
def extract_json_field(text: str, path: str) -> str | None:
    value = _first_json(text)
    for step in _steps(path):
        value = _inner(value, step)
    if value is None or value is _MISSING:
        return None
    return value if isinstance(value, str) else json_of(value)


def _first_json(text: str) -> Any:
    """The value that a text begins with; what follows is not looked at."""
    try:
        return _DECODER.raw_decode(text.lstrip())[0]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"Invalid JSON format: {error}") from None


def _steps(path: str) -> list[str | int]:
    if not path.startswith("$"):
        raise ValueError(f"the JSON path must begin with $: {path}")
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _STEPS.match(path, at)
        if found is None:
            raise ValueError(f"Invalid JSON path: {path}")
        index = found["index"]
        steps.append(int(index) if index else found["name"] or found["quoted"] or "")
        at = found.end()
    return steps


def _inner(value: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return value[step] if isinstance(value, list) and 0 <= step < len(value) else _MISSING
    return value.get(step, _MISSING) if isinstance(value, dict) else _MISSING


@catalogue.scalar(
    "IS_JSON_STRING",
    "(STRING) -> BOOLEAN",
    takes_nulls=True,
    about="Whether a text is JSON; NULL is not.",
)
def is_json(text: str | None) -> bool:
    try:
        return text is not None and parse_json(text) is not _MISSING
    except ValueError:
        return False


@catalogue.scalar(
    "JSON_ARRAY_CONTAINS",
    "(STRING, T) -> BOOLEAN",
    takes_nulls=True,
    about="Whether a text is a JSON array that has the value.",
)
def json_array_contains(text: str | None, value: Any) -> bool:
    try:
        array = None if text is None else parse_json(text)
    except ValueError:
        return False
    return isinstance(array, list) and any(_is_same(item, value) for item in array)


def _is_same(item: Any, value: Any) -> bool:
    """JSON tells true from 1, and Python does not."""
    if isinstance(item, bool) or isinstance(value, bool):
        return item is value
    if isinstance(item, Decimal) and isinstance(value, float):
        return float(item) == value
    return bool(item == value)


@catalogue.scalar(
    "JSON_ARRAY_LENGTH",
    "(STRING) -> INTEGER",
    about="The number of items of a JSON array; NULL for other JSON.",
)
def json_array_length(text: str) -> int | None:
    array = parse_json(text)
    return len(array) if isinstance(array, list) else None


@catalogue.scalar(
    "JSON_ITEMS",
    "(STRING) -> ARRAY<STRING>",
    about="The items of a JSON array, each as JSON; NULL for other JSON.",
)
def json_items(text: str) -> list[str] | None:
    array = parse_json(text)
    return [json_of(item) for item in array] if isinstance(array, list) else None


@catalogue.scalar(
    "JSON_KEYS", "(STRING) -> ARRAY<STRING>", about="The keys of a JSON object; NULL for others."
)
def json_keys(text: str) -> list[str] | None:
    value = parse_json(text)
    return list(value) if isinstance(value, dict) else None


@catalogue.scalar(
    "JSON_RECORDS",
    "(STRING) -> MAP<STRING, STRING>",
    about="The members of a JSON object, each value as JSON; NULL for other JSON.",
)
def json_records(text: str) -> dict[str, str] | None:
    value = parse_json(text)
    if not isinstance(value, dict):
        return None
    return {key: json_of(one) for key, one in value.items()}


@catalogue.scalar(
    "JSON_CONCAT",
    "(STRING...) -> STRING",
    about="JSON objects as one object; JSON arrays and all else as one array.",
)
def json_concat(*texts: str) -> str | None:
    values = [parse_json(text) for text in texts]
    if not values:
        return None
    if all(isinstance(value, dict) for value in values):
        return json_of({key: one for value in values for key, one in value.items()})
    return json_of([item for value in values for item in _as_list(value)])


def _as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


@catalogue.scalar("TO_JSON_STRING", "(T) -> STRING", takes_nulls=True, about="Any value as JSON.")
def to_json_string(value: Any) -> str:
    return json_of(value)
