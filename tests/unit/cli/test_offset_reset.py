"""Where a group shall read next: times, durations, files, bounds, and the table of the plan."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.offset_reset import (
    export_plan,
    parse_datetime,
    parse_duration,
    parse_plan,
    parse_topic,
    reset_table,
    within,
)
from penstock.client.operations.group_reset import OffsetBounds
from penstock.client.values import TopicPartition
from penstock.errors import CommandError

ORDERS = TopicPartition("orders", 0)
PAID = TopicPartition("paid", 12)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00.000", 0),
        ("1970-01-01T00:00:01.234", 1234),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-01T01:00:00.000+0100", 0),
        ("1970-01-01T00:00:00.000Z", 0),
        ("1969-12-31T23:59:59.999", -1),
        ("2026-07-24T12:34:56", 1784896496000),
    ],
)
def test_a_time_without_a_zone_is_in_utc(text: str, ms: int) -> None:
    assert parse_datetime(text) == ms


@given(st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)))
def test_every_time_is_read_to_the_millisecond(at: datetime) -> None:
    text = at.isoformat(timespec="milliseconds")
    exact = datetime.fromisoformat(text).replace(tzinfo=UTC)
    assert parse_datetime(text) == round(exact.timestamp() * 1000)


@pytest.mark.parametrize("text", ["", "now", "2026-07-24", "2026-13-01T00:00:00.000", "T"])
def test_what_is_no_time_is_told(text: str) -> None:
    with pytest.raises(CommandError, match="Error parsing timestamp"):
        parse_datetime(text)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("PT1S", 1000),
        ("PT0.5S", 500),
        ("PT0,25S", 250),
        ("P1D", 86_400_000),
        ("P1DT2H3M4S", 93_784_000),
        ("pt5m", 300_000),
        ("-PT1M", -60_000),
        ("PT-1M", -60_000),
        ("-PT-1M", 60_000),
        ("P-1DT24H", 0),
    ],
)
def test_durations_are_read_as_java_reads_them(text: str, ms: int) -> None:
    assert parse_duration(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1D", "P1H", "PT1D", "P1Y", "PT1.5H"])
def test_what_is_no_duration_is_told(text: str) -> None:
    with pytest.raises(CommandError, match="cannot be parsed to a duration"):
        parse_duration(text)


def test_topics_name_some_partitions_or_all() -> None:
    assert parse_topic("orders") == ("orders", None)
    assert parse_topic("orders:0,12") == ("orders", [0, 12])


@pytest.mark.parametrize("text", ["orders:", ":1", "orders:a", "orders:1:2", "orders:1,", "a:-1"])
def test_a_topic_with_bad_partitions_is_told(text: str) -> None:
    with pytest.raises(CommandError, match="topic arg"):
        parse_topic(text)


def test_a_plan_names_its_group_or_is_for_the_only_one() -> None:
    assert parse_plan("orders,0,5\npaid,12,0\n\n", ["g"]) == {"g": {ORDERS: 5, PAID: 0}}
    assert parse_plan("a,orders,0,5\nb,paid,12,7\n", ["a", "b"]) == {
        "a": {ORDERS: 5},
        "b": {PAID: 7},
    }


@pytest.mark.parametrize("text", ["orders,0\n", "orders,x,1\n", "orders,0,-1\n", "orders 0 1\n"])
def test_a_bad_line_of_a_plan_is_told_with_its_number(text: str) -> None:
    with pytest.raises(CommandError, match="Line 2 of the reset plan"):
        parse_plan("orders,0,1\n" + text, ["g"])


def test_a_plan_for_several_groups_must_name_them() -> None:
    with pytest.raises(CommandError, match="Line 1"):
        parse_plan("orders,0,5\n", ["a", "b"])


groups = st.text("abc,\"';é漢 .-_", min_size=1, max_size=12).filter(
    lambda name: name == name.strip()
)
topics = st.text("abz09._-", min_size=1, max_size=12)
offsets = st.dictionaries(
    st.builds(TopicPartition, topics, st.integers(0, 99)),
    st.integers(0, 2**63 - 1),
    min_size=1,
    max_size=4,
)


@given(st.dictionaries(groups, offsets, min_size=1, max_size=4))
def test_an_exported_plan_reads_back_the_same(plan: dict[str, dict[TopicPartition, int]]) -> None:
    assert parse_plan(export_plan(plan, with_group=True), list(plan)) == plan


@given(st.integers(-100, 100), st.integers(0, 50), st.integers(0, 50))
def test_offsets_are_moved_into_what_the_partition_has(wanted: int, first: int, size: int) -> None:
    told: list[str] = []
    settled = within({ORDERS: wanted}, {ORDERS: OffsetBounds(first, first + size)}, told.append)
    assert first <= settled[ORDERS] <= first + size
    assert bool(told) == (settled[ORDERS] != wanted)


def test_a_moved_offset_is_told_as_kafka_tells_it() -> None:
    told: list[str] = []
    within(
        {ORDERS: 99, PAID: 1}, {ORDERS: OffsetBounds(0, 10), PAID: OffsetBounds(5, 9)}, told.append
    )
    assert told == [
        "New offset (99) is higher than latest offset for topic partition orders-0. "
        "Value will be set to 10.",
        "New offset (1) is lower than earliest offset for topic partition paid-12. "
        "Value will be set to 5.",
    ]


def test_the_plan_is_printed_in_kafkas_columns() -> None:
    assert reset_table({"gone": {ORDERS: 4, PAID: 17}}).split("\n") == [
        "",
        "GROUP           TOPIC           PARTITION  NEW-OFFSET",
        "gone            orders          0          4",
        "gone            paid            12         17",
    ]
    wide = reset_table({"a-group-with-a-long-name": {TopicPartition("t" * 20, 0): 1}})
    assert wide.split("\n")[2] == f"a-group-with-a-long-name {'t' * 20} 0          1"
