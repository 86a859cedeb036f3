"""A broker with topics, and members of groups that read beside the test."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.cli.conftest import Done, Tool, run
from tests.support.broker import BrokerProcess
from tests.support.kafka_python import poll
from tests.support.waiting import eventually

# Groups come together at once, and anybody may write into a transaction that nobody announced.
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "transaction.partition.verification.enable": "false",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One for all tests of a module."""
    with BrokerProcess(tmp_path_factory.mktemp("broker"), SETTINGS) as started:
        started.start()
        yield started
        assert started.tracebacks() == {}
        assert started.stop() == 0, started.log_end


@pytest.fixture
def tool(broker: BrokerProcess) -> Tool:
    """Runs tools against the broker; they must succeed unless `code` says otherwise."""

    def run_tool(name: str, *words: object, stdin: str = "", code: int = 0) -> Done:
        done = run(name, "--bootstrap-server", broker.address, *words, stdin=stdin)
        assert done.code == code, f"{name} {words}: {done}"
        return done

    return run_tool


class Cluster:
    """What tests do to the broker apart from the tools."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._admin = AdminClient({"bootstrap.servers": address})
        self._producer = confluent_kafka.Producer({"bootstrap.servers": address})

    def create(self, topic: str, partitions: int = 1, *, records: int = 0) -> str:
        """A topic with so many records in each partition."""
        for made in self._admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            made.result()
        for number in range(records):
            for partition in range(partitions):
                self._producer.produce(
                    topic, b"v%d" % number, partition=partition, timestamp=1000 * (number + 1)
                )
        assert self._producer.flush(120) == 0
        return topic

    def commit(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        """Offsets of a group that has no members."""
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self.address, "group.id": group})
        wanted = [confluent_kafka.TopicPartition(topic, p, o) for p, o in offsets.items()]
        consumer.commit(offsets=wanted, asynchronous=False)
        consumer.close()


@pytest.fixture(scope="module")
def cluster(broker: BrokerProcess) -> Cluster:
    return Cluster(broker.address)


class RdMember:
    """A member on librdkafka that reads on a thread of its own."""

    def __init__(self, address: str, group: str, topic: str, **settings: Any) -> None:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": address,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **named,
            }
        )
        self._consumer.subscribe([topic])
        self._count = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.05)
            if message is not None and message.error() is None:
                self._consumer.commit(message, asynchronous=True)
            # Asked on this thread alone: from another it can wait for a poll that waits for it.
            self._count = len(self._consumer.assignment())

    def assigned(self) -> int:
        """How many partitions it has."""
        return self._count

    def close(self) -> None:
        self._stop.set()
        self._thread.join(120)
        self._consumer.close()


class PyMember:
    """A member on kafka-python."""

    def __init__(self, address: str, group: str, topic: str, **settings: Any) -> None:
        self._count = 0
        self._stop = threading.Event()
        self._consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=address,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **settings,
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        is_committed = True
        while not self._stop.is_set():
            if poll(self._consumer, timeout_ms=500):
                is_committed = False
            if not is_committed:
                # It is refused while the group shares out its partitions, and tried again then.
                with suppress(kafka.errors.KafkaError):
                    self._consumer.commit()
                    is_committed = True
            self._count = len(self._consumer.assignment())
        self._consumer.close()

    def assigned(self) -> int:
        """How many partitions it has."""
        return self._count

    def close(self) -> None:
        self._stop.set()
        self._thread.join(120)


Join = Callable[..., Any]


@pytest.fixture
def join(broker: BrokerProcess) -> Iterator[Join]:
    """Starts members that read until the end of the test, once they have so many partitions."""
    with ExitStack() as running:

        def start(kind: type[Any], group: str, topic: str, **settings: Any) -> Any:
            member = kind(broker.address, group, topic, **settings)
            running.callback(member.close)
            return member

        yield start


def settled(*wanted: tuple[Any, int]) -> None:
    """Wait until each member has its number of partitions."""
    eventually(
        lambda: all(member.assigned() == count for member, count in wanted),
        timeout_s=120,
        what="the assignment of all members",
    )
