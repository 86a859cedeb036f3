"""`penstock up` at work: everything answers, what dies comes back, what fails fails alone."""

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.support.platform import UpProcess, ask, kill_9, penstock
from tests.support.waiting import eventually

AVRO = {"schema": '{"type": "string"}'}
JSON_V2 = {"Content_Type": "application/vnd.kafka.json.v2+json"}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    with UpProcess(tmp_path_factory.mktemp("platform")) as running:
        running.start()
        yield running
        running.state()
        assert running.stop() == 0
        running.assert_nothing_is_left()
        assert running.tracebacks() == {}


def read_one(up: UpProcess, topic: str) -> bytes:
    consumer = Consumer(
        {"bootstrap.servers": up.address, "group.id": "reader", "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([topic])
        record = eventually(lambda: consumer.poll(1.0), what=f"a record of {topic}")
        assert record is not None
        assert record.error() is None
        value = record.value()
        assert value is not None
        return bytes(value)
    finally:
        consumer.close()


def write(up: UpProcess, subject: str) -> tuple[int, Any]:
    """Ask the registry to take a schema."""
    kind = "application/vnd.schemaregistry.v1+json"
    url = up.url("registry", f"/subjects/{subject}/versions")
    return ask(url, AVRO, Content_Type=kind)


def register(up: UpProcess, subject: str) -> int:
    status, answer = write(up, subject)
    assert status == 200, answer
    return int(answer["id"])


def test_every_service_answers_a_client_that_knows_nothing_of_us(up: UpProcess) -> None:
    producer = Producer({"bootstrap.servers": up.address})
    producer.produce("from-kafka", b"hello")
    assert producer.flush(60) == 0
    assert read_one(up, "from-kafka") == b"hello"
    schema_id = register(up, "names-value")
    assert up.get("registry", f"/schemas/ids/{schema_id}")["schema"] == '"string"'
    assert "from-kafka" in up.get("rest", "/topics")
    records = {"records": [{"value": {"hello": 1}}]}
    status, answer = ask(up.url("rest", "/topics/from-http"), records, **JSON_V2)
    assert status == 200, answer
    assert read_one(up, "from-http") == b'{"hello":1}'


def test_the_rest_proxy_knows_the_registry(up: UpProcess) -> None:
    kind = "application/vnd.kafka.avro.v2+json"
    records = {"value_schema": AVRO["schema"], "records": [{"value": "seven"}]}
    status, answer = ask(up.url("rest", "/topics/with-schema"), records, Content_Type=kind)
    assert status == 200, answer
    assert "with-schema-value" in up.get("registry", "/subjects")


def test_the_addresses_are_printed_once_everything_answers(up: UpProcess) -> None:
    for name, port in up.ports.items():
        assert any(line.startswith(name) and f":{port} " in line for line in up.log.splitlines())
    assert up.log.count("Everything answers") == 1


@pytest.mark.parametrize("name", ["broker", "services"])
def test_a_killed_process_comes_back_and_the_reason_is_told(up: UpProcess, name: str) -> None:
    schema_id = register(up, f"before-{name}")
    before = up.process_state(name)
    kill_9(before.identity)
    eventually(
        lambda: (
            up.process_state(name).restarts == before.restarts + 1
            and all(process.is_ready for process in up.state().processes)
        ),
        timeout_s=120,
        what=f"a new {name}",
    )
    assert f"{name} was ended by signal 9 (SIGKILL)" in up.log
    assert f"{up.directory.log_of(name)}" in up.log
    assert up.process_state(name).identity != before.identity
    assert up.get("registry", f"/schemas/ids/{schema_id}")["schema"] == '"string"'
    assert register(up, f"after-{name}") >= schema_id
    assert "from-kafka" in up.get("rest", "/topics")


def test_a_service_that_fails_is_red_and_comes_back_while_the_others_go_on(up: UpProcess) -> None:
    before = up.process_state("services")
    admin = AdminClient({"bootstrap.servers": up.address})
    admin.delete_topics(["_schemas"])["_schemas"].result(60)
    empty = NewTopic("_schemas", 1, config={"cleanup.policy": "compact"})
    eventually(lambda: is_created(admin, empty), what="the topic, empty")
    write(up, "lost")  # It is stored at an offset where the registry has read another record.
    eventually(lambda: "registry failed" in services_log(up), timeout_s=120, what="the failure")
    assert "from-kafka" in up.get("rest", "/topics")
    eventually(
        lambda: ask(up.url("registry", "/-/health"))[0] == 200, timeout_s=120, what="its recovery"
    )
    assert "names-value" not in up.get("registry", "/subjects")
    assert up.process_state("services").identity == before.identity
    assert up.process_state("services").restarts == before.restarts


def is_created(admin: AdminClient, topic: NewTopic) -> bool:
    """It can be made again as soon as the one before is gone."""
    with contextlib.suppress(KafkaException):
        admin.create_topics([topic])[topic.topic].result(60)
        return True
    return False


def services_log(up: UpProcess) -> str:
    return up.directory.log_of("services").read_text()


def test_status_tells_of_everything(up: UpProcess) -> None:
    up.wait_until_ready()
    done = penstock("status", str(up.file))
    assert done.returncode == 0, done.stdout + done.stderr
    for name, port in up.ports.items():
        line = next(line for line in done.stdout.splitlines() if line.startswith(name))
        assert f":{port}" in line
        assert " up " in line
        assert " MB" in line


def test_status_tells_what_is_down(up: UpProcess) -> None:
    identity = up.process_state("broker").identity
    up.send_signal(signal.SIGSTOP)  # Or it might be started again before we look.
    try:
        kill_9(identity)
        done = penstock("status", str(up.file))
        assert done.returncode == 1, done.stdout
        assert "broker is down" in done.stdout
    finally:
        up.send_signal(signal.SIGCONT)
    eventually(lambda: up.process_state("broker").is_ready, timeout_s=120, what="a new broker")


def test_a_second_one_in_the_directory_is_refused(up: UpProcess) -> None:
    done = penstock("up", str(up.file))
    assert done.returncode == 1
    assert f"runs already in {up.directory.path}, in process {up.pid}" in done.stderr
    assert done.stderr.count("\n") == 1
    os.kill(up.pid, 0)
