"""Connect's tasks that have nothing to do, and one that is killed: memory, processor, time.

Each is a file source, exactly once, with its transactional id, its producer and its open file.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.support.connect import ConnectProcess, kill, task_processes
from tests.support.waiting import eventually

from bench.plan import Plan
from bench.process_tree import tree_cpu_s, tree_pss_bytes
from bench.report import OURS, Goal, Row
from bench.subjects import Subjects, fresh

TASKS = 50
MB = 1e6
_START_S, _WAIT_S = 900, 900
_SLOTS = {"penstock.connect.tasks.max": "64", "offset.flush.interval.ms": "10000"}


def idle(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Fifty tasks that wait for lines."""
    with ExitStack() as running:
        worker, folder = _started(running, subjects)
        assert worker.process is not None
        for number in range(TASKS):
            _put(worker, folder, f"idle-{number}")
        names = [f"idle-{number}" for number in range(TASKS)]
        wanted = [["RUNNING", "RUNNING"]] * TASKS
        eventually(
            lambda: [worker.states(name) for name in names] == wanted,
            timeout_s=_WAIT_S,
            every_s=2,
        )
        pid, cores, sizes = worker.process.pid, list[float](), list[float]()
        for _ in range(plan.rounds):
            begun_s, begun_cpu_s = time.perf_counter(), tree_cpu_s(pid)
            time.sleep(plan.connect_idle_s)
            spent_s = tree_cpu_s(pid) - begun_cpu_s
            cores.append(100 * spent_s / (time.perf_counter() - begun_s))
            sizes.append(tree_pss_bytes(pid) / MB)
    yield Row(
        work=f"connect: memory of a worker with {TASKS} idle file sources, all processes",
        unit="MB",
        rounds={OURS: sizes},
        goals=[Goal(beside=None, at_most=3000)],
    )
    yield Row(
        work="connect: processor of the same",
        unit="% of a core",
        rounds={OURS: cores},
        goals=[Goal(beside=None, at_most=15)],
    )


def killed(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """From kill -9 of a task's process until a line that came after it is in its topic."""
    with ExitStack() as running:
        worker, folder = _started(running, subjects)
        file = _put(worker, folder, "killed")
        took_s, before = [], None
        for number in range(plan.connect_kills + 1):
            _append(file, number)
            _wait_for(worker, file)
            before = _task(worker, before)
            begun_s = time.perf_counter()
            kill(before)
            _append(file, number)
            _wait_for(worker, file)
            took_s.append(time.perf_counter() - begun_s)
    yield Row(
        work="connect: kill -9 of a task to its next committed record",
        unit="s",
        rounds={OURS: took_s[1:]},  # The first one warms up.
        goals=[Goal(beside=None, at_most=1.0)],
    )


def _started(running: ExitStack, subjects: Subjects) -> tuple[ConnectProcess, Path]:
    server = running.enter_context(subjects.penstock())
    server.start()
    folder = fresh(subjects.directory / "connect")
    worker = running.enter_context(ConnectProcess(folder / OURS, server.address, _SLOTS))
    worker.start(timeout_s=_START_S)
    return worker, folder


def _put(worker: ConnectProcess, folder: Path, name: str) -> Path:
    file = folder / f"{name}.txt"
    file.touch()
    config = {"connector.class": "FileStreamSource", "file": str(file), "topic": name}
    status, told = worker.ask("PUT", f"/connectors/{name}/config", config)
    assert status == 201, told
    return file


def _append(file: Path, number: int) -> None:
    with file.open("a") as stream:
        stream.write(f"line {number}\n")


def _wait_for(worker: ConnectProcess, file: Path) -> None:
    size = file.stat().st_size
    eventually(lambda: _position(worker) == size, timeout_s=_WAIT_S, every_s=0.02)


def _position(worker: ConnectProcess) -> int | None:
    status, told = worker.ask("GET", "/connectors/killed/offsets")
    offsets = told["offsets"] if status == 200 else []
    return offsets[0]["offset"]["position"] if offsets else None


def _task(worker: ConnectProcess, before: int | None) -> int:
    """The process that runs the task now, another than before."""
    pids: list[int] = [one.pid for one in task_processes(worker) if one.pid != before]
    return pids[0]
