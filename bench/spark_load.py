"""One Spark session that runs the same job with our format and the official connector, in turn.

A session takes seconds to start and runs to become fast, so unlike the other loads a whole row is
one process: it warms up, plays the rounds, and prints a line of JSON with the figures of each.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from confluent_kafka import Producer
from tests.support.spark_connector import connector_conf

from bench.plan import alternate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OURS, OFFICIAL, TRANSPORT = "penstock", "official", "raw"
FORMATS = {OURS: "penstock", OFFICIAL: "kafka"}
CORES = 2
WARM_UP, EMPTY_TRIGGERS = 3, 10
Figures = dict[str, list[float]]


class Jobs:
    """The jobs of the table, on one session and one topic; each gives rows per second."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.address = str(options.address)
        self.topic = str(options.topic)
        self.rows = int(options.rows)
        self.record_bytes = int(options.record_bytes)
        self.rounds = int(options.rounds)
        self.directory = Path(options.directory)
        from penstock.spark import session

        conf = {
            "spark.driver.memory": "1g",
            "spark.ui.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            # Triggers that found nothing are reported too, but not all of a hundred a second.
            "spark.sql.streaming.noDataProgressEventInterval": "200",
            "spark.sql.streaming.numRecentProgressUpdates": "2000",
            **connector_conf(),
        }
        self.has_official = "spark.jars" in conf
        self.spark: SparkSession = session("bench", master=f"local[{CORES}]", conf=conf)
        self.spark.sparkContext.setLogLevel("ERROR")

    def turns(self, runs: dict[str, Callable[[], float]]) -> Figures:
        """Each in turn, round after round; without the connector's where it is not to be had."""
        if not self.has_official:
            runs = {name: run for name, run in runs.items() if not name.startswith(OFFICIAL)}
        return alternate(runs, rounds=self.rounds)

    def read(self, name: str, more: str = "") -> "DataFrame":
        """The topic, or one whose name goes on so, from its start to its end."""
        options = {"kafka.bootstrap.servers": self.address, "subscribe": self.topic + more}
        return self.spark.read.format(FORMATS[name]).options(**options).load()

    def stream(self, name: str, **more: int) -> "DataFrame":
        """The topic as a stream."""
        reader = self.spark.readStream.format(FORMATS[name])
        reader = reader.option("kafka.bootstrap.servers", self.address)
        reader = reader.option("subscribe", self.topic).option("startingOffsets", "earliest")
        return reader.options(**more).load()

    def source(self) -> Figures:
        """Topic to noop, and the limit of the way from Python to the JVM."""
        return self.turns(
            {
                OURS: lambda: self.timed(lambda: drained(self.read(OURS))),
                TRANSPORT: lambda: self.timed(lambda: drained(self.transport())),
                OFFICIAL: lambda: self.timed(lambda: drained(self.read(OFFICIAL))),
            }
        )

    def transport(self) -> "DataFrame":
        """The same rows without a topic."""
        from bench.spark_transport import TransportSource

        self.spark.dataSource.register(TransportSource)
        amounts = {"rows": self.rows, "tasks": CORES, "recordBytes": self.record_bytes}
        return self.spark.read.format("transport").options(**amounts).load()

    def scale(self) -> Figures:
        """Seconds for three topics: one, one with more records, one with more partitions."""

        def run(name: str, more: str) -> Callable[[], float]:
            return lambda: self.rows / self.timed(lambda: drained(self.read(name, more)))

        sizes = ("-small", "-data", "-partitions")
        return self.turns({name + size: run(name, size) for name in FORMATS for size in sizes})

    def sink(self) -> Figures:
        """Rows that Spark holds in memory to a topic."""
        text = f"rpad(string(id), {self.record_bytes}, 'x')"
        held = self.spark.range(0, self.rows, 1, CORES).selectExpr(f"encode({text}, 'utf-8') value")
        held = held.cache()
        held.count()

        def write(name: str, **more: str) -> float:
            options = {"kafka.bootstrap.servers": self.address, "topic": self.topic, **more}
            writer = held.write.format(FORMATS[name]).mode("append").options(**options)
            return self.timed(writer.save)

        return self.turns(
            {
                OURS: lambda: write(OURS, delivery="at-least-once"),
                f"{OURS} exactly-once": lambda: write(OURS, delivery="exactly-once"),
                OFFICIAL: lambda: write(OFFICIAL),
            }
        )

    def windows(self) -> Figures:
        """Topic to windowed counts to topic, all there is, in five micro-batches."""
        from pyspark.sql import functions as F

        def run(name: str, **more: str) -> float:
            stream = self.stream(name, maxOffsetsPerTrigger=max(1, self.rows // 5))
            # The load's records are all alike; their offsets make a thousand keys and time go on.
            at = "timestampadd(SECOND, int(offset div 10000), timestamp) as at"
            keyed = stream.selectExpr(at, "offset % 1000 as bucket").withWatermark("at", "1 second")
            counted = keyed.groupBy(F.window("at", "10 seconds"), "bucket").count()
            out = counted.selectExpr("to_json(struct(window, bucket)) key", "string(count) value")
            options = {"kafka.bootstrap.servers": self.address, "topic": f"{self.topic}-out"}
            writer = out.writeStream.format(FORMATS[name]).outputMode("append")
            writer = writer.options(**options, **more)
            return self.timed(lambda: self.finish(writer))

        return self.turns(
            {
                OURS: lambda: run(OURS, delivery="exactly-once"),
                f"{OURS} at-least-once": lambda: run(OURS, delivery="at-least-once"),
                OFFICIAL: lambda: run(OFFICIAL),
            }
        )

    def lake(self) -> Figures:
        """Topic to Delta table, all there is."""
        from penstock import lake

        def run() -> float:
            to = self.fresh()
            return self.timed(
                lambda: lake.sync(
                    self.topic, to=to, bootstrap=self.address, once=True, spark=self.spark
                ).awaitTermination()
            )

        return self.turns({OURS: run})

    def micro(self) -> Figures:
        """Median times of triggers in ms: without a record, with ten, and ten on to a topic."""
        found: Figures = {}
        for _ in range(self.rounds):
            for name in (OURS, OFFICIAL):
                if name in FORMATS and (name == OURS or self.has_official):
                    empty, ten = self.triggers(name, to_topic=False)
                    _, on = self.triggers(name, to_topic=True)
                    found.setdefault(f"{name} empty", []).append(empty)
                    found.setdefault(f"{name} ten", []).append(ten)
                    found.setdefault(f"{name} on", []).append(on)
        return found

    def triggers(self, name: str, *, to_topic: bool) -> tuple[float, float]:
        """The medians of one running query."""
        options = {"kafka.bootstrap.servers": self.address, "topic": f"{self.topic}-out"}
        stream = self.stream(name).select("key", "value").writeStream
        writer = (
            stream.format(FORMATS[name]).options(**options) if to_topic else stream.format("noop")
        )
        query = writer.option("checkpointLocation", str(self.fresh())).start()
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 0})
        try:
            wait_for(lambda: query.lastProgress is not None)
            for _ in range(self.rows):
                before = batches_done(query)
                for number in range(10):
                    producer.produce(self.topic, f"record {number}".encode(), partition=0)
                producer.flush(30)
                wait_for(lambda seen=before: batches_done(query) > seen)  # type: ignore[misc]
            wait_for(lambda: len(reports(query, filled=False)) > WARM_UP + EMPTY_TRIGGERS)
            filled, empty = reports(query, filled=True), reports(query, filled=False)
        finally:
            query.stop()
        # The first batches start workers and compile code.
        return statistics.median(empty[WARM_UP:]), statistics.median(filled[WARM_UP:])

    def finish(self, writer: "object") -> None:
        """Run a stream over all there is, from its own beginning."""
        started = writer.option("checkpointLocation", str(self.fresh()))  # type: ignore[attr-defined]
        started.trigger(availableNow=True).start().awaitTermination()

    def timed(self, run: Callable[[], object]) -> float:
        """Rows per second."""
        before_s = time.perf_counter()
        run()
        return self.rows / (time.perf_counter() - before_s)

    def fresh(self) -> Path:
        """A directory that nobody used."""
        return self.directory / uuid4().hex


