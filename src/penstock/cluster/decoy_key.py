"""The secret behind the salts that unknown users are shown, kept in the metadata store.

It must be the same at all brokers and after each start: who compares two answers would otherwise
see which names have a salt that stays. The first broker that takes passwords by SCRAM makes it.
"""

from penstock.cluster import znodes
from penstock.meta.store import Create, MetaStore, MultiFailed, NodeExists, OutcomeUnknown


async def keep_decoy_key(store: MetaStore, new_key: bytes) -> bytes:
    """The key of this cluster, the given one if it had none; the tree is prepared."""
    while True:
        (found,) = await store.multi_get([znodes.DECOY_KEY])
        if found is not None:
            return found[0]
        try:
            await store.multi([Create(znodes.DECOY_KEY, new_key)])
        except OutcomeUnknown:
            continue
        except MultiFailed as failure:
            if not isinstance(failure.reason, NodeExists):  # Another broker makes it too.
                raise
