"""The functions of pipelines on frames made by hand: no broker, no stream, only rows."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.processes import ROOT

from penstock.demo.prices import averages
from penstock.pipelines import Pipeline
from penstock.pipelines.files import load_file
from penstock.pipelines.queries import newest_of_each_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-02T{clock}").replace(tzinfo=UTC)


def example(name: str, pipeline: str) -> Pipeline:
    loaded = load_file(ROOT / "examples" / Path(name))
    return next(one for one in loaded if one.name == pipeline)


def test_averages_and_highs_are_kept_for_each_stock_and_window(spark: "SparkSession") -> None:
    prices = spark.createDataFrame(
        [
            (at("09:00:01"), 10, 50, "IBM"),
            (at("09:00:04"), 11, 0, "IBM"),
            (at("09:00:05"), 12, 0, "IBM"),
            (at("09:00:02"), 3, 25, "SUN"),
        ],
        "timestamp TIMESTAMP, dollars LONG, cents LONG, name STRING",
    )
    rows = averages(prices).collect()
    found = {(r.name, r.average, r.high, r.low, r.prices) for r in rows}
    assert found == {
        ("IBM", 10.75, 11.0, 10.5, 2),
        ("IBM", 12.0, 12.0, 12.0, 1),
        ("SUN", 3.25, 3.25, 3.25, 1),
    }


def test_half_an_hour_without_a_click_ends_a_visit(spark: "SparkSession") -> None:
    clicks = spark.createDataFrame(
        [
            ("ada", "/b", at("09:29:00")),
            ("ada", "/a", at("09:00:00")),
            ("ada", "/", at("10:00:00")),
        ],
        "person STRING, page STRING, at TIMESTAMP",
    )
    sessions = example("website_sessions.py", "website-sessions")
    rows = {(tuple(r.pages), r.seconds) for r in sessions(clicks).collect()}
    assert rows == {(("/a", "/b"), 29 * 60), (("/",), 0)}


def test_an_alert_needs_three_errors_in_one_minute(spark: "SparkSession") -> None:
    def logs(*clocks: str) -> int:
        lines = [("shop", "ERROR", "bad", at(clock)) for clock in clocks]
        frame = spark.createDataFrame(
            lines, "service STRING, level STRING, text STRING, at TIMESTAMP"
        )
        return example("log_alerts.py", "log-alerts")(frame).count()

    assert logs("09:00:00", "09:00:30", "09:01:00") == 0
    assert logs("09:00:00", "09:00:30", "09:00:59") == 1


def test_a_topic_as_a_table_has_the_newest_value_of_each_key(spark: "SparkSession") -> None:
    records = spark.createDataFrame(
        [(b"a", b"1", 0), (b"b", b"1", 1), (b"a", b"2", 2), (b"b", None, 3)],
        "key BINARY, value BINARY, offset LONG",
    )
    rows = newest_of_each_key(records).collect()
    assert [(bytes(r.key), bytes(r.value)) for r in rows] == [(b"a", b"2")]
