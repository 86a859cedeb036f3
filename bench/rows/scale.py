"""Does speed hold as partitions and stored bytes grow? The same load at each size, in turn."""

from collections.abc import Iterator
from itertools import count

from tests.support.processes import ServerProcess

from bench.plan import Plan, alternate
from bench.report import Row, throughput_row
from bench.rows.produce import Run
from bench.subjects import Round, Subjects, create_topic, raw_load

BATCH = ["--batch-bytes", "65536", "--record-bytes", "1024", "--in-flight", "5"]


def partitions(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """64 KB batches over 1, 100 and 1,000 partitions of one broker."""
    yield from spread(
        {name: partition_rounds(plan, make()) for name, make in subjects.starters().items()},
        "produce 64 KB batches over {} partitions",
    )


def partition_rounds(plan: Plan, server: ServerProcess) -> dict[int, list[Round]]:
    """Rounds by number of partitions; every partition is warm before the first that counts."""
    with server:
        server.start()
        runs: dict[str, Run] = {}
        for number in plan.partition_counts:
            topic = f"bench-p{number}"
            create_topic(server, topic, number)
            runs[str(number)] = load_on(server, topic, number, plan.scale_bytes)
        rounds = alternate(runs, rounds=plan.rounds)
        return {int(name): found for name, found in rounds.items()}


def stored(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """64 KB batches into a broker that already holds little or much."""
    yield from spread(
        {name: stored_rounds(plan, make()) for name, make in subjects.starters().items()},
        "produce 64 KB batches with {} bytes stored",
    )


def stored_rounds(plan: Plan, server: ServerProcess) -> dict[int, list[Round]]:
    """Rounds at each amount stored; the amounts are reached by producing in between."""
    found: dict[int, list[Round]] = {}
    held = 0
    with server:
        server.start()
        create_topic(server, "bench-held", 6)
        numbers = count()
        for amount in plan.stored_bytes:
            extra = ["--topic", "bench-held", "--partitions", "6"]
            raw_load(server, "produce", [*extra, "--total-bytes", str(amount - held)])
            held = amount
            topic = f"bench-s{next(numbers)}"
            create_topic(server, topic, 6)
            runs = {"at": load_on(server, topic, 6, plan.scale_bytes)}
            found[amount] = alternate(runs, rounds=plan.rounds)["at"]
    return found


def load_on(server: ServerProcess, topic: str, number: int, total_bytes: int) -> Run:
    """A run of the same produce load over so many partitions."""
    work = ["--topic", topic, "--partitions", str(number), "--total-bytes", str(total_bytes)]
    return lambda: raw_load(server, "produce", [*BATCH, *work])


def spread(found: dict[str, dict[int, list[Round]]], title: str) -> Iterator[Row]:
    """A row per size, each noting how far it is from the first size."""
    first: Row | None = None
    for size in next(iter(found.values())):
        rounds = {subject: sizes[size] for subject, sizes in found.items()}
        row = throughput_row(title.format(f"{size:,}"), rounds)
        first = first or row
        change = row.figure("penstock") / first.figure("penstock") - 1
        note = f"{change:+.0%} against the first size (goal: within 15 %)" if row != first else ""
        yield throughput_row(row.work, rounds, note=note)
