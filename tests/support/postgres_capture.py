"""PostgreSQL's changes captured into a topic: the connector, a writer, and a reader that judges."""

import json
import random
import threading
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from tests.support.broker import BrokerProcess
from tests.support.postgres import PASSWORD, PostgresProcess
from tests.support.processes import HOST

_JSON = "org.apache.kafka.connect.json.JsonConverter"


def capture(server: PostgresProcess) -> dict[str, str]:
    """The connector for the table `orders`."""
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

    def catch_up(self) -> None:
        """Take what is there; ValueError for a change that is there twice, or was lost."""
        while (message := self._consumer.poll(0.2)) is not None:
            value = message.value()
            if message.error() is None and value is not None:
                self._take(json.loads(value))

    def is_like(self, rows: dict[int, int]) -> bool:
        """Whether the topic has led to these rows by now."""
        self.catch_up()
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


def write_changes(server: PostgresProcess, stop: threading.Event, seed: int) -> None:
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
