"""Connect's worker on our broker: ours on Spark beside Apache's, a file source, exactly once.

A round is a new connector over the same file, from its PUT until its offset is the end of the file.
What counts is the processor time of the whole worker meanwhile: with Spark's virtual machine and
all Python processes in ours. Apache's worker is left out where its jars are not to be had.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter

import psutil
from tests.support.connect import ConnectProcess
from tests.support.connect_golden import ApacheConnectProcess
from tests.support.outside import REPORT, missing
from tests.support.processes import ServerProcess
from tests.support.waiting import eventually

from bench.plan import Plan, alternate
from bench.report import OURS, Goal, Row
from bench.subjects import Subjects, create_topic, fresh

PEER = "kafka"  # The column of the table: Apache Kafka's own worker.
PLUGINS = "connect-file-4.3.1"
LINE_BYTES = 100
_START_S, _RUN_S = 300, 900
_NUMBERS = count()
_CONVERTERS = {
    "String": {"value.converter": "org.apache.kafka.connect.storage.StringConverter"},
    "JSON with schemas": {"value.converter": "org.apache.kafka.connect.json.JsonConverter"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One round of one worker."""

    records: int
    seconds: float
    cpu_s: float


def source(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Lines of a file, each a record, in a transaction with the position behind it."""
    lines = plan.connect_records
    with ExitStack() as running:
        server = running.enter_context(subjects.penstock())
        server.start()
        folder = fresh(subjects.directory / "connect")
        file = folder / "in.txt"
        file.write_text("".join(f"{n:0{LINE_BYTES - 1}d}\n" for n in range(lines)))
        workers = _started(running, server, folder, with_peer=subjects.kafka_jars is not None)
        for name, converter in _CONVERTERS.items():
            runs: dict[str, Callable[[], Played]] = {
                who: partial(_play, server, worker, file, lines, converter)
                for who, worker in workers.items()
            }
            rounds = alternate(runs, rounds=plan.rounds)
            yield from _rows(name, rounds)


def _started(
    running: ExitStack, server: ServerProcess, folder: Path, *, with_peer: bool
) -> dict[str, ConnectProcess]:
    workers = {OURS: ConnectProcess(folder / OURS, server.address)}
    if with_peer and not missing(PLUGINS):
        plugins = REPORT.parent / "java" / PLUGINS
        workers[PEER] = ApacheConnectProcess(folder / PEER, server.address, plugins)
    for who, worker in workers.items():
        names = ("config", "offset", "status")
        worker.settings |= {f"{name}.storage.topic": f"{who}-{name}" for name in names}
        worker.settings["group.id"] = who
        if who == PEER:
            # Its plug-ins are on the class path; looking through each jar takes minutes.
            del worker.settings["plugin.path"]
            worker.settings["plugin.discovery"] = "service_load"
        running.enter_context(worker)
        worker.launch()
        eventually(worker.answers, timeout_s=_START_S, every_s=1)
    return workers


def _play(
    server: ServerProcess,
    worker: ConnectProcess,
    file: Path,
    lines: int,
    converter: dict[str, str],
) -> Played:
    name = f"lines-{next(_NUMBERS)}"
    create_topic(server, name, 1)
    config = {"connector.class": "FileStreamSource", "file": str(file), "topic": name, **converter}
    begun_s, begun_cpu_s = perf_counter(), _tree_cpu_s(worker)
    status, told = worker.ask("PUT", f"/connectors/{name}/config", config)
    assert status == 201, told
    size = file.stat().st_size
    eventually(lambda: _position(worker, name) == size, timeout_s=_RUN_S, every_s=0.1)
    played = Played(
        records=lines,
        seconds=perf_counter() - begun_s,
        cpu_s=_tree_cpu_s(worker) - begun_cpu_s,
    )
    worker.ask("DELETE", f"/connectors/{name}")
    return played


def _position(worker: ConnectProcess, name: str) -> int | None:
    status, told = worker.ask("GET", f"/connectors/{name}/offsets")
    offsets = told["offsets"] if status == 200 else []
    return offsets[0]["offset"]["position"] if offsets else None


def _tree_cpu_s(worker: ConnectProcess) -> float:
    assert worker.process is not None
    top = psutil.Process(worker.process.pid)
    total = 0.0
    for one in (top, *top.children(recursive=True)):
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        # Of children that have ended too, such as a task of an earlier round.
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _rows(converter: str, rounds: dict[str, list[Played]]) -> Iterator[Row]:
    work = f"connect: file source, {LINE_BYTES} B records, exactly once, {converter}"
    yield Row(
        work=f"{work}, of the worker's processor time",
        unit="records/CPU s",
        rounds={who: [one.records / one.cpu_s for one in runs] for who, runs in rounds.items()},
        goals=[Goal(beside=PEER, at_least=0.7)] if converter == "String" else [],
        note=""
        if PEER in rounds
        else f"without Apache's worker: {missing(PLUGINS) or 'not wanted'}",
    )
    yield Row(
        work=work,
        unit="records/s",
        rounds={who: [one.records / one.seconds for one in runs] for who, runs in rounds.items()},
    )
