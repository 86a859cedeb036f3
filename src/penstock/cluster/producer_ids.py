"""Blocks of producer ids, no id ever in two of them."""

from penstock.cluster.znodes import PRODUCER_ID_BLOCK, ProducerIdBlock
from penstock.errors import CoordinatorNotAvailable, UnknownServerError
from penstock.meta.store import BadVersion, MetaStore, MultiFailed, OutcomeUnknown, Set

BLOCK_SIZE = 1000
ATTEMPTS_MAX = 20  # More lost races than brokers ever run; a store that is out of order ends it.
PRODUCER_ID_MAX = 2**63 - 1


async def allocate_producer_ids(store: MetaStore, broker_id: int) -> range:
    """The next thousand ids for this broker.

    Whoever loses the race, or does not learn how it ended, takes the block after: ids may be
    skipped, never given twice.
    """
    for _ in range(ATTEMPTS_MAX):
        data, stat = await store.get(PRODUCER_ID_BLOCK)
        block = _next_block(data, broker_id)
        try:
            await store.multi([Set(PRODUCER_ID_BLOCK, block.encode(), stat.version)])
        except OutcomeUnknown:
            continue
        except MultiFailed as failure:
            if not isinstance(failure.reason, BadVersion):
                raise
            continue
        return range(block.first, block.last + 1)
    raise CoordinatorNotAvailable("no block of producer ids could be had; try again later")


def _next_block(data: bytes, broker_id: int) -> ProducerIdBlock:
    first = ProducerIdBlock.decode(data).last + 1 if data else 0
    if first > PRODUCER_ID_MAX - BLOCK_SIZE:
        raise UnknownServerError("all producer ids have been given out")
    return ProducerIdBlock(broker_id=broker_id, first=first, last=first + BLOCK_SIZE - 1)
