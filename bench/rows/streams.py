"""Streams on our broker: ours on Spark beside Kafka Streams, exactly once, both warm.

Both play the same topologies over the same input, each run as an application of its own from the
first record to the last. Kafka Streams is left out where its jars are not to be had.
"""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from confluent_kafka import Producer
from tests.support.java import compiled
from tests.support.outside import REPORT, missing
from tests.support.processes import ROOT, ServerProcess

from bench.plan import Plan, alternate
from bench.report import OURS, Goal, Row
from bench.subjects import Subjects, create_topic, fresh, percentile

JARS = "kafka-streams-4.3.1"
PEER = "kafka"
PARTITIONS = 2
VALUE_BYTES = 100
FIRST_MS = 1_700_000_000_000
RECORDS = "records/s"
PER_CPU = "records/CPU s"
TABLE_KEYS = 100_000
LOOKUP_KEYS = 10_000
LOOKUP_RATE = 10_000
FOR_EVER = {"retention.ms": "-1"}  # The times of records are long ago.


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of one application."""

    records: int
    seconds: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Player:
    """A process that plays the works it is told, one after the other."""

    process: "subprocess.Popen[str]"

    def play(self, work: str, source: str, output: str, records: int) -> Ran:
        """One run; RuntimeError when the process has ended."""
        assert self.process.stdin is not None and self.process.stdout is not None
        name = f"bench-{work}-{next(_NUMBERS)}"
        print(work, name, source, output, records, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args!r} ended at {work}")
        seconds, cpu_s = map(float, line.split())
        return Ran(records, seconds, cpu_s)


_NUMBERS = count()


def mapped(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Filter and map_values by columns, topic to topic."""
    with playing(subjects) as (server, players):
        fill(server, "map", plan.streams_records, keys=1_000)
        rounds = played(plan, server, players, "map", "map", plan.streams_records)
    yield from both("streams: filter + map_values (columns), exactly once", rounds, 1.0)


def counted(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Counts by key: few, many and very many keys; and a Python aggregate beside."""
    with playing(subjects) as (server, players):
        for keys, goal in zip(plan.streams_keys, (1.0, 1.0, 0.7), strict=False):
            topic = f"count-{keys}"
            fill(server, topic, plan.streams_records, keys=keys)
            rounds = played(plan, server, players, "count", topic, plan.streams_records)
            yield from both(f"streams: count by key, {keys:,} keys, exactly once", rounds, goal)
        keys = plan.streams_keys[min(1, len(plan.streams_keys) - 1)]
        yield from _python_aggregate(plan, server, players, f"count-{keys}")


def _python_aggregate(
    plan: Plan, server: ServerProcess, players: dict[str, Player], topic: str
) -> Iterator[Row]:
    records, ours = plan.streams_records, players[OURS]
    runs = {
        work: lambda work=work: play(server, ours, work, topic, records)
        for work in ("aggregate", "count")
    }
    found = alternate(runs, rounds=plan.rounds)
    yield Row(
        work=f"streams: Python aggregate beside our count, {topic.partition('-')[2]} keys",
        unit="×",
        rounds={
            OURS: [
                one.records / one.seconds / (other.records / other.seconds)
                for one, other in zip(found["aggregate"], found["count"], strict=True)
            ]
        },
        goals=[Goal(beside=None, at_least=0.4)],
    )


def joined(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """A stream that looks its rows up in a table."""
    with playing(subjects) as (server, players):
        fill(server, "join-table", TABLE_KEYS, keys=TABLE_KEYS, spread=False)
        fill(server, "join", plan.streams_records, keys=TABLE_KEYS)
        rounds = played(plan, server, players, "join", "join", plan.streams_records)
    yield from both(f"streams: stream-table join, {TABLE_KEYS:,} keys, exactly once", rounds, 0.5)


def windowed(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Windowed counts, final results alone."""
    with playing(subjects) as (server, players):
        fill(server, "windows", plan.streams_records, keys=1_000)
        rounds = played(plan, server, players, "windows", "windows", plan.streams_records)
    yield from both("streams: windowed count, final results, exactly once", rounds, 1.0)


def scaled(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Ten times the records and ten times the keys."""
    few = plan.streams_records // 10
    with playing(subjects, with_peer=False) as (server, players):
        fill(server, "few", few, keys=10_000)
        fill(server, "many", few * 10, keys=100_000)
        ours = players[OURS]
        runs = {
            topic: lambda topic=topic, records=records: play(server, ours, "count", topic, records)
            for topic, records in (("few", few), ("many", few * 10))
        }
        found = alternate(runs, rounds=plan.rounds)
    grown = [
        one.seconds / other.seconds for one, other in zip(found["many"], found["few"], strict=True)
    ]
    yield Row(
        work="streams: count by key, time with ten times the records and the keys",
        unit="×",
        rounds={OURS: grown},
        goals=[Goal(beside=None, at_most=11)],
    )


def looked_up(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """A follower asked by key while it follows ten thousand updates a second."""
    with subjects.penstock() as server:
        server.start()
        rounds = [_lookups(server, number, plan.streams_lookups) for number in range(plan.rounds)]
    yield Row(
        work=f"streams: lookup by key in the follower, at {LOOKUP_RATE:,} updates/s, p99",
        unit="ms",
        rounds={OURS: [percentile(times_ms, 0.99) for times_ms in rounds]},
        goals=[Goal(beside=None, at_most=1)],
    )


def _lookups(server: ServerProcess, number: int, lookups: int) -> list[float]:
    """The times of lookups, in milliseconds, while a producer keeps its pace."""
    from penstock.streams import STRING, StoreFollower, StreamsBuilder

    name = f"lookup-{number}"
    builder = StreamsBuilder(value=STRING)
    builder.stream("any").group_by_key().count(store="counts")
    create_topic(server, f"{name}-counts-changelog", PARTITIONS)
    command = [sys.executable, "-m", "bench.rows.streams", server.address, name]
    feeding = subprocess.Popen(command, cwd=ROOT)
    client = {"bootstrap.servers": server.address}
    chance, times_ms = random.Random(number), []
    try:
        with StoreFollower(builder.build(), name, "counts", client) as follower:
            while follower.get(f"key-{0:012d}") is None:
                time.sleep(0.01)
            for _ in range(lookups):
                key = f"key-{chance.randrange(LOOKUP_KEYS):012d}"
                begun_s = time.perf_counter()
                follower.get(key)
                times_ms.append((time.perf_counter() - begun_s) * 1e3)
                time.sleep(0.0005)
    finally:
        feeding.terminate()
        feeding.wait()
    return times_ms


def feed(address: str, name: str) -> None:
    """Updates of a changelog, at the rate, until it is stopped."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 5})
    begun_s, sent = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - begun_s) * LOOKUP_RATE)
        for number in range(sent, due):
            key = f"key-{number % LOOKUP_KEYS:012d}"
            value = number.to_bytes(8, "big")
            producer.produce(f"{name}-counts-changelog", value, key)
        sent = due
        producer.poll(0)
        time.sleep(0.005)