def drained(frame: "DataFrame") -> None:
    """Read all of it into nothing."""
    frame.write.format("noop").mode("overwrite").save()


def batches_done(query: "StreamingQuery") -> int:
    """How many batches with records are done; one without bears the number of the next."""
    failure = query.exception()
    if failure is not None:
        raise RuntimeError(str(failure))
    last = query.lastProgress
    if last is None:
        return 0
    return int(last["batchId"]) + (1 if last["numInputRows"] else 0)


def reports(query: "StreamingQuery", *, filled: bool) -> list[float]:
    """How many ms the triggers took, those with records or those without."""
    kept = [one for one in query.recentProgress if bool(one["numInputRows"]) == filled]
    return [float(one["durationMs"]["triggerExecution"]) for one in kept]


def wait_for(look: Callable[[], bool]) -> None:
    """Look again and again, for a minute at most."""
    give_up_s = time.monotonic() + 60
    while not look():
        if time.monotonic() > give_up_s:
            raise RuntimeError("the stream took no record for a minute")
        time.sleep(0.01)


def main() -> None:
    """Play the rounds of one row and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=["source", "sink", "windows", "lake", "micro", "scale"])
    parser.add_argument("--address", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--record-bytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", required=True)
    options = parser.parse_args()
    jobs = Jobs(options)
    try:
        figures: Figures = getattr(jobs, options.work)()
    finally:
        jobs.spark.stop()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
