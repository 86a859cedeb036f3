"""OffsetForLeaderEpoch: where the records of an epoch end."""

from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)


def ask(served: Any, version: int, epoch: int, *, index: int = 0, current: int = -1) -> Any:
    wanted = OffsetForLeaderPartition(
        partition=index, leader_epoch=epoch, current_leader_epoch=current
    )
    topic = OffsetForLeaderTopic(topic="t", partitions=[wanted])
    (answered,) = served.ask(OffsetForLeaderEpochRequest(topics=[topic]), version).topics
    assert answered.topic == "t"
    (partition,) = answered.partitions
    assert partition.partition == index
    return partition


@pytest.fixture
def filled(served: Any) -> Any:
    """Offsets 0 to 2 of epoch 0."""
    served.create("t")
    served.append("t", 1, 2, 3)
    return served


@pytest.mark.parametrize("version", range(5))
def test_the_current_epoch_ends_where_the_log_does(filled: Any, version: int) -> None:
    found = ask(filled, version, 0)
    assert (found.error_code, found.end_offset) == (ErrorCode.NONE, 3)
    assert found.leader_epoch == (0 if version >= 1 else -1)


def test_an_earlier_epoch_ends_where_the_next_begins(filled: Any) -> None:
    filled.partition("t").log.assign_epoch_start(4, 3)
    filled.append("t", 4)
    for epoch in (0, 3):
        found = ask(filled, 4, epoch)
        assert (found.leader_epoch, found.end_offset) == (0, 3)
    assert ask(filled, 4, 4).end_offset == 4


def test_an_epoch_nobody_here_knows_has_no_end(filled: Any) -> None:
    for epoch in (5, -1):
        found = ask(filled, 4, epoch)
        assert (found.error_code, found.leader_epoch, found.end_offset) == (0, -1, -1)


def test_a_client_with_another_leader_epoch_is_told_from_version_two_on(filled: Any) -> None:
    assert ask(filled, 1, 0, current=9).error_code == ErrorCode.NONE
    assert ask(filled, 2, 0, current=9).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    filled.partition("t").leader_epoch = 10
    assert ask(filled, 2, 0, current=9).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_partition_that_is_not_there_is_told(filled: Any) -> None:
    missing = ask(filled, 4, 0, index=3)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (missing.leader_epoch, missing.end_offset) == (-1, -1)
