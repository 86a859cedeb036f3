"""Reads numbers, writes them transformed, and commits both in one transaction, until it is killed.

    python -m tests.integration.transactions.pipeline_process ADDRESS TRANSACTIONAL_ID

An error that an abort can mend is mended; after any other the process ends with code 1, for its
supervisor to start it anew. Each commit is told on standard output.
"""

import random
import sys

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

INPUT, OUTPUT, GROUP = "numbers", "squares", "pipeline"
BATCH_MAX = 50
TIMEOUT_S = 20.0


def transform(value: bytes) -> bytes:
    number = int(value)
    return f"{number} {number * number}".encode()


def main() -> None:
    address, transactional_id = sys.argv[1:]
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "session.timeout.ms": 2_000,
            "heartbeat.interval.ms": 300,
            "reconnect.backoff.max.ms": 300,
            "log_level": 0,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": address,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 10_000,
            "reconnect.backoff.max.ms": 300,
            # Otherwise librdkafka 2.16 forgets its only broker when that is down for a moment, and
            # waits for good for the group coordinator it remembers.
            "metadata.recovery.strategy": "none",
            "linger.ms": random.choice([0, 5, 50]),
            "log_level": 0,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    consumer.subscribe([INPUT])
    while True:
        messages = [m for m in consumer.consume(BATCH_MAX, timeout=0.2) if m.error() is None]
        if messages:
            carry_over(consumer, producer, messages)


def carry_over(consumer: Consumer, producer: Producer, messages: list[Message]) -> None:
    """One transaction; if it cannot be committed, the same records will be read again."""
    producer.begin_transaction()
    try:
        for message in messages:
            producer.produce(OUTPUT, transform(message.value()), partition=message.partition())
            producer.poll(0)
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(
            [p for p in positions if p.offset >= 0],
            consumer.consumer_group_metadata(),
            TIMEOUT_S,
        )
        commit(producer)
    except KafkaException as error:
        if not error.args[0].txn_requires_abort():
            raise
        producer.abort_transaction(TIMEOUT_S)
        rewind(consumer)
    else:
        print(len(messages), flush=True)


def commit(producer: Producer) -> None:
    while True:
        try:
            producer.commit_transaction(TIMEOUT_S)
            return
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


def rewind(consumer: Consumer) -> None:
    """Back to what is committed, since what was read since then came to nothing."""
    for found in consumer.committed(consumer.assignment(), TIMEOUT_S):
        offset = max(found.offset, 0)
        consumer.seek(TopicPartition(found.topic, found.partition, offset))


if __name__ == "__main__":
    try:
        main()
    except KafkaException as error:
        print(error, file=sys.stderr, flush=True)
        sys.exit(1)
