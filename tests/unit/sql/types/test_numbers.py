"""Numbers of so many bits or digits."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.types import kinds as k
from penstock.sql.types.failures import RowFailure
from penstock.sql.types.numbers import decimal_type, exact_of, fitted, truncated, wrapped


@given(st.integers(-(1 << 70), 1 << 70))
def test_a_number_wraps_around_as_its_low_bits_do(value: int) -> None:
    for kind, bits in ((k.INTEGER, 32), (k.BIGINT, 64)):
        expected = int.from_bytes(
            (value % (1 << bits)).to_bytes(bits // 8, "big"), "big", signed=True
        )
        assert wrapped(value, kind) == expected


@given(st.decimals(allow_nan=False, allow_infinity=False, places=5), st.integers(0, 6))
def test_a_decimal_that_fits_is_rounded_and_one_that_does_not_is_refused(
    value: Decimal, scale: int
) -> None:
    kind = k.DecimalOf(9, scale)
    try:
        found = fitted(value, kind)
    except RowFailure as failure:
        assert abs(value) >= Decimal(10) ** (9 - scale) - 1
        assert "Numeric field overflow" in failure.reason
    else:
        assert -found.as_tuple().exponent == scale  # type: ignore[operator]
        assert abs(found - value) <= Decimal(1).scaleb(-scale) / 2
        assert len(found.as_tuple().digits) <= 9


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e300, 2.9])
def test_a_double_is_cut_to_what_fits(value: float) -> None:
    assert -(1 << 31) <= truncated(value, k.INTEGER) < 1 << 31


@pytest.mark.parametrize(
    ("text", "kind"),
    [("1.50", (3, 2)), ("0.01", (2, 2)), ("100.", (3, 0)), ("0", (1, 0)), ("12345", (5, 0))],
)
def test_a_literal_has_the_digits_that_are_written(text: str, kind: tuple[int, int]) -> None:
    assert decimal_type(Decimal(text)) == k.DecimalOf(*kind)


def test_a_double_becomes_the_decimal_it_is_written_as() -> None:
    assert exact_of(0.1) == Decimal("0.1")
