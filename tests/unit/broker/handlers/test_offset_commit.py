"""OffsetCommit: every version answers."""

from typing import Any

import pytest
from tests.unit.broker.handlers.committed_offsets import commit, fetch

from penstock.errors import ErrorCode


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
