"""Text as the value it looks like."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.values.logical import DATE_SCHEMA
from penstock.connect.values.parsed import parse_value, tokens_of
from penstock.connect.values.schema import (
    BOOLEAN_SCHEMA,
    FLOAT32_SCHEMA,
    INT8_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Schema,
    array_schema,
    map_schema,
)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("12", INT8_SCHEMA, 12),
        ("1.5", FLOAT32_SCHEMA, 1.5),
        ("99999999999", INT64_SCHEMA, 99999999999),
        ("true", BOOLEAN_SCHEMA, True),
        ("2020-01-02", DATE_SCHEMA, date(2020, 1, 2)),
        ("[1, 2]", array_schema(INT8_SCHEMA), [1, 2]),
        ('{"a": 1}', map_schema(STRING_SCHEMA, INT8_SCHEMA), {"a": 1}),
        ("[1, word]", STRING_SCHEMA, "[1, word]"),
        ("[1, 2", STRING_SCHEMA, "[1, 2"),
        ("", STRING_SCHEMA, ""),
        ("null", None, None),
    ],
)
def test_a_text_is_what_it_looks_like(text: str, schema: Schema | None, value: Any) -> None:
    assert parse_value(text) == (schema, value)


@given(st.text(alphabet='[]{}:,"\\ 1a-.T', max_size=30))
def test_every_text_is_some_value(text: str) -> None:
    schema, value = parse_value(text)
    assert (schema is None) == (value is None)


@given(st.text(alphabet='[]{}:,"\\ 1a', max_size=30))
def test_no_letter_is_lost_between_tokens(text: str) -> None:
    assert "".join(tokens_of(text)) == text


def test_values_nested_without_end_stay_a_text() -> None:
    text = "[" * 5_000 + "]" * 5_000
    assert parse_value(text) == (STRING_SCHEMA, text)
