"""InitProducerId: a number for a producer, so that its retries can be told from new records.

A producer without a transactional id gets a new number each time it asks. One with an id becomes
its owner, and whoever was it before is fenced off; that is the transaction coordinator's work.
"""

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import code_of
from penstock.broker.transactions.exactly_once import told_to
from penstock.errors import InvalidRequest, ProtocolError
from penstock.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from penstock.transactions.transaction import ProducerIdentity

_NONE = -1
_FIRST_VERSION_WITH_FENCING = 4


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    _check(request)
    if request.transactional_id is None:
        producer_id = await context.broker.producer_ids.take()
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    try:
        owner = await context.broker.transactions.coordinator.initialize(
            request.transactional_id,
            timeout_ms=request.transaction_timeout_ms,
            expected=_expected(request),
        )
    except ProtocolError as error:
        raise told_to(
            context.version, error, knows_fencing_from=_FIRST_VERSION_WITH_FENCING
        ) from error
    return InitProducerIdResponse(
        producer_id=owner.producer_id, producer_epoch=owner.producer_epoch
    )


def error_response(_request: InitProducerIdRequest, error: ProtocolError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code_of(error), producer_epoch=_NONE)


def _check(request: InitProducerIdRequest) -> None:
    if request.transactional_id == "":
        raise InvalidRequest("a transactional id is at least one character long")
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        raise InvalidRequest("a producer that comes back names both its id and its epoch")


def _expected(request: InitProducerIdRequest) -> ProducerIdentity | None:
    """Who the caller thinks it is; None: it begins."""
    if request.producer_id == _NONE:
        return None
    return ProducerIdentity(request.producer_id, request.producer_epoch)
