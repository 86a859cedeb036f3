"""What Spark computes by itself, and what it leaves to Python."""

import pytest

from penstock.streams import (
    INTEGER,
    JSON,
    LONG,
    STRING,
    Count,
    First,
    KStream,
    Max,
    Processor,
    SessionWindows,
    StreamsBuilder,
    Sum,
    TimeWindows,
    col,
    json_of,
)
from penstock.streams.plan.native import (
    adds_up_what_is_read,
    keeps_key,
    native_stage,
    native_tally,
)
from penstock.streams.plan.stages import cut

ORDER = json_of(name="string", cents="long", weight="double")


def stream(*topics: str) -> tuple[StreamsBuilder, KStream]:  # type: ignore[type-arg]
    builder = StreamsBuilder(value=ORDER)
    return builder, builder.stream(*(topics or ("orders",)))


def test_expressions_from_topic_to_topic_need_no_python() -> None:
    builder, orders = stream()
    orders.filter(col("cents") > 1).select_key(col("name")).to("out")
    orders.map_values(col("cents")).to(col("key"))
    (stage,) = cut(builder.build())
    found = native_stage(stage.topology)
    assert found is not None and found.checks_values and len(found.ways) == 2


@pytest.mark.parametrize("what", ["function", "json", "peek", "integer", "two serdes"])
def test_what_spark_does_not_know_runs_in_python(what: str) -> None:
    builder, orders = stream()
    match what:
        case "function":
            orders.filter(lambda key, value: True).to("out")
        case "json":
            builder.stream("plain", value=JSON).to("out")
        case "peek":
            orders.peek(print).to("out")
        case "integer":
            orders.map_values(col("cents")).to("out", value=INTEGER)
        case _:
            orders.merge(builder.stream("texts", value=STRING)).to("out")
    orders.to("same")
    assert any(native_stage(stage.topology) is None for stage in cut(builder.build()))


def test_counts_and_declared_aggregates_are_added_up_in_batches() -> None:
    builder, orders = stream()
    orders.filter(col("cents") > 1).group_by_key().count().to_stream().to("out")
    (stage,) = cut(builder.build())
    found = native_tally(stage.topology)
    assert found is not None and keeps_key(found, found.ways[0])
    builder, orders = stream()
    orders.group_by(lambda key, value: value["name"], key=STRING, value=JSON).count()
    first, second = cut(builder.build())
    assert native_stage(first.topology) is None
    assert native_tally(second.topology) is not None, "what we wrote ourselves needs no look"


def test_a_key_that_is_the_value_is_written_anew() -> None:
    builder = StreamsBuilder(value=LONG)
    builder.stream("numbers").select_key(col("value")).repartition(key=LONG).group_by_key().count()
    _, second = cut(builder.build())
    assert native_tally(second.topology) is not None


def test_records_that_are_made_anew_as_they_are_read_go_through_python() -> None:
    builder = StreamsBuilder(value=ORDER)
    orders = builder.stream("orders", intake=lambda record, partition, offset: record)
    orders.filter(col("cents") > 1).to("out")
    sales = builder.stream("sales", intake=lambda record, partition, offset: record)
    sales.group_by_key().count()
    without_state, with_state = cut(builder.build())
    assert native_stage(without_state.topology) is None
    assert native_tally(with_state.topology) is None


@pytest.mark.parametrize(
    "what", ["two topics", "sessions", "two aggregates", "extremes", "processor", "function"]
)
def test_what_needs_each_record_is_added_up_one_by_one(what: str) -> None:
    builder, orders = stream(*(("a", "b") if what == "two topics" else ()))
    grouped, windows = orders.group_by_key(), TimeWindows.of(10)
    match what:
        case "two topics":
            grouped.aggregate(first=First(col("name")))
        case "sessions":
            grouped.windowed_by_session(SessionWindows.of(10)).count()
        case "two aggregates":
            grouped.count()
            grouped.aggregate(n=Count())
        case "extremes":
            grouped.windowed_by(windows).aggregate(top=Max(col("weight")))
        case "processor":
            grouped.count().to_stream().process(Processor)
        case _:
            grouped.reduce(lambda one, two: two)
    (stage,) = cut(builder.build())
    assert native_tally(stage.topology) is None


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("count", True),
        ("sum", True),
        ("windows", True),
        ("regrouped", True),
        ("filter", False),
        ("mapped", False),
        ("computed", False),
        ("another key", False),
        ("json", False),
    ],
)
def test_what_lies_in_the_records_is_added_up_where_it_is_read(what: str, expected: bool) -> None:
    builder = StreamsBuilder(value=LONG)
    numbers, value = builder.stream("numbers"), col("value")
    match what:
        case "count":
            numbers.group_by_key().count()
        case "sum":
            numbers.group_by_key().aggregate(sum=Sum(value), keys=Count(col("key")))
        case "windows":
            numbers.group_by_key().windowed_by(TimeWindows.of(5)).count()
        case "regrouped":
            numbers.group_by(lambda key, number: key[:1]).count()
        case "filter":
            numbers.filter(value > 5).group_by_key().count()
        case "mapped":
            numbers.map_values(value + 1).group_by_key().count()
        case "computed":
            numbers.group_by_key().aggregate(sum=Sum(value * 2))
        case "another key":
            numbers.group_by_key(key=INTEGER).aggregate(sum=Sum(value))
        case _:
            builder.stream("orders", value=ORDER).group_by_key().count()
    found = native_tally(cut(builder.build())[-1].topology)
    assert found is None if what == "another key" else found is not None
    assert (found is not None and adds_up_what_is_read(found)) is expected
