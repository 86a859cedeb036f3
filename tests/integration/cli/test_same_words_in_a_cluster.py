"""Apache Kafka's own tools on an Apache Kafka of three brokers, beside ours on the same."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration.cli.conftest import Done, command, run, start
from tests.support.apache_kafka import CURRENT
from tests.support.kafka_cluster import KafkaCluster
from tests.support.outside import needs
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.client.operations.configs import ConfigResource, ConfigSource, ResourceType
from penstock.client.operations.topics import NewTopic

pytestmark = [pytest.mark.kafka, pytest.mark.long]

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"
Theirs = Callable[..., Done]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    directory = tmp_path_factory.mktemp("kafka")
    with KafkaCluster(needs(CURRENT), directory, heap="256m") as made:
        made.start()
        yield made


@pytest.fixture(scope="module")
def theirs(kafka: KafkaCluster) -> Theirs:
    """Runs a tool of Apache Kafka by its class."""
    java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    java += ["-cp", f"{needs(CURRENT)}/*"]

    def run_class(name: str, *words: object) -> Done:
        call = [*java, name, "--bootstrap-server", kafka.bootstrap, *(str(word) for word in words)]
        done = subprocess.run(call, capture_output=True, text=True, timeout=120)
        return Done(done.returncode, done.stdout, done.stderr)

    return run_class


@pytest.fixture
def admin(kafka: KafkaCluster) -> Iterator[Admin]:
    with Admin(bootstrap_servers=kafka.bootstrap) as made:
        yield made


def ours(kafka: KafkaCluster, tool: str, *words: object) -> Done:
    return run(tool, "--bootstrap-server", kafka.bootstrap, *words)


def plan_file(directory: Path, topic: str, replicas: list[int]) -> Path:
    partitions = [{"topic": topic, "partition": p, "replicas": replicas} for p in (0, 1)]
    file = directory / f"{topic}.json"
    file.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return file


def topic(admin: Admin, name: str) -> None:
    admin.create_topics([NewTopic(name=name, assignments={0: [0, 1], 1: [1, 2]})])
    eventually(lambda: name in [listing.name for listing in admin.list_topics()])


def throttles(admin: Admin, name: str) -> dict[str, str | None]:
    resources = [ConfigResource(ResourceType.TOPIC, name)]
    resources += [ConfigResource(ResourceType.BROKER, str(broker)) for broker in range(3)]
    dynamic = (ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DYNAMIC_BROKER_CONFIG)
    return {
        f"{resource.type.name} {resource.name if resource.name != name else ''} {entry.name}": (
            entry.value
        )
        for resource, entries in admin.describe_configs(resources).items()
        for entry in entries
        if entry.source in dynamic and "throttled" in entry.name
    }


def test_a_plan_is_proposed_in_the_same_form(
    kafka: KafkaCluster, theirs: Theirs, admin: Admin, tmp_path: Path
) -> None:
    topic(admin, "plan")
    file = tmp_path / "topics.json"
    file.write_text('{"topics":[{"topic":"plan"}],"version":1}')
    words = ["--generate", "--topics-to-move-json-file", file, "--broker-list", "0,1,2"]
    expected, found = theirs(REASSIGN, *words), ours(kafka, "reassign-partitions", *words)
    assert found.lines[:4] == expected.lines[:4]
    proposed, example = json.loads(found.lines[4]), json.loads(expected.lines[4])
    assert list(proposed) == list(example)
    # The places are left to chance, in both.
    for made, shown in zip(proposed["partitions"], example["partitions"], strict=True):
        assert list(made) == list(shown)
        assert len(made["replicas"]) == 2
        assert made["log_dirs"] == shown["log_dirs"]


def test_a_move_is_ordered_throttled_verified_and_listed_alike(
    kafka: KafkaCluster, theirs: Theirs, admin: Admin, tmp_path: Path
) -> None:
    topic(admin, "a")
    topic(admin, "b")
    file, other = plan_file(tmp_path, "a", [1, 2]), plan_file(tmp_path, "b", [1, 2])
    order = ["--execute", "--throttle", 1_000_000, "--reassignment-json-file"]
    expected = theirs(REASSIGN, *order, file)
    eventually(lambda: not admin.list_partition_reassignments())
    set_by_theirs = throttles(admin, "a")
    assert theirs(REASSIGN, "--verify", "--reassignment-json-file", file).code == 0
    assert throttles(admin, "a") == {}

    found = ours(kafka, "reassign-partitions", *order, other)
    assert [line.replace('"b"', '"a"').replace("b-", "a-") for line in found.lines] == (
        expected.lines
    )
    eventually(lambda: not admin.list_partition_reassignments())
    assert throttles(admin, "b") == set_by_theirs
    assert len(set_by_theirs) == 2 + 3 * 2
    for words in (
        ["--verify", "--reassignment-json-file", other],
        ["--cancel", "--reassignment-json-file", other],
        ["--list"],
    ):
        ended = ours(kafka, "reassign-partitions", *words)
        expected = theirs(REASSIGN, *words)
        # One of Kafka's sentences lacks its end of line.
        assert ended.out.replace("active.\nClearing", "active.Clearing") == expected.out
    assert throttles(admin, "b") == {}


def test_a_move_to_nowhere_is_refused_alike(
    kafka: KafkaCluster, theirs: Theirs, admin: Admin, tmp_path: Path
) -> None:
    topic(admin, "nowhere")
    words = ["--execute", "--reassignment-json-file", plan_file(tmp_path, "nowhere", [1, 9])]
    expected, found = theirs(REASSIGN, *words), ours(kafka, "reassign-partitions", *words)
    assert found.code == expected.code == 1
    assert found.err.splitlines()[0] == expected.lines[0] == "Error: Unknown broker id 9"


def test_elections_are_told_alike(kafka: KafkaCluster, theirs: Theirs, admin: Admin) -> None:
    topic(admin, "led")
    for words in (
        ["--election-type", "preferred", "--topic", "led", "--partition", 0],
        ["--election-type", "PREFERRED", "--all-topic-partitions"],
    ):
        expected, found = theirs(ELECT, *words), ours(kafka, "leader-election", *words)
        assert (found.code, found.out) == (expected.code, expected.out)
    words = ["--election-type", "unclean", "--topic", "led", "--partition", 7]
    expected, found = theirs(ELECT, *words), ours(kafka, "leader-election", *words)
    assert found.code == expected.code == 1
    assert found.err.splitlines()[0] in expected.err.splitlines()
    kind = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"
    assert found.out == expected.out.replace(kind, "UnknownTopicOrPartition")


def test_replicas_of_another_broker_are_compared(kafka: KafkaCluster, admin: Admin) -> None:
    topic(admin, "same")
    words = ["--broker-list", kafka.bootstrap, "--topic-white-list", "same", "--time", -2]
    records = ["--num-records", 1000, "--record-size", 100, "--throughput", -1]
    sent = ours(kafka, "producer-perf-test", "--topic", "same", *records)
    assert sent.code == 0, sent.err
    process = start(command("replica-verification", *words, "--report-interval-ms", 100))
    try:
        assert process.stdout is not None
        assert process.stdout.readline().endswith(": verification process is started.\n")
        line = next(line for line in process.stdout if "max lag is 0 " in line)
        assert "for partition [same," in line
        assert line.endswith(" among 2 partitions\n")
    finally:
        process.terminate()
        assert process.wait(120) == 0
