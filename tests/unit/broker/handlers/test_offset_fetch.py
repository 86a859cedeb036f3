"""OffsetFetch: every version answers."""

from typing import Any

import pytest
from tests.unit.broker.handlers.committed_offsets import NOWHERE, commit, fetch, topic_id

from penstock.errors import ErrorCode
from penstock.groups.offsets.commits import OffsetToCommit
from penstock.groups.surroundings import MemberClaim
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)


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
    shard.commits.commit_transactional(
        "g", MemberClaim(), (1, 0), [OffsetToCommit("t", 0, 9)], version=3
    )
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


def test_an_offset_of_an_earlier_topic_of_the_name_does_not_count_for_who_asks_by_id(
    grouped: Any,
) -> None:
    commit(grouped, 9, {("t", 0): 5, ("t", 1): 6})
    shard = grouped.broker.groups.run("g", lambda shard: shard)
    stored = shard.offsets.get("g", "t", 0)
    assert stored.topic_id == topic_id(grouped, "t")
    shard.offsets.put("g", "t", 0, stored._replace(topic_id=NOWHERE))
    shard.offsets.put("g", "t", 1, stored._replace(topic_id=None))
    by_name = fetch(grouped, 9, [("t", 0), ("t", 1)])
    assert [offset for offset, *_ in by_name.values()] == [5, 5]
    by_id = fetch(grouped, 10, [("t", 0), ("t", 1)])
    assert [offset for offset, *_ in by_id.values()] == [-1, 5]