@contextmanager
def playing(
    subjects: Subjects, *, with_peer: bool = True
) -> Iterator[tuple[ServerProcess, dict[str, Player]]]:
    """A fresh broker, and the processes that play."""
    with ExitStack() as running:
        server = running.enter_context(subjects.penstock())
        server.start()
        ours = [sys.executable, "-m", "bench.streams_load", server.address]
        folder = fresh(subjects.directory / "streams")
        players = {OURS: running.enter_context(process([*ours, str(folder)], folder))}
        if with_peer and not missing(JARS) and subjects.kafka_jars is not None:
            program = ROOT / "bench" / "java" / "StreamsPeer.java"
            class_path = compiled(program, REPORT.parent / "java" / JARS)
            java = ["java", "-Xmx1g", "-cp", class_path, "StreamsPeer", server.address]
            state = fresh(subjects.directory / "kafka-streams")
            players[PEER] = running.enter_context(process([*java, str(state)], state))
        yield server, players


@contextmanager
def process(command: list[str], folder: Path) -> Iterator[Player]:
    """A process that plays, ended with the block."""
    with (folder / "errors.log").open("w") as errors:
        started = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            yield Player(started)
        finally:
            assert started.stdin is not None
            started.stdin.close()
            try:
                started.wait(60)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()


def played(
    plan: Plan,
    server: ServerProcess,
    players: dict[str, Player],
    work: str,
    topic: str,
    records: int,
) -> dict[str, list[Ran]]:
    """Rounds of a work, in turn."""
    runs = {
        name: lambda player=player: play(server, player, work, topic, records)
        for name, player in players.items()
    }
    return alternate(runs, rounds=plan.rounds)


def play(server: ServerProcess, player: Player, work: str, topic: str, records: int) -> Ran:
    """One run, into a topic of its own."""
    output = f"out-{next(_NUMBERS)}"
    create_topic(server, output, PARTITIONS, FOR_EVER)
    return player.play(work, topic, output, records)


def fill(
    server: ServerProcess, topic: str, records: int, *, keys: int, spread: bool = True
) -> None:
    """Records of 100 bytes a millisecond apart, keys at random or each once."""
    create_topic(server, topic, PARTITIONS, FOR_EVER)
    options = {"bootstrap.servers": server.address, "partitioner": "murmur2_random"}
    producer = Producer({**options, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
    chance, padding = random.Random(topic), "x" * (VALUE_BYTES - 12)
    for number in range(records):
        key = f"key-{chance.randrange(keys) if spread else number % keys:012d}"
        value = f"{number:012d}{padding}"
        while True:
            try:
                producer.produce(topic, value, key, timestamp=FIRST_MS + number)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(300) == 0


def both(work: str, rounds: dict[str, list[Ran]], goal: float) -> Iterator[Row]:
    """What was seen, and what a second of processor time did."""
    yield Row(
        work=work,
        unit=RECORDS,
        rounds={name: [r.records / r.seconds for r in runs] for name, runs in rounds.items()},
        goals=[Goal(beside=PEER, at_least=goal)],
        note="" if PEER in rounds else f"without Kafka Streams: {missing(JARS) or 'not wanted'}",
    )
    yield Row(
        work=f"{work}, of the engine's processor time",
        unit=PER_CPU,
        rounds={name: [r.records / r.cpu_s for r in runs] for name, runs in rounds.items()},
    )


if __name__ == "__main__":
    feed(sys.argv[1], sys.argv[2])
