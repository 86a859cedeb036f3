"""Consumer groups: how many commits a coordinator takes, and how soon a large group has settled.

Neither broker waits for more members before its first rebalance, and both have members heartbeat
often: a member learns by its heartbeat that the group moves on, and with the clients' three
seconds the clock would show little else.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count

from tests.support.processes import ServerProcess

from bench.plan import Plan, alternate
from bench.report import Goal, Row
from bench.rows.produce import Run
from bench.subjects import Round, Subjects, create_topic, run_load

TOPIC = "bench-group"
HEARTBEAT_MS = 100
AT_ONCE = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
}
KINDS = {"classic": "classic protocol", "consumer": "new protocol"}


def commits(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """One group commits one partition, each commit after the answer to the one before."""
    with ExitStack() as running:
        runs: dict[str, Run] = {}
        for name, server in started(running, subjects):
            create_topic(server, TOPIC, 1)
            runs[name] = load_on(server, "commits", ["--count", str(plan.commits)])
        rounds = alternate(runs, rounds=plan.rounds)
    yield Row(
        work="offset commits, 1 group, one partition, sync",
        unit="/s",
        rounds={name: [r.requests / r.seconds for r in found] for name, found in rounds.items()},
        goals=[Goal(beside=None, at_least=3_000), Goal(beside="kafka", at_least=1.0)],
    )


def rebalance(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """A hundred members join a new group at once; stable when each has its partition."""
    members = ["--members", str(plan.members), "--heartbeat-ms", str(HEARTBEAT_MS)]
    with ExitStack() as running:
        servers = dict(started(running, subjects))
        for server in servers.values():
            create_topic(server, TOPIC, plan.members)
        for kind, words in KINDS.items():
            runs = {name: load_on(server, kind, members) for name, server in servers.items()}
            rounds = alternate(runs, rounds=plan.rounds)
            yield Row(
                work=f"rebalance of {plan.members} members joining at once, {words}",
                unit="s",
                rounds={name: [r.seconds for r in found] for name, found in rounds.items()},
                goals=[Goal(beside="kafka", at_most=1.0)],
                note=f"heartbeats every {HEARTBEAT_MS} ms",
            )


def started(running: ExitStack, subjects: Subjects) -> Iterator[tuple[str, ServerProcess]]:
    """The brokers, running, with the settings above."""
    makers: dict[str, Callable[[dict[str, str]], ServerProcess]] = {
        "penstock": subjects.penstock,
        "kafka": subjects.kafka,
    }
    for name in subjects.starters():
        server = makers[name](AT_ONCE)
        running.enter_context(server)
        server.start()
        yield name, server


def load_on(server: ServerProcess, work: str, arguments: list[str]) -> Run:
    """A run of the load, each with a group of its own."""
    numbers = count()

    def run() -> Round:
        group = ["--topic", TOPIC, "--group", f"bench-{work}-{next(numbers)}"]
        port = ["--port", str(server.port)]
        return run_load(server, "bench.group_load", work, *port, *group, *arguments)

    return run
