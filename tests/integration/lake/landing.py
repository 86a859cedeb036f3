"""A driver to be killed: it lands one topic in a table of each kind until it is told to finish.

    python -m tests.integration.lake.landing BOOTSTRAP DIRECTORY

A query that fails is started again. SIGTERM: land what is there, and end. Tasks are tried four
times, so the loss of a Python worker costs an attempt and not the query.
"""

import json
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from penstock import lake
from penstock.lake.errors import LakeError
from penstock.lake.query import LakeQuery
from penstock.spark import session

TOPIC = "landed"
APPENDED = ("delta", "iceberg", "parquet")
MERGED = "merged"
OFTEN = "200 milliseconds"

Starts = dict[str, Callable[[], LakeQuery]]


def dead_letters_of(kind: str) -> str:
    """The topic for what cannot be landed in the table of this kind."""
    return f"dead.{kind}"


def starts_of(spark: SparkSession, address: str, directory: Path) -> Starts:
    """How each table's query is started."""

    def land(kind: str) -> LakeQuery:
        return lake.sync(
            TOPIC,
            to=directory / kind,
            bootstrap=address,
            format=kind,
            value_format="json",
            dead_letter_topic=dead_letters_of(kind),
            every=OFTEN,
            max_records_per_batch=5000,
            small_files_max=3,
            spark=spark,
        )

    def merge() -> LakeQuery:
        records = (
            spark.readStream.format("penstock")
            .option("kafka.bootstrap.servers", address)
            .option("subscribe", TOPIC)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", 5000)
            .load()
        )
        key = f.get_json_object(f.col("value").cast("string"), "$.k").alias("k")
        counted = records.select(key).where("k IS NOT NULL").groupBy("k").count()
        return lake.table(
            counted, to=directory / MERGED, merge_on=["k"], every=OFTEN, small_files_max=3
        )

    starts: Starts = {kind: lambda kind=kind: land(kind) for kind in APPENDED}  # type: ignore[misc]
    return {**starts, MERGED: merge}


def keep_running(starts: Starts, orders: Path, stop: threading.Event) -> dict[str, LakeQuery]:
    """Until the signal comes; then the queries as they are."""
    running: dict[str, LakeQuery] = {}
    patience_until_s = 0.0
    while not stop.wait(0.1):
        begins = any(one.isActive and one.lastProgress is None for one in running.values())
        if begins and time.monotonic() < patience_until_s:
            continue  # Spark gives a query's Python ten seconds to start: one at a time.
        name = next((n for n in in_order(starts, orders) if not is_up(running.get(n))), None)
        if name is not None:
            if name in running:
                print(f"{name} failed: {running[name].exception()}", flush=True)
            running[name] = starts[name]()
            patience_until_s = time.monotonic() + 20
    return running


def in_order(starts: Starts, orders: Path) -> list[str]:
    """The table that a strike waits for is not to wait for the others to start."""
    try:
        wanted = json.loads((orders / "order").read_text())["table"]
    except FileNotFoundError:
        return list(starts)
    return sorted(starts, key=lambda name: name != wanted)


def is_up(query: LakeQuery | None) -> bool:
    return query is not None and query.isActive


def finish(query: LakeQuery | None, start: Callable[[], LakeQuery], name: str) -> None:
    """All that is in the topic, whatever goes wrong on the way."""
    for _ in range(10):
        try:
            query = query if query is not None and query.isActive else start()
            query.processAllAvailable()
            query.stop()
            return
        except LakeError as error:
            print(f"{name} failed: {error}", flush=True)
            query = None
    raise SystemExit(f"{name} does not get to the end")


def main(address: str, directory: Path) -> None:
    """Runs for as long as it lives."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    spark = session(
        "to be killed",
        master="local[2,4]",
        conf={
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.local.dir": str(directory / "local"),
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
        },
    )
    starts = starts_of(spark, address, directory)
    running = keep_running(starts, directory / "orders", stop)
    for name, start in starts.items():
        finish(running.get(name), start, name)
    spark.stop()


if __name__ == "__main__":
    if "sitecustomize" in sys.modules and hasattr(sys.modules["sitecustomize"], "arrange_commits"):
        sys.modules["sitecustomize"].arrange_commits()  # Merges are committed in this process.
    main(sys.argv[1], Path(sys.argv[2]))
