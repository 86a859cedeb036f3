"""PostgreSQL's changes through a real worker on Spark and a broker, with its task killed again."""

import os
import random
import threading
from collections.abc import Iterator

import psutil
import pytest
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess, kill, task_processes
from tests.support.postgres import PostgresProcess, running_postgres
from tests.support.postgres_capture import TopicTable, capture, write_changes
from tests.support.waiting import eventually

ROUNDS = 50 if os.environ.get("PENSTOCK_LONG") == "1" else 3
_WAIT_S = 180.0


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresProcess]:
    with running_postgres() as process:
        yield process


@pytest.fixture(scope="module")
def worker(
    server: PostgresProcess,
    shared_broker: BrokerProcess,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ConnectProcess]:
    with ConnectProcess(tmp_path_factory.mktemp("connect"), shared_broker.address) as process:
        process.start(timeout_s=300)
        yield process


def task_process(worker: ConnectProcess, before: int | None) -> int:
    """The process that runs the task now, another than before."""

    def found() -> int | None:
        for one in task_processes(worker):
            if one.pid != before and one.status() != psutil.STATUS_ZOMBIE:
                return one.pid
        return None

    pid = eventually(found, timeout_s=_WAIT_S, what="the task's process")
    assert pid is not None
    return pid


def test_nothing_is_lost_or_doubled_though_the_task_is_killed_between_its_steps(
    worker: ConnectProcess, server: PostgresProcess, shared_broker: BrokerProcess
) -> None:
    server.run(
        "CREATE TABLE orders (id int PRIMARY KEY, v int)",
        "INSERT INTO orders SELECT n, 0 FROM generate_series(1, 500) n",
    )
    stop = threading.Event()
    writer = threading.Thread(target=write_changes, args=(server, stop, 7))
    writer.start()
    chance, pid = random.Random(1), None
    try:
        answer = worker.ask("PUT", "/connectors/shop/config", capture(server))
        assert answer[0] == 201, answer
        for _ in range(ROUNDS):
            pid = task_process(worker, pid)
            stop.wait(chance.uniform(0.1, 2.0))  # Somewhere in its start, snapshot or stream.
            kill(pid)
    finally:
        stop.set()
        writer.join()
    rows: dict[int, int] = dict(server.run("SELECT id, v FROM orders"))  # type: ignore[arg-type]
    table = TopicTable(shared_broker, "shop.public.orders")
    try:
        eventually(lambda: table.is_like(rows), timeout_s=_WAIT_S, what="the same rows")
    finally:
        table.close()
    assert worker.states("shop") == ["RUNNING", "RUNNING"]
    assert worker.ask("DELETE", "/connectors/shop")[0] == 204
