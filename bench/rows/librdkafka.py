"""What an application with librdkafka sees: the client is in these figures."""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count

from tests.support.processes import ServerProcess

from bench.plan import Plan, alternate
from bench.report import Row, throughput_row
from bench.rows.produce import Run
from bench.subjects import Round, Subjects, create_topic, run_load


def both_ways(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """1 KB records into six partitions, then read back from the start."""
    with ExitStack() as running:
        produce: dict[str, Run] = {}
        consume: dict[str, Run] = {}
        for name, make in subjects.starters().items():
            server = make()
            running.enter_context(server)
            server.start()
            produce[name] = producer(server, plan.records)
            consume[name] = consumer(server, plan.records)
        produced = alternate(produce, rounds=plan.rounds)
        consumed = alternate(consume, rounds=plan.rounds)
    yield throughput_row("librdkafka produce, 1 KB records, acks=1", produced)
    yield throughput_row("librdkafka consume, 1 KB records", consumed)


def producer(server: ServerProcess, records: int) -> Run:
    """A run that fills a new topic; the first is the one that is read later."""
    numbers = count()

    def run() -> Round:
        topic = f"bench-rd{next(numbers)}"
        create_topic(server, topic, 6)
        work = ["produce", "--address", server.address, "--topic", topic]
        return run_load(server, "bench.librdkafka_load", *work, "--count", str(records))

    return run


def consumer(server: ServerProcess, records: int) -> Run:
    """A run that reads the first topic from its start."""
    work = ["consume", "--address", server.address, "--topic", "bench-rd0"]
    return lambda: run_load(server, "bench.librdkafka_load", *work, "--count", str(records))
