"""Many clients with one small request each: what thousands of clients look like to a broker.

Producers, consumers that wait at the end of the log, and groups that commit how far they are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from tests.support.processes import ServerProcess

from bench.crowd import Crowd, Tail, built
from bench.group_load import await_commits, await_coordinator, commit_error_at, commit_frame
from bench.load import Shape, connect
from bench.plan import Plan, alternate
from bench.report import Goal, Row
from bench.subjects import Round, Subjects, create_topic

TOPIC, PARTITIONS = "bench-crowd", 12
SMALL = Shape(topic=TOPIC, partitions=PARTITIONS, batch_bytes=1, record_bytes=100)
LARGE = Shape(topic=TOPIC, partitions=PARTITIONS, batch_bytes=16_384, record_bytes=1000)
# Until a virtual machine has compiled what it runs: its rate is steady from then on.
KAFKA_WARM_S, WARM_CONNECTIONS = 30.0, 100
CONSUMERS, RECORDS_PER_S = 1000, 5000
TAIL_PARTITIONS = (1000, 10)  # One for each consumer, and one for each hundred of them.
GROUPS = 1000
US = 1e6


def small(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """One record of 100 bytes, acks=1, over growing numbers of connections."""
    with Crowds(plan, subjects) as crowds:
        crowds.warm(produce_load(SMALL, WARM_CONNECTIONS))
        for connections in plan.crowds:
            rounds = crowds.measured(produce_load(SMALL, connections, plan.crowd_seconds))
            work = f"{connections:,} connections, small Produce each"
            yield from rows(work, rounds, beyond_one=connections > 1)


def large(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Batches of 16 KB from 100 connections."""
    with Crowds(plan, subjects) as crowds:
        crowds.warm(produce_load(SMALL, WARM_CONNECTIONS))
        rounds = crowds.measured(produce_load(LARGE, 100, plan.crowd_seconds))
    yield from rows("100 connections, 16 KB Produce each", rounds)


def tail(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Consumers that wait for records, with a partition each and with few for all."""
    for partitions in TAIL_PARTITIONS:
        shape = Shape(topic=TOPIC, partitions=partitions, batch_bytes=1, record_bytes=100)
        load = Tail(consumers=CONSUMERS, shape=shape, records_per_s=RECORDS_PER_S)
        with Crowds(plan, subjects, partitions=partitions) as crowds:
            crowds.warm(load)
            rounds = crowds.measured(replace(load, seconds=plan.crowd_seconds))
        work = f"{CONSUMERS:,} waiting consumers on {partitions:,} partitions, "
        yield from delivery_rows(f"{work}{RECORDS_PER_S:,} records/s", rounds)


def commits(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """A thousand groups that each commit one offset after the other."""
    load = Crowd(
        connections=GROUPS,
        frames=[commit_frame(topic=TOPIC, group=f"group-{number}") for number in range(GROUPS)],
        error_at=commit_error_at(TOPIC),
    )
    with Crowds(plan, subjects) as crowds:
        for server in crowds.servers:
            await_groups(server, load.frames)
        crowds.warm(load)
        rounds = crowds.measured(replace(load, seconds=plan.crowd_seconds))
    yield from rows(f"{GROUPS:,} groups, OffsetCommit each", rounds)


def await_groups(server: ServerProcess, frames: Sequence[bytes]) -> None:
    """Until every group has a coordinator that takes its commits."""
    await_coordinator(server.port, "group-0")
    with connect(server.port) as connection:
        for frame in frames:
            await_commits(connection, frame)


class Crowds(ExitStack):
    """Every broker with its topic, and the generators."""

    def __init__(self, plan: Plan, subjects: Subjects, *, partitions: int = PARTITIONS) -> None:
        super().__init__()
        self._plan = plan
        self._programs = built(subjects.directory)
        self._servers: dict[str, ServerProcess] = {}
        for name, make in subjects.starters().items():
            self._servers[name] = self.enter_context(make())
            self._servers[name].start()
            create_topic(self._servers[name], TOPIC, partitions)

    @property
    def servers(self) -> list[ServerProcess]:
        return list(self._servers.values())

    def warm(self, load: Crowd | Tail) -> None:
        """Have Kafka run the load until it has compiled what it runs."""
        if "kafka" in self._servers:
            replace(load, seconds=KAFKA_WARM_S).run(self._programs, self._servers["kafka"])

    def measured(self, load: Crowd | Tail) -> dict[str, list[Round]]:
        """Rounds of every broker, in turn."""
        runs: Mapping[str, Callable[[], Round]] = {
            name: lambda server=server: load.run(self._programs, server)  # type: ignore[misc]
            for name, server in self._servers.items()
        }
        return alternate(runs, rounds=self._plan.rounds)


def produce_load(shape: Shape, connections: int, seconds: float = KAFKA_WARM_S) -> Crowd:
    """A Produce of this shape under way on each connection."""
    return Crowd(
        connections=connections,
        frames=shape.produce_frames(),
        error_at=shape.produce_error_at(),
        seconds=seconds,
    )


def rows(
    work: str, rounds: Mapping[str, Sequence[Round]], *, beyond_one: bool = True
) -> Iterator[Row]:
    """Rate, latency and processor time of the same rounds."""
    faster = [Goal(beside="kafka", at_least=1.0)] if beyond_one else []
    sooner = [Goal(beside="kafka", at_most=1.0)] if beyond_one else []
    yield Row(
        work=work,
        unit="requests/s",
        rounds=figures(rounds, lambda r: r.requests / r.seconds),
        goals=faster,
    )
    yield Row(
        work=f"{work}: p99",
        unit="ms",
        rounds=figures(rounds, lambda r: r.percentile_us(0.99) / 1e3),
        goals=sooner,
    )
    yield Row(
        work=f"{work}: processor time of the broker",
        unit="µs a request",
        rounds=figures(rounds, lambda r: r.server_cpu_s * US / r.requests),
        goals=[Goal(beside=None, at_most=60.0)] if "small" in work else [],
    )


def delivery_rows(work: str, rounds: Mapping[str, Sequence[Round]]) -> Iterator[Row]:
    """How many records reached consumers, how soon after they were due, and at what cost."""
    yield Row(
        work=work,
        unit="deliveries/s",
        rounds=figures(rounds, lambda r: r.requests / r.seconds),
        goals=[Goal(beside="kafka", at_least=1.0)],
    )
    yield Row(
        work=f"{work}: p99 of delivery",
        unit="ms",
        rounds=figures(rounds, lambda r: r.percentile_us(0.99) / 1e3),
        goals=[Goal(beside="kafka", at_most=1.0)],
    )
    yield Row(
        work=f"{work}: processor time of the broker",
        unit="µs a delivery",
        rounds=figures(rounds, lambda r: r.server_cpu_s * US / r.requests),
    )


def figures(
    rounds: Mapping[str, Sequence[Round]], figure: Callable[[Round], float]
) -> dict[str, list[float]]:
    """One figure of each round, by subject."""
    return {name: [figure(one) for one in runs] for name, runs in rounds.items()}
