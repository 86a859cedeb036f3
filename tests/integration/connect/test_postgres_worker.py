"""PostgreSQL's changes through a real worker on Spark and a broker, with its task killed again."""

import json
import os
import random
import threading
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess, kill, task_processes
from tests.support.postgres import PASSWORD, PostgresProcess, running_postgres
from tests.support.processes import HOST
from tests.support.waiting import eventually

ROUNDS = 50 if os.environ.get("PENSTOCK_LONG") == "1" else 3
_WAIT_S = 180.0
_JSON = "org.apache.kafka.connect.json.JsonConverter"


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


def config(server: PostgresProcess) -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "database.hostname": HOST,
        "database.port": str(server.port),
        "database.user": "postgres",
        "database.password": PASSWORD,
        "database.dbname": "postgres",
        "topic.prefix": "shop",
        "table.include.list": "public.orders",
        "max.batch.size": "20",
        "poll.interval.ms": "50",
        "slot.retry.delay.ms": "200",
        "slot.max.retries": "1000",
        "key.converter": _JSON,
        "key.converter.schemas.enable": "false",
        "value.converter": _JSON,
        "value.converter.schemas.enable": "false",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    }


class TopicTable:
    """The table that the topic's events make, each of which must fit the row as it then is."""

    def __init__(self, broker: BrokerProcess, topic: str) -> None:
        self.rows: dict[int, int] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker.address,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def close(self) -> None:
        self._consumer.close()

    def is_like(self, rows: dict[int, int]) -> bool:
        """Whether the topic has led to these rows by now."""
        while (message := self._consumer.poll(0.2)) is not None:
            if message.error() is None and message.value() is not None:
                self._take(json.loads(message.value()))
        return self.rows == rows

    def _take(self, event: dict[str, Any]) -> None:
        row = event["after"] or event["before"]
        match event["op"]:
            case "r" | "c":
                _ensure(row["id"] not in self.rows, event)
                self.rows[row["id"]] = row["v"]
            case "u":
                _ensure(self.rows.get(row["id"]) == row["v"] - 1, event)
                self.rows[row["id"]] = row["v"]
            case "d":
                del self.rows[row["id"]]


def _ensure(fits: bool, event: dict[str, Any]) -> None:
    if not fits:  # No AssertionError: no wait can mend it.
        raise ValueError(f"lost or told twice: {event}")


def write(server: PostgresProcess, stop: threading.Event, seed: int) -> None:
    """Transactions of all sizes, until told to stop."""
    chance = random.Random(seed)
    with server.connect() as connection:
        for at in range(1000, 10**9, 1000):
            if stop.wait(0.02):
                return
            last = at + chance.choice((1, 5, 60))
            connection.execute(
                "INSERT INTO orders SELECT n, 0 FROM generate_series(%s::int, %s) n", (at, last)
            )
            some = chance.randrange(0, at)
            connection.execute(
                "UPDATE orders SET v = v + 1 WHERE id BETWEEN %s AND %s", (some, some + 900)
            )
            connection.execute("DELETE FROM orders WHERE id = %s", (at,))


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
    writer = threading.Thread(target=write, args=(server, stop, 7))
    writer.start()
    chance, pid = random.Random(1), None
    try:
        answer = worker.ask("PUT", "/connectors/shop/config", config(server))
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
