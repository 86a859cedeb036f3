"""Streaming SQL: a server with ksqlDB's API on our broker, beside Kafka Streams, ksqlDB's engine.

ksqlDB itself is not to be had from a registry of packages. Its queries are topologies of Kafka
Streams, so that one plays the same work without SQL around it (`bench/rows/streams.py`). Of our
server counts all: itself, Spark and Spark's Python processes.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count

import psutil
from confluent_kafka import Producer
from tests.support.java import compiled
from tests.support.outside import REPORT, missing
from tests.support.processes import ROOT, ServerProcess
from tests.support.sql_server import SqlServerProcess

from bench.plan import Plan, alternate
from bench.report import OURS, Goal, Row
from bench.rows.streams import (
    JARS,
    PARTITIONS,
    PEER,
    Player,
    Ran,
    both,
    fill,
    play,
    process,
)
from bench.subjects import Subjects, create_topic, fresh, percentile

EARLIEST = {"auto.offset.reset": "earliest"}
SOURCE = "(k STRING KEY, v STRING) WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='KAFKA');"
WORKS = {
    "map": "CREATE STREAM {name} WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='KAFKA') AS "
    "SELECT k, CONCAT(UCASE(SUBSTRING(v, 1, 40)), '!') AS v FROM source "
    "WHERE SUBSTRING(v, 12, 1) < '5';",
    "count": "CREATE TABLE {name} WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='KAFKA') AS "
    "SELECT k, COUNT(*) AS n FROM source GROUP BY k;",
    "windows": "CREATE TABLE {name} WITH (KAFKA_TOPIC='{topic}', VALUE_FORMAT='KAFKA') AS "
    "SELECT k, COUNT(*) AS n FROM source "
    "WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 0 SECONDS) GROUP BY k EMIT FINAL;",
}
PULL_KEYS = 10_000
LOOK_S = 0.05
_NUMBERS = count()


def mapped(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """A filter and a projection, topic to topic."""
    yield from _work(plan, subjects, "map", "sql: filter + project, exactly once")


def counted(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """A count by key."""
    yield from _work(plan, subjects, "count", "sql: count by key, 1,000 keys, exactly once")


def windowed(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """A windowed count, final results alone."""
    yield from _work(plan, subjects, "windows", "sql: windowed count, EMIT FINAL, exactly once")


def _work(plan: Plan, subjects: Subjects, work: str, title: str) -> Iterator[Row]:
    records = plan.streams_records
    with serving(subjects) as (broker, sql), ExitStack() as peers:
        fill(broker, "input", records, keys=1_000)
        sql.ksql(f"CREATE STREAM source {SOURCE.format(topic='input')}")
        _run(sql, work, records)  # Spark starts, and compiles what it runs.
        runs: dict[str, Callable[[], Ran]] = {OURS: lambda: _run(sql, work, records)}
        if not missing(JARS) and subjects.kafka_jars is not None:
            player = peers.enter_context(peer(subjects, broker))
            play(broker, player, work, "input", records)
            runs[PEER] = lambda: play(broker, player, work, "input", records)
        rounds = alternate(runs, rounds=plan.rounds)
    yield from both(title, rounds, 1.0)


def pulled(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Pull queries by key over HTTP: one client, and fifty."""
    with serving(subjects) as (broker, sql):
        create_topic(broker, "pulled", PARTITIONS)
        producer = Producer({"bootstrap.servers": broker.address, "partitioner": "murmur2_random"})
        for number in range(PULL_KEYS):
            producer.produce("pulled", f'{{"N":{number}}}', f"key-{number:08d}")
        assert producer.flush(120) == 0
        sql.ksql(
            "CREATE SOURCE TABLE pulled (k STRING PRIMARY KEY, n INT) "
            "WITH (KAFKA_TOPIC='pulled', VALUE_FORMAT='JSON');"
        )
        _until(lambda: len(sql.rows("SELECT k FROM pulled;")) == PULL_KEYS)
        for clients, half_ms, most_ms in ((1, 2, 10), (50, 20, 60)):
            _asked(sql, clients, 500)
            rounds = [_asked(sql, clients, plan.sql_pulls) for _ in range(plan.rounds)]
            for share, goal in ((0.5, half_ms), (0.99, most_ms)):
                yield Row(
                    work=f"sql: pull query by key over HTTP, {clients} clients, p{share * 100:.0f}",
                    unit="ms",
                    rounds={OURS: [percentile(one, share) for one, _ in rounds]},
                    goals=[Goal(beside=None, at_most=goal)],
                )
            yield Row(
                work=f"sql: pull query by key over HTTP, {clients} clients, the server's processor",
                unit="µs",
                rounds={OURS: [cpu_s / len(one) * 1e6 for one, cpu_s in rounds]},
            )


