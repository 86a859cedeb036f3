"""confluent-kafka, on librdkafka."""

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from tests.faults.clients.family import (
    NEVER_SENT,
    Done,
    OnAssign,
    Place,
    Record,
    Sender,
    bounded,
    number,
    payload,
)

ERRORS: tuple[type[Exception], ...] = (
    KafkaException,
    RuntimeError,
    BufferError,
    TimeoutError,
)
_PURGED = {KafkaError._PURGE_QUEUE, KafkaError._QUEUE_FULL}
COMMON: dict[str, Any] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 300,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 300,
    "topic.metadata.refresh.interval.ms": 5000,
    "log_level": 3,
}
_STUCK: list[Producer] = []
if os.environ.get("FAULT_CLIENT_LOG") == "DEBUG":
    COMMON |= {"log_level": 7, "debug": "eos,protocol"}


class ConfluentSender:
    def __init__(self, options: argparse.Namespace, transactional_id: str | None) -> None:
        settings: dict[str, Any] = {
            **COMMON,
            **options.settings,
            "bootstrap.servers": options.bootstrap,
            "client.id": options.process,
            "acks": options.acks,
            "enable.idempotence": options.is_idempotent,
            "linger.ms": 5,
            "message.timeout.ms": options.delivery_ms,
            "request.timeout.ms": 5000,
            "socket.timeout.ms": 10_000,
        }
        if transactional_id is not None:
            settings["transactional.id"] = transactional_id
            settings["transaction.timeout.ms"] = options.transaction_ms
            settings["message.timeout.ms"] = options.transaction_ms  # It must not be more.
        self.is_transactional = transactional_id is not None
        self.producer = Producer(settings)

    def start(self) -> None:
        if self.is_transactional:
            self.producer.init_transactions(20)

    def send(self, place: Place, value: int, done: Done) -> None:
        def delivered(error: Any, message: Any) -> None:
            if error is None:
                done(message.offset(), None)
            else:
                never = f"{NEVER_SENT}: " if error.code() in _PURGED else ""
                done(None, RuntimeError(f"{never}{error}"))

        topic, partition = place
        self.producer.produce(
            topic, payload(value), key=b"%d" % partition, partition=partition, on_delivery=delivered
        )

    def pause(self, seconds: float) -> None:
        self.producer.poll(seconds)

    def flush(self, seconds: float) -> None:
        self.producer.flush(seconds)

    def begin(self) -> None:
        self.producer.begin_transaction()

    def commit(self) -> None:
        self.producer.commit_transaction(20)

    def abort(self) -> None:
        self.producer.abort_transaction(20)

    def send_offsets(self, offsets: Mapping[Place, int], reader: "ConfluentReader") -> None:
        listed = [TopicPartition(t, p, offset) for (t, p), offset in offsets.items()]
        group = reader.consumer.consumer_group_metadata()
        try:
            bounded(lambda: self.producer.send_offsets_to_transaction(listed, group, 20))
        except TimeoutError:
            _STUCK.append(self.producer)  # Its end would wait too.
            raise

    def close(self) -> None:
        self.producer.purge()
        self.producer.flush(1)


class ConfluentReader:
    def __init__(self, options: argparse.Namespace, group: str | None) -> None:
        self.consumer = Consumer(
            {
                **COMMON,
                **options.settings,
                "bootstrap.servers": options.bootstrap,
                "client.id": options.process,
                "group.id": group or f"nobody-{options.process}",
                "isolation.level": options.isolation,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 1000,
                "partition.assignment.strategy": "range",
                "fetch.wait.max.ms": 100,
                "socket.timeout.ms": 10_000,
            }
        )

    def start(self) -> None:
        """librdkafka starts with its object."""

    def assign(self, starts: Mapping[Place, int]) -> None:
        self.consumer.assign([TopicPartition(t, p, o) for (t, p), o in starts.items()])

    def subscribe(self, topic: str, on_assign: OnAssign) -> None:
        def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            try:
                known = consumer.committed(partitions, 5)
            except KafkaException:  # The library will find out by itself, and will not tell.
                on_assign({(p.topic, p.partition): None for p in partitions})
                return
            for found in known:
                if found.offset == OFFSET_INVALID:
                    found.offset = OFFSET_BEGINNING
            on_assign({(p.topic, p.partition): max(p.offset, 0) for p in known})
            consumer.assign(known)

        self.consumer.subscribe([topic], on_assign=assigned)

    def poll(self, seconds: float) -> Sequence[Record]:
        found = self.consumer.consume(200, seconds)
        return [
            ((m.topic(), m.partition()), m.offset(), number(m.value()))
            for m in found
            if m.error() is None
        ]

    def seek(self, starts: Mapping[Place, int]) -> None:
        for (topic, partition), offset in starts.items():
            self.consumer.seek(TopicPartition(topic, partition, offset))

    def commit(self, offsets: Mapping[Place, int]) -> None:
        listed = [TopicPartition(t, p, offset) for (t, p), offset in offsets.items()]
        for done in self.consumer.commit(offsets=listed, asynchronous=False):
            if done.error is not None:
                raise KafkaException(done.error)

    def committed(self, places: Sequence[Place]) -> Mapping[Place, int]:
        known = self.consumer.committed([TopicPartition(t, p) for t, p in places], 5)
        for found in known:
            if found.error is not None:
                raise KafkaException(found.error)
        return {(p.topic, p.partition): p.offset for p in known if p.offset >= 0}

    def ends(self, places: Sequence[Place]) -> Mapping[Place, int]:
        return {
            (t, p): self.consumer.get_watermark_offsets(TopicPartition(t, p), 5)[1]
            for t, p in places
        }

    def close(self) -> None:
        self.consumer.close()


def error_name(error: Exception) -> str | None:
    """KafkaError's name; one that begins with an underscore is the library's own."""
    if isinstance(error, KafkaException):
        return str(error.args[0].name())
    return type(error).__name__


def sender(options: argparse.Namespace, *, transactional_id: str | None) -> Sender:
    return ConfluentSender(options, transactional_id)  # type: ignore[return-value]


def reader(options: argparse.Namespace, *, group: str | None) -> ConfluentReader:
    return ConfluentReader(options, group)
