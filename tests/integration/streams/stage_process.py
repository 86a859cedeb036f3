"""An application to be killed: it counts by key, exactly once, until it is stopped.

    python -m tests.integration.streams.stage_process BOOTSTRAP DIRECTORY

Tasks are tried four times, so the loss of a Python worker costs an attempt and not the query.
"""

import sys
from pathlib import Path

from penstock.streams import LONG, STRING, KafkaStreams, StreamsBuilder, StreamsTopology

INPUT, OUTPUT, APPLICATION = "input", "output", "killed"


def counting() -> StreamsTopology:
    """One stage with state, an output and a changelog."""
    builder = StreamsBuilder(value=STRING)
    counts = builder.stream(INPUT).group_by_key().count(store="counts")
    counts.to_stream().to(OUTPUT, value=LONG)
    return builder.build()


def main(address: str, directory: Path) -> None:
    """Runs for as long as it lives."""
    app = KafkaStreams(
        counting(),
        {
            "application.id": APPLICATION,
            "bootstrap.servers": address,
            "state.dir": str(directory / "state"),
            "max.records.per.batch": 2_000,
        },
        master="local[2,4]",
        conf={
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "spark.local.dir": str(directory / "local"),
        },
        report=lambda sentence: print(sentence, flush=True),
    )
    app.start()
    app.wait()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
