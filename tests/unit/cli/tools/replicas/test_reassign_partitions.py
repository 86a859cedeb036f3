"""kafka-reassign-partitions: its files, its plans, its throttles and its lines."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.tools.replicas import move_plan as plan
from penstock.cli.tools.replicas import reassign_partitions as tool
from penstock.cli.tools.replicas.move_directories import status_line
from penstock.client.operations.reassignments import PartitionReassignment, Replica
from penstock.client.operations.replica_log_dirs import ReplicaLogDirs
from penstock.client.values import TopicPartition
from penstock.errors import CommandError, InvalidReplicationFactor

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def entry(topic: str = "t", partition: int = 0, **more: Any) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "replicas": [0, 1], **more}


def document(*entries: dict[str, Any], **more: Any) -> str:
    return json.dumps({"version": 1, "partitions": list(entries), **more})


def test_a_plan_is_read_as_it_is_written() -> None:
    text = plan.as_json({T1: [2, 0], T0: [0, 1]})
    assert text == (
        '{"version":1,"partitions":['
        '{"topic":"t","partition":0,"replicas":[0,1],"log_dirs":["any","any"]},'
        '{"topic":"t","partition":1,"replicas":[2,0],"log_dirs":["any","any"]}]}'
    )
    wanted = plan.parse_reassignment(text)
    assert wanted.replicas == {T0: (0, 1), T1: (2, 0)}
    assert wanted.directories == {}


def test_only_named_directories_count() -> None:
    wanted = plan.parse_reassignment(document(entry(log_dirs=["any", "/data"])))
    assert wanted.directories == {Replica("t", 0, 1): "/data"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not a valid JSON"),
        ("[]", "not a valid JSON"),
        (document(version=2), "Not supported version field value 2"),
        (document(), "reassignment list cannot be empty"),
        (document(entry(replicas=[])), "replica list cannot be empty"),
        (document(entry(), entry()), "duplicate topic partitions: t-0"),
        (document(entry(replicas=[1, 1])), "t-0 contains multiple entries for 1"),
        (document(entry(log_dirs=["any"])), "different from size of log dirs list"),
        (document(entry(replicas=["one"])), "must be a whole number"),
        (document(entry(replicas=1)), "must be a list"),
        (document({"topic": "t"}), 'has no "partition"'),
    ],
)
def test_a_bad_plan_is_told(text: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        plan.parse_reassignment(text)


def test_topics_and_brokers_come_once() -> None:
    assert plan.parse_topics('{"topics":[{"topic":"a"},{"topic":"b"}]}') == ["a", "b"]
    with pytest.raises(CommandError, match=r"contains duplicate entries: \[a\]"):
        plan.parse_topics('{"topics":[{"topic":"a"},{"topic":"a"}],"version":1}')
    assert plan.parse_brokers("2,0,1") == [2, 0, 1]
    with pytest.raises(CommandError, match=r"duplicate entries: \[1\]"):
        plan.parse_brokers("1,0,1")
    with pytest.raises(CommandError, match="write broker ids"):
        plan.parse_brokers("a,b")


def test_racks_count_only_if_all_brokers_have_one() -> None:
    known = {0: "a", 1: None, 2: "b"}
    assert plan.racks_for(known, [0, 2], aware=True) == {0: "a", 2: "b"}
    assert plan.racks_for(known, [0, 1], aware=False) == {0: None, 1: None}
    with pytest.raises(CommandError, match="--disable-rack-aware"):
        plan.racks_for(known, [0, 1], aware=True)
    with pytest.raises(CommandError, match="Unknown broker id 7"):
        plan.racks_for(known, [7], aware=True)


@given(
    partitions=st.integers(1, 30),
    factor=st.integers(1, 4),
    brokers=st.sets(st.integers(0, 20), min_size=4, max_size=9),
    start=st.integers(0, 8),
    shift=st.integers(0, 8),
)
def test_a_proposal_keeps_the_replication_factor_and_uses_only_the_brokers(
    partitions: int, factor: int, brokers: set[int], start: int, shift: int
) -> None:
    current = {TopicPartition("t", number): list(range(factor)) for number in range(partitions)}
    racks: dict[int, str | None] = dict.fromkeys(brokers)
    proposed = plan.propose(current, racks, start=start, shift=shift)
    assert set(proposed) == set(current)
    for replicas in proposed.values():
        assert len(set(replicas)) == len(replicas) == factor
        assert set(replicas) <= brokers


def test_too_few_brokers_are_told() -> None:
    with pytest.raises(InvalidReplicationFactor, match="larger than available brokers: 1"):
        plan.propose({T0: [0, 1]}, {0: None}, start=0, shift=0)


def test_throttles_name_sources_and_newcomers() -> None:
    planned = plan.moves({T0: (1, 2), T1: (0, 1), U0: (3,)}, {T0: [0, 1], T1: [0, 1], U0: [3]}, {})
    assert plan.throttled_leaders(planned) == {"t": "0:0,0:1,1:0,1:1", "u": "0:3"}
    assert plan.throttled_followers(planned) == {"t": "0:2"}
    assert plan.brokers_of(planned) == [0, 1, 2, 3]


def test_a_partition_on_the_move_keeps_its_sources() -> None:
    under_way = {T0: PartitionReassignment(replicas=(0, 1, 2), adding=(2,), removing=(0,))}
    planned = plan.moves({T0: (3, 1)}, {T0: [0, 1, 2]}, under_way)
    assert plan.throttled_leaders(planned) == {"t": "0:0,0:1"}
    assert plan.throttled_followers(planned) == {"t": "0:3"}


def test_moves_are_listed() -> None:
    assert tool.moves_text({}) == "No partition reassignments found."
    moves = {
        T1: PartitionReassignment(replicas=(0, 1), adding=(), removing=()),
        T0: PartitionReassignment(replicas=(0, 1, 2), adding=(2,), removing=(0,)),
    }
    assert tool.moves_text(moves).splitlines() == [
        "Current partition reassignments:",
        "t-0: replicas: 0,1,2. adding: 2. removing: 0.",
        "t-1: replicas: 0,1.",
    ]


def test_the_state_of_a_partition_is_told() -> None:
    assert tool.status_line(T0, [1, 2], [0, 1, 2], is_moving=True) == (
        "Reassignment of partition t-0 is still in progress."
    )
    assert tool.status_line(T0, (1, 2), [1, 2], is_moving=False) == (
        "Reassignment of partition t-0 is completed."
    )
    assert tool.status_line(T0, [1, 2], [0, 1], is_moving=False) == (
        "There is no active reassignment of partition t-0, but replica set is 0,1 rather than 1,2."
    )


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (ReplicaLogDirs(), "cannot be found in any live log directory on broker 1."),
        (ReplicaLogDirs(None, future="/b"), "not found in any live log dir on broker 1."),
        (
            ReplicaLogDirs("/b", future=None),
            "Reassignment of replica t-0-1 completed successfully.",
        ),
        (ReplicaLogDirs("/a", future=None), "is not being moved from log dir /a to /b."),
        (ReplicaLogDirs("/a", future="/b"), "Reassignment of replica t-0-1 is still in progress."),
        (ReplicaLogDirs("/a", future="/c"), "is being moved to log dir /c instead of /b."),
    ],
)
def test_the_state_of_a_move_between_directories_is_told(place: ReplicaLogDirs, words: str) -> None:
    assert words in status_line(Replica("t", 0, 1), "/b", place)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "exactly one action: --generate, --execute, --verify, --cancel, --list"),
        (["--list", "--verify"], "exactly one action"),
        (["--execute"], 'Missing required argument "[reassignment-json-file]"'),
        (["--generate", "--topics-to-move-json-file", "x"], 'argument "[broker-list]"'),
        (
            ["--verify", "--reassignment-json-file", "x", "--throttle", "5"],
            'Option "[throttle]" can\'t be used with action "[verify]"',
        ),
        (
            ["--list", "--broker-list", "1"],
            'Option "[broker-list]" can\'t be used with action "[list]"',
        ),
        (["--execute", "--reassignment-json-file", "x", "--throttle", "0"], "above 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        tool.main(["--bootstrap-server", "localhost:1", *words])
    assert end.value.code == 1
    assert complaint in capsys.readouterr().err
