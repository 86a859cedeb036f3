"""The demo's pipeline: average and high of each stock in windows of five seconds.

An ordinary pipeline; the file could be run with `penstock pipeline run`. A window is written once,
when no price for it can come any more: three seconds after its end, by the prices' own time. The
same rows go to a compacted topic (the newest window of each stock) and to a Delta table (all).
"""

from typing import TYPE_CHECKING

from penstock.pipelines import Pipeline, Table, Topic, pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW = "5 seconds"
LATENESS = "3 seconds"
PRICES = Topic(
    "stock-prices",
    value="dollars LONG, cents LONG, name STRING",
    partitions=4,
    configs={"retention.ms": "86400000"},
)
AVERAGES = Topic("stock-averages", key="name", partitions=2, configs={"cleanup.policy": "compact"})


def averages(prices: "DataFrame") -> "DataFrame":
    """Average, high and low in dollars for each stock and window, from records in time."""
    from pyspark.sql import functions as F

    dollars = (F.col("dollars") * 100 + F.col("cents")) / 100
    return (
        prices.withWatermark("timestamp", LATENESS)
        .groupBy(F.window("timestamp", WINDOW), "name")
        .agg(
            F.round(F.avg(dollars), 4).alias("average"),
            F.max(dollars).alias("high"),
            F.min(dollars).alias("low"),
            F.count("*").alias("prices"),
        )
        .select(
            "name",
            F.col("window.start").alias("window_start"),
            F.col("window.end").alias("window_end"),
            "average",
            "high",
            "low",
            "prices",
        )
    )


def stock_averages(table: str) -> Pipeline:
    """The pipeline with its Delta table at a path."""
    declare = pipeline(
        name="stock-averages",
        inputs={"prices": PRICES},
        outputs=[AVERAGES, Table(table)],
        trigger="1 second",
    )
    return declare(averages)
