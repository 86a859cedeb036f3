"""A distributed worker on a real broker and Spark: the tutorial's file lab, REST, and kill -9."""

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess, kill, task_processes
from tests.support.connect_files import append, has_lines, source, values_of
from tests.support.connect_script import answers
from tests.support.mosquitto import Mosquitto, mosquitto
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.client.operations.configs import ConfigResource, ResourceType
from penstock.client.operations.coordinators import CoordinatorKind, ask_coordinator
from penstock.client.values import Node
from penstock.client.wire.raw_cluster import cluster_for
from penstock.connect.group.told import WorkerState, decode_state
from penstock.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "connect" / "rest.json"
_WAIT_S = 120.0


@pytest.fixture(scope="module")
def worker(
    shared_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectProcess]:
    """One worker for all tests; some kill it, and start it again."""
    with ConnectProcess(tmp_path_factory.mktemp("connect"), shared_broker.address) as process:
        process.start()
        yield process


def test_the_answers_of_rest_are_those_of_apaches_worker(
    worker: ConnectProcess, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("one\ntwo\nthree\n")
    ours = answers(worker.url, tmp_path)
    apaches = json.loads(GOLDEN.read_text())
    assert [one["call"].partition("?")[0] for one in ours] == [
        one["call"].partition("?")[0] for one in apaches
    ]
    differing = [(a, o) for a, o in zip(apaches, ours, strict=True) if a != o]
    assert differing == []
    assert (tmp_path / "out.txt").read_text() == "one\ntwo\nthree\n"


ONCE = {"partitions": "1", "replication.factor": "1", "retention.ms": "987654321"}


def retention_ms(broker: BrokerProcess, topic: str) -> str | None:
    """How long a topic keeps its records, as it was made."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    with Admin({"bootstrap.servers": broker.address}) as admin:
        entries = admin.describe_configs([resource])[resource]
    return {one.name: one.value for one in entries}["retention.ms"]


def test_each_line_arrives_once_though_processes_are_killed_between_the_steps(
    worker: ConnectProcess, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    lines = [f"line {n}" for n in range(3000)]
    append(tmp_path / "in.txt", lines[:1000])
    made = {f"topic.creation.default.{name}": text for name, text in ONCE.items()}
    config = source(tmp_path, "once", **{"batch.size": "50", **made})
    assert worker.ask("PUT", "/connectors/once/config", config)[0] == 201
    eventually(lambda: task_processes(worker), timeout_s=_WAIT_S, what="a task's process")
    kill(task_processes(worker)[0].pid)  # While it writes the first lines.
    append(tmp_path / "in.txt", lines[1000:2000])
    eventually(
        lambda: has_lines(shared_broker, "once", lines[:2000]), timeout_s=_WAIT_S, every_s=0.3
    )
    append(tmp_path / "in.txt", lines[2000:2500])
    worker.kill()  # With Spark and all tasks, wherever they are.
    append(tmp_path / "in.txt", lines[2500:])
    worker.start()
    eventually(lambda: has_lines(shared_broker, "once", lines), timeout_s=_WAIT_S, every_s=0.3)
    eventually(lambda: worker.states("once") == ["RUNNING", "RUNNING"], timeout_s=_WAIT_S)
    assert worker.ask("DELETE", "/connectors/once")[0] == 204
    assert retention_ms(shared_broker, "once") == ONCE["retention.ms"]  # The task made the topic.


def test_a_task_that_fails_is_restarted_and_says_so(worker: ConnectProcess, tmp_path: Path) -> None:
    directory = tmp_path / "later"
    config = {
        "connector.class": "FileStreamSink",
        "tasks.max": "1",
        "topics": "lines",
        "file": str(directory / "out.txt"),
    }
    assert worker.ask("PUT", "/connectors/sick/config", config)[0] == 201

    def has_failed() -> bool:
        status, document = worker.ask("GET", "/connectors/sick/tasks/0/status")
        return (
            status == 200 and document["state"] == "FAILED" and "Restarted in" in document["trace"]
        )

    eventually(has_failed, timeout_s=_WAIT_S)
    directory.mkdir()
    eventually(lambda: worker.states("sick") == ["RUNNING", "RUNNING"], timeout_s=_WAIT_S)
    assert worker.ask("DELETE", "/connectors/sick")[0] == 204
    eventually(lambda: worker.states("sick") == [], timeout_s=_WAIT_S)


def test_records_that_cannot_be_read_go_to_the_dead_letters(
    worker: ConnectProcess, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    lines = ['{"n":1}', "not json", '{"n":2}']
    append(tmp_path / "in.txt", lines)
    assert worker.ask("PUT", "/connectors/raw/config", source(tmp_path, "mixed"))[0] == 201
    config = {
        "connector.class": "FileStreamSink",
        "topics": "mixed",
        "file": str(tmp_path / "out.txt"),
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "transforms": "n",
        "transforms.n.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
        "transforms.n.field": "n",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "dead",
    }
    assert worker.ask("PUT", "/connectors/picky/config", config)[0] == 201
    out = tmp_path / "out.txt"
    eventually(lambda: out.exists() and out.read_text() == "1\n2\n", timeout_s=_WAIT_S)
    eventually(lambda: values_of(shared_broker, "dead") == ["not json"], timeout_s=_WAIT_S)
    for name in ("raw", "picky"):
        assert worker.ask("DELETE", f"/connectors/{name}")[0] == 204


def publish(server: Mosquitto, texts: list[str]) -> None:
    """Messages of a sensor, each of which the server has taken."""
    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", server.port)
    client.loop_start()
    for sent in [client.publish("home/heat", text, qos=1) for text in texts]:
        sent.wait_for_publish(60)
    client.disconnect()
    client.loop_stop()


def test_messages_of_sensors_reach_a_topic_also_when_the_task_is_killed(
    worker: ConnectProcess, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    texts = [f"{n} degrees" for n in range(60)]
    with mosquitto(tmp_path) as server:
        config = {
            "connector.class": "io.confluent.connect.mqtt.MqttSourceConnector",
            "tasks.max": "1",
            "mqtt.server.uri": server.uri,
            "mqtt.topics": "home/+",
            "kafka.topic": "heat",
            "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        }
        wrong = {**config, "mqtt.qos": "2", "mqtt.topics": "a/#/b"}
        plugin = "/connector-plugins/MqttSource/config/validate"
        assert worker.ask("PUT", plugin, {"name": "m", **wrong})[1]["error_count"] == 2
        assert worker.ask("PUT", "/connectors/heat/config", config)[0] == 201
        eventually(lambda: worker.states("heat") == ["RUNNING", "RUNNING"], timeout_s=_WAIT_S)
        publish(server, texts[:30])
        eventually(lambda: len(values_of(shared_broker, "heat")) >= 10, timeout_s=_WAIT_S)
        for process in task_processes(worker):
            kill(process.pid)
        publish(server, texts[30:])  # The server keeps them until the task is back.
        eventually(
            lambda: set(values_of(shared_broker, "heat")) == set(texts),
            timeout_s=_WAIT_S,
            every_s=0.3,
        )
        assert worker.ask("DELETE", "/connectors/heat")[0] == 204


def test_workers_of_a_group_share_the_work_and_hand_it_over(
    worker: ConnectProcess, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    names, lines = ["one", "two"], [f"line {n}" for n in range(40)]
    for name in names:
        append(tmp_path / f"{name}.txt", lines[:20])
    with ConnectProcess(tmp_path / "second", shared_broker.address) as second:
        second.start()
        for name in names:  # The second one follows, and asks the first.
            config = source(tmp_path, name) | {"file": str(tmp_path / f"{name}.txt")}
            status, told = second.ask("PUT", f"/connectors/{name}/config", config)
            assert (status, told["config"]["file"]) == (201, config["file"])
        share = {worker.address: 2, second.address: 2}

        def is_shared() -> bool:
            return Counter(second.places(*names).values()) == share

        eventually(is_shared, timeout_s=_WAIT_S, every_s=0.3)
        assert {one.url for one in told_states(shared_broker)} == {
            f"{one.url}/" for one in (worker, second)
        }
        check_requests_between_workers(worker, second)
        assert second.stop() == 0, second.log_end  # What it had is not waited for.
        eventually(lambda: on_one(worker, names), timeout_s=_WAIT_S, every_s=0.3)
        for name in names:
            append(tmp_path / f"{name}.txt", lines[20:])
        second.start()
        eventually(is_shared, timeout_s=_WAIT_S, every_s=0.3)
        worker.kill()
        eventually(lambda: on_one(second, names), timeout_s=_WAIT_S, every_s=0.3)
        for name in names:
            arrived = partial(has_lines, shared_broker, name, lines)
            eventually(arrived, timeout_s=_WAIT_S, every_s=0.3)
            assert second.ask("DELETE", f"/connectors/{name}")[0] == 204
        assert second.stop() == 0, second.log_end


def on_one(worker: ConnectProcess, names: list[str]) -> bool:
    """Whether a worker runs all of these connectors, and their tasks."""
    return Counter(worker.places(*names).values()) == {worker.address: 2 * len(names)}


def told_states(broker: BrokerProcess) -> list[WorkerState]:
    """What the members of the group tell of themselves, to whomever describes the group."""
    with cluster_for({"bootstrap.servers": broker.address}) as cluster:

        def ask(node: Node) -> DescribeGroupsResponse:
            request = DescribeGroupsRequest(groups=["workers"])
            connection = cluster.node_connection(node.id)
            return connection.ask(request, DescribeGroupsResponse, timeout_s=30)

        (group,) = ask_coordinator(cluster, "workers", CoordinatorKind.GROUP, ask).groups
    assert (group.protocol_type, group.protocol_data) == ("connect", "sessioned")
    return [decode_state(bytes(member.member_metadata)) for member in group.members]


def check_requests_between_workers(first: ConnectProcess, second: ConnectProcess) -> None:
    """A level for the whole group, a restart where the task is, and nothing without a signature."""
    path = "/admin/loggers/penstock.connect.example"
    assert second.ask("PUT", f"{path}?scope=cluster", {"level": "ERROR"})[0] == 204
    for one in (first, second):
        eventually(lambda one=one: one.ask("GET", path)[1].get("level") == "ERROR", timeout_s=60)  # type: ignore[misc]
    assert {"root", "penstock.connect.example"} <= set(
        first.ask("PUT", "/admin/loggers/root", {"level": "INFO"})[1]
    )
    assert first.ask("GET", path)[1]["level"] == "INFO"
    for one in (first, second):
        assert one.ask("POST", "/connectors/one/tasks/0/restart")[0] == 204
        assert one.ask("POST", "/connectors/one/restart")[0] == 204
    missing = "Internal request missing required signature"
    assert first.ask("POST", "/connectors/one/tasks", [])[1]["message"] == missing
    assert first.ask("PUT", "/connectors/one/fence")[1]["message"] == missing
