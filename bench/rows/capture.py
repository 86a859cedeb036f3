"""PostgreSQL's changes: from a commit in the database until a reader has its record.

Our connector in our worker beside Debezium in Apache's, exactly once, both with their default
settings, one at a time on the same database and the same broker. A row is inserted when the one
before it has arrived, so nothing waits behind anything else.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count

from confluent_kafka import Consumer, TopicPartition
from tests.support.connect import ConnectProcess
from tests.support.outside import missing
from tests.support.postgres import DATABASE, PASSWORD, USER, PostgresProcess, running_postgres
from tests.support.processes import HOST, ServerProcess
from tests.support.waiting import eventually

from bench.plan import Plan, alternate
from bench.report import Goal, Row
from bench.rows.connect import PEER, started
from bench.subjects import Subjects, create_topic, fresh

PLUGINS = "debezium-postgres-3.2.0"
MS = 1000.0
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_WARM_UP = 20  # Changes of each round that are not counted.
_REST_S = 0.02  # Between two changes: nobody inserts without a pause.
_WAIT_S = 300.0
_NUMBERS = count()
_IDS = count(1)


def latency(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Inserts, one after the other."""
    if lacking := missing("postgresql"):
        yield Row(work="connect: PostgreSQL commit to record", unit="ms", rounds={}, note=lacking)
        return
    with ExitStack() as running:
        database = running.enter_context(running_postgres())
        database.run("CREATE TABLE orders (id int PRIMARY KEY, note text)")
        server = running.enter_context(subjects.penstock())
        server.start()
        folder = fresh(subjects.directory / "capture")
        workers = started(running, server, folder, PLUGINS if subjects.kafka_jars else None)
        runs: dict[str, Callable[[], list[float]]] = {
            who: partial(_round, server, worker, database, plan.connect_changes)
            for who, worker in workers.items()
        }
        rounds = alternate(runs, rounds=plan.rounds)
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        yield Row(
            work=f"connect: PostgreSQL commit to record in the topic, {name}",
            unit="ms",
            rounds={who: [_quantile(one, share) for one in its] for who, its in rounds.items()},
            goals=[Goal(beside=PEER, at_most=1.0)] if PEER in rounds and share == 0.5 else [],
            note="" if PEER in rounds else f"without Debezium: {missing(PLUGINS) or 'not wanted'}",
        )


def _quantile(times_ms: list[float], share: float) -> float:
    return statistics.quantiles(times_ms, n=100, method="inclusive")[round(share * 100) - 1]


def _round(
    server: ServerProcess, worker: ConnectProcess, database: PostgresProcess, changes: int
) -> list[float]:
    """A new connector, and how long each change took, in milliseconds."""
    name = f"c{next(_NUMBERS)}"
    topic = f"{name}.public.orders"
    create_topic(server, topic, 1)
    status, told = worker.ask("PUT", f"/connectors/{name}/config", _config(name, database))
    assert status == 201, told
    consumer = Consumer(
        {
            "bootstrap.servers": server.address,
            "group.id": name,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        eventually(lambda: _streams(database, name), timeout_s=_WAIT_S, every_s=0.2)
        with database.connect() as connection:
            took_ms = []
            for _ in range(_WARM_UP + changes):
                time.sleep(_REST_S)
                number = next(_IDS)
                connection.execute("INSERT INTO orders VALUES (%s, 'a note')", (number,))
                begun_s = time.perf_counter()
                _wait_for(consumer, number)
                took_ms.append(MS * (time.perf_counter() - begun_s))
            return took_ms[_WARM_UP:]
    finally:
        consumer.close()
        worker.ask("DELETE", f"/connectors/{name}")
        eventually(lambda: not _streams(database, name), timeout_s=_WAIT_S, every_s=0.2)


def _config(name: str, database: PostgresProcess) -> dict[str, str]:
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "database.hostname": HOST,
        "database.port": str(database.port),
        "database.user": USER,
        "database.password": PASSWORD,
        "database.dbname": DATABASE,
        "topic.prefix": name,
        "plugin.name": "pgoutput",
        "slot.name": name,
        "publication.name": name,
        "table.include.list": "public.orders",
        "snapshot.mode": "no_data",
        "key.converter": _JSON,
        "value.converter": _JSON,
    }


def _streams(database: PostgresProcess, slot: str) -> bool:
    """Whether somebody reads the slot."""
    active = f"SELECT active FROM pg_replication_slots WHERE slot_name = '{slot}'"
    return database.run(active) == [(True,)]


def _wait_for(consumer: Consumer, number: int) -> None:
    """Return when the record of a row has come."""
    give_up_s = time.monotonic() + _WAIT_S
    while time.monotonic() < give_up_s:
        message = consumer.poll(1.0)
        if message is None or message.error() is not None:
            continue
        value = message.value()
        assert value is not None
        if json.loads(value)["payload"]["after"]["id"] == number:
            return
    raise AssertionError(f"row {number} did not arrive")
