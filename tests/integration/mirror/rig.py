"""Two clusters, load with transactions, and mirrors in threads or as processes."""

import contextlib
import threading
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, Producer, TopicPartition
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.mirror.config import MirrorConfig
from penstock.mirror.progress import progress_of
from penstock.mirror.running.hosts import ThreadHost
from penstock.mirror.running.supervisor import supervise


@contextlib.contextmanager
def mirroring(given: Mapping[str, str]) -> Iterator[MirrorConfig]:
    """A mirror in threads of this process; told failures fail the test."""
    config = MirrorConfig.of(given)
    stop, told = threading.Event(), list[str]()
    thread = threading.Thread(target=supervise, args=(config, ThreadHost(), told.append, stop))
    thread.start()
    try:
        yield config
    finally:
        stop.set()
        thread.join(120)
    assert not thread.is_alive()
    assert told == []


def make_topic(bootstrap: str, name: str, partitions: int = 2, **configs: str) -> None:
    from penstock.client.operations.topics import NewTopic

    with Admin(bootstrap_servers=bootstrap) as admin:
        given = {key.replace("_", "."): value for key, value in configs.items()}
        admin.create_topics([NewTopic(name=name, partitions=partitions, configs=given)])


class Load:
    """Numbered records in plain batches and transactions, every third of which is aborted."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: int = 2, codec: str = "none"
    ) -> None:
        self.topic = topic
        self.partitions = partitions
        self.number = 0
        self.kept: dict[int, list[bytes]] = {at: [] for at in range(partitions)}
        shared = {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 2}
        self.plain = Producer(shared)
        self.transactional = Producer({**shared, "transactional.id": f"load-{topic}"})
        self.transactional.init_transactions(60)

    def some(self, rounds: int = 3, each: int = 7) -> None:
        """A few rounds: plain, committed, aborted."""
        for _ in range(rounds):
            self._send(self.plain, each, counts=True)
            self.plain.flush(60)
            for commits in (True, False):
                self.transactional.begin_transaction()
                self._send(self.transactional, each, counts=commits)
                self.transactional.flush(60)
                if commits:
                    self.transactional.commit_transaction(60)
                else:
                    self.transactional.abort_transaction(60)

    def _send(self, producer: Producer, count: int, *, counts: bool) -> None:
        for _ in range(count):
            at, value = self.number % self.partitions, b"%d" % self.number
            producer.produce(self.topic, value, key=value, partition=at, headers={"n": value})
            self.number += 1
            if counts:
                self.kept[at].append(value)


def read_all(
    bootstrap: str, topic: str, count: int, *, partitions: int = 2
) -> dict[int, list[bytes]]:
    """The committed records of a topic by partition, from its beginning, once there are so many."""
    consumer = reader(bootstrap, "all")
    consumer.assign([TopicPartition(topic, at, 0) for at in range(partitions)])
    found: dict[int, list[bytes]] = {at: [] for at in range(partitions)}

    def read() -> bool:
        for message in consumer.consume(1000, 0.5):
            assert message.error() is None or message.error().retriable(), message.error()
            if message.error() is None:
                found[message.partition()].append(message.value())
        return sum(map(len, found.values())) >= count

    eventually(read, timeout_s=120, what=f"{count} records in {topic}")
    for message in consumer.consume(1000, 1.0):  # Whatever was doubled would come now.
        if message.error() is None:
            found[message.partition()].append(message.value())
    consumer.close()
    return found


def read_in_group(bootstrap: str, group: str, topic: str, count: int) -> list[tuple[int, bytes]]:
    """So many records as the next member of a group gets them, committed after the last one."""
    consumer = reader(bootstrap, group)
    consumer.subscribe([topic])
    found: list[tuple[int, bytes]] = []

    def read() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append((message.partition(), message.value()))
            consumer.store_offsets(message)
        return len(found) >= count

    eventually(read, timeout_s=120, every_s=0, what=f"{count} records for group {group}")
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def reader(bootstrap: str, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "isolation.level": "read_committed",
        }
    )


def catch_up(config: MirrorConfig) -> None:
    """Wait until nothing is left to copy in the first flow."""
    flow = config.flows[0]

    def is_done() -> bool:
        topics = [one for one in progress_of(config, flow) if "heartbeats" not in one.topic]
        return bool(topics) and all(one.lag == 0 for one in topics)

    eventually(is_done, timeout_s=120, every_s=0.1, what="no lag")


def group_offsets(bootstrap: str, group: str) -> dict[tuple[str, int], int]:
    with Admin(bootstrap_servers=bootstrap) as admin:
        found = admin.list_consumer_group_offsets(group)
    return {tuple(at): one.offset for at, one in found.items()}  # type: ignore[misc]
