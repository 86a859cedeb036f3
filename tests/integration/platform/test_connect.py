"""`penstock up` with a Connect worker: a process of its own, started again like the others."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from tests.support.platform import UpProcess, ask, kill_9
from tests.support.processes import HOST, free_port
from tests.support.waiting import eventually

TOPIC, JSON = "lines", "application/json"
_WAIT_S = 180.0


@pytest.fixture
def up(tmp_path: Path) -> Iterator[UpProcess]:
    port = free_port()
    settings = {
        "services": "broker,connect",
        "connect.listeners": f"http://{HOST}:{port}",
        "connect.offset.flush.interval.ms": "200",
        "connect.session.timeout.ms": "6000",
        "connect.scheduled.rebalance.max.delay.ms": "0",
    }
    process = UpProcess(tmp_path, settings)
    for idle in ("registry", "rest"):
        del process.settings[f"{idle}.listeners"]
    process.ports = {"broker": process.ports["broker"], "connect": port}
    with process as running:
        running.start()
        yield running
        running.state()
        assert running.stop() == 0
        running.assert_nothing_is_left()


def test_a_connector_runs_beside_the_broker_and_goes_on_after_its_worker_was_killed(
    up: UpProcess, tmp_path: Path
) -> None:
    file = tmp_path / "test.txt"
    file.write_text("one\ntwo\n")
    given = {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": TOPIC,
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    document = {"name": "reader", "config": given}
    status, answer = ask(up.url("connect", "/connectors"), document, Content_Type=JSON)
    assert status == 201, answer
    consumer = Consumer(
        {
            "bootstrap.servers": up.address,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([TOPIC])
    found: list[bytes | None] = []

    def has(lines: list[bytes]) -> bool:
        record = consumer.poll(0.2)
        if record is not None and record.error() is None:
            found.append(record.value())
        return found == lines

    try:
        eventually(lambda: has([b"one", b"two"]), timeout_s=_WAIT_S, every_s=0, what="two lines")
        kill_9(up.process_state("connect").identity)
        with file.open("a") as more:
            more.write("three\n")
        lines = [b"one", b"two", b"three"]
        eventually(lambda: has(lines), timeout_s=_WAIT_S, every_s=0, what="the third line")
    finally:
        consumer.close()
    assert up.process_state("connect").restarts == 1
