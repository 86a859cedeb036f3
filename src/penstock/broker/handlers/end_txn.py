"""EndTxn: commit or abort; the coordinator decides, and tells the partitions afterwards."""

from penstock.broker.context import RequestContext
from penstock.broker.transactions.exactly_once import told_to
from penstock.errors import ProtocolError
from penstock.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.transactions.transaction import TV1, TV2, ProducerIdentity

_FIRST_VERSION_WITH_FENCING = 2
_FIRST_VERSION_WITH_EPOCHS = 5  # Of transaction version 2: each transaction has its epoch.


async def handle(request: EndTxnRequest, context: RequestContext) -> EndTxnResponse:
    with_epochs = context.version >= _FIRST_VERSION_WITH_EPOCHS
    try:
        owner = await context.broker.transactions.coordinator.end(
            request.transactional_id,
            ProducerIdentity(request.producer_id, request.producer_epoch),
            is_commit=request.committed,
            client_version=TV2 if with_epochs else TV1,
        )
    except ProtocolError as error:
        raise told_to(
            context.version, error, knows_fencing_from=_FIRST_VERSION_WITH_FENCING
        ) from error
    return EndTxnResponse(producer_id=owner.producer_id, producer_epoch=owner.producer_epoch)
