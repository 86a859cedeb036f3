"""Dates and times as numbers, also where Python's own dates end."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.connectors.changes.temporal import (
    days_of_date,
    micros_of_interval,
    micros_of_time,
    micros_of_timestamp,
    zoned_time,
    zoned_timestamp,
)
from penstock.connect.errors.kinds import DataError


@given(st.dates())
def test_days_are_counted_as_python_does(day: date) -> None:
    assert days_of_date(day.isoformat()) == (day - date(1970, 1, 1)).days


@given(st.datetimes())
def test_timestamps_keep_their_microseconds_there_and_back(at: datetime) -> None:
    micros = (at - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    assert micros_of_timestamp(at.isoformat(" ")) == micros
    shown = zoned_timestamp(f"{at.isoformat(' ')}+00")
    assert datetime.fromisoformat(shown) == at.replace(tzinfo=UTC)


def test_years_that_python_does_not_have() -> None:
    assert days_of_date("0001-12-31 BC") == days_of_date("0001-01-01") - 1
    assert days_of_date("10000-01-01") == days_of_date("9999-12-31") + 1
    assert zoned_timestamp("0044-03-15 10:00:00+00 BC") == "-0043-03-15T10:00:00Z"
    assert micros_of_timestamp("infinity") == 2**63 - 1
    assert days_of_date("-infinity") == -(2**31)


def test_zones_are_counted_away() -> None:
    assert zoned_timestamp("2024-02-29 01:00:00.5+02:30") == "2024-02-28T22:30:00.5Z"
    assert zoned_time("01:00:00-05") == "06:00:00Z"
    assert micros_of_time("24:00:00") == 86_400_000_000


def test_intervals() -> None:
    assert micros_of_interval("P1DT2H3M4.5S") == ((26 * 60 + 3) * 60 + 4) * 1_000_000 + 500_000
    assert micros_of_interval("PT-0.25S") == -250_000
    assert micros_of_interval("P-1M") == -2_629_800_000_000


@pytest.mark.parametrize("text", ["", "x", "2024", "later"])
def test_what_is_none_is_refused(text: str) -> None:
    for read in (days_of_date, micros_of_time, micros_of_interval, micros_of_timestamp):
        with pytest.raises(DataError):
            read(text)
