"""Load from librdkafka through confluent-kafka, in a process of its own, as an application would.

Here the client is in the figure: Python hands over each record, librdkafka batches them. It shows
what a user sees, beside the raw generator's view of the broker alone.
"""

import argparse
import json
from dataclasses import asdict

from bench.load import Measured, Stopwatch


def produce(address: str, topic: str, *, record_bytes: int, count: int) -> Measured:
    """Produce `count` records with acks=1 in batches of up to 1 MB, and wait for all of them."""
    from confluent_kafka import Producer

    failures: list[object] = []

    def on_delivery(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer(
        {
            "bootstrap.servers": address,
            "acks": 1,
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "batch.num.messages": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
            "on_delivery": on_delivery,
        }
    )
    value = bytes(i * 31 % 251 for i in range(record_bytes))
    watch = Stopwatch()
    for number in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=number // 1000 % 6)
                break
            except BufferError:
                producer.poll(0.01)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush(120)
    if failures:
        raise SystemExit(f"{len(failures)} records failed, the first with {failures[0]}")
    return watch.measured(
        moved_bytes=count * record_bytes,
        requests=count,
    )


def consume(address: str, topic: str, *, partitions: int, count: int) -> Measured:
    """Read `count` records from the start of every partition."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "queued.max.messages.kbytes": 262_144,
        }
    )
    watch = Stopwatch()
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    seen = moved = 0
    while seen < count:
        messages = consumer.consume(10_000, timeout=30)
        if not messages:
            raise SystemExit(f"only {seen} of {count} records came")
        for message in messages:
            if message.error():
                raise SystemExit(str(message.error()))
            moved += len(message.value() or b"")
        seen += len(messages)
    measured = watch.measured(moved_bytes=moved, requests=seen)
    consumer.close()
    return measured


def main() -> None:
    """Run one load and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=["produce", "consume"])
    parser.add_argument("--address", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--record-bytes", type=int, default=1024)
    parser.add_argument("--count", type=int, required=True)
    options = parser.parse_args()
    if options.work == "produce":
        measured = produce(
            options.address,
            options.topic,
            record_bytes=options.record_bytes,
            count=options.count,
        )
    else:
        measured = consume(
            options.address, options.topic, partitions=options.partitions, count=options.count
        )
    print(json.dumps(asdict(measured)))


if __name__ == "__main__":
    main()
