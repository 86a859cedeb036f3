"""Groups and transactions live through kill -9 of any broker, the coordinator's included."""

import threading
import time
import uuid

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from tests.integration.cluster.conftest import Topics
from tests.integration.cluster.writing import OVERALL_S, QUIET, Stream, read_all
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

PATIENCE_S = 60.0  # Longer than any call is allowed to take.


class Member(threading.Thread):
    """A consumer of a group that commits what it read, and goes on through everything."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        super().__init__()
        self.seen: list[int] = []
        self._uncommitted = 0
        self._stop_asked = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 10_000,
                "heartbeat.interval.ms": 500,
                **QUIET,
            }
        )
        self._consumer.subscribe([topic])

    def run(self) -> None:
        while not self._stop_asked.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error() is not None:
                self._commit()
                continue
            self.seen.append(int(message.value() or b"-1"))
            self._uncommitted += 1
            if self._uncommitted >= 20:
                self._commit()
        self._consumer.close()

    def _commit(self) -> None:
        """What is not committed is read again, which a group allows."""
        if not self._uncommitted:
            return
        try:
            self._consumer.commit(asynchronous=False)
            self._uncommitted = 0
        except KafkaException as failure:
            error: KafkaError = failure.args[0]
            assert error.code() in (
                KafkaError._NO_OFFSET,
                KafkaError.ILLEGAL_GENERATION,
                KafkaError.UNKNOWN_MEMBER_ID,
                KafkaError.REBALANCE_IN_PROGRESS,
                KafkaError._TIMED_OUT,
                KafkaError._TRANSPORT,
                KafkaError.REQUEST_TIMED_OUT,
                KafkaError.NOT_COORDINATOR,
                KafkaError.COORDINATOR_NOT_AVAILABLE,
                KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
                KafkaError._WAIT_COORD,
            ), error

    def stop(self) -> None:
        self._stop_asked.set()
        self.join(OVERALL_S)


def test_a_group_reads_on_whoever_is_killed(cluster: Cluster, topics: Topics) -> None:
    topic = topics.create("for-a-group", partitions=4)
    group = f"group-{uuid.uuid4()}"
    members = [Member(cluster.bootstrap, group, topic) for _ in range(2)]
    with Stream(cluster.bootstrap, topic) as stream:
        for member in members:
            member.start()
        stream.until_more()
        for broker in cluster.brokers:
            broker.kill()
            stream.until_more()
            seen = sum(len(member.seen) for member in members)
            eventually(
                lambda seen=seen: sum(len(m.seen) for m in members) > seen + 20,
                timeout_s=OVERALL_S,
                what="the group to read on",
            )
            broker.start(timeout_s=120)
            cluster.until_in_sync(topic)
            cluster.until_in_sync("__consumer_offsets")
    assert stream.failed == []
    eventually(
        lambda: {n for m in members for n in m.seen} >= set(stream.acked),
        timeout_s=OVERALL_S,
        what="every record to be read",
    )

    # Nothing was read that is not there, and the commits come to where the reading ended.
    def is_committed() -> bool:
        ends = _ends(cluster.bootstrap, group, topic)
        assert all(committed == end for committed, end in ends), ends
        return True

    eventually(is_committed, timeout_s=OVERALL_S, every_s=0.5, what="commits of everything")
    for member in members:
        member.stop()
    assert is_committed()


def _ends(bootstrap: str, group: str, topic: str) -> list[tuple[int, int]]:
    """For each partition, the committed offset and the end."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **QUIET})
    try:
        wanted = [TopicPartition(topic, number) for number in range(4)]
        committed = consumer.committed(wanted, timeout=OVERALL_S)
        return [
            (found.offset, consumer.get_watermark_offsets(found, timeout=OVERALL_S)[1])
            for found in committed
        ]
    finally:
        consumer.close()


class Transformer(threading.Thread):
    """Consume, transform, produce in transactions, from the last commit on, until it fails."""

    def __init__(self, bootstrap: str, source: str, target: str, count: int) -> None:
        super().__init__(daemon=True)
        self.done = 0
        self.moved_s = time.monotonic()
        self._servers = bootstrap
        self._from, self._into, self._count = source, target, count

    def run(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._servers,
                "transactional.id": "transformer",
                "transaction.timeout.ms": 20_000,
                **QUIET,
            }
        )
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "transformers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "session.timeout.ms": 6_000,
                "max.poll.interval.ms": 10_000,
                **QUIET,
            }
        )
        try:
            producer.init_transactions(OVERALL_S)
            consumer.subscribe([self._from])
            while self.done < self._count:
                self._transform(producer, consumer)
        except KafkaException:
            pass  # The next one fences this one off and begins at the last commit.
        finally:
            consumer.close()

    def _transform(self, producer: Producer, consumer: Consumer) -> None:
        batch = [m for m in consumer.consume(10, 0.5) if m.error() is None]
        if not batch:
            return
        producer.begin_transaction()
        for message in batch:
            producer.produce(self._into, message.value(), message.key())
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 20)
        producer.commit_transaction(20)
        self.done = sum(max(position.offset, 0) for position in positions)
        self.moved_s = time.monotonic()


def _transform_all(cluster: Cluster, source: str, target: str, count: int) -> None:
    """One transformer after the other. One that hangs is left behind: the next fences it off."""
    deadline_s = time.monotonic() + 4 * OVERALL_S
    while time.monotonic() < deadline_s:
        worker = Transformer(cluster.bootstrap, source, target, count)
        worker.start()
        while worker.is_alive() and time.monotonic() - worker.moved_s < PATIENCE_S:
            worker.join(0.1)
        if worker.done >= count:
            return


def test_consume_transform_produce_is_exactly_once_under_kills(
    cluster: Cluster, topics: Topics
) -> None:
    source, target = topics.create("source"), topics.create("target", partitions=3)
    count = 300
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", **QUIET})
    for number in range(count):
        producer.produce(source, str(number).encode())
    assert producer.flush(OVERALL_S) == 0

    worker = threading.Thread(target=_transform_all, args=(cluster, source, target, count))
    worker.start()
    try:
        for broker in cluster.brokers:
            seen = len(read_all(cluster.bootstrap, target, committed_only=True))
            eventually(
                lambda seen=seen: (
                    not worker.is_alive()
                    or len(read_all(cluster.bootstrap, target, committed_only=True)) > seen
                ),
                timeout_s=3 * OVERALL_S,
                what="transactions to be committed",
            )
            broker.kill()
            broker.start(timeout_s=120)
    finally:
        worker.join(5 * OVERALL_S)
    assert not worker.is_alive()
    found = [int(v) for v in read_all(cluster.bootstrap, target, committed_only=True)]
    assert sorted(found) == list(range(count))
