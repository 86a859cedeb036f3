"""Values as Java writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.types.casts import double_from
from penstock.sql.types.text import double_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (100.0, "100.0"), (0.001, "0.001"),
        (0.0001, "1.0E-4"), (9999999.0, "9999999.0"), (1e7, "1.0E7"), (1.5e300, "1.5E300"),
        (-1234567890.123, "-1.234567890123E9"), (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)  # fmt: skip
def test_a_double_is_written_as_java_does(value: float, text: str) -> None:
    assert double_text(value) == text


@given(st.floats(allow_nan=False))
def test_a_double_is_read_back(value: float) -> None:
    assert double_from(double_text(value)) == value
