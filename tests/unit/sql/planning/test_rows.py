"""Rows and states survive being written."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.planning.rows import ROW
from penstock.streams import SerdeError

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.dates(),
    st.times(),
    st.datetimes(timezones=st.just(UTC)),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=10), values, max_size=6))
def test_a_row_is_read_as_it_was_written(row: dict[str, Any]) -> None:
    assert ROW.deserialize(ROW.serialize(row)) == row


def test_exact_numbers_keep_their_zeros_and_moments_their_zone() -> None:
    row = [Decimal("1.50"), datetime(2021, 2, 3, tzinfo=UTC), date(2021, 2, 3), time(1, 2)]
    found = ROW.deserialize(ROW.serialize(row))
    assert str(found[0]) == "1.50"
    assert found[1].tzinfo is not None


def test_what_is_no_value_of_sql_is_refused() -> None:
    with pytest.raises(SerdeError):
        ROW.serialize({"a": object()})
