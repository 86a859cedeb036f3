"""A session of queries on a real Spark: one is added while another runs, which is then removed."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.support.broker import BrokerProcess
from tests.support.pipelines import records_of
from tests.support.spark_topics import Topic
from tests.support.waiting import eventually

from penstock.client.wire.raw_cluster import cluster_for
from penstock.queries.lag import LagReader
from penstock.queries.query import NewQuery, Query
from penstock.queries.session import LOOK_S, QuerySession
from penstock.spark.start.quiet import CHATTY, hush_batches

pytestmark = pytest.mark.timeout(300)

WAIT_S = 120


@dataclass
class SharedSpark:
    """The session of all tests, which outlives this one's."""

    spark: SparkSession
    is_alive: bool = True

    def stop(self) -> None:
        self.is_alive = False


def copy(broker: BrokerProcess, folder: Path, name: str) -> NewQuery:
    """A query that copies the topic `in` to a topic of its own name."""
    checkpoint, bootstrap = folder / name, {"kafka.bootstrap.servers": broker.address}

    def start(spark: SparkSession) -> Query:
        reader = spark.readStream.format("penstock").options(**bootstrap, subscribe="in")
        reader = reader.option("startingOffsets", "earliest").option("kafka.group.id", name)
        rows = reader.option("checkpointLocation", str(checkpoint)).load()
        writer = rows.select("key", "value").writeStream.format("penstock").queryName(name)
        writer = writer.options(**bootstrap, topic=name, checkpointLocation=str(checkpoint))
        return writer.trigger(processingTime="200 milliseconds").start()

    return NewQuery(
        name=name, topics=["in"], output=name, group=name, checkpoint=checkpoint, start=start
    )


def names_of_active(spark: SparkSession) -> set[str | None]:
    """Of the two, those that Spark runs."""
    return {one.name for one in spark.streams.active} & {"first", "second"}


def test_a_query_is_added_while_another_runs_and_goes_on_when_that_is_removed(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    source = Topic(broker.port, "in")
    for name in ("first", "second"):
        Topic(broker.port, name)
    said: list[str] = []
    session = QuerySession(
        lambda _: SharedSpark(spark),
        report=said.append,
        open_lags=lambda: LagReader(cluster_for({"bootstrap.servers": broker.address})),
    )
    stop = threading.Event()

    def looked_until(true: Callable[[], bool], what: str) -> None:
        def look() -> bool:
            session.look(stop)
            return true()

        eventually(look, timeout_s=WAIT_S, every_s=LOOK_S, what=f"{what}: {said}")

    def values(topic: str) -> list[bytes | None]:
        return [value for _, value in records_of(broker.address, topic)]

    session.start(stop)
    try:
        session.add(copy(broker, tmp_path, "first"))
        source.put([b"a"])
        looked_until(lambda: values("first") == [b"a"], "the first copies")

        session.add(copy(broker, tmp_path, "second"))
        looked_until(lambda: values("second") == [b"a"], "the second copies from the beginning")
        source.put([b"b"])
        looked_until(lambda: values("first") == values("second") == [b"a", b"b"], "both copy")

        session.remove("first")
        looked_until(lambda: list(session.statuses) == ["second"], "the first is gone")
        assert names_of_active(spark) == {"second"}
        source.put([b"c"])
        looked_until(lambda: values("second") == [b"a", b"b", b"c"], "the second goes on")
        looked_until(lambda: session.statuses["second"].lag == 0, "its lag is known")
        assert values("first") == [b"a", b"b"]
        assert session.statuses["second"].restarts == 0, said
    finally:
        session.end()
    assert names_of_active(spark) == set() and session.statuses["second"].state == "stopped"


def test_spark_does_not_warn_of_every_batch(spark: SparkSession) -> None:
    hush_batches(spark)
    logs = spark.sparkContext._jvm.org.apache.logging.log4j.LogManager  # type: ignore[union-attr]
    shown = [name for name in CHATTY if logs.getLogger(name).isWarnEnabled()]
    assert shown == []
    assert logs.getLogger("org.apache.spark.sql.execution").isWarnEnabled()
