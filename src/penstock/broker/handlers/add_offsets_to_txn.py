"""AddOffsetsToTxn: a transaction is about to commit a group's offsets.

To the coordinator they are one more partition: the one of `__consumer_offsets` the group lives in.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from penstock.broker.context import RequestContext
from penstock.broker.internal_topics import create_on_use
from penstock.broker.transactions.exactly_once import told_to
from penstock.cluster.topics.names import CONSUMER_OFFSETS
from penstock.errors import CoordinatorNotAvailable, ProtocolError
from penstock.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from penstock.replica.state_log import partition_for
from penstock.transactions.transaction import TV1, ProducerIdentity

_FIRST_VERSION_WITH_FENCING = 2


def handle(
    request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse | Coroutine[Any, Any, AddOffsetsToTxnResponse]:
    if CONSUMER_OFFSETS not in context.broker.image.topics:
        return _create_and_add(request, context)
    wait = _add(request, context)
    return AddOffsetsToTxnResponse() if wait is None else _answer_when_safe(wait, context)


async def _create_and_add(
    request: AddOffsetsToTxnRequest, context: RequestContext
) -> AddOffsetsToTxnResponse:
    """The offsets of the group may be the first of all."""
    failed = await create_on_use(context.broker, [CONSUMER_OFFSETS])
    if failed:
        raise CoordinatorNotAvailable(f"{CONSUMER_OFFSETS} cannot be made: {failed}")
    wait = _add(request, context)
    return AddOffsetsToTxnResponse() if wait is None else await _answer_when_safe(wait, context)


async def _answer_when_safe(
    wait: Callable[[], Awaitable[None]], context: RequestContext
) -> AddOffsetsToTxnResponse:
    try:
        await wait()
    except ProtocolError as error:
        raise _told(error, context) from error
    return AddOffsetsToTxnResponse()


def _add(
    request: AddOffsetsToTxnRequest, context: RequestContext
) -> Callable[[], Awaitable[None]] | None:
    broker = context.broker
    made = broker.image.topics.get(CONSUMER_OFFSETS)
    if made is None:  # The controller has made it, and this broker has not heard of it yet.
        raise CoordinatorNotAvailable(f"{CONSUMER_OFFSETS} is not known here yet")
    try:
        return broker.transactions.coordinator.add_partitions(
            request.transactional_id,
            ProducerIdentity(request.producer_id, request.producer_epoch),
            [(CONSUMER_OFFSETS, partition_for(request.group_id, len(made.partitions)))],
            client_version=TV1,
        )
    except ProtocolError as error:
        raise _told(error, context) from error


def _told(error: ProtocolError, context: RequestContext) -> ProtocolError:
    return told_to(context.version, error, knows_fencing_from=_FIRST_VERSION_WITH_FENCING)
