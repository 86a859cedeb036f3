"""Our streams at the works of the bench, in one Spark session that gets warm.

A line "work application input output records" on standard input is one run, and a line "seconds
cpu-seconds" on standard output its answer: from the first batch that was planned to the last that
was committed, and the processor time of all processes of the engine meanwhile.
"""

import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.queries.session import SparkProcess
from penstock.streams import (
    LONG,
    STRING,
    KafkaStreams,
    StreamsBuilder,
    StreamsTopology,
    TimeWindows,
    col,
    concat,
)

CORES = 2
TICKS_S = os.sysconf("SC_CLK_TCK")


@dataclass
class WarmSpark:
    """A session that outlives its applications."""

    spark: Any
    is_alive: bool = True

    def stop(self) -> None:
        """Nothing: the next run wants it."""


def topology(work: str, source: str, output: str) -> StreamsTopology:
    """The same as the peer's."""
    builder = StreamsBuilder(value=STRING)
    if work == "join":
        table = builder.table(f"{source}-table")
        joined = builder.stream(source).join_table(table, lambda value, row: value[:12] + row)
        joined.to(output, value=STRING)
        return builder.build()
    stream = builder.stream(source)
    if work == "map":
        taken = stream.filter(col("value").substring(12, 1) < "5")
        taken.map_values(concat(col("value").substring(1, 40).upper(), "!")).to(output)
    elif work == "count":
        stream.group_by_key().count(store="counts").to_stream().to(output)
    elif work == "aggregate":
        lengths = stream.group_by_key().aggregate(
            lambda: 0, lambda key, value, total: total + len(value), value=LONG
        )
        lengths.to_stream().to(output, value=LONG)
    else:
        windows = TimeWindows.of(10_000, grace_ms=1_000)
        counts = stream.group_by_key().windowed_by(windows).count()
        counts.suppress_until_window_closes().to_stream().to(output)
    return builder.build()


def run(engine: SparkProcess, address: str, state: Path, words: list[str]) -> tuple[float, float]:
    """One application, from nothing to the end of its input."""
    work, name, source, output, _ = words
    config = {"application.id": name, "bootstrap.servers": address, "state.dir": str(state)}
    app = KafkaStreams(
        topology(work, source, output), config, start_engine=lambda stop: engine, restarts_max=0
    )
    watch = BatchWatch(app.folder.checkpoint(0))
    watch.start()
    app.run_once()
    watch.has_ended.set()
    watch.join()
    if app.failure:
        raise RuntimeError(app.failure)
    return watch.ended_s - watch.begun_s, watch.ended_cpu_s - watch.begun_cpu_s


class BatchWatch(threading.Thread):
    """Notes time and processor time when the first batch was planned and when the last was done."""

    def __init__(self, stage: Path) -> None:
        super().__init__(daemon=True)
        self.first, self.commits = stage / "offsets" / "0", stage / "commits"
        self.has_ended = threading.Event()
        self.begun_s = self.begun_cpu_s = self.ended_s = self.ended_cpu_s = 0.0

    def run(self) -> None:
        """Look until the application has ended."""
        while not self.first.exists() and not self.has_ended.wait(0.005):
            pass
        self.begun_cpu_s = tree_cpu_s()
        self.begun_s = self.first.stat().st_mtime
        done = 0
        while True:
            has_ended = self.has_ended.wait(0.02)  # Kafka Streams is asked as often.
            found = list(self.commits.glob("[0-9]*"))
            if len(found) > done:
                self.ended_cpu_s, done = tree_cpu_s(), len(found)
                self.ended_s = max(file.stat().st_mtime for file in found)
            if has_ended:
                return


def tree_cpu_s() -> float:
    """The processor time of this process and all below it."""
    ticks, parents = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                cells = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            pid = int(entry.name)
            parents[pid] = int(cells[1])
            ticks[pid] = sum(map(int, cells[11:15]))  # With children that have ended.
    return sum(ticks[pid] for pid in ticks if _is_below(pid, parents)) / TICKS_S


def _is_below(pid: int, parents: dict[int, int]) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = parents.get(pid, 0)
    return False


def main(address: str, state: Path) -> None:
    """Runs as they are asked for."""
    from penstock.spark import session

    conf = {
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(state / "local"),
    }
    spark = session("bench", master=f"local[{CORES}]", conf=conf)
    spark.sparkContext.setLogLevel("ERROR")
    for line in sys.stdin:
        seconds, cpu_s = run(WarmSpark(spark), address, state, line.split())
        print(seconds, cpu_s, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