def pushed(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Push queries, from produce to the client: as a reader, and through one stage on Spark."""
    with serving(subjects) as (broker, sql):
        create_topic(broker, "pushed", 1)
        sql.ksql(f"CREATE STREAM pushed {SOURCE.format(topic='pushed')}")
        sql.ksql("CREATE STREAM staged AS SELECT k, v FROM pushed;")
        for source, title, goal in (
            ("pushed", "as a reader", 30),
            ("staged", "through one stage", 400),
        ):
            _arrivals(broker, sql, source, 5)
            rounds = [_arrivals(broker, sql, source, plan.sql_pushes) for _ in range(plan.rounds)]
            yield Row(
                work=f"sql: push query {title}, produce to client, p50",
                unit="ms",
                rounds={OURS: [percentile(one, 0.5) for one in rounds]},
                goals=[Goal(beside=None, at_most=goal)],
            )


def begun(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """CREATE STREAM AS to its first row on a warm server, and what the query costs when idle."""
    with serving(subjects) as (broker, sql):
        fill(broker, "input", 1_000, keys=10)
        sql.ksql(f"CREATE STREAM source {SOURCE.format(topic='input')}")
        _first_row(sql)
        firsts = [_first_row(sql) for _ in range(max(3, plan.rounds))]
        yield Row(
            work="sql: CREATE STREAM AS to its first row, warm",
            unit="s",
            rounds={OURS: firsts},
            goals=[Goal(beside=None, at_most=2)],
        )
        without = _idle_share(sql, plan.idle_seconds)
        sql.ksql("CREATE STREAM idle AS SELECT * FROM source;", streamsProperties=EARLIEST)
        _until(lambda: _rows_read(sql, "IDLE") >= 1_000)
        alone = [_idle_share(sql, plan.idle_seconds) for _ in range(plan.rounds)]
    yield Row(
        work="sql: idle persistent query, of a core",
        unit="%",
        rounds={OURS: [max(0.0, one - without) * 100 for one in alone]},
        goals=[Goal(beside=None, at_most=1)],
        note=f"the server without one: {without * 100:.1f} %",
    )


@contextmanager
def serving(subjects: Subjects) -> Iterator[tuple[ServerProcess, SqlServerProcess]]:
    """A fresh broker and a SQL server on it."""
    with subjects.penstock() as broker:
        broker.start()
        folder = fresh(subjects.directory / "sql")
        with SqlServerProcess(folder, broker.address) as sql:
            # As whoever installs it has it: what tests choose for speed is taken away.
            del sql.settings["ksql.streams.shuffle.partitions"]
            del sql.settings["ksql.streams.commit.interval.ms"]
            sql.start()
            yield broker, sql


@contextmanager
def peer(subjects: Subjects, broker: ServerProcess) -> Iterator[Player]:
    """Kafka Streams."""
    program = ROOT / "bench" / "java" / "StreamsPeer.java"
    class_path = compiled(program, REPORT.parent / "java" / JARS)
    java = ["java", "-Xmx1g", "-cp", class_path, "StreamsPeer", broker.address]
    state = fresh(subjects.directory / "kafka-streams")
    with process([*java, str(state)], state) as player:
        yield player


def _run(sql: SqlServerProcess, work: str, records: int) -> Ran:
    """One query from its statement until it has read all records, then it is dropped."""
    name = f"RUN_{next(_NUMBERS)}"
    text = WORKS[work].format(name=name, topic=name.lower())
    cpu_s, begun_s = tree_cpu_s(sql), time.perf_counter()
    sql.ksql(text, streamsProperties=EARLIEST)
    _until(lambda: _rows_read(sql, name) >= records)
    ran = Ran(records, time.perf_counter() - begun_s, tree_cpu_s(sql) - cpu_s)
    sql.ksql(f"DROP {text.split()[1]} {name} DELETE TOPIC;")
    return ran


def _rows_read(sql: SqlServerProcess, name: str) -> int:
    """How many the queries that write to it have read."""
    (told,) = sql.ksql(f"DESCRIBE {name} EXTENDED;")
    return int(str(told["sourceDescription"]["statistics"]).rpartition(":")[2])


def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(LOOK_S)


def tree_cpu_s(sql: SqlServerProcess) -> float:
    """The processor time of the server and all below it, also of what has ended."""
    assert sql.process is not None
    top = psutil.Process(sql.process.pid)
    total = 0.0
    for one in (top, *top.children(recursive=True)):
        try:
            total += sum(one.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return total


def _asked(sql: SqlServerProcess, clients: int, requests: int) -> tuple[list[float], float]:
    """The times of requests in milliseconds, and the processor time of the server."""
    words = [str(sql.port), str(clients), str(requests), str(PULL_KEYS)]
    cpu_s = tree_cpu_s(sql)
    done = subprocess.run(
        [sys.executable, "-m", "bench.sql_load", *words],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout), tree_cpu_s(sql) - cpu_s


def _arrivals(broker: ServerProcess, sql: SqlServerProcess, source: str, rows: int) -> list[float]:
    """From the produce of a record to its row at the client, in milliseconds, one by one."""
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 0})
    times_ms = []
    with sql.pushing(f"SELECT v FROM {source} EMIT CHANGES;") as push:
        for number in range(rows):
            value = f"{next(_NUMBERS)}-{number}"
            begun_s = time.perf_counter()
            producer.produce("pushed", value, "k")
            producer.flush(60)
            while push.row() != [value]:
                continue
            times_ms.append((time.perf_counter() - begun_s) * 1e3)
    return times_ms


def _first_row(sql: SqlServerProcess) -> float:
    name = f"FIRST_{next(_NUMBERS)}"
    begun_s = time.perf_counter()
    sql.ksql(f"CREATE STREAM {name} AS SELECT * FROM source;", streamsProperties=EARLIEST)
    query = f"SELECT * FROM {name} EMIT CHANGES LIMIT 1;"
    with sql.pushing(query, auto_offset_reset="earliest") as push:
        assert push.row() is not None
        seconds = time.perf_counter() - begun_s
    sql.ksql(f"DROP STREAM {name} DELETE TOPIC;")
    return seconds


def _idle_share(sql: SqlServerProcess, seconds: float) -> float:
    cpu_s = tree_cpu_s(sql)
    time.sleep(seconds)
    return (tree_cpu_s(sql) - cpu_s) / seconds
