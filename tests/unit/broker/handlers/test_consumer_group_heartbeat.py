"""ConsumerGroupHeartbeat in all versions, with a whole broker behind."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.handlers.consumer_members import join

from penstock.errors import ErrorCode
from penstock.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest

SETTINGS = {"offsets.topic.num.partitions": "3"}


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_lives_in_every_version(grouped: Any, version: int) -> None:
    joined = grouped.ask(join("" if version == 0 else "a"), version)
    assert (joined.error_code, joined.member_epoch) == (0, 2)
    assert [topic.partitions for topic in joined.assignment.topic_partitions] == [[0, 1]]
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=joined.member_id, member_epoch=joined.member_epoch
    )
    beaten = grouped.ask(beat, version)
    assert (beaten.error_code, beaten.assignment) == (0, None)
    beat.member_epoch = -1
    assert grouped.ask(beat, version).member_epoch == -1


def test_a_pattern_is_matched_from_version_1_on(grouped: Any) -> None:
    joined = grouped.ask(join(subscribed_topic_names=None, subscribed_topic_regex="t+"), 1)
    assert [topic.partitions for topic in joined.assignment.topic_partitions] == [[0, 1]]


def test_a_refusal_comes_with_a_sentence(grouped: Any) -> None:
    refused = grouped.ask(join(server_assignor="best"), 1)
    assert refused.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert refused.error_message == (
        "ServerAssignor best is not supported. Supported assignors: uniform, range."
    )


def test_a_broker_without_the_protocol_says_so(serve: Callable[..., Any]) -> None:
    served = serve({**SETTINGS, "group.coordinator.rebalance.protocols": "classic"})
    served.ask(FindCoordinatorRequest(key="g"), 1)
    assert served.ask(join(), 1).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_without_the_offsets_topic_there_is_no_coordinator(serve: Callable[..., Any]) -> None:
    assert serve(SETTINGS).ask(join(), 1).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
