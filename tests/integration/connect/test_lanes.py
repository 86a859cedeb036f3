"""Both lanes of a worker side by side: the same topics, offsets and files, also across a restart.

A task that starts in the one lane goes on where it stood in the other, so neither loses a record or
brings one twice.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess, kill, task_processes
from tests.support.waiting import eventually

_WAIT_S = 240.0
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_HDFS = "io.confluent.connect.hdfs.Hdfs"
_LANES = ("columnar", "ordinary")
ODD_LINES = [
    b"plain",
    b"",
    b"caf\xc3\xa9",
    b'a "quote" and \\ a backslash',
    b"half \xff a byte",
    b"tab\t",
]


@pytest.fixture(scope="module")
def worker(
    shared_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectProcess]:
    settings = {"consumer.isolation.level": "read_committed", "penstock.connect.tasks.max": "8"}
    folder = tmp_path_factory.mktemp("connect")
    with ConnectProcess(folder, shared_broker.address, settings) as process:
        process.start(timeout_s=300)
        yield process


def put(worker: ConnectProcess, name: str, config: dict[str, str]) -> None:
    status, told = worker.ask("PUT", f"/connectors/{name}/config", {"tasks.max": "1", **config})
    assert status in (200, 201), told


def delete(worker: ConnectProcess, *names: str) -> None:
    for name in names:
        assert worker.ask("DELETE", f"/connectors/{name}")[0] == 204


def records_of(broker: BrokerProcess, topic: str, partition: int = 0) -> list[tuple[Any, Any]]:
    """Keys and values of committed transactions."""
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
        consumer.assign([TopicPartition(topic, partition, 0)])
        while (message := consumer.poll(30)) is not None and message.error() is None:
            found.append((message.key(), message.value()))
    finally:
        consumer.close()
    return found


def offsets_of(worker: ConnectProcess, name: str) -> list[dict[str, Any]]:
    status, told = worker.ask("GET", f"/connectors/{name}/offsets")
    return told["offsets"] if status == 200 else []


def position(worker: ConnectProcess, name: str) -> int | None:
    found = offsets_of(worker, name)
    return found[0]["offset"]["position"] if found else None


def wait_for_position(worker: ConnectProcess, name: str, size: int) -> None:
    eventually(lambda: position(worker, name) == size, timeout_s=_WAIT_S, every_s=0.3)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("converter", ["String", "JSON"])
def test_a_file_makes_the_same_topic_in_both_lanes(
    converter: str, worker: ConnectProcess, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    file = tmp_path / "in.txt"
    content = b"".join(line + b"\n" for line in ODD_LINES * 300) + b"mac\rdos\r\nlast\n"
    file.write_bytes(content + b"not yet whole")
    names = {lane: f"file-{converter.lower()}-{lane}" for lane in _LANES}
    value = {"value.converter": _JSON} if converter == "JSON" else {}
    for lane, name in names.items():
        config = {"connector.class": "FileStreamSource", "file": str(file), "topic": name, **value}
        put(worker, name, {**config, "penstock.lane": lane})
    for name in names.values():
        wait_for_position(worker, name, len(content))
    columnar, ordinary = (records_of(shared_broker, name) for name in names.values())
    assert len(ordinary) == len(ODD_LINES) * 300 + 3
    assert columnar == ordinary
    delete(worker, *names.values())


@pytest.mark.timeout(900)
def test_a_task_goes_on_in_the_other_lane_and_after_a_kill(
    worker: ConnectProcess, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    file, name = tmp_path / "in.txt", "changing-lanes"
    config = {"connector.class": "FileStreamSource", "file": str(file), "topic": name}
    lines: list[bytes] = []
    for number, lane in enumerate(("columnar", "ordinary", "columnar", "auto")):
        new = [f"round {number} line {n}".encode() for n in range(3000)]
        with file.open("ab") as stream:
            stream.write(b"".join(line + b"\n" for line in new))
        lines += new
        put(worker, name, {**config, "penstock.lane": lane})
        for task in task_processes(worker)[:1]:  # Wherever it is just now.
            kill(task.pid)
        wait_for_position(worker, name, file.stat().st_size)
        assert [value for _, value in records_of(shared_broker, name)] == lines
    delete(worker, name)


@pytest.mark.timeout(900)
def test_a_topic_makes_the_same_lines_in_both_lanes(
    worker: ConnectProcess, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    topic, outs = "to-files", {lane: tmp_path / f"{lane}.txt" for lane in _LANES}
    values = [line or b"empty" for line in ODD_LINES] * 500
    produce(shared_broker, topic, [*values, None, *values])
    for lane, out in outs.items():
        config = {"connector.class": "FileStreamSink", "topics": topic, "file": str(out)}
        put(worker, f"lines-{lane}", {**config, "penstock.lane": lane})
    count = 2 * len(values) + 1
    for out in outs.values():
        eventually(lambda out=out: lines_in(out) == count, timeout_s=_WAIT_S, every_s=0.3)
    assert outs["columnar"].read_bytes() == outs["ordinary"].read_bytes()
    delete(worker, *(f"lines-{lane}" for lane in _LANES))


def lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def produce(broker: BrokerProcess, topic: str, values: list[bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": broker.address})
    for value in values:
        producer.produce(topic, value, partition=0)
        producer.poll(0)
    assert producer.flush(60) == 0


def enveloped(rows: int) -> list[bytes | None]:
    """Structs with their schemas, two schemas in turns, and a few that columns cannot read."""
    fields = [
        {"field": "id", "type": "int64", "optional": False},
        {"field": "name", "type": "string", "optional": True},
        {"field": "price", "type": "double", "optional": True},
        {"field": "ok", "type": "boolean", "optional": True},
    ]
    schemas = [{"type": "struct", "fields": fields[:n], "optional": False} for n in (4, 3)]
    made: list[bytes | None] = []
    for n in range(rows):
        payload: dict[str, Any] = {"id": n, "name": f'Zoë "{n}"', "price": n / 7, "ok": n % 2 == 0}
        if n % 1000 == 999:
            payload["id"] = f"{n}"  # Java's converter reads a text as 0.
        if n % 5 == 0:
            payload["name"] = None
        schema = schemas[n // 700 % 2]
        made.append(
            json.dumps({"schema": schema, "payload": payload}, separators=(",", ":")).encode()
        )
    return made


def tree(folder: Path) -> dict[str, Path]:
    return {str(p.relative_to(folder)): p for p in sorted(folder.rglob("*+*")) if p.is_file()}


def rows_in(folder: Path) -> int:
    return sum(pq.ParquetFile(path).metadata.num_rows for path in tree(folder).values())


@pytest.mark.timeout(900)
def test_a_topic_makes_the_same_parquet_objects_and_they_the_same_topics(
    worker: ConnectProcess, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    topic, values = "to-objects", enveloped(4000)
    produce(shared_broker, topic, values)
    folders = {lane: tmp_path / lane for lane in _LANES}
    for lane, folder in folders.items():
        folder.mkdir()
        config = {
            "connector.class": f"{_HDFS}SinkConnector",
            "topics": topic,
            "hdfs.url": f"file://{folder}",
            "format.class": "ParquetFormat",
            "flush.size": "500",
            "value.converter": _JSON,
        }
        put(worker, f"objects-{lane}", {**config, "penstock.lane": lane})
    for folder in folders.values():
        eventually(lambda f=folder: rows_in(f) == 4000, timeout_s=_WAIT_S, every_s=0.3)
    columnar, ordinary = (tree(folders[lane]) for lane in _LANES)
    assert list(columnar) == list(ordinary) and len(ordinary) > 8
    for name, path in ordinary.items():
        assert columnar[name].read_bytes() == path.read_bytes(), name
    for lane in _LANES:
        config = {
            "connector.class": f"{_HDFS}SourceConnector",
            "hdfs.url": f"file://{folders[lane]}",
            "format.class": "ParquetFormat",
            "value.converter": _JSON,
            "hdfs.poll.interval.ms": "300",
        }
        put(
            worker,
            f"back-{lane}",
            {
                **config,
                "mode": "GENERIC",
                "topic.regex.list": f"back-{lane}:.*",
                "penstock.lane": lane,
            },
        )
    for lane in _LANES:
        eventually(
            lambda lane=lane: len(records_of(shared_broker, f"back-{lane}")) == 4000,
            timeout_s=_WAIT_S,
            every_s=0.5,
        )
    assert records_of(shared_broker, "back-columnar") == records_of(shared_broker, "back-ordinary")
    assert (
        offsets_of(worker, "back-columnar")[0]["offset"]
        == offsets_of(worker, "back-ordinary")[0]["offset"]
    )
    delete(worker, *(f"{what}-{lane}" for what in ("objects", "back") for lane in _LANES))


def test_a_lane_that_is_not_possible_is_refused_with_the_reason(
    worker: ConnectProcess, tmp_path: Path
) -> None:
    config = {
        "connector.class": "FileStreamSource",
        "tasks.max": "1",
        "file": str(tmp_path / "in.txt"),
        "topic": "never",
        "penstock.lane": "columnar",
        "transforms": "h",
        "transforms.h.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.h.field": "line",
    }
    status, told = worker.ask("PUT", "/connectors/refused/config", config)
    assert status == 400
    reason = "penstock.lane=columnar is not possible: transforms take single records."
    assert reason in told["message"]
