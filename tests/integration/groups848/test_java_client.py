"""Apache Kafka's own consumer in our consumer groups, alone, by pattern and beside librdkafka."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest
from tests.integration.groups.lab import Lab, partitions_of, shared
from tests.support.apache_kafka import CURRENT
from tests.support.java import compiled, run_java
from tests.support.outside import needs

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

PROGRAM = Path(__file__).parent / "java" / "NewMember.java"
TOPIC = "tasks"


def numbered(count: int) -> list[str]:
    return [f"message {number}" for number in range(count)]


def run_member(lab: Lab, protocol: str, topic: str, count: int) -> tuple[list[str], list[str]]:
    """Its assignments, one after the other, and what it read."""
    class_path = compiled(PROGRAM, needs(CURRENT))
    printed = run_java(
        class_path, "NewMember", lab.broker.address, "workers", protocol, topic, str(count)
    ).splitlines()
    assignments = [line.removeprefix("assigned ") for line in printed if "assigned" in line]
    return assignments, [line for line in printed if "assigned" not in line]


def test_it_reads_everything_and_leaves(lab: Lab) -> None:
    lab.create(TOPIC, 3)
    lab.send(TOPIC, numbered(30), 3)
    assignments, read = run_member(lab, "consumer", TOPIC, 30)
    assert assignments[-1] == "tasks-0 tasks-1 tasks-2"
    assert sorted(read) == sorted(numbered(30))
    assert lab.group_state("workers") == "EMPTY"


def test_its_patterns_are_matched_by_the_broker(lab: Lab) -> None:
    for topic in ("tasks-1", "tasks-2", "others"):
        lab.create(topic, 1)
        lab.send(topic, [f"of {topic}"], 1)
    assignments, read = run_member(lab, "consumer", r"^tasks-[\d]", 2)
    assert assignments[-1] == "tasks-1-0 tasks-2-0"
    assert sorted(read) == ["of tasks-1", "of tasks-2"]


@contextmanager
def steady_flow(lab: Lab, partitions: int) -> Iterator[None]:
    """Records for every partition, a few times a second."""
    is_over = Event()

    def send() -> None:
        while not is_over.wait(0.1):
            lab.send(TOPIC, numbered(partitions), partitions)

    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(send)
        try:
            yield
        finally:
            is_over.set()
            sending.result()


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_it_shares_with_librdkafka(lab: Lab, protocol: str) -> None:
    """It takes its half, reads what comes there, and gives it back when it goes."""
    lab.create(TOPIC, 4)
    other = lab.member("workers", TOPIC, **{"group.protocol": "consumer"})
    shared([other], partitions_of(TOPIC, 4))
    with steady_flow(lab, 4):
        assignments, read = run_member(lab, protocol, TOPIC, 10)
    assert len(assignments[-1].split()) == 2 and len(read) >= 10
    shared([other], partitions_of(TOPIC, 4))
