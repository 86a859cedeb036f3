"""Requests of members of a consumer group (KIP-848), for the tests of several handlers."""

from typing import Any

from penstock.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def join(member_id: str = "a", **fields: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        **{
            "group_id": "g",
            "member_id": member_id,
            "rebalance_timeout_ms": 6000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
            **fields,
        }
    )
