"""InitProducerId: a number for a producer, so that its retries can be told from new records.

A producer without a transactional id gets a new number each time it asks. Transactional ids are
for the transaction coordinator, which this broker does not have yet.
"""

from penstock.broker.context import RequestContext
from penstock.errors import CoordinatorNotAvailable, InvalidRequest, ProtocolError
from penstock.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

_NONE = -1


async def handle(request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
    _check(request)
    if request.transactional_id is not None:
        raise CoordinatorNotAvailable("this broker does not coordinate transactions")
    producer_id = await context.broker.producer_ids.take()
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def error_response(_request: InitProducerIdRequest, error: ProtocolError) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=int(error.code), producer_id=_NONE, producer_epoch=_NONE
    )


def _check(request: InitProducerIdRequest) -> None:
    if request.transactional_id == "":
        raise InvalidRequest("a transactional id is at least one character long")
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        raise InvalidRequest("a producer that comes back names both its id and its epoch")
