"""A driver to be killed: totals in update mode, from one topic to another, exactly once.

    python -m tests.integration.pipelines.update_process BOOTSTRAP DIRECTORY STEP

STEP is where it kills itself and Spark with SIGKILL: "before" or "after" the write of the first
batch that it is given, or "never"; then it ends when it has read everything.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock.pipelines.update_sink import UpdateSink, write_batches
from penstock.spark import session

INPUT, OUTPUT = "amounts", "totals"


def die() -> None:
    """The driver first, so that it does not see Spark go."""
    below = psutil.Process().children(recursive=True)
    pid = os.fork()
    if pid:  # The parent is killed by the child, which then kills the rest.
        os.waitpid(pid, 0)
    os.kill(os.getppid(), signal.SIGKILL)
    for one in below:
        one.kill()
    os._exit(0)


def striking(
    write: Callable[[DataFrame, int], None], step: str
) -> Callable[[DataFrame, int], None]:
    def wrapped(batch: DataFrame, batch_id: int) -> None:
        if step == "before":
            die()
        write(batch, batch_id)
        if step == "after":
            die()

    return wrapped


def main(address: str, directory: Path, step: str) -> None:
    spark = session(
        "to be killed",
        master="local[2]",
        conf={
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.local.dir": str(directory / "local"),
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
        },
    )
    spark.dataSource.register(UpdateSink)
    amounts = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", INPUT)
        .option("startingOffsets", "earliest")
        .load()
    )
    total = amounts.groupBy("key").agg(f.sum(f.col("value").cast("string").cast("long")).alias("n"))
    records = total.select("key", f.col("n").cast("string").cast("binary").alias("value"))
    write = write_batches({"kafka.bootstrap.servers": address, "topic": OUTPUT})
    query = (
        records.writeStream.outputMode("update")
        .foreachBatch(striking(write, step))
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
