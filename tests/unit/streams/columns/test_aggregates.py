"""Declared aggregates in the test driver: of streams, windows, sessions and regrouped tables."""

from typing import Any

import pytest

from penstock.streams import (
    STRING,
    AggregateColumn,
    Avg,
    Collect,
    Count,
    First,
    Max,
    Min,
    SessionWindows,
    StreamsBuilder,
    Sum,
    TestDriver,
    TopologyError,
    col,
    json_of,
)

SALE = json_of(who="string", cents="long")


def test_a_row_has_each_column_and_passes_nulls_over() -> None:
    builder = StreamsBuilder(value=SALE)
    builder.stream("sales").group_by(col("who")).aggregate(
        n=Count(), known=Count(col("cents")), mean=Avg(col("cents")), some=Collect(col("cents"))
    ).to_stream().to("rows")
    with TestDriver(builder.build()) as driver:
        for cents in (4, None, 6):
            driver.pipe_input("sales", "k", {"who": "ada", "cents": cents}, 5)
        *_, last = driver.read_all("rows")
    assert last.key == "ada"
    assert last.value == {"n": 3, "known": 2, "mean": 5.0, "some": [4, 6]}


def test_a_sum_that_is_too_large_is_null_until_it_is_not() -> None:
    builder = StreamsBuilder(value=SALE)
    table = builder.stream("sales").group_by_key().aggregate(total=Sum(col("cents")), store="s")
    table.to_stream().to("rows")
    with TestDriver(builder.build()) as driver:
        for cents in (2**63 - 1, 5, -6):
            driver.pipe_input("sales", "k", {"cents": cents}, 5)
        totals = [record.value["total"] for record in driver.read_all("rows")]
        assert totals == [2**63 - 1, None, 2**63 - 2]
        assert driver.store("s").get("k") == {"total": 2**63 - 2}


def test_rows_of_a_table_are_taken_out_again() -> None:
    builder = StreamsBuilder(value=SALE)
    regrouped = builder.table("sales").group_by(
        lambda key, value: (value["who"], value), key=STRING, value=SALE
    )
    regrouped.aggregate(n=Count(), total=Sum(col("cents")), mean=Avg(col("cents"))).to_stream().to(
        "rows"
    )
    rows: list[Any] = [("1", 4), ("2", 8), ("1", 6), ("2", None)]
    with TestDriver(builder.build()) as driver:
        for key, cents in rows:
            value = None if cents is None else {"who": "ada", "cents": cents}
            driver.pipe_input("sales", key, value, 5)
        found = [tuple(record.value.values()) for record in driver.read_all("rows")]
    assert found == [(1, 4, 4.0), (2, 12, 6.0), (2, 14, 7.0), (1, 6, 6.0)]


def test_sessions_that_meet_are_merged() -> None:
    builder = StreamsBuilder(value=SALE)
    windows = SessionWindows.of(10, grace_ms=20)
    sessions = builder.stream("sales").group_by_key().windowed_by_session(windows)
    sessions.aggregate(n=Count(), least=Min(col("cents"))).to_stream().to("rows")
    with TestDriver(builder.build()) as driver:
        for cents, at_ms in ((4, 100), (2, 115), (9, 108)):
            driver.pipe_input("sales", "k", {"cents": cents}, at_ms)
        values = [record.value for record in driver.read_all("rows")]
    assert {"n": 3, "least": 2} in values


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"least": Min(col("cents"))}, "min is not for the rows of a table"),
        ({"first": First(col("cents"))}, "could not be taken out again"),
        ({"total": Sum(col("who"))}, "total: sum of a string cannot be"),
        ({"total": Sum(col("timestamp"))}, "without its time"),
        ({"top": Max(col("nothing"))}, "max is not for"),
        ({"total": 5}, "total is 5, and no Count"),
    ],
)
def test_what_cannot_be_added_up_is_refused(columns: dict[str, AggregateColumn], said: str) -> None:
    builder = StreamsBuilder(value=SALE)
    grouped = builder.table("sales").group_by(lambda k, v: (k, v), key=STRING, value=SALE)
    with pytest.raises(TopologyError, match=said):
        grouped.aggregate(**columns)


def test_sessions_know_no_first() -> None:
    builder = StreamsBuilder(value=SALE)
    sessions = builder.stream("sales").group_by_key().windowed_by_session(SessionWindows.of(10))
    with pytest.raises(TopologyError, match="are not for sessions"):
        sessions.aggregate(first=First(col("cents")))
