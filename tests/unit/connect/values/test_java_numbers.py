"""Numbers as Java has them."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.values.java_numbers import (
    decimal_text,
    low_bits,
    parse_decimal,
    parse_real,
    parse_whole,
    real_text,
    single,
    whole_of,
    wrapped,
)


@given(st.integers(), st.sampled_from([8, 16, 32, 64]))
def test_a_wrapped_number_has_the_lowest_bits(number: int, bits: int) -> None:
    found = wrapped(number, bits)
    assert -(1 << (bits - 1)) <= found < 1 << (bits - 1)
    assert (found - number) % (1 << bits) == 0


@pytest.mark.parametrize(
    ("real", "bits", "whole"),
    [(1.9, 8, 1), (-1.9, 8, -1), (300.0, 8, 44), (1e10, 32, 2**31 - 1), (math.nan, 64, 0)],
)
def test_a_float_is_cut_and_bounded(real: float, bits: int, whole: int) -> None:
    assert whole_of(real, bits) == whole


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3))
def test_low_bits_of_a_decimal_are_those_of_its_whole_part(number: Decimal) -> None:
    assert low_bits(number, 64) == wrapped(int(number), 64)


def test_a_number_of_a_billion_digits_costs_nothing() -> None:
    assert low_bits(Decimal("1e999999999"), 64) == 0


@pytest.mark.parametrize(
    ("real", "text"),
    [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.00012, "1.2E-4"),
        (1.5e300, "1.5E300"),
        (math.inf, "Infinity"),
    ],
)
def test_doubles_are_printed_as_java_prints_them(real: float, text: str) -> None:
    assert real_text(real) == text


@given(st.floats(allow_nan=False))
def test_what_is_printed_is_parsed_back(real: float) -> None:
    assert parse_real(real_text(real)) == real


@given(st.floats(width=32, allow_nan=False))
def test_a_single_is_printed_with_the_fewest_digits_that_name_it(real: float) -> None:
    text = real_text(real, is_single=True)
    assert single(parse_real(text)) == real
    assert len(text) <= 16


def test_a_tenth_in_32_bits_is_a_tenth() -> None:
    assert real_text(single(0.1), is_single=True) == "0.1"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("1E+3", "1E+3"),
        ("0.001", "0.001"),
        ("1E-7", "1E-7"),
        ("-12.30", "-12.30"),
        ("0E+2", "0E+2"),
    ],
)
def test_decimals_are_printed_as_java_prints_them(given: str, text: str) -> None:
    assert decimal_text(Decimal(given)) == text


@pytest.mark.parametrize("text", ["", "1_0", " 1", "0x10", "1e", "128"])
def test_what_is_no_byte_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_whole(text, 8)


@pytest.mark.parametrize("text", ["", "1_0", "nan", "Infinity", "1e99999999999"])
def test_what_is_no_decimal_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_decimal(text)


@pytest.mark.parametrize("text", ["", "inf", "1_0", "abc", "--1"])
def test_what_is_no_double_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_real(text)
