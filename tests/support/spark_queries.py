"""Streaming queries of tests: started, watched batch by batch, and stopped."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from tests.support.processes import ServerProcess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class Seen:
    """The rows of a query, batch by batch, as a sink gets them."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[str, int, int]]] = {}
        self.lock = Lock()

    def take(self, rows: "DataFrame", batch_id: int) -> None:
        found = [(row.topic, row.partition, row.offset) for row in rows.collect()]
        with self.lock:
            self.batches[batch_id] = found

    @property
    def rows(self) -> list[tuple[str, int, int]]:
        with self.lock:
            return sorted(row for batch in self.batches.values() for row in batch)


def stream(spark: "SparkSession", broker: ServerProcess, **options: str) -> "DataFrame":
    reader = spark.readStream.format("penstock").option("kafka.bootstrap.servers", broker.address)
    return (
        reader.options(startingOffsets="earliest", columns="topic,partition,offset")
        .options(**options)
        .load()
    )


def run_available(frame: "DataFrame", checkpoint: Path, seen: Seen) -> "StreamingQuery":
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint))
    query = writer.foreachBatch(seen.take).trigger(availableNow=True).start()
    query.awaitTermination(60)
    assert not query.isActive
    return query


@contextmanager
def running(frame: "DataFrame", checkpoint: Path, seen: Seen) -> Iterator["StreamingQuery"]:
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint))
    query = writer.foreachBatch(seen.take).start()
    try:
        yield query
    finally:
        query.stop()
