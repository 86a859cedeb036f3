"""`penstock up`: how soon broker, registry and REST proxy answer, and the memory they take."""

from collections.abc import Iterator

from tests.support.platform import UpProcess
from tests.support.processes import cpu_seconds

from bench.plan import Plan, alternate
from bench.report import Goal, Row
from bench.rows.process import MB
from bench.subjects import Subjects, fresh
from penstock.platform.child import memory_bytes


def up(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """From the start of the supervisor to the last service that answers, on existing data."""
    tree = UpProcess(fresh(subjects.directory / "up"))
    sizes: list[float] = []
    used_s: list[float] = []
    tree.start()
    tree.stop()

    def run() -> float:
        tree.launch()
        try:
            took_s = tree.wait_until_ready(timeout_s=90, every_s=0.002)
            pids = pids_of(tree)
            used_s.append(sum(cpu_seconds(pid) for pid in pids))
            sizes.append(sum(memory_bytes(pid) or 0 for pid in pids) / MB)
            return took_s
        finally:
            tree.stop()

    rounds = alternate({"penstock": run}, rounds=plan.starts, warm_up=False)
    yield Row(
        work="penstock up to broker, registry and REST proxy answering",
        unit="s",
        rounds=rounds,
        goals=[Goal(beside=None, at_most=1.5)],
    )
    yield Row(
        work="processor time of that start, all processes",
        unit="s",
        rounds={"penstock": used_s},
        goals=[],
    )
    yield Row(
        work="memory of penstock up, all processes, idle",
        unit="MB",
        rounds={"penstock": sizes},
        goals=[Goal(beside=None, at_most=150)],
    )


def pids_of(tree: UpProcess) -> list[int]:
    """All processes of the tree; memory that they share is counted for each."""
    state = tree.state()
    return [identity.pid for identity in (state.supervisor, *state.identities)]
