"""Stages of expressions on Spark, without Python: the test driver is the measure.

Between two runs a disk may be lost: then what was told in topics is where the next one begins.
"""

import json
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.integration.spark.crashing import consumed
from tests.support.broker import BrokerProcess
from tests.support.streams_spark import Feed, application, create

from penstock.streams import (
    LONG,
    STRING,
    Avg,
    Collect,
    Count,
    First,
    Last,
    Max,
    Min,
    StreamsBuilder,
    StreamsTopology,
    Sum,
    TestDriver,
    TimeWindows,
    col,
    concat,
    json_of,
    struct,
    when,
)
from penstock.streams.plan.native import adds_up_what_is_read, native_stage, native_tally
from penstock.streams.plan.stages import cut
from penstock.streams.spark.tally_rows import TallyRows

pytestmark = pytest.mark.timeout(600)
LOSES_ITS_DISK = ("rows", "final")
# Of today: a changelog of windows forgets what is older than a day.
FIRST_MS = time.time_ns() // 10**12 * 10**6
ORDER = json_of(name="string", cents="long", weight="double", to={"city": "string"})


def sorted_orders() -> StreamsTopology:
    builder = StreamsBuilder(value=ORDER)
    orders = builder.stream("orders")
    dear = orders.filter(col("cents") > 100).map_values(
        struct(
            who=col("name").upper(),
            euros=col("cents") / 100,
            city=when(col("to.city").is_null(), "nowhere").otherwise(col("to.city")),
            far=col("timestamp") % 2 == 0,
        )
    )
    dear.to("dear")
    orders.filter_not(col("cents") > 100).map((col("cents"), col("name"))).to(
        concat("cheap-", (col("key") % 2).cast("string"))
    )
    orders.select_key(col("cents")).map_values(col("weight") * 2 > 3.0).filter(
        col("value")
    ).map_values(col("key") + 1).to("heavy", key=LONG)
    return builder.build()


VALUES: list[dict[str, Any] | None] = [
    {"name": "ada", "cents": 150, "weight": 1.5, "to": {"city": "Ulm"}},
    {"name": "bob", "cents": 100, "weight": 2},
    {"name": "eve", "cents": 7},
    {"name": None, "cents": None, "to": None, "more": "is left out"},
    {"name": "it's", "cents": 2**62, "weight": 1e308, "to": {"city": None}},
    None,
    {},
]


