"""Questions of a JDBC source, and the offsets behind rows."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.connectors.jdbc.addresses import Product
from penstock.connect.connectors.jdbc.dialects import Dialect
from penstock.connect.connectors.jdbc.queries import (
    RowPosition,
    RowQuery,
    SourceMode,
    resumable,
)
from penstock.connect.errors.kinds import ConnectError

PG, NOW = Dialect(Product.POSTGRESQL), datetime(2024, 2, 29, 10, tzinfo=UTC)


def query(mode: SourceMode) -> RowQuery:
    selected = 'SELECT * FROM "t"'
    return RowQuery(mode=mode, selected=selected, number_column="id", time_columns=("ts",))


def test_each_mode_asks_for_what_is_behind_its_position() -> None:
    position = RowPosition(number=7, at=NOW)
    assert query(SourceMode.BULK).text(PG, position, NOW) == ('SELECT * FROM "t"', [])
    text, values = query(SourceMode.INCREMENTING).text(PG, position, NOW)
    assert (text, values) == ('SELECT * FROM "t" WHERE "id" > %s ORDER BY "id"', [7])
    text, values = query(SourceMode.TIMESTAMP).text(PG, position, NOW)
    assert text.endswith('WHERE "ts" > %s AND "ts" < %s ORDER BY "ts"') and len(values) == 2
    text, values = query(SourceMode.BOTH).text(PG, position, NOW)
    assert '("ts" = %s AND "id" > %s) OR "ts" > %s' in text
    assert values == [NOW, NOW, 7, NOW]


def test_without_a_position_all_rows_are_asked_for() -> None:
    text, values = query(SourceMode.INCREMENTING).text(PG, RowPosition(), NOW)
    assert (text, values) == ('SELECT * FROM "t" ORDER BY "id"', [])


@given(st.integers(0, 2**62), st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)))
def test_offsets_keep_microseconds(number: int, at: datetime) -> None:
    position = RowPosition(number=number, at=at.replace(tzinfo=UTC))
    assert RowPosition.of_offset(position.offset()) == position


def test_an_offset_of_another_kind_is_refused() -> None:
    with pytest.raises(ConnectError):
        RowPosition.of_offset({"incrementing": "7"})


@given(st.lists(st.integers(0, 5), max_size=20), st.integers(0, 20))
def test_by_time_alone_no_row_is_missed_wherever_it_stops(seconds: list[int], stop: int) -> None:
    times = [NOW.replace(second=one) for one in sorted(seconds)]
    rows = [(n, RowPosition(at=at)) for n, at in enumerate(times)]
    start = RowPosition()
    done = list(resumable(rows, start, SourceMode.TIMESTAMP))
    position = done[: stop + 1][-1][1] if done else start
    again = [n for n, at in enumerate(times) if position.at is None or at > position.at]
    assert {n for n, _ in done[: stop + 1]} | set(again) == set(range(len(times)))
