"""kafka-topics: its rules for options, and its lines."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.cli.tools.topics import topics
from penstock.cli.tools.topics.describe import header_line, lines, partition_line
from penstock.client.operations.configs import ConfigEntry, ConfigSource
from penstock.client.operations.reassignments import PartitionReassignment
from penstock.client.operations.topics import PartitionDescription, TopicDescription
from penstock.client.values import Node, TopicPartition
from penstock.errors import CommandError

NODES = tuple(Node(i, "h", 9092 + i) for i in range(3))


def partition(number: int, leader: int | None = 0, isr: tuple[int, ...] = (0, 1)) -> Any:
    return PartitionDescription(
        partition=number,
        leader=None if leader is None else NODES[leader],
        leader_epoch=0,
        replicas=NODES[:2],
        isr=tuple(NODES[i] for i in isr),
        offline=(),
        elr=(),
        last_known_elr=None,
    )


def topic(*partitions: PartitionDescription) -> TopicDescription:
    return TopicDescription(
        name="my-topic", topic_id=bytes(16), is_internal=False, partitions=partitions
    )


def config(name: str, value: str, source: ConfigSource) -> ConfigEntry:
    return ConfigEntry(
        name=name, value=value, source=source, is_sensitive=False, is_read_only=False
    )


CONFIGS = [
    config("retention.ms", "5", ConfigSource.DYNAMIC_TOPIC_CONFIG),
    config("segment.bytes", "9", ConfigSource.DEFAULT_CONFIG),
    config("min.insync.replicas", "2", ConfigSource.STATIC_BROKER_CONFIG),
]


def filters(**chosen: bool) -> Any:
    names = [name.replace("-", "_") for name in topics.FILTERS]
    return SimpleNamespace(**{**dict.fromkeys(names, False), **chosen})


def test_the_line_of_a_topic() -> None:
    assert header_line(topic(partition(0)), CONFIGS) == (
        "Topic: my-topic\tTopicId: AAAAAAAAAAAAAAAAAAAAAA\tPartitionCount: 1\t"
        "ReplicationFactor: 2\tConfigs: retention.ms=5,min.insync.replicas=2"
    )


def test_the_line_of_a_partition() -> None:
    assert partition_line("my-topic", partition(3)) == (
        "\tTopic: my-topic\tPartition: 3\tLeader: 0\tReplicas: 0,1\tIsr: 0,1\tElr: \t"
        "LastKnownElr: N/A"
    )
    assert "\tLeader: none\t" in partition_line("my-topic", partition(3, leader=None))


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        ({}, ["my-topic", 0, 1, 2, 3]),
        ({"under_replicated_partitions": True}, [1]),
        ({"unavailable_partitions": True}, [2, 3]),
        ({"under_min_isr_partitions": True}, [1]),
        ({"at_min_isr_partitions": True}, [0, 2, 3]),
        ({"topics_with_overrides": True}, ["my-topic"]),
    ],
)
def test_filters_choose_lines(chosen: dict[str, bool], shown: list[Any]) -> None:
    described = topic(
        partition(0), partition(1, isr=(0,)), partition(2, leader=None), partition(3, leader=1)
    )
    found = lines(described, CONFIGS, filters(**chosen), alive={0})
    headers = [line for line in found if line.startswith("Topic:")]
    numbers = [int(line.split("\t")[2].split()[1]) for line in found if line.startswith("\t")]
    assert (["my-topic"] if headers else []) + numbers == shown


def test_replica_assignments_are_read() -> None:
    assert topics.parse_assignment("0:1,1:2") == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0:0", "duplicate entries: 0"),
        ("0:1,2", "Partition 1 has different replication factor"),
        ("a:b", "broker ids"),
    ],
)
def test_a_bad_assignment_is_told(text: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        topics.parse_assignment(text)


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ([], "Create, delete, describe, or change a topic."),
        (["--topic", "t"], "Command must include exactly one action"),
        (["--list", "--describe"], "Command must include exactly one action"),
        (["--create"], 'Missing required argument "[topic]"'),
        (["--list", "--partitions", "3"], 'Option "[list]" can\'t be used with option'),
        (["--create", "--topic", "t", "--if-exists"], 'Option "[create]" can\'t be used'),
        (
            ["--create", "--topic", "t", "--partitions", "0"],
            "The partitions must be greater than 0",
        ),
        (
            ["--create", "--topic", "t", "--replication-factor", "0"],
            "The replication factor must be between 1",
        ),
        (["--list"], 'Missing required argument "[bootstrap-server]"'),
    ],
)
def test_a_wrong_command_line_is_refused_with_code_1(
    capsys: pytest.CaptureFixture[str], argv: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit) as end:
        topics.main(argv)
    assert end.value.code == 1
    assert capsys.readouterr().err.startswith(sentence)


def test_a_partition_on_the_move_shows_where_to_and_is_not_under_replicated() -> None:
    at = TopicPartition("my-topic", 0)
    moves = {at: PartitionReassignment(replicas=(0, 1, 2), adding=(2,), removing=(0,))}
    moving = PartitionDescription(
        partition=0,
        leader=NODES[0],
        leader_epoch=0,
        replicas=NODES,
        isr=NODES[:2],
        offline=(),
        elr=(),
        last_known_elr=(),
    )
    described = topic(moving)
    head, line = lines(described, CONFIGS, filters(), {0, 1, 2}, moves)
    assert "\tReplicationFactor: 2\t" in head
    assert "\tIsr: 0,1\tAdding Replicas: 2\tRemoving Replicas: 0\tElr: \t" in line
    late = filters(under_replicated_partitions=True)
    assert lines(described, CONFIGS, late, {0, 1, 2}, moves) == []
    assert len(lines(described, CONFIGS, late, {0, 1, 2})) == 1
