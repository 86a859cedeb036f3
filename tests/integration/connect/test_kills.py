"""Kill -9 at random points: of a task, of Spark, of the worker, of the broker, and counting.

A line of the source's file is in the topic exactly once in either lane, and so is a change of the
database, whatever was killed while it was on its way. A line of the sink's file may be there twice,
and none is missing.
"""

import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess, kill, task_processes
from tests.support.connect_files import append, has_lines, source
from tests.support.postgres import PostgresProcess, running_postgres
from tests.support.postgres_capture import TopicTable, capture, write_changes
from tests.support.processes import named_below
from tests.support.waiting import eventually

IS_LONG = os.environ.get("PENSTOCK_LONG") == "1"
_FIRST = ("task", "broker", "spark", "worker")  # In default mode, one round each.
_ALL = ("task", "task", "task", "broker", "broker", "spark", "worker")
ROUNDS = int(os.environ.get("PENSTOCK_ROUNDS", "50" if IS_LONG else len(_FIRST)))
SEED = int(os.environ.get("PENSTOCK_SEED", "17"))
_LINES = 400
_WAIT_S = 240.0
_TOPICS = {"columnar": "killed", "ordinary": "killed-ordinary"}  # By the lane of the source.
_TABLE = "shop.public.orders"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker that may be killed."""
    with BrokerProcess(tmp_path / "broker") as process:
        process.start()
        yield process


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresProcess]:
    with running_postgres() as process:
        yield process


def victims(rounds: int, dice: random.Random) -> list[str]:
    """Whom to kill in which round."""
    return [*_FIRST, *(dice.choice(_ALL) for _ in range(rounds - len(_FIRST)))][:rounds]


def kill_one(
    victim: str, worker: ConnectProcess, broker: BrokerProcess, dice: random.Random
) -> None:
    """Kill one process, and start again what nobody else does."""
    assert worker.process is not None
    match victim:
        case "task":
            for task in dice.sample(task_processes(worker), 1):
                kill(task.pid)
        case "broker":
            broker.kill()
            broker.start()
        case "spark":
            kill(named_below(worker.process.pid, "java")[0].pid)
            worker.process.wait(_WAIT_S)  # It ends with Spark, and its supervisor starts both.
            worker.kill()
            worker.start(timeout_s=_WAIT_S)
        case "worker":
            kill(worker.process.pid)
            worker.kill()
            worker.start(timeout_s=_WAIT_S)


@pytest.mark.timeout(14_400 if IS_LONG else 1_800)
def test_each_line_arrives_once_whatever_is_killed(broker: BrokerProcess, tmp_path: Path) -> None:
    dice = random.Random(SEED)
    lines: list[str] = []
    out = tmp_path / "out.txt"
    settings = {"consumer.isolation.level": "read_committed", "penstock.connect.tasks.max": "3"}
    sink = {"connector.class": "FileStreamSink", "topics": "killed", "file": str(out)}
    with ConnectProcess(tmp_path / "connect", broker.address, settings) as worker:
        worker.start(timeout_s=_WAIT_S)
        for lane, topic in _TOPICS.items():
            config = source(tmp_path, topic, **{"batch.size": "20", "penstock.lane": lane})
            assert worker.ask("PUT", f"/connectors/in-{lane}/config", config)[0] == 201
        assert worker.ask("PUT", "/connectors/out/config", sink)[0] == 201
        eventually(lambda: len(task_processes(worker)) >= 3, timeout_s=_WAIT_S, every_s=0.5)
        for number, victim in enumerate(victims(ROUNDS, dice)):
            new = [f"round {number} line {n}" for n in range(_LINES)]
            lines += new
            append(tmp_path / "in.txt", new)
            # The kill before may have left none to kill.
            eventually(lambda: task_processes(worker), timeout_s=_WAIT_S, every_s=0.2)
            time.sleep(dice.uniform(0, 0.5))  # Anywhere between two steps of the loop.
            kill_one(victim, worker, broker, dice)
            wait_for(lines, broker, out)
        assert worker.stop(timeout_s=_WAIT_S) == 0, worker.log_end


def wait_for(lines: list[str], broker: BrokerProcess, out: Path) -> None:
    """Until the topics have these lines, each once, and the file has them, each at least once."""
    for topic in _TOPICS.values():
        eventually(
            lambda topic=topic: has_lines(broker, topic, lines),  # type: ignore[misc]
            timeout_s=_WAIT_S,
            every_s=0.5,
        )
    eventually(
        lambda: set(out.read_text().splitlines()) == set(lines), timeout_s=_WAIT_S, every_s=0.5
    )


@pytest.mark.timeout(14_400 if IS_LONG else 1_800)
def test_each_change_arrives_once_whatever_is_killed(
    broker: BrokerProcess, server: PostgresProcess, tmp_path: Path
) -> None:
    dice = random.Random(SEED)
    server.run(
        "CREATE TABLE orders (id int PRIMARY KEY, v int)",
        "INSERT INTO orders SELECT n, 0 FROM generate_series(1, 500) n",
    )
    stop = threading.Event()
    writer = threading.Thread(target=write_changes, args=(server, stop, SEED))
    writer.start()
    settings = {"penstock.connect.tasks.max": "1"}
    try:
        with ConnectProcess(tmp_path / "connect", broker.address, settings) as worker:
            worker.start(timeout_s=_WAIT_S)
            assert worker.ask("PUT", "/connectors/shop/config", capture(server))[0] == 201
            for victim in victims(ROUNDS, dice):
                eventually(lambda: task_processes(worker), timeout_s=_WAIT_S, every_s=0.2)
                time.sleep(dice.uniform(0, 2.0))  # In its start, its snapshot or its stream.
                kill_one(victim, worker, broker, dice)
            stop.set()
            writer.join()
            compare(server, broker)
            assert worker.stop(timeout_s=_WAIT_S) == 0, worker.log_end
    finally:
        stop.set()
        writer.join()


def compare(server: PostgresProcess, broker: BrokerProcess) -> None:
    """Until the topic's changes, each of which must fit, have led to the rows of the table."""
    rows: dict[int, int] = dict(server.run("SELECT id, v FROM orders"))  # type: ignore[arg-type]
    table = TopicTable(broker, _TABLE)
    try:
        eventually(lambda: table.is_like(rows), timeout_s=_WAIT_S, what="the same rows")
    finally:
        table.close()