def test_what_spark_computes_is_what_the_test_driver_computes(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    topology = sorted_orders()
    assert all(native_stage(stage.topology) is not None for stage in cut(topology))
    topics = ["dear", "heavy", "cheap-0", "cheap-1"]
    create(broker.address, "orders", "dead", *topics)
    feed, driver = Feed(broker.address), TestDriver(topology)
    for number, value in enumerate(VALUES):
        key, at_ms = "k" * (1 + number % 2), 1_000_000 + number
        data = None if value is None else json.dumps(value)
        feed.put("orders", key, data, at_ms, headers=[("h", b"1")])
        driver.pipe_input("orders", key, value, at_ms, (("h", b"1"),))
    for bad in ("{", "5", '{"cents":"5"}', b"\xff", '{"cents":1.5}'):
        feed.put("orders", "k", bad, 1_000_100)
    feed.flush()
    settings, state = {"errors_dead_letter_queue_topic_name": "dead"}, tmp_path / "state"
    app = application(spark, topology, broker.address, state, "native", **settings)
    app.run_once()
    assert app.failure is None
    shutil.rmtree(state)
    feed.put("orders", "k", '{"cents": 500}', 1_000_200, headers=[("h", b"1")])
    feed.flush()
    driver.pipe_input("orders", "k", {"cents": 500}, 1_000_200, (("h", b"1"),))
    app = application(spark, topology, broker.address, state, "native", **settings)
    app.run_once()
    assert app.failure is None
    for topic in topics:
        wanted = [
            (r.key, r.value if topic != "dear" else json.dumps(r.value), r.timestamp_ms)
            for r in driver.read_all(topic)
        ]
        assert [_read(topic, r) for r in consumed(broker.address, topic)] == wanted, topic
    dead = consumed(broker.address, "dead")
    assert [r.value() for r in dead][:2] == [b"{", b"5"] and len(dead) == 5
    headers = dict(dead[0].headers())
    assert headers["__connect.errors.stage"] == b"VALUE_CONVERTER"
    assert headers["__connect.errors.offset"] == str(len(VALUES)).encode()


def _read(topic: str, record: Any) -> tuple[Any, Any, int]:
    assert record.headers() == [("h", b"1")]
    key, value = record.key(), record.value()
    if topic == "dear":
        return key.decode(), json.dumps(json.loads(value)), record.timestamp()[1]
    key = None if key is None else int.from_bytes(key, "big", signed=True)
    if topic == "heavy":
        return key, int.from_bytes(value, "big", signed=True), record.timestamp()[1]
    return key, None if value is None else value.decode(), record.timestamp()[1]


def test_a_record_that_cannot_be_read_stops_a_native_stage(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    builder = StreamsBuilder(value=ORDER)
    builder.stream("unclear").filter(col("cents") > 1).to("clear")
    create(broker.address, "unclear", "clear")
    feed = Feed(broker.address)
    feed.put("unclear", "k", '{"cents": 5}', 1_000_000)
    feed.put("unclear", "k", '{"cents": "many"}', 1_000_000)
    feed.flush()
    app = application(spark, builder.build(), broker.address, tmp_path, "stops")
    app.run_once()
    assert app.failure is not None and "unclear-0@1 cannot be read: the value" in app.failure
    assert not consumed(broker.address, "clear")


def tallied(name: str) -> StreamsTopology:
    builder = StreamsBuilder(value=ORDER)
    orders = builder.stream("sales").filter(col("cents").is_null() | (col("cents") > -50))
    match name:
        case "rows":
            table = orders.group_by_key().aggregate(
                count=Count(),
                known=Count(col("cents")),
                total=Sum(col("cents")),
                heavy=Sum(col("weight").cast("long")),
                least=Min(col("name")),
                most=Max(col("cents")),
                heaviest=Max(col("weight")),
                mean=Avg(col("cents")),
                first=First(col("name")),
                last=Last(col("cents")),
                some=Collect(col("name"), limit=3),
                store="tallies",
            )
        case "regrouped":
            table = orders.group_by(col("to.city")).count(store="tallies")
        case "windows":
            windows = TimeWindows.of(100, grace_ms=50)
            table = (
                orders.group_by_key().windowed_by(windows).aggregate(n=Count(), s=Sum(col("cents")))
            )
        case "hopping":
            windows = TimeWindows.of(100, grace_ms=30, advance_ms=40)
            table = orders.group_by_key().windowed_by(windows).count()
        case _:
            windows = TimeWindows.of(100, grace_ms=50)
            counts = orders.group_by_key().windowed_by(windows).count()
            table = counts.suppress_until_window_closes()
    table.to_stream().to("tallies")
    return builder.build()


def random_sales(chance: random.Random, count: int) -> list[tuple[str, dict[str, Any], int]]:
    sales, now_ms = [], FIRST_MS
    for _ in range(count):
        now_ms += chance.choice((0, 1, 5, 30))
        value = {
            "name": chance.choice((None, "ada", "bob", "émile")),
            "cents": chance.choice((None, 5, -60, -7, 2**62, -(2**62))),
            "weight": chance.choice((None, 1.5, -2.25, 1e300)),
            "to": {"city": chance.choice((None, "Ulm", "Köln"))},
        }
        at_ms = now_ms - chance.choice((0, 0, 3, 40, 100, 300))
        sales.append((chance.choice("abc"), value, at_ms))
    return sales


@pytest.mark.parametrize("name", ["rows", "regrouped", "windows", "hopping", "final"])
def test_tables_that_batches_add_up_are_those_of_the_test_driver(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path, name: str
) -> None:
    topology, chance, state = tallied(name), random.Random(name), tmp_path / "state"
    last = cut(topology)[-1]
    assert native_tally(last.topology) is not None
    create(broker.address, "sales", "tallies")
    feed, driver = Feed(broker.address), TestDriver(topology)
    sales = random_sales(chance, 80)
    for part in (sales[:50], sales[50:]):
        if name in LOSES_ITS_DISK:
            shutil.rmtree(state, ignore_errors=True)
        for key, value, at_ms in part:
            feed.put("sales", key, json.dumps(value), at_ms)
            driver.pipe_input("sales", key, value, at_ms)
        feed.flush()
        app = application(
            spark, tallied(name), broker.address, state, name, max_records_per_batch=27
        )
        app.run_once()
        assert app.failure is None
    sink = next(node for node in topology.nodes if node.kind == "sink" and "tallies" in node.topics)
    keys, values = sink.key_serde, sink.value_serde
    assert keys is not None and values is not None
    found = [
        (r.key(), values.deserialize(r.value()), r.timestamp()[1])
        for r in consumed(broker.address, "tallies")
    ]
    wanted = [(keys.serialize(r.key), r.value, r.timestamp_ms) for r in driver.read_all("tallies")]
    if name == "final":
        assert sorted(found) == sorted(wanted) and len(wanted) > 5
    else:
        assert len(found) < len(wanted)
        assert {key: row for key, *row in found} == {key: row for key, *row in wanted}


def added_where_it_is_read(name: str) -> StreamsTopology:
    builder = StreamsBuilder(value=STRING if name == "regrouped" else LONG)
    amounts = builder.stream("amounts")
    match name:
        case "sums":
            table: Any = amounts.group_by_key().aggregate(
                count=Count(), total=Sum(col("value")), last=Last(col("value")), store="added"
            )
        case "regrouped":
            table = amounts.group_by(lambda key, value: (value or "no")[-1:]).count(store="added")
        case _:
            windows = TimeWindows.of(100, grace_ms=50)
            counts = amounts.group_by_key().windowed_by(windows).count()
            table = counts.suppress_until_window_closes()
    table.to_stream().to("added")
    return builder.build()


@pytest.mark.parametrize("name", ["sums", "regrouped", "final"])
def test_what_is_added_up_where_it_is_read_is_what_the_test_driver_adds_up(
    spark: SparkSession,
    broker: BrokerProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """No row of a record goes to the JVM: the way through it is closed."""
    topology, chance = added_where_it_is_read(name), random.Random(name)
    last = native_tally(cut(topology)[-1].topology)
    assert last is not None and adds_up_what_is_read(last)
    monkeypatch.delattr(TallyRows, "taken")
    create(broker.address, "amounts", "added")
    feed, driver, at_ms = Feed(broker.address), TestDriver(topology), FIRST_MS
    for part in range(2):
        for _ in range(40):
            at_ms += chance.choice((0, 1, 5, 30))
            key, number = chance.choice("abc"), chance.choice((None, 5, -60, 2**62))
            late_ms = at_ms - chance.choice((0, 0, 3, 40, 300))
            value = number if name != "regrouped" or number is None else str(number)
            data = value.to_bytes(8, "big", signed=True) if isinstance(value, int) else value
            feed.put("amounts", key, data, late_ms)
            driver.pipe_input("amounts", key, value, late_ms)
        feed.flush()
        app = application(
            spark,
            added_where_it_is_read(name),
            broker.address,
            tmp_path,
            f"added-{name}",
            (__name__,),
            max_records_per_batch=27,
        )
        app.run_once()
        assert app.failure is None, part
    sink = next(node for node in topology.nodes if node.kind == "sink" and "added" in node.topics)
    keys, values = sink.key_serde, sink.value_serde
    assert keys is not None and values is not None
    found = [
        (r.key(), values.deserialize(r.value()), r.timestamp()[1])
        for r in consumed(broker.address, "added")
    ]
    wanted = [(keys.serialize(r.key), r.value, r.timestamp_ms) for r in driver.read_all("added")]
    if name == "final":
        assert sorted(found) == sorted(wanted) and len(wanted) > 5
    else:
        assert {key: row for key, *row in found} == {key: row for key, *row in wanted}


def test_a_record_that_cannot_be_read_stops_what_adds_up_where_it_reads(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    builder = StreamsBuilder(value=LONG)
    builder.stream("unclear").group_by_key().count().to_stream().to("clear")
    create(broker.address, "unclear", "clear")
    feed = Feed(broker.address)
    feed.put("unclear", "k", bytes(8), 1_000_000)
    feed.put("unclear", "k", "many", 1_000_000)
    feed.flush()
    app = application(spark, builder.build(), broker.address, tmp_path, "stops-reading")
    app.run_once()
    assert app.failure is not None and "unclear-0@1 cannot be read: the value" in app.failure
    assert not consumed(broker.address, "clear")
