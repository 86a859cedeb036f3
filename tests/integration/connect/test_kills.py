"""Kill -9 at random points: of a task, of Spark, of the worker, of the broker. Lines are counted.

A line of the source's file is in the topic exactly once, whatever was killed while it was on its
way; a line of the sink's file may be there twice, and none is missing.
"""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess, kill, task_processes
from tests.support.connect_files import append, has_lines, source
from tests.support.waiting import eventually

IS_LONG = os.environ.get("PENSTOCK_LONG") == "1"
ROUNDS = 50 if IS_LONG else 3
SEED = int(os.environ.get("PENSTOCK_SEED", "17"))
_LINES = 400
_WAIT_S = 240.0
_FIRST = ("task", "broker", "spark")  # In default mode, one round each.
_ALL = ("task", "task", "task", "broker", "broker", "spark", "worker")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker that may be killed."""
    with BrokerProcess(tmp_path / "broker") as process:
        process.start()
        yield process


def victims(rounds: int, dice: random.Random) -> list[str]:
    """Whom to kill in which round."""
    return [*_FIRST, *(dice.choice(_ALL) for _ in range(rounds - len(_FIRST)))]


def kill_one(victim: str, worker: ConnectProcess, broker: BrokerProcess) -> None:
    """Kill one process, and start again what nobody else does."""
    assert worker.process is not None
    match victim:
        case "task":
            for task in task_processes(worker)[:1]:
                kill(task.pid)
        case "broker":
            broker.kill()
            broker.start()
        case "spark":
            below = psutil.Process(worker.process.pid).children(recursive=True)
            kill(next(one.pid for one in below if one.name() == "java"))
            worker.process.wait(_WAIT_S)  # It ends with Spark, and its supervisor starts both.
            worker.kill()
            worker.start(timeout_s=_WAIT_S)
        case "worker":
            kill(worker.process.pid)
            worker.kill()
            worker.start(timeout_s=_WAIT_S)


@pytest.mark.timeout(7200 if IS_LONG else 900)
def test_each_line_arrives_once_whatever_is_killed(broker: BrokerProcess, tmp_path: Path) -> None:
    dice = random.Random(SEED)
    lines: list[str] = []
    out = tmp_path / "out.txt"
    settings = {"consumer.isolation.level": "read_committed", "penstock.connect.tasks.max": "2"}
    sink = {"connector.class": "FileStreamSink", "topics": "killed", "file": str(out)}
    with ConnectProcess(tmp_path / "connect", broker.address, settings) as worker:
        worker.start(timeout_s=_WAIT_S)
        config = source(tmp_path, "killed", **{"batch.size": "20"})
        assert worker.ask("PUT", "/connectors/in/config", config)[0] == 201
        assert worker.ask("PUT", "/connectors/out/config", sink)[0] == 201
        for number, victim in enumerate(victims(ROUNDS, dice)):
            new = [f"round {number} line {n}" for n in range(_LINES)]
            lines += new
            append(tmp_path / "in.txt", new)
            time.sleep(dice.uniform(0, 0.5))  # Anywhere between two steps of the loop.
            kill_one(victim, worker, broker)
            wait_for(lines, broker, out)
        assert worker.stop(timeout_s=_WAIT_S) == 0, worker.log_end


def wait_for(lines: list[str], broker: BrokerProcess, out: Path) -> None:
    """Until the topic has these lines, each once, and the file has them, each at least once."""
    eventually(lambda: has_lines(broker, "killed", lines), timeout_s=_WAIT_S, every_s=0.5)
    eventually(
        lambda: set(out.read_text().splitlines()) == set(lines), timeout_s=_WAIT_S, every_s=0.5
    )
