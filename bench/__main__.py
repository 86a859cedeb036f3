"""`make bench`, or `python -m bench`: measure, print the table, leave the JSON.

    python -m bench                       the usual amounts, about fifteen minutes with Kafka
    python -m bench --quick               every row once with little data
    python -m bench --full                the amounts of docs/benchmarks.md: 20 GB stored
    python -m bench --rows produce-small,latency --rounds 7 --no-kafka

All traffic stays on the loopback interface. Data goes to a temporary directory below --directory
and is deleted at the end. Subjects take turns, and ratios are medians of neighbouring rounds,
because a shared machine is never equally fast twice.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tests.support.apache_kafka import CURRENT
from tests.support.outside import REPORT, missing
from tests.support.processes import ROOT

from bench.plan import FULL, QUICK, USUAL, Plan
from bench.report import Row, machine, save, table
from bench.rows import (
    capture,
    compaction,
    connect,
    connect_tasks,
    crowd,
    fetch,
    groups,
    latency,
    librdkafka,
    mirror,
    process,
    produce,
    registry,
    replication,
    rest,
    scale,
    security,
    spark,
    sql,
    streams,
    transactions,
    up,
    validation,
)
from bench.subjects import Subjects, fresh

Measure = Callable[[Plan, Subjects], Iterator[Row]]
ROWS: dict[str, Measure] = {
    "produce-large": produce.large,
    "produce-small": produce.small,
    "crowd-small": crowd.small,
    "crowd-large": crowd.large,
    "crowd-tail": crowd.tail,
    "crowd-commits": crowd.commits,
    "fetch-tail": fetch.caught_up,
    "fetch-start": fetch.from_start,
    "latency": latency.one_record,
    "start-up": process.start_up,
    "memory": process.memory,
    "up": up.up,
    "partitions": scale.partitions,
    "stored": scale.stored,
    "librdkafka": librdkafka.both_ways,
    "commits": groups.commits,
    "rebalance": groups.rebalance,
    "transactions": transactions.transactions,
    "read-committed": transactions.read_committed,
    "compaction": compaction.compaction,
    "validation": validation.by_id,
    "acls": security.with_rules,
    "tls": security.encrypted,
    "tls-latency": security.round_trip,
    "tls-connects": security.connects,
    "cluster-produce": replication.produce,
    "cluster-failover": replication.failover,
    "cluster-controller": replication.controller,
    "cluster-catch-up": replication.catch_up,
    "cluster-idle": replication.idle,
    "rest-stream": rest.streamed,
    "rest-v2": rest.version_2,
    "rest-readers": rest.readers,
    "registry-get": registry.by_id,
    "registry-register": registry.register,
    "registry-start": registry.start,
    "spark-source": spark.source,
    "spark-sink": spark.sink,
    "spark-windows": spark.windows,
    "spark-delta": spark.delta,
    "spark-micro": spark.micro,
    "spark-scale": spark.scale,
    "streams-map": streams.mapped,
    "streams-count": streams.counted,
    "streams-join": streams.joined,
    "streams-windows": streams.windowed,
    "streams-lookup": streams.looked_up,
    "streams-scale": streams.scaled,
    "connect-source": connect.source,
    "connect-sink": connect.sink,
    "connect-objects": connect.objects,
    "connect-capture": capture.latency,
    "connect-idle": connect_tasks.idle,
    "connect-killed": connect_tasks.killed,
    "mirror": mirror.mirror,
    "sql-map": sql.mapped,
    "sql-count": sql.counted,
    "sql-windows": sql.windowed,
    "sql-pull": sql.pulled,
    "sql-push": sql.pushed,
    "sql-begin": sql.begun,
}
DISK_SPARE_BYTES = 4_000_000_000


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    amounts = parser.add_mutually_exclusive_group()
    amounts.add_argument("--quick", action="store_true", help="little data, one round")
    amounts.add_argument("--full", action="store_true", help="10 GB produced, 20 GB stored")
    parser.add_argument("--rows", default="", help=f"some of: {','.join(ROWS)}")
    parser.add_argument("--rounds", type=int, default=0, help="rounds per subject")
    parser.add_argument("--no-kafka", action="store_true", help="leave Apache Kafka out")
    parser.add_argument("--directory", type=Path, default=None, help="where data may go")
    parser.add_argument("--nice", type=int, default=0, help="priority, e.g. -10 as root")
    parser.add_argument("--out", type=Path, default=None, help="the JSON file")
    return parser.parse_args()


def chosen_rows(text: str) -> list[str]:
    """The rows whose names start with one of the words, in the table's order."""
    words = [word for word in text.split(",") if word]
    unknown = [word for word in words if not any(name.startswith(word) for name in ROWS)]
    if unknown:
        sys.exit(f"bench: no row {', '.join(unknown)}; there are: {', '.join(ROWS)}")
    return [name for name in ROWS if not words or name.startswith(tuple(words))]


def fit_to_disk(plan: Plan, directory: Path, brokers: int) -> Plan:
    """The plan with no more stored than the disk can take twice over."""
    free = shutil.disk_usage(directory).free - DISK_SPARE_BYTES
    most = max(0, free // 2)
    if plan.stored_bytes[-1] <= most:
        return plan
    print(f"bench: {free / 1e9:.0f} GB free, so at most {most / 1e9:.0f} GB is stored")
    if most < 2 * plan.large_bytes * brokers:
        sys.exit("bench: not enough disk; choose another --directory or --quick")
    return replace(plan, stored_bytes=(plan.stored_bytes[0], most))


def main() -> None:
    """Measure the chosen rows one after the other."""
    asked = options()
    os.nice(asked.nice)  # Servers and generators inherit it, all subjects alike.
    plan = FULL if asked.full else QUICK if asked.quick else USUAL
    if asked.rounds:
        plan = replace(plan, rounds=asked.rounds, starts=asked.rounds)
    reason = "left out by --no-kafka" if asked.no_kafka else missing(CURRENT)
    if reason:
        print(f"bench: no Apache Kafka beside us: {reason}")
    jars = None if reason else REPORT.parent / "java" / CURRENT
    names = chosen_rows(asked.rows)
    about = {**machine(), "kafka": "" if reason else CURRENT}
    print("bench: " + ", ".join(f"{name} {value}" for name, value in about.items() if value))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-", dir=asked.directory) as scratch:
        subjects = Subjects(directory=Path(scratch), kafka_jars=jars)
        plan = fit_to_disk(plan, Path(scratch), 1 if reason else 2)
        for name in names:
            rows += measured(name, plan, subjects)
    out = asked.out or ROOT / "bench" / "results" / time.strftime("%Y%m%d-%H%M%S.json")
    save(out, about, rows)
    print(f"\n{table(rows)}\n\nbench: figures in {out}")


def measured(name: str, plan: Plan, subjects: Subjects) -> list[Row]:
    """The rows of one kind, printed as they come; a failure costs its own rows only."""
    started_s = time.monotonic()
    try:
        rows = list(ROWS[name](plan, subjects))
    except (RuntimeError, AssertionError, OSError) as error:
        print(f"bench: {name} failed: {error}", flush=True)
        return []
    finally:
        fresh(subjects.directory)
    print(f"\nbench: {name}, {time.monotonic() - started_s:.0f} s\n{table(rows)}", flush=True)
    return rows


if __name__ == "__main__":
    main()
