"""The REST proxy: records in by streaming and by requests, and one topic out to many readers.

What counts is the processor time of the proxy, because load, proxy and broker share the machine;
the records per second of a core are the records over that time.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from tests.support.rest import RestProcess

from bench.plan import Plan
from bench.report import OURS, Goal, Row
from bench.subjects import Round, Subjects, create_topic, fresh, run_load

TOPIC = "bench-rest"
RECORDS_GOAL = 20_000
STREAM_US_GOAL = 60


def streamed(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Version 3, one request without end, 100-byte records."""
    rounds = measured(plan, subjects, "streamed", ["--count", str(plan.rest_records)])
    yield from both("REST v3 streamed produce, 100 B records", rounds)


def version_2(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Version 2, 100 records a request on 16 connections."""
    rounds = measured(plan, subjects, "version-2", ["--count", str(plan.rest_records)])
    yield from both("REST v2 produce, 100 records of 100 B a request, 16 connections", rounds)


def readers(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Records one by one, each to every open stream before the next is sent."""
    streams = ["--streams", str(plan.rest_streams)]
    full = measured(plan, subjects, "readers", ["--count", str(plan.rest_streamed), *streams])
    empty = measured(plan, subjects, "readers", ["--count", "0", *streams])  # To open them alone.
    yield Row(
        work=f"{plan.rest_streams:,} open streams of one topic, processor per record and stream",
        unit="µs",
        rounds={
            OURS: [
                (all_.server_cpu_s - opened.server_cpu_s) / all_.requests * 1e6
                for all_, opened in zip(full, empty, strict=True)
            ]
        },
        goals=[Goal(beside=None, at_most=STREAM_US_GOAL)],
    )


def both(work: str, rounds: Sequence[Round]) -> Iterator[Row]:
    """What a core does, and what was seen."""
    yield Row(
        work=f"{work}, per core",
        unit="/s",
        rounds={OURS: [one.requests / one.server_cpu_s for one in rounds]},
        goals=[Goal(beside=None, at_least=RECORDS_GOAL)],
    )
    yield Row(
        work=f"{work}, seen",
        unit="/s",
        rounds={OURS: [one.requests / one.seconds for one in rounds]},
    )


def measured(plan: Plan, subjects: Subjects, work: str, amounts: Sequence[str]) -> list[Round]:
    """Rounds of a load on a proxy of our own broker."""
    with ExitStack() as running:
        broker = subjects.penstock()
        running.enter_context(broker)
        broker.start()
        create_topic(broker, TOPIC, 1)
        proxy = RestProcess(fresh(subjects.directory / "rest"), broker.address)
        running.enter_context(proxy)
        proxy.start()
        load = ["--port", str(proxy.port), "--topic", TOPIC, *amounts]
        return [run_load(proxy, "bench.rest_load", work, *load) for _ in range(plan.rounds)]
