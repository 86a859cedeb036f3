"""Values of every type go to JSON and come back."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.client.values import json_text, type_named, value_of
from penstock.sql.types.kinds import BIGINT, STRING, ArrayOf, DecimalOf, MapOf, StructOf


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("STRING", STRING),
        ("DECIMAL(4, 2)", DecimalOf(4, 2)),
        ("ARRAY<MAP<STRING, BIGINT>>", ArrayOf(MapOf(STRING, BIGINT))),
        ("STRUCT<`A` STRING, `b c` BIGINT>", StructOf((("A", STRING), ("b c", BIGINT)))),
        ("SOMETHING_NEW", None),
        ("ARRAY<", None),
    ],
)
def test_types_are_read_as_the_service_writes_them(text: str, kind: Any) -> None:
    assert type_named(text) == kind


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("DOUBLE", 1.5),
        ("DECIMAL(20, 2)", Decimal("123456789012345678.90")),
        ("BYTES", b"\x00\xff"),
        ("DATE", date(2021, 2, 3)),
        ("TIME", time(4, 5, 6)),
        ("TIMESTAMP", datetime(2021, 2, 3, 4, 5, 6, 789_000, tzinfo=UTC)),
        ("ARRAY<DECIMAL(4, 2)>", [Decimal("1.50"), None]),
        ("MAP<STRING, BYTES>", {"a": b"x"}),
        ("STRUCT<`X` DATE, `Y` INTEGER>", {"X": date(2021, 2, 3), "Y": None}),
        ("STRING", None),
        ("SOMETHING_NEW", "as it came"),
    ],
)
def test_a_value_comes_back_as_it_went(kind: str, value: Any) -> None:
    read = json.loads(json_text(value), parse_float=Decimal)
    made = value_of(read, type_named(kind))
    assert (made, type(made)) == (value, type(value))


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
))  # fmt: skip
def test_plain_values_are_the_json_that_others_write(value: Any) -> None:
    assert json.loads(json_text(value)) == value
