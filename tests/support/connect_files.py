"""The tutorial's file lab around a Connect worker: files and topics."""

from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from tests.support.broker import BrokerProcess


def values_of(broker: BrokerProcess, topic: str) -> list[str]:
    """The values of a topic's only partition, those of committed transactions alone."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    found = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while (message := consumer.poll(30)) is not None and message.error() is None:
            found.append((message.value() or b"").decode())
    finally:
        consumer.close()
    return found


def has_lines(broker: BrokerProcess, topic: str, lines: list[str]) -> bool:
    """Whether exactly these are there; once more are there, no wait can mend it."""
    found = values_of(broker, topic)
    assert len(found) <= len(lines), Counter(found).most_common(3)
    return found == lines


def source(directory: Path, topic: str, **more: str) -> dict[str, str]:
    """FileStreamSource as the tutorial configures it."""
    return {
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": str(directory / "in.txt"),
        "topic": topic,
        **more,
    }


def append(path: Path, lines: list[str]) -> None:
    """Lines at the end of a file."""
    with path.open("a") as file:
        file.write("".join(f"{line}\n" for line in lines))
