"""The secret of a cluster's decoys: made once, by whoever comes first, and kept."""

import asyncio
from typing import Any

from penstock.cluster import znodes
from penstock.cluster.decoy_key import keep_decoy_key
from penstock.cluster.registration import prepare_tree


async def test_all_brokers_have_the_key_of_the_first(cluster: Any) -> None:
    stores = [await cluster.session(n) for n in range(4)]
    await prepare_tree(stores[0], cluster_id="c")
    keys = await asyncio.gather(
        *(keep_decoy_key(store, b"key %d" % n) for n, store in enumerate(stores))
    )
    assert len(set(keys)) == 1
    assert await keep_decoy_key(stores[0], b"later") == keys[0]
    content, _ = await stores[0].get(znodes.DECOY_KEY)
    assert content == keys[0]
