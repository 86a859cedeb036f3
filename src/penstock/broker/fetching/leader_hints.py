"""Who leads a partition instead, told with the error that it is not us (KIP-951).

A client that is told the new leader and where it listens need not ask for metadata first, which
is most of what a failover costs it.
"""

from collections.abc import Iterable
from typing import Final

from penstock.broker.context import RequestContext
from penstock.cluster.image.image import NO_LEADER, Endpoint
from penstock.errors import ErrorCode

_TOLD_WITH: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


def current_leader(
    error_code: int, topic: str | None, partition: int, context: RequestContext
) -> tuple[int, int] | None:
    """The leader and its epoch, as far as this broker knows; None: there is nothing to tell."""
    if error_code not in _TOLD_WITH or topic is None:
        return None
    known = context.broker.image.partition(topic, partition)
    hosted = context.broker.partitions.get(topic, partition)
    if known is None:
        return None
    state = known.state
    if hosted is not None and hosted.state is not None:  # It may have heard before the image.
        state = max(state, hosted.state, key=lambda it: (it.leader_epoch, it.partition_epoch))
    return None if state.leader == NO_LEADER else (state.leader, state.leader_epoch)


def endpoints_of(
    leaders: Iterable[int], context: RequestContext
) -> list[tuple[int, Endpoint, str | None]]:
    """Where the clients of the request's listener find these brokers."""
    brokers = context.broker.image.brokers
    return [
        (broker.broker_id, endpoint, broker.rack)
        for leader in sorted(set(leaders))
        if (broker := brokers.get(leader)) is not None
        for endpoint in broker.endpoints
        if endpoint.listener == context.session.listener
    ]
