"""Text as the value it looks like: what a header without a schema is read as.

`12` is an INT8, `1.5` a FLOAT32, `2020-01-02` a date, `[1, 2]` a list, `{"a": 1}` a map, and
everything else a text. A list or map whose parts have no schema together stays a text.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from penstock.connect.errors.kinds import DataError
from penstock.connect.values.date_format import DateFormat
from penstock.connect.values.java_numbers import parse_decimal, single, wrapped
from penstock.connect.values.logical import (
    DATE_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    date_of,
    decimal_schema,
    time_of,
    timestamp_of,
)
from penstock.connect.values.schema import (
    BOOLEAN_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaType,
    array_schema,
    map_schema,
)

SchemaAndValue = tuple[Schema | None, Any]
_DELIMITERS = frozenset(':,{}[]"')
_DEPTH_MAX = 64
_TIME, _TIMESTAMP, _DATE = (
    DateFormat("HH:mm:ss.SSS'Z'"),
    DateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"),
    DateFormat("yyyy-MM-dd"),
)
_ORDER = [
    SchemaType.INT8,
    SchemaType.INT16,
    SchemaType.INT32,
    SchemaType.INT64,
    SchemaType.FLOAT32,
    SchemaType.FLOAT64,
]


def parse_value(text: str | None) -> SchemaAndValue:
    """The schema and the value that a text looks like."""
    if text is None:
        return None, None
    if text == "":
        return STRING_SCHEMA, ""
    try:
        return _Reader(text).whole()
    except DataError:
        return STRING_SCHEMA, text


def tokens_of(text: str) -> list[str]:
    """A text cut at its delimiters, which are tokens themselves unless a backslash is before."""
    tokens: list[str] = []
    start, escaped = 0, False
    for at, letter in enumerate(text):
        if letter == "\\":
            escaped = not escaped
            continue
        if letter in _DELIMITERS and not escaped:
            if start < at:
                tokens.append(text[start:at])
            tokens.append(letter)
            start = at + 1
        escaped = False
    if start < len(text):
        tokens.append(text[start:])
    return tokens


@dataclass
class _Reader:
    """Reads tokens from left to right."""

    text: str

    def __post_init__(self) -> None:
        self.tokens = tokens_of(self.text)
        self.at = 0

    def whole(self) -> SchemaAndValue:
        """The value of all of the text."""
        first = self._next_filled()
        if first in ("[", "{"):
            try:
                return self._container(first, 0)
            except DataError:
                return STRING_SCHEMA, self.text
        found = _literal(self.text.strip())
        return (STRING_SCHEMA, self.text) if found is None else found

    def _container(self, opening: str, depth: int) -> SchemaAndValue:
        if depth > _DEPTH_MAX:
            raise DataError("a value has too many others around it")
        self._skip_to_filled()
        self.at += 1
        return self._list(depth) if opening == "[" else self._map(depth)

    def _list(self, depth: int) -> SchemaAndValue:
        items: list[Any] = []
        schema: Schema | None = None
        while True:
            if self._take("]"):
                known = schema is not None or not items
                aligned = items if schema is None else [_aligned(schema, one) for one in items]
                return (_array_of(schema) if known else _array_of(None)), aligned
            if self._next_filled() == ",":
                raise DataError("Unable to parse an empty array element")
            found = self._part(depth)
            schema = _shared(schema, found[0], not items)
            items.append(found[1])
            if self._next_filled() != "]" and not self._take(","):
                raise DataError("Array elements missing ',' delimiter")

    def _map(self, depth: int) -> SchemaAndValue:
        entries: list[tuple[Any, Any]] = []
        keys: Schema | None = None
        values: Schema | None = None
        while not self._take("}"):
            if self._next_filled() == ",":
                raise DataError("Unable to parse a map entry with no key or value")
            key_schema, key = self._part(depth)
            if key is None:
                raise DataError("Map entry may not have a null key")
            if not self._take(":"):
                raise DataError("Map entry is missing ':'")
            value_schema, value = self._part(depth)
            self._take(",")
            keys = _shared(keys, key_schema, not entries)
            values = _shared(values, value_schema, not entries)
            entries.append((key, value))
        return _map_of(keys, values), {
            _hashable(_aligned(keys, key)): _aligned(values, value) for key, value in entries
        }

    def _part(self, depth: int) -> SchemaAndValue:
        """A value inside another; a null has no schema."""
        first = self._next_filled()
        if first == '"':
            return self._quoted()
        if first in ("[", "{"):
            return self._container(first, depth + 1)
        self._skip_to_filled()
        word = self._word()
        found = _literal(word)
        if found is None:
            raise DataError("Failed to parse embedded value")
        return found

    def _word(self) -> str:
        """A token, or the five of a time, whose colons are delimiters."""
        joined = "".join(self.tokens[self.at : self.at + 5]).strip()
        if joined[:1].isdigit() and _temporal(joined) is not None:
            self.at += 5
            return joined
        if self.at >= len(self.tokens):
            raise DataError("a value is missing at the end")
        self.at += 1
        return self.tokens[self.at - 1].strip()

    def _quoted(self) -> SchemaAndValue:
        self._take('"')
        start = self.at
        while self.at < len(self.tokens) and self.tokens[self.at] != '"':
            self.at += 1
        content = "".join(self.tokens[start : self.at])
        self.at += 1
        found = _temporal(content) if content[:1].isdigit() else None
        return (STRING_SCHEMA, content) if found is None else found

    def _next_filled(self) -> str | None:
        """The next token that is no blank, trimmed; None: there is none."""
        at = self.at
        while at < len(self.tokens) and not self.tokens[at].strip():
            at += 1
        return self.tokens[at].strip() if at < len(self.tokens) else None

    def _skip_to_filled(self) -> None:
        while self.at < len(self.tokens) and not self.tokens[self.at].strip():
            self.at += 1

    def _take(self, wanted: str) -> bool:
        if self._next_filled() == wanted:
            self._skip_to_filled()
            self.at += 1
            return True
        if self._next_filled() is None and wanted in "]}":
            raise DataError(f"the terminating {wanted!r} is missing")
        return False


def _literal(word: str) -> SchemaAndValue | None:
    """A word, a date or a number; None: it is none of them."""
    if word in ("null", "true", "false"):
        return (None, None) if word == "null" else (BOOLEAN_SCHEMA, word == "true")
    if word[:1].isdigit():
        found = _temporal(word)
        if found is not None:
            return found
    if word[:1].isdigit() or word[:1] in ("+", "-"):
        return _number(word)
    return None


def _temporal(word: str) -> SchemaAndValue | None:
    plain = word.replace("\\:", ":")
    try:
        if len(plain) == 13:
            return TIME_SCHEMA, time_of(_TIME.parse(plain) % 86_400_000)
        if len(plain) == 24:
            return TIMESTAMP_SCHEMA, timestamp_of(_TIMESTAMP.parse(plain))
        if len(plain) == 10:
            return DATE_SCHEMA, date_of(_DATE.parse(plain) // 86_400_000)
    except DataError:
        return None
    return None


def _number(word: str) -> SchemaAndValue | None:
    try:
        number = parse_decimal(word)
    except ValueError:
        return None
    if number.adjusted() < 19 and number == number.to_integral_value():
        whole = int(number)
        for bits, schema in (
            (8, INT8_SCHEMA),
            (16, INT16_SCHEMA),
            (32, INT32_SCHEMA),
            (64, INT64_SCHEMA),
        ):
            if wrapped(whole, bits) == whole:
                return schema, whole
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    for real, schema in ((single(float(number)), FLOAT32_SCHEMA), (float(number), FLOAT64_SCHEMA)):
        if not math.isinf(real) and exponent != 0:
            return schema, real
    return decimal_schema(-exponent), number


def _shared(before: Schema | None, now: Schema | None, is_first: bool) -> Schema | None:
    """The schema of all parts so far; DataError where they have none together."""
    if now is None or (before is None and not is_first and now is None):
        return before
    if before is None or before == now:
        return now
    if before.type in _ORDER and now.type in _ORDER and not (before.name or now.name):
        return max(before, now, key=lambda one: _ORDER.index(one.type))
    raise DataError("the parts are of different schemas")


def _aligned(schema: Schema | None, value: Any) -> Any:
    if schema is None or value is None:
        return value
    if schema.type in (SchemaType.FLOAT32, SchemaType.FLOAT64) and isinstance(value, int):
        return single(float(value)) if schema.type is SchemaType.FLOAT32 else float(value)
    return value


def _array_of(items: Schema | None) -> Schema:
    return array_schema(items) if items is not None else Schema(type=SchemaType.ARRAY)


def _map_of(keys: Schema | None, values: Schema | None) -> Schema:
    if keys is None:
        return Schema(type=SchemaType.MAP)
    made = map_schema(keys, values or STRING_SCHEMA)
    return made if values is not None else replace(made, value_schema=None)


def _hashable(key: Any) -> Any:
    if isinstance(key, list | dict):
        raise DataError("a list or a map cannot be the key of a map here")
    return key
