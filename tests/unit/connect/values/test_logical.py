"""Dates, times, timestamps and decimals, and what they travel as."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.errors.kinds import DataError
from penstock.connect.values.logical import (
    DATE_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    decimal_schema,
    logical_of,
    plain_of,
)
from penstock.connect.values.schema import Schema, SchemaType


@pytest.mark.parametrize(
    ("schema", "low", "high"),
    [
        (DATE_SCHEMA, -100_000, 100_000),
        (TIME_SCHEMA, 0, 86_399_999),
        (TIMESTAMP_SCHEMA, -(10**13), 10**14),
    ],
)
def test_what_travels_comes_back(schema: Schema, low: int, high: int) -> None:
    for plain in (low, -1 if low < 0 else 1, 0, 12_345, high):
        assert plain_of(schema, logical_of(schema, plain)) == plain


@given(st.integers(), st.integers(0, 50))
def test_a_decimal_keeps_its_digits_and_its_scale(unscaled: int, scale: int) -> None:
    schema = decimal_schema(scale)
    value = Decimal(f"{unscaled}e-{scale}")
    assert logical_of(schema, plain_of(schema, value)).as_tuple() == value.as_tuple()


def test_values_beyond_python_are_data_errors() -> None:
    for schema, plain in ((DATE_SCHEMA, 10**8), (TIMESTAMP_SCHEMA, 10**17), (TIME_SCHEMA, -1)):
        with pytest.raises(DataError):
            logical_of(schema, plain)


def test_a_decimal_of_another_scale_is_refused() -> None:
    with pytest.raises(DataError, match="mismatching scale"):
        plain_of(decimal_schema(2), Decimal("1.5"))
    with pytest.raises(DataError, match="scale parameter not found"):
        logical_of(Schema(type=SchemaType.BYTES, name=decimal_schema(0).name), b"\0")
