"""Transactions: how many one producer gets through, and what read_committed costs a reader."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count

from tests.support.processes import ServerProcess
from tests.support.wire import RawConnection

from bench.plan import Plan, alternate
from bench.report import Goal, Row, throughput_row
from bench.rows.produce import Run
from bench.subjects import Round, Subjects, create_topic, delete_topic, run_load
from bench.transaction_load import PARTITIONS

TOPIC = "bench-read-txn"
LOAD = "bench.transaction_load"
ABORTS = 100  # One transaction in a hundred.


def transactions(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """librdkafka: begin, a hundred records of 1 KB over three partitions, commit."""
    with ExitStack() as running:
        runs: dict[str, Run] = {}
        for name, make in subjects.starters().items():
            server = make()
            running.enter_context(server)
            server.start()
            runs[name] = writer(server, plan.transactions)
        rounds = alternate(runs, rounds=plan.rounds)
    yield Row(
        work="transactions of 100 records of 1 KB over 3 partitions, one producer",
        unit="/s",
        rounds={name: [r.requests / r.seconds for r in found] for name, found in rounds.items()},
        goals=[Goal(beside="kafka", at_least=1.0)],
    )


def writer(server: ServerProcess, transaction_count: int) -> Run:
    """A run into a topic of its own."""
    numbers = count()

    def run() -> Round:
        topic = f"bench-txn{next(numbers)}"
        create_topic(server, topic, PARTITIONS)
        try:
            return write(server, topic, transaction_count, aborts=0)
        finally:
            delete_topic(server, topic)

    return run


def read_committed(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """The same topic, 1 % of its transactions aborted, under both isolation levels in turn."""
    runs: dict[str, Run] = {}
    with ExitStack() as running:
        for name, make in subjects.starters().items():
            server = make()
            running.enter_context(server)
            server.start()
            create_topic(server, TOPIC, PARTITIONS)
            write(server, TOPIC, plan.transactions, aborts=ABORTS)
            with RawConnection(server.port) as connection:
                ends = [connection.offset(TOPIC, partition=p) for p in range(PARTITIONS)]
            runs[f"{name} committed"] = reader(server, plan, ends, ["--committed"])
            runs[f"{name} uncommitted"] = reader(server, plan, ends, [])
        rounds = alternate(runs, rounds=plan.rounds)
    names = list(subjects.starters())
    committed = {name: rounds[f"{name} committed"] for name in names}
    uncommitted = {name: rounds[f"{name} uncommitted"] for name in names}
    yield throughput_row("fetch read_uncommitted, 1 % of transactions aborted", uncommitted)
    yield throughput_row("fetch read_committed, 1 % of transactions aborted", committed)
    yield Row(
        work="read_committed fetch against read_uncommitted, 1 % aborted",
        unit="×",
        rounds={name: shares(committed[name], uncommitted[name]) for name in names},
        goals=[Goal(beside=None, at_least=0.95)],
    )


def shares(committed: list[Round], uncommitted: list[Round]) -> list[float]:
    """Round by round, because the machine has its moods."""
    pairs = zip(committed, uncommitted, strict=True)
    return [one.mb_per_s / other.mb_per_s for one, other in pairs]


def write(server: ServerProcess, topic: str, transaction_count: int, *, aborts: int) -> Round:
    """Fill a topic with transactions."""
    where = ["--port", str(server.port), "--topic", topic]
    amount = ["--count", str(transaction_count), "--aborts", str(aborts)]
    return run_load(server, LOAD, "write", *where, *amount)


def reader(server: ServerProcess, plan: Plan, ends: list[int], level: list[str]) -> Run:
    """A run that reads the topic over and over."""
    where = ["--port", str(server.port), "--topic", TOPIC]
    amount = ["--total-bytes", str(plan.fetch_bytes), "--ends", ",".join(map(str, ends))]
    return lambda: run_load(server, LOAD, "read", *where, *amount, *level)
