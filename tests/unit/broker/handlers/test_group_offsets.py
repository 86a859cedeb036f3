"""OffsetCommit, OffsetFetch, OffsetDelete, DeleteGroups: every version answers."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.groups.offset_commits import OffsetToCommit
from penstock.groups.surroundings import Claim
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

SETTINGS = {"offsets.topic.num.partitions": "3", "group.initial.rebalance.delay.ms": "0"}
NOWHERE = b"?" * 16


@pytest.fixture
def grouped(serve: Callable[..., Any]) -> Any:
    """A broker with the topics `t` and `u` of two partitions each."""
    served = serve(SETTINGS)
    served.ask(FindCoordinatorRequest(key="g"), 1)
    served.create("t", 2)
    served.create("u", 2)
    return served


def topic_id(served: Any, name: str) -> bytes:
    return bytes(served.broker.image.topics[name].topic_id)


def commit(
    served: Any, version: int, offsets: dict[tuple[str, int], int], **fields: Any
) -> dict[tuple[str, int], ErrorCode]:
    """Commits, and the error of each partition."""
    names = {topic_id(served, name): name for name in ("t", "u")}
    topics = [
        OffsetCommitRequestTopic(
            name="" if version >= 10 else name,
            topic_id=topic_id(served, name) if version >= 10 and name in "tu" else NOWHERE,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata="note"
                )
            ],
        )
        for (name, partition), offset in offsets.items()
    ]
    asked = OffsetCommitRequest(**{"group_id": "g", "topics": topics, **fields})
    told = served.ask(asked, version)
    return {
        (names.get(t.topic_id, "?") if version >= 10 else t.name, p.partition_index): ErrorCode(
            p.error_code
        )
        for t in told.topics
        for p in t.partitions
    }


def fetch(
    served: Any, version: int, topics: list[tuple[str, int]] | None, *, stable: bool = False
) -> dict[tuple[str, int], tuple[int, ErrorCode]]:
    """The offset and error of each partition; None asks for all."""
    if version < 8:
        listed = (
            None
            if topics is None
            else [
                OffsetFetchRequestTopic(name=name, partition_indexes=[index])
                for name, index in topics
            ]
        )
        asked = OffsetFetchRequest(group_id="g", topics=listed, require_stable=stable)
        told = served.ask(asked, version)
        assert told.error_code == 0
        found = told.topics
    else:
        wanted = (
            None
            if topics is None
            else [
                OffsetFetchRequestTopics(
                    name=name,
                    topic_id=topic_id(served, name) if name in "tu" else NOWHERE,
                    partition_indexes=[index],
                )
                for name, index in topics
            ]
        )
        group = OffsetFetchRequestGroup(group_id="g", topics=wanted)
        (told,) = served.ask(
            OffsetFetchRequest(groups=[group], require_stable=stable), version
        ).groups
        assert (told.group_id, told.error_code) == ("g", 0)
        found = told.topics
    names = {topic_id(served, name): name for name in ("t", "u")}
    return {
        (names.get(t.topic_id, "?") if version >= 10 else t.name, p.partition_index): (
            p.committed_offset,
            ErrorCode(p.error_code),
        )
        for t in found
        for p in t.partitions
    }


@pytest.mark.parametrize("version", range(11))
def test_offsets_are_committed_in_every_version(grouped: Any, version: int) -> None:
    errors = commit(grouped, version, {("t", 0): 5, ("u", 1): 6})
    assert errors == {("t", 0): ErrorCode.NONE, ("u", 1): ErrorCode.NONE}
    assert fetch(grouped, 9, None) == {
        ("t", 0): (5, ErrorCode.NONE),
        ("u", 1): (6, ErrorCode.NONE),
    }


@pytest.mark.parametrize("version", range(11))
def test_a_topic_that_is_not_there_is_refused_and_the_others_taken(
    grouped: Any, version: int
) -> None:
    errors = commit(grouped, version, {("nope", 0): 5, ("t", 0): 6})
    name = "?" if version >= 10 else "nope"
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors == {(name, 0): unknown, ("t", 0): ErrorCode.NONE}


@pytest.mark.parametrize("version", [0, 8, 10])
def test_a_partition_that_is_not_there_is_refused_and_the_others_taken(
    grouped: Any, version: int
) -> None:
    errors = commit(grouped, version, {("t", 2): 5, ("u", 1): 6})
    assert errors == {("t", 2): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ("u", 1): ErrorCode.NONE}


def test_a_commit_of_nothing_is_answered_with_nothing(grouped: Any) -> None:
    assert commit(grouped, 8, {}) == {}


@pytest.mark.parametrize("version", [1, 5, 8, 10])
def test_a_generation_that_is_not_there_is_refused_for_each_partition(
    grouped: Any, version: int
) -> None:
    fields = {"generation_id_or_member_epoch": 3, "member_id": "m"}
    errors = commit(grouped, version, {("t", 0): 5, ("t", 1): 5}, **fields)
    refused = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
    assert set(errors.values()) == {refused}


def test_how_long_an_offset_is_kept_may_be_said_until_version_4(grouped: Any) -> None:
    commit(grouped, 4, {("t", 0): 5}, retention_time_ms=1000)
    shard = grouped.broker.groups.led_shard("g").shard
    stored = shard.offsets.get("g", "t", 0)
    assert stored.expire_ms == stored.commit_ms + 1000


@pytest.mark.parametrize("version", range(11))
def test_offsets_are_fetched_in_every_version(grouped: Any, version: int) -> None:
    commit(grouped, 8, {("t", 0): 5})
    asked = [("t", 0), ("t", 1), ("u", 0)]
    assert fetch(grouped, version, asked) == {
        ("t", 0): (5, ErrorCode.NONE),
        ("t", 1): (-1, ErrorCode.NONE),
        ("u", 0): (-1, ErrorCode.NONE),
    }


def test_a_topic_id_that_is_not_there_is_said_to_be_unknown(grouped: Any) -> None:
    assert fetch(grouped, 10, [("nope", 0)]) == {("?", 0): (-1, ErrorCode.UNKNOWN_TOPIC_ID)}


@pytest.mark.parametrize("version", range(2, 11))
def test_all_offsets_are_fetched_when_no_topic_is_named(grouped: Any, version: int) -> None:
    commit(grouped, 8, {("t", 0): 5, ("t", 1): 6, ("u", 0): 7})
    assert fetch(grouped, version, None) == {
        ("t", 0): (5, ErrorCode.NONE),
        ("t", 1): (6, ErrorCode.NONE),
        ("u", 0): (7, ErrorCode.NONE),
    }
    assert fetch(grouped, version, []) == {}


@pytest.mark.parametrize("version", [7, 8, 10])
def test_an_offset_that_a_transaction_may_change_is_unstable(grouped: Any, version: int) -> None:
    commit(grouped, 8, {("t", 0): 5})
    shard = grouped.broker.groups.led_shard("g").shard
    shard.commits.commit_transactional("g", Claim(), (1, 0), [OffsetToCommit("t", 0, 9)], version=3)
    unstable = (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert fetch(grouped, version, [("t", 0)], stable=True) == {("t", 0): unstable}
    assert fetch(grouped, version, None, stable=True) == {("t", 0): unstable}
    assert fetch(grouped, version, [("t", 0)]) == {("t", 0): (5, ErrorCode.NONE)}


def test_several_groups_are_answered_at_once(grouped: Any) -> None:
    commit(grouped, 8, {("t", 0): 5})
    commit(grouped, 8, {("t", 0): 6}, group_id="h")
    groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("g", "h", "none")]
    told = grouped.ask(OffsetFetchRequest(groups=groups), 8).groups
    assert [group.group_id for group in told] == ["g", "h", "none"]
    offsets = [[p.committed_offset for t in g.topics for p in t.partitions] for g in told]
    assert offsets == [[5], [6], []]


@pytest.mark.parametrize("version", range(11))
def test_without_the_topic_there_is_no_coordinator(served: Any, version: int) -> None:
    wanted = [OffsetFetchRequestTopic(name="t", partition_indexes=[0])]
    group = OffsetFetchRequestGroup(group_id="g", topics=None)
    asked = (
        OffsetFetchRequest(groups=[group])
        if version >= 8
        else OffsetFetchRequest(group_id="g", topics=wanted)
    )
    told = served.ask(asked, version)
    if version >= 8:
        error = told.groups[0].error_code
    elif version >= 2:
        error = told.error_code
        assert told.topics == []
    else:
        error = told.topics[0].partitions[0].error_code
        assert told.topics[0].partitions[0].committed_offset == -1
    assert error == ErrorCode.COORDINATOR_NOT_AVAILABLE


def delete(served: Any, *partitions: tuple[str, int], group_id: str = "g") -> Any:
    topics = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index)]
        )
        for name, index in partitions
    ]
    return served.ask(OffsetDeleteRequest(group_id=group_id, topics=topics), 0)


def test_offsets_are_deleted_partition_by_partition(grouped: Any) -> None:
    commit(grouped, 8, {("t", 0): 5, ("u", 0): 6})
    told = delete(grouped, ("t", 0), ("t", 1), ("t", 2), ("nope", 0))
    assert told.error_code == 0
    codes = [(t.name, ErrorCode(p.error_code)) for t in told.topics for p in t.partitions]
    assert codes == [
        ("t", ErrorCode.NONE),
        ("t", ErrorCode.NONE),
        ("t", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert fetch(grouped, 9, None) == {("u", 0): (6, ErrorCode.NONE)}


def test_offsets_of_no_group_cannot_be_deleted(grouped: Any) -> None:
    assert delete(grouped, ("t", 0), group_id="").error_code == ErrorCode.INVALID_GROUP_ID
    assert delete(grouped, ("t", 0)).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_groups_are_deleted_one_by_one(grouped: Any) -> None:
    commit(grouped, 8, {("t", 0): 5})
    busy = JoinGroupRequest(
        group_id="busy",
        session_timeout_ms=6000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    assert grouped.ask(busy, 3).error_code == 0
    for version in range(3):
        commit(grouped, 8, {("t", 0): 5})
        asked = DeleteGroupsRequest(groups_names=["g", "busy", "none", "", "g"])
        told = grouped.ask(asked, version).results
        assert [(result.group_id, ErrorCode(result.error_code)) for result in told] == [
            ("g", ErrorCode.NONE),
            ("busy", ErrorCode.NON_EMPTY_GROUP),
            ("none", ErrorCode.GROUP_ID_NOT_FOUND),
            ("", ErrorCode.GROUP_ID_NOT_FOUND),
        ]
        assert fetch(grouped, 9, None) == {}


def test_deleting_a_topic_deletes_its_offsets(grouped: Any) -> None:
    commit(grouped, 8, {("t", 0): 5, ("u", 0): 6})
    grouped.ask(DeleteTopicsRequest(topic_names=["t"]), 4)
    grouped.create("t", 2)
    assert fetch(grouped, 9, None) == {("u", 0): (6, ErrorCode.NONE)}
