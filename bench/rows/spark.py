"""Spark on our broker: our format beside the official connector, one session, rounds in turn.

The official connector is left out where its jars are not to be had. The raw figure is a source
that sends the same rows without a topic: what Spark can take from Python at all.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.support.outside import missing
from tests.support.processes import ROOT, ServerProcess
from tests.support.spark_connector import CONNECTOR
from tests.support.wire import RawConnection

from bench.plan import Plan
from bench.report import Goal, Row
from bench.spark_load import CORES, OFFICIAL, OURS, TRANSPORT, Figures
from bench.subjects import Subjects, create_topic, fresh, raw_load

TOPIC = "bench-spark"
SPARK_SECONDS_MAX = 1_800
ROWS = "rows/s"
BATCH_BYTES = 65_536


def source(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Topic to noop with records of 100 B and 1 KB."""
    for record_bytes, words in ((100, "100 B"), (1_000, "1 KB")):
        with broker(subjects) as server:
            rows = fill(server, TOPIC, plan.spark_bytes, record_bytes, partitions=CORES)
            found = run(server, subjects, plan, "source", rows=rows, record_bytes=record_bytes)
        yield Row(
            work=f"Spark source → noop, {words} records, {CORES} cores",
            unit=ROWS,
            rounds=found,
            goals=[Goal(beside=OFFICIAL, at_least=1.0), Goal(beside=TRANSPORT, at_least=0.8)],
            note=left_out(),
        )


def sink(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Rows that Spark holds in memory to a topic of two partitions."""
    for record_bytes, words in ((100, "100 B"), (1_000, "1 KB")):
        with broker(subjects) as server:
            create_topic(server, TOPIC, CORES)
            rows = plan.spark_bytes // record_bytes // 4
            found = run(server, subjects, plan, "sink", rows=rows, record_bytes=record_bytes)
        once = found.pop(f"{OURS} exactly-once")
        goals = [Goal(beside=OFFICIAL, at_least=1.0)]
        work = f"Spark → topic, {words} records"
        yield Row(work=work, unit=ROWS, rounds=found, goals=goals, note=left_out())
        yield Row(
            work=f"{work}, in transactions (the connector has none)",
            unit=ROWS,
            rounds={**found, OURS: once},
        )


def windows(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Topic, windowed counts, topic: exactly once beside at least once."""
    with broker(subjects) as server:
        rows = fill(server, TOPIC, plan.spark_bytes // 4, 100, partitions=CORES)
        create_topic(server, f"{TOPIC}-out", CORES)
        found = run(server, subjects, plan, "windows", rows=rows)
    least = found.pop(f"{OURS} at-least-once")
    yield Row(
        work="topic → windowed aggregate → topic, exactly once",
        unit=ROWS,
        rounds=found,
        note="the official connector writes at least once" if OFFICIAL in found else left_out(),
    )
    yield Row(
        work="the same job, exactly once against at least once",
        unit="×",
        rounds={OURS: [one / other for one, other in zip(found[OURS], least, strict=True)]},
        goals=[Goal(beside=None, at_least=0.8)],
    )


def delta(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Topic to Delta table."""
    with broker(subjects) as server:
        rows = fill(server, TOPIC, plan.spark_bytes, 100, partitions=CORES)
        found = run(server, subjects, plan, "lake", rows=rows)
    yield Row(
        work="topic → Delta table, 100 B records",
        unit=ROWS,
        rounds=found,
        goals=[Goal(beside=None, at_least=400_000)],
    )


def micro(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """The time of one trigger of a running query."""
    with broker(subjects) as server:
        create_topic(server, TOPIC, CORES)
        create_topic(server, f"{TOPIC}-out", CORES)
        found = run(server, subjects, plan, "micro", rows=plan.spark_triggers)
    for key, words in (
        ("empty", "micro-batch trigger without new records"),
        ("ten", "micro-batch of 10 records → noop"),
        ("on", "micro-batch of 10 records → topic (ours exactly once)"),
    ):
        names = [name for name in (OURS, OFFICIAL) if f"{name} {key}" in found]
        yield Row(
            work=f"{words}, median",
            unit="ms",
            rounds={name: found[f"{name} {key}"] for name in names},
            goals=[Goal(beside=None, at_most=200)] if key != "on" else [],
        )


def scale(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Ten times the records, then ten times the partitions, read into nothing."""
    few = plan.spark_bytes // 4
    with broker(subjects) as server:
        rows = fill(server, f"{TOPIC}-small", few, 100, partitions=CORES)
        fill(server, f"{TOPIC}-data", few * 10, 100, partitions=CORES)
        fill(server, f"{TOPIC}-partitions", few * 10, 100, partitions=CORES * 10)
        found = run(server, subjects, plan, "scale", rows=rows)
    names = [name for name in (OURS, OFFICIAL) if f"{name}-small" in found]
    for size, beside, words, most in (
        ("-data", "-small", "ten times the data", 11.0),
        ("-partitions", "-data", "that data in ten times the partitions", 1 / 0.9),
    ):
        yield Row(
            work=f"Spark source → noop, time with {words}",
            unit="×",
            rounds={n: grown(found[n + size], found[n + beside]) for n in names},
            goals=[Goal(beside=None, at_most=round(most, 2))],
        )


def grown(times: list[float], first: list[float]) -> list[float]:
    """Round by round, how many times as long it took."""
    return [one / other for one, other in zip(times, first, strict=True)]


@contextmanager
def broker(subjects: Subjects) -> Iterator[ServerProcess]:
    """A fresh Penstock; both connectors talk to the same one."""
    with subjects.penstock() as server:
        server.start()
        yield server


def fill(
    server: ServerProcess, topic: str, total_bytes: int, record_bytes: int, *, partitions: int
) -> int:
    """Write so many bytes over the partitions; how many records they hold."""
    create_topic(server, topic, partitions)
    shape = ["--batch-bytes", str(BATCH_BYTES), "--record-bytes", str(record_bytes)]
    where = ["--topic", topic, "--partitions", str(partitions)]
    raw_load(server, "produce", [*shape, *where, "--total-bytes", str(total_bytes)])
    return records_of(server, topic, partitions)


def records_of(server: ServerProcess, topic: str, partitions: int) -> int:
    """The end offsets together."""
    with RawConnection(server.port) as connection:
        return sum(connection.offset(topic, partition=p) for p in range(partitions))


def run(
    server: ServerProcess,
    subjects: Subjects,
    plan: Plan,
    work: str,
    *,
    rows: int,
    record_bytes: int = 100,
) -> Figures:
    """Play all rounds of a job in a session of its own."""
    directory = fresh(subjects.directory / "spark")
    arguments: Mapping[str, object] = {
        "address": server.address,
        "topic": TOPIC,
        "rows": rows,
        "record-bytes": record_bytes,
        "rounds": plan.rounds,
        "directory": directory,
    }
    command = [sys.executable, "-m", "bench.spark_load", work]
    for name, value in arguments.items():
        command += [f"--{name}", str(value)]
    # The workers import the transport source from here.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_DIRS": str(directory)}
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SPARK_SECONDS_MAX,
        env=environment,
    )
    if done.returncode != 0:
        raise RuntimeError(f"Spark failed:\n{done.stderr[-3000:]}\n{server.log_end[-1000:]}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def left_out() -> str:
    """Why the official connector is not in the row; empty when it is."""
    reason = missing(CONNECTOR)
    return f"without the official connector: {reason}" if reason else ""
