"""Fetching with a client that discards: what was just written, and a log from its start."""

from collections.abc import Iterator
from contextlib import ExitStack

from tests.support.processes import ServerProcess

from bench.load import Shape
from bench.plan import Plan, alternate
from bench.report import Goal, Row, throughput_row
from bench.rows.produce import Run
from bench.subjects import RawLimit, Round, Subjects, create_topic, fresh, raw_load

GOALS = [Goal(beside="raw", at_least=0.7), Goal(beside="kafka", at_least=1.0)]
TOPIC = "bench-read"
BATCH_BYTES = 1_048_576


def caught_up(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Six partitions in one request, from the active segments, all in the page cache."""
    rounds = fetched(plan, subjects, partitions=6, log_bytes=100 * BATCH_BYTES)
    yield throughput_row("fetch, caught up, 6 partitions", rounds, GOALS)


def from_start(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """One partition from offset 0 across segments."""
    rounds = fetched(plan, subjects, partitions=1, log_bytes=plan.log_bytes)
    yield throughput_row("fetch from the start, log larger than a segment", rounds, GOALS)


def fetched(
    plan: Plan, subjects: Subjects, *, partitions: int, log_bytes: int
) -> dict[str, list[Round]]:
    """The same fetches from every subject, in turn; `log_bytes` is the size of each partition."""
    per_batch = Shape(
        topic=TOPIC, partitions=partitions, batch_bytes=BATCH_BYTES, record_bytes=1024
    ).records_per_batch()
    end_offset = log_bytes // BATCH_BYTES * per_batch
    shape = ["--topic", TOPIC, "--partitions", str(partitions)]
    shape += ["--batch-bytes", str(BATCH_BYTES)]
    work = [*shape, "--end-offset", str(end_offset), "--total-bytes", str(plan.fetch_bytes)]
    with ExitStack() as running:
        file_bytes = ["--file-bytes", str(log_bytes * partitions)]
        raw = RawLimit(fresh(subjects.directory / "raw"), "send", [*shape, *file_bytes])
        running.enter_context(raw)
        raw.start()
        runs: dict[str, Run] = {}
        for name, make in subjects.starters().items():
            server = make()
            running.enter_context(server)
            server.start()
            fill(server, shape, partitions, log_bytes)
            runs[name] = reader(server, work)
        runs["raw"] = reader(raw, work)
        return alternate(runs, rounds=plan.rounds)


def fill(server: ServerProcess, shape: list[str], partitions: int, log_bytes: int) -> None:
    """Write the log that will be read."""
    create_topic(server, TOPIC, partitions)
    total = log_bytes // BATCH_BYTES * BATCH_BYTES * partitions
    raw_load(server, "produce", [*shape, "--total-bytes", str(total)])


def reader(server: ServerProcess, work: list[str]) -> Run:
    """A run of the fetch load."""
    return lambda: raw_load(server, "fetch", work)
