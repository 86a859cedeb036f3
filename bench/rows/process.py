"""The process itself: how soon it answers, and how much memory it holds."""

from collections.abc import Callable, Iterator

from tests.support.processes import ServerProcess

from bench.plan import Plan, alternate
from bench.report import Goal, Row
from bench.subjects import Subjects, create_topic, raw_load

MB = 1_000_000
# Keeps the disk from filling while gigabytes go through.
SMALL_LOG = {"segment.bytes": "67108864", "retention.bytes": "268435456"}
OFTEN = {"log.retention.check.interval.ms": "1000"}


def start_up(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """From the start of the process to the first answered request, on an existing directory."""

    def starter(make: Callable[[], ServerProcess]) -> Callable[[], float]:
        server = make()
        server.start()
        server.stop()

        def run() -> float:
            server.launch()
            try:
                return server.wait_until_ready(timeout_s=90, every_s=0.001)
            finally:
                server.kill()

        return run

    runs = {name: starter(make) for name, make in subjects.starters().items()}
    yield Row(
        work="process start to first answered request",
        unit="s",
        rounds=alternate(runs, rounds=plan.starts, warm_up=False),
        goals=[Goal(beside=None, at_most=0.5), Goal(beside="kafka", at_most=0.2)],
    )


def memory(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Resident memory when idle and after gigabytes were produced."""
    idle: dict[str, list[float]] = {}
    after: dict[str, list[float]] = {}
    makers = {"penstock": subjects.penstock, "kafka": subjects.kafka}
    for name in subjects.starters():
        server = makers[name](OFTEN)
        with server:
            server.start()
            idle[name] = [server.rss_bytes() / MB]
            create_topic(server, "bench-mem", 6, SMALL_LOG)
            amount = ["--total-bytes", str(plan.memory_bytes), "--partitions", "6"]
            raw_load(server, "produce", ["--topic", "bench-mem", *amount])
            after[name] = [server.rss_bytes() / MB]
    yield Row(work="memory, idle", unit="MB", rounds=idle, goals=[Goal(beside=None, at_most=80)])
    yield Row(
        work=f"memory after {plan.memory_bytes / 1e9:g} GB produced",
        unit="MB",
        rounds=after,
        goals=[Goal(beside=None, at_most=150)],
    )
