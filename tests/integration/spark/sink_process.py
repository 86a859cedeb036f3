"""A driver to be killed: it carries one topic to another, exactly once, until it is stopped.

    python -m tests.integration.spark.sink_process BOOTSTRAP DIRECTORY

Tasks are tried four times, so the loss of a Python worker costs an attempt and not the query.
"""

import sys
from pathlib import Path

from penstock.spark import session

INPUT, OUTPUT = "input", "output"
ROWS_PER_BATCH = 2_000


def main(address: str, directory: Path) -> None:
    """Runs for as long as it lives."""
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
    rows = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", INPUT)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", ROWS_PER_BATCH)
        .load()
    )
    query = (
        rows.selectExpr("key", "value")
        .writeStream.format("penstock")
        .option("kafka.bootstrap.servers", address)
        .option("topic", OUTPUT)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
