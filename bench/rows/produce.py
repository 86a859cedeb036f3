"""Producing through the raw generator: large batches over six partitions, small ones over one."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count

from tests.support.processes import ServerProcess

from bench.plan import Plan, alternate
from bench.report import Goal, Row, throughput_row
from bench.subjects import (
    RawLimit,
    Round,
    Subjects,
    create_topic,
    delete_topic,
    fresh,
    raw_load,
)

Run = Callable[[], Round]


def large(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """1 KB records in 1 MB batches, acks=1, six partitions."""
    shape = ["--batch-bytes", "1048576", "--record-bytes", "1024", "--partitions", "6"]
    goals = [Goal(beside="raw", at_least=0.8), Goal(beside="kafka", at_least=1.5)]
    rounds = produced(plan, subjects, shape, partitions=6, total_bytes=plan.large_bytes)
    yield throughput_row("produce 1 KB records, 1 MB batches, 6 partitions", rounds, goals)


def small(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """16 KB batches, one connection, five requests in flight."""
    shape = ["--batch-bytes", "16384", "--record-bytes", "1000", "--partitions", "1"]
    goals = [Goal(beside="raw", at_least=0.6), Goal(beside="kafka", at_least=1.5)]
    rounds = produced(plan, subjects, shape, partitions=1, total_bytes=plan.small_bytes)
    yield throughput_row("produce 16 KB batches, 5 in flight", rounds, goals)


def produced(
    plan: Plan, subjects: Subjects, shape: list[str], *, partitions: int, total_bytes: int
) -> dict[str, list[Round]]:
    """The same produce load for every subject, in turn."""
    amount = ["--total-bytes", str(total_bytes), "--in-flight", "5"]
    with ExitStack() as running:
        raw = RawLimit(
            fresh(subjects.directory / "raw"), "receive", [*shape, "--topic", "bench-000"]
        )
        running.enter_context(raw)
        raw.start()
        runs: dict[str, Run] = {}
        for name, make in subjects.starters().items():
            server = make()
            running.enter_context(server)
            server.start()
            runs[name] = into_new_topics(server, [*shape, *amount], partitions)
        runs["raw"] = lambda: raw_load(raw, "produce", [*shape, *amount, "--topic", "bench-000"])
        return alternate(runs, rounds=plan.rounds)


def into_new_topics(server: ServerProcess, arguments: list[str], partitions: int) -> Run:
    """A run that makes a topic, fills it and deletes it."""
    numbers = count()

    def run() -> Round:
        topic = f"bench-{next(numbers):03d}"
        create_topic(server, topic, partitions)
        try:
            return raw_load(server, "produce", [*arguments, "--topic", topic])
        finally:
            delete_topic(server, topic)

    return run
