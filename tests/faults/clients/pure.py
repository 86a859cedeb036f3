"""kafka-python: the client that is Python all the way down."""

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata
from tests.faults.clients.family import Done, OnAssign, Place, Record, bounded, number, payload
from tests.support.kafka_python import poll

ERRORS: tuple[type[Exception], ...] = (KafkaError, AssertionError, OSError)
COMMON = {
    "request_timeout_ms": 5000,
    "reconnect_backoff_ms": 20,
    "reconnect_backoff_max_ms": 300,
    "retry_backoff_ms": 50,
    "metadata_max_age_ms": 5000,
}


class PureSender:
    def __init__(self, options: argparse.Namespace, transactional_id: str | None) -> None:
        self.options = options
        self.transactional_id = transactional_id
        self.producer: Any = None

    def start(self) -> None:
        options = self.options
        self.producer = KafkaProducer(
            **COMMON,
            bootstrap_servers=options.bootstrap.split(","),
            client_id=options.process,
            acks="all" if options.acks == "all" else 1,
            enable_idempotence=options.is_idempotent,
            linger_ms=5,
            max_block_ms=10_000,
            delivery_timeout_ms=options.delivery_ms,
            transactional_id=self.transactional_id,
            transaction_timeout_ms=options.transaction_ms,
        )
        if self.transactional_id is not None:
            bounded(self.producer.init_transactions)

    def send(self, place: Place, value: int, done: Done) -> None:
        topic, partition = place
        future = self.producer.send(
            topic, payload(value), key=b"%d" % partition, partition=partition
        )
        future.add_callback(lambda metadata: done(metadata.offset, None))
        future.add_errback(lambda error: done(None, RuntimeError(repr(error))))

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)  # The library's own thread goes on sending.

    def flush(self, seconds: float) -> None:
        self.producer.flush(timeout=seconds)

    def begin(self) -> None:
        self.producer.begin_transaction()

    def commit(self) -> None:
        bounded(self.producer.commit_transaction)

    def abort(self) -> None:
        bounded(self.producer.abort_transaction)

    def send_offsets(self, offsets: Mapping[Place, int], reader: "PureReader") -> None:
        group = reader.consumer.group_metadata()
        listed = _listed(offsets)
        bounded(lambda: self.producer.send_offsets_to_transaction(listed, group))

    def close(self) -> None:
        if self.producer is not None:
            self.producer.close(timeout=2)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, on_assign: OnAssign) -> None:
        self.on_assign = on_assign

    def on_partitions_revoked(self, revoked: Any) -> None:
        """The next assignment says all that matters."""

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.on_assign({(tp.topic, tp.partition): None for tp in assigned})


class PureReader:
    def __init__(self, options: argparse.Namespace, group: str | None) -> None:
        self.options = options
        self.group = group
        self.consumer: Any = None

    def start(self) -> None:
        self.consumer = KafkaConsumer(
            **COMMON,
            bootstrap_servers=self.options.bootstrap.split(","),
            client_id=self.options.process,
            group_id=self.group,
            isolation_level=self.options.isolation,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=6000,
            heartbeat_interval_ms=1000,
            fetch_max_wait_ms=100,
            partition_assignment_strategy=[RangePartitionAssignor],
        )

    def assign(self, starts: Mapping[Place, int]) -> None:
        self.consumer.assign([TopicPartition(t, p) for t, p in starts])
        self.seek(starts)

    def subscribe(self, topic: str, on_assign: OnAssign) -> None:
        self.consumer.subscribe([topic], listener=_Listener(on_assign))

    def poll(self, seconds: float) -> Sequence[Record]:
        timeout_ms = int(seconds * 1000)
        if self.group is None:
            found = self.consumer.poll(timeout_ms=timeout_ms, max_records=200)
        else:
            found = poll(self.consumer, timeout_ms=timeout_ms, records_max=200)
        return [
            ((m.topic, m.partition), m.offset, number(m.value))
            for messages in found.values()
            for m in messages
        ]

    def seek(self, starts: Mapping[Place, int]) -> None:
        for (topic, partition), offset in starts.items():
            self.consumer.seek(TopicPartition(topic, partition), offset)

    def commit(self, offsets: Mapping[Place, int]) -> None:
        self.consumer.commit(_listed(offsets))

    def committed(self, places: Sequence[Place]) -> Mapping[Place, int]:
        found = {p: self.consumer.committed(TopicPartition(*p)) for p in places}
        return {place: offset for place, offset in found.items() if offset is not None}

    def ends(self, places: Sequence[Place]) -> Mapping[Place, int]:
        try:
            found = self.consumer.end_offsets([TopicPartition(t, p) for t, p in places])
        except KeyError as error:  # Its way to say that a partition had no leader to ask.
            raise KafkaError(f"no end of {error} was told") from error
        return {(tp.topic, tp.partition): offset for tp, offset in found.items()}

    def close(self) -> None:
        if self.consumer is not None:
            self.consumer.close()


def _listed(offsets: Mapping[Place, int]) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        TopicPartition(t, p): OffsetAndMetadata(offset, "", -1)
        for (t, p), offset in offsets.items()
    }


def error_name(_error: Exception) -> str | None:
    """None: it gives up by itself where others go on, and asserts what it did not foresee."""
    return None


def sender(options: argparse.Namespace, *, transactional_id: str | None) -> PureSender:
    return PureSender(options, transactional_id)


def reader(options: argparse.Namespace, *, group: str | None) -> PureReader:
    return PureReader(options, group)
