"""One member of a group as a process of its own, in any of three client libraries.

    python -m tests.integration.groups.member_process '{"library": "confluent", "group": ..., ...}'

It prints a line of JSON for every record it read and whenever its assignment changes, commits what
it printed, and leaves the group in good order on SIGTERM.
"""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any


class Printer:
    """What the process tells whoever started it."""

    def __init__(self) -> None:
        self._assignment: list[tuple[str, int]] | None = None
        self.is_stopping = False
        signal.signal(signal.SIGTERM, self._stop)

    def _stop(self, *_: object) -> None:
        self.is_stopping = True

    def assigned(self, partitions: Iterable[tuple[str, int]]) -> None:
        current = sorted(partitions)
        if current != self._assignment:
            self._assignment = current
            self._print({"assigned": current})

    def record(self, topic: str, partition: int, offset: int, value: bytes) -> None:
        self._print({"record": [topic, partition, offset, value.decode()]})

    def batch(self, size: int) -> None:
        self._print({"batch": size})

    def _print(self, line: dict[str, Any]) -> None:
        print(json.dumps(line), flush=True)


def strategy_of(options: dict[str, Any], library: str) -> dict[str, Any]:
    """The assignment strategy in the library's own words, if one was asked for."""
    if "strategy" not in options:
        return {}
    if library == "confluent":
        return {"partition.assignment.strategy": options["strategy"]}
    module = f"{library}.coordinator.assignors.roundrobin"
    assert options["strategy"] == "roundrobin"
    return {"partition_assignment_strategy": [import_module(module).RoundRobinPartitionAssignor]}


def times_of(options: dict[str, Any]) -> dict[str, Any]:
    """What a member says in the classic protocol; in the new one, the group has its times."""
    if options["settings"].get("group.protocol") == "consumer":
        return {}
    return {"session.timeout.ms": options["session_ms"], "heartbeat.interval.ms": 300}


def run_confluent(options: dict[str, Any], printer: Printer) -> None:
    from confluent_kafka import Consumer, KafkaException

    consumer = Consumer(
        {
            "bootstrap.servers": options["bootstrap"],
            "group.id": options["group"],
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 500,
            **times_of(options),
            **strategy_of(options, "confluent"),
            **options["settings"],
        }
    )
    consumer.subscribe(options["topics"])
    while not printer.is_stopping:
        messages = consumer.consume(options["records_max"], timeout=0.1)
        printer.assigned((p.topic, p.partition) for p in consumer.assignment())
        for message in messages:
            if message.error() is None:
                printer.record(
                    message.topic(), message.partition(), message.offset(), message.value()
                )
        _work(messages, options, printer)
        if messages:
            with suppress(KafkaException):  # Others read on from the last commit.
                consumer.commit(asynchronous=False)
    consumer.close()


def run_kafka_python(options: dict[str, Any], printer: Printer) -> None:
    from kafka import KafkaConsumer
    from kafka.errors import CommitFailedError, RebalanceInProgressError
    from tests.support.kafka_python import poll

    consumer = KafkaConsumer(
        bootstrap_servers=options["bootstrap"],
        group_id=options["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=options["session_ms"],
        heartbeat_interval_ms=300,
        metadata_max_age_ms=500,
        **strategy_of(options, "kafka"),
        **options["settings"],
    )
    consumer.subscribe(options["topics"])
    while not printer.is_stopping:
        found = poll(consumer, timeout_ms=100, records_max=options["records_max"])
        printer.assigned((p.topic, p.partition) for p in consumer.assignment())
        messages = [message for batch in found.values() for message in batch]
        for message in messages:
            printer.record(message.topic, message.partition, message.offset, message.value)
        _work(messages, options, printer)
        if messages:
            # Others read on from the last commit.
            with suppress(CommitFailedError, RebalanceInProgressError):
                consumer.commit()
    consumer.close()


async def run_aiokafka(options: dict[str, Any], printer: Printer) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.errors import CommitFailedError

    consumer = AIOKafkaConsumer(
        *options["topics"],
        bootstrap_servers=options["bootstrap"],
        group_id=options["group"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=options["session_ms"],
        heartbeat_interval_ms=300,
        metadata_max_age_ms=500,
        **strategy_of(options, "aiokafka"),
        **options["settings"],
    )
    await consumer.start()
    while not printer.is_stopping:
        found = await consumer.getmany(timeout_ms=100, max_records=options["records_max"])
        printer.assigned((p.topic, p.partition) for p in consumer.assignment())
        messages = [message for batch in found.values() for message in batch]
        for message in messages:
            printer.record(message.topic, message.partition, message.offset, message.value)
        _work(messages, options, printer)
        if messages:
            with suppress(CommitFailedError):  # Others read on from the last commit.
                await consumer.commit()
    await consumer.stop()


def _work(messages: list[Any], options: dict[str, Any], printer: Printer) -> None:
    """As long as a batch takes."""
    if messages:
        printer.batch(len(messages))
        time.sleep(options["work_ms"] / 1000)  # The work of this consumer.


def main() -> None:
    options = json.loads(sys.argv[1])
    printer = Printer()
    if options["library"] == "confluent":
        run_confluent(options, printer)
    elif options["library"] == "kafka-python":
        run_kafka_python(options, printer)
    else:
        asyncio.run(run_aiokafka(options, printer))


if __name__ == "__main__":
    main()
