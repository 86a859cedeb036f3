"""Compacted topics on a real server, written and read with a real client.

Everything works on Apache Kafka, too, which is how the two are compared.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from tests.support.processes import ServerProcess
from tests.support.waiting import eventually
from tests.support.wire import RawConnection

from penstock.client.admin import Admin
from penstock.client.operations.configs import ConfigChange, ConfigResource, ResourceType

CLEAN_SOON = {"log.cleaner.backoff.ms": "100", "log.cleaner.dedupe.buffer.size": "4194304"}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.bytes": "1048576",
}

Keyed = tuple[bytes, bytes | None]
Stored = tuple[int, bytes, bytes | None]  # Offset, key, value.


def create_topic(server: ServerProcess, topic: str, configs: Mapping[str, str]) -> None:
    with RawConnection(server.port) as connection:
        assert connection.create_topic(topic, configs=dict(configs)) == 0
        eventually(lambda: connection.offset(topic) == 0, timeout_s=120, what="a leader")


def set_policy(server: ServerProcess, topic: str, policy: str) -> None:
    """Switch cleaning on or off: what a cleaner leaves depends on how often it came by."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    with Admin(bootstrap_servers=server.address) as admin:
        admin.alter_configs({resource: [ConfigChange(name="cleanup.policy", value=policy)]})


def produce(
    server: ServerProcess, topic: str, records: Iterable[Keyed], **settings: object
) -> dict[bytes, tuple[int, bytes | None]]:
    """Write in order; the last acknowledged offset and value of each key."""
    known = {"bootstrap.servers": server.address, "linger.ms": 5, "batch.size": 30_000}
    producer = Producer({**known, **settings})
    newest: dict[bytes, tuple[int, bytes | None]] = {}
    errors = []

    def acknowledged(error: object, message: object) -> None:
        if error is not None:
            errors.append(error)
        else:
            newest[message.key()] = (message.offset(), message.value())  # type: ignore[attr-defined]

    for key, value in records:
        producer.produce(topic, value, key, partition=0, on_delivery=acknowledged)
        producer.poll(0)
    producer.flush(120)
    assert errors == []
    return newest


def end_offset(server: ServerProcess, topic: str) -> int:
    with RawConnection(server.port) as connection:
        return connection.offset(topic)


def read_all(
    server: ServerProcess, topic: str, *, isolation: str = "read_committed"
) -> list[Stored]:
    """Every record from the beginning to the end of now."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.address,
            "group.id": "reads everything",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Stored] = []
    try:
        while True:
            message = consumer.poll(120)
            assert message is not None, "no record and no end within two minutes"
            if message.error():
                assert message.error().name() == "_PARTITION_EOF", message.error()
                return found
            found.append((message.offset(), message.key(), message.value()))
    finally:
        consumer.close()


def newest_of(records: Iterable[Stored]) -> dict[bytes, tuple[int, bytes | None]]:
    return {key: (offset, value) for offset, key, value in records}


def cleaned_offset(data: Path, topic: str) -> int:
    """How far the cleaner of a server says it has come; 0: not yet."""
    path = data / "cleaner-offset-checkpoint"
    if not path.exists():
        return 0
    for line in path.read_text().splitlines()[2:]:
        name, partition, offset = line.split()
        if (name, partition) == (topic, "0"):
            return int(offset)
    return 0


def last_segment(directory: Path) -> int:
    return max(int(path.stem) for path in directory.glob("*.log"))


def await_cleaning(data: Path, topic: str, *, timeout_s: float = 120) -> None:
    """Until everything but the active segment is clean."""
    directory = data / f"{topic}-0"
    eventually(
        lambda: cleaned_offset(data, topic) >= last_segment(directory) > 0,
        timeout_s=timeout_s,
        what=f"the cleaning of {topic}",
    )
