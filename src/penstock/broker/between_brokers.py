"""What brokers ask each other: how such a request is told from those of clients.

Some APIs are for brokers alone; of others one version is, or what a request says of its sender.
The dispatcher serves these on the listener of the brokers, and quotas do not hold them up.
"""

from collections.abc import Callable
from typing import Any, Final

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.fetch import FetchRequest

_FIRST_VERSION_OF_BROKERS: Final = 4  # Of AddPartitionsToTxn; clients stay below.


def follower_of(request: FetchRequest) -> int:
    """The broker that fetches as a follower; negative: a consumer does."""
    return max(request.replica_id, request.replica_state.replica_id)


def _is_always(_request: Any, _version: int) -> bool:
    return True


def _is_follower(request: Any, _version: int) -> bool:
    return follower_of(request) >= 0


def _is_batched(_request: Any, version: int) -> bool:
    return version >= _FIRST_VERSION_OF_BROKERS


# API → whether a request, in its version, is one that only brokers send.
SENT_BY_BROKERS: Final[dict[ApiKey, Callable[[Any, int], bool]]] = {
    ApiKey.FETCH: _is_follower,
    ApiKey.ADD_PARTITIONS_TO_TXN: _is_batched,
    ApiKey.WRITE_TXN_MARKERS: _is_always,
    ApiKey.IMAGE_FETCH: _is_always,
    ApiKey.PARTITIONS_CHANGED: _is_always,
    ApiKey.BROKER_SHUTDOWN: _is_always,
    ApiKey.FORWARD: _is_always,  # Whoever passed it on has charged the client.
    ApiKey.REPLICA_ENDS: _is_always,
}

# Operators send these too: `kafka-transactions --abort` ends a hanging transaction by its marker,
# on whichever listener it came in. Kafka asks for the right to alter the cluster there.
SENT_BY_OPERATORS: Final = frozenset({ApiKey.WRITE_TXN_MARKERS})
