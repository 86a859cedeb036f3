"""Patterns of SimpleDateFormat, in UTC."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.errors.kinds import DataError
from penstock.connect.values.date_format import DateFormat
from penstock.errors import ConfigError

AT = 1_577_934_245_678  # 2020-01-02T03:04:05.678Z, a Thursday


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "2020-01-02T03:04:05.678Z"),
        ("EEE, d MMM yy", "Thu, 2 Jan 20"),
        ("EEEE MMMM D u", "Thursday January 2 4"),
        ("h:mm a 'o''clock'", "3:04 AM o'clock"),
        ("kk KK X Z z G", "03 03 Z +0000 UTC AD"),
        ("SSSSSS", "000678"),
    ],
)
def test_an_instant_is_shown_as_java_shows_it(pattern: str, text: str) -> None:
    assert DateFormat(pattern).format(AT) == text


@given(st.integers(0, 4_000_000_000_000))
def test_what_is_shown_is_parsed_back(ms: int) -> None:
    for pattern in ("yyyy-MM-dd HH:mm:ss.SSS", "yyyyMMddHHmmssSSS", "d MMM yyyy hh:mm:ss.S a X"):
        made = DateFormat(pattern)
        assert made.parse(made.format(ms)) == ms


@pytest.mark.parametrize(
    ("pattern", "text", "ms"),
    [
        ("yyyy-MM-dd", "2019-13-01", 1_577_836_800_000),  # The month after December.
        ("yyyy-MM-dd", "2020-01-01 and more", 1_577_836_800_000),
        ("yyyy-MM-dd X", "2020-01-01 +01:00", 1_577_833_200_000),
        ("yy", "99", 915_148_800_000),
        ("yyyy-DDD", "2020-032", 1_580_515_200_000),
    ],
)
def test_parsing_is_lenient(pattern: str, text: str, ms: int) -> None:
    assert DateFormat(pattern).parse(text) == ms


@pytest.mark.parametrize("text", ["", "x", "2020", "2020-", "2020-xx-01", "9" * 30 + "-01-01"])
def test_what_does_not_fit_is_a_data_error(text: str) -> None:
    with pytest.raises(DataError, match="does not match pattern"):
        DateFormat("yyyy-MM-dd").parse(text)


@pytest.mark.parametrize("pattern", ["b", "YYYY-ww", "'open", "XXXX"])
def test_patterns_that_are_not_taken_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigError):
        DateFormat(pattern)
