"""Writers that go on through everything, and what can be read back afterwards."""

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from tests.support.waiting import eventually

OVERALL_S = 120.0
QUIET: dict[str, Any] = {"log_level": 2, "reconnect.backoff.max.ms": 500}


class Stream:
    """A thread that writes 0, 1, 2, ... with acks=all until told to stop, and notes answers."""

    def __init__(self, bootstrap: str, topic: str, **settings: Any) -> None:
        self.topic = topic
        self.acked: list[int] = []
        self.failed: list[KafkaError] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 1,
                "message.timeout.ms": int(OVERALL_S * 1000),
                "topic.metadata.refresh.fast.interval.ms": 50,
                "retry.backoff.ms": 20,
                **QUIET,
                **settings,
            }
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Stream":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def until_more(self, count: int = 20) -> None:
        """Wait until so many more were acknowledged: writes go on."""
        wanted = len(self.acked) + count
        eventually(
            lambda: len(self.acked) >= wanted, timeout_s=OVERALL_S, what=f"{count} more writes"
        )

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            if len(self._producer) < 200:
                value = str(number).encode()
                self._producer.produce(self.topic, value, on_delivery=self._note(number))
                number += 1
            self._producer.poll(0.002)
        self._producer.flush(OVERALL_S)

    def _note(self, number: int) -> Callable[[KafkaError | None, Message], None]:
        def note(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                self.acked.append(number)
            else:
                self.failed.append(error)

        return note


def read_all(bootstrap: str, topic: str, *, committed_only: bool = False) -> list[bytes]:
    """All records of a topic, partition by partition, up to their ends of this moment."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if committed_only else "read_uncommitted",
            "enable.partition.eof": True,
            **QUIET,
        }
    )
    try:
        partitions = _partitions(consumer, topic)
        wanted = [TopicPartition(topic, number, 0) for number in partitions]
        ends = {p.partition: consumer.get_watermark_offsets(p, OVERALL_S)[1] for p in wanted}
        consumer.assign(wanted)
        found: dict[int, list[bytes]] = {number: [] for number in partitions}
        left = set(partitions)
        deadline_s = time.monotonic() + OVERALL_S
        while left:
            assert time.monotonic() < deadline_s, f"{topic}: no end within {OVERALL_S:g} s"
            message = consumer.poll(0.2)
            if message is None:
                continue
            error, number, offset = message.error(), message.partition(), message.offset()
            assert number is not None and offset is not None
            if error is None:
                found[number].append(message.value() or b"")
                if offset >= ends[number] - 1:
                    left.discard(number)
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(number)
            elif not error.retriable() and error.code() != KafkaError._ALL_BROKERS_DOWN:
                raise KafkaException(error)
        return [value for number in partitions for value in found[number]]
    finally:
        consumer.close()


def _partitions(consumer: Consumer, topic: str) -> list[int]:
    def known() -> list[int]:
        listed = consumer.list_topics(topic, timeout=120).topics[topic]
        return sorted(listed.partitions)

    return eventually(known, timeout_s=OVERALL_S, what=f"the partitions of {topic}")
