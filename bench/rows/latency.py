"""One small record at a time: how long from the first byte sent to the last byte of the answer."""

from collections.abc import Iterator
from contextlib import ExitStack

from tests.support.processes import ServerProcess

from bench.plan import Plan, alternate
from bench.report import Goal, Row
from bench.rows.produce import Run
from bench.subjects import RawLimit, Subjects, create_topic, fresh, raw_load

TOPIC = "bench-trip"


def one_record(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """100 bytes, acks=1: the median and the 99th percentile."""
    shape = ["--batch-bytes", "100", "--record-bytes", "100", "--topic", TOPIC]
    work = [*shape, "--count", str(plan.trips)]
    with ExitStack() as running:
        raw = RawLimit(fresh(subjects.directory / "raw"), "receive", shape)
        running.enter_context(raw)
        raw.start()
        runs: dict[str, Run] = {}
        for name, make in subjects.starters().items():
            server = make()
            running.enter_context(server)
            server.start()
            create_topic(server, TOPIC, 1)
            runs[name] = traveller(server, work)
        runs["raw"] = traveller(raw, work)
        rounds = alternate(runs, rounds=plan.rounds)
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        yield Row(
            work=f"one 100-byte record, round trip {name}",
            unit="µs",
            rounds={s: [r.percentile_us(share) for r in found] for s, found in rounds.items()},
            goals=[Goal(beside="kafka", at_most=0.7)],
        )


def traveller(server: ServerProcess, work: list[str]) -> Run:
    """A run of round trips."""
    return lambda: raw_load(server, "round-trips", work)
