"""What consumers of classic groups subscribe to, read out of bytes that are theirs.

The coordinator passes these bytes on unread, except to know which offsets a group still needs.
"""

from collections.abc import Iterable

from penstock.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from penstock.protocol.primitives import MalformedMessage

CONSUMER_PROTOCOL = "consumer"  # The protocol type whose subscriptions can be read.

_PREFIX_BYTES = 2  # The version in front of a subscription.


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics that the subscriptions name; None: one of them cannot be read."""
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            # Topics come first in every version, and some clients garble what follows.
            read, _ = ConsumerProtocolSubscription.decode_prefix(subscription, 0, _PREFIX_BYTES)
            topics.update(read.topics)
    except MalformedMessage:
        return None
    return frozenset(topics)
