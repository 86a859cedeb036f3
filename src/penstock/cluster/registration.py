"""How a broker joins: the tree prepared, its node and its fence written in one step.

A registration by itself allows nothing. The fence says `starting` until the controller has taken
the broker's previous incarnation out of every partition and set it `active`; only then, seen in
an image with this registration's epoch, may the broker lead or follow.
"""

import asyncio
from typing import NamedTuple

from penstock.cluster import znodes
from penstock.cluster.image.image import Endpoint
from penstock.cluster.znodes import BrokerNode, FenceNode, FenceState, PreviousShutdown
from penstock.errors import DuplicateBrokerRegistration
from penstock.meta.store import (
    Create,
    Delete,
    MetaStore,
    MultiFailed,
    NodeExists,
    NoNode,
    Op,
    OutcomeUnknown,
    Set,
    Stat,
    StoreUnavailable,
    WatchKind,
)


class Newcomer(NamedTuple):
    """What a broker says about itself."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    incarnation: str  # A random name for this run of the process.
    directory_ids: tuple[str, ...]  # Of the log directories, whose lock this process holds.
    prev_shutdown: PreviousShutdown


class BrokerRegistration(NamedTuple):
    broker_id: int
    epoch: int  # The transaction that created the node: the broker epoch.
    fence_version: int


async def prepare_tree(store: MetaStore, *, cluster_id: str) -> str:
    """Create what every cluster has; returns the cluster's id, the given one if it had none."""
    paths = (*znodes.PERSISTENT_PATHS, znodes.CONTROLLER_EPOCH, znodes.CLUSTER_ID)
    contents = {
        znodes.CONTROLLER_EPOCH: b"0",
        znodes.CLUSTER_ID: znodes.encode_cluster_id(cluster_id),
    }
    while True:
        found = await store.multi_get(paths)
        missing = [path for path, node in zip(paths, found, strict=True) if node is None]
        if not missing:
            return znodes.decode_cluster_id(found[-1][0]) if found[-1] else cluster_id
        try:
            await store.multi([Create(path, contents.get(path, b"")) for path in missing])
        except OutcomeUnknown:
            continue
        except MultiFailed as failure:
            if not isinstance(failure.reason, NodeExists):  # Another broker prepares it too.
                raise


async def load_fence(store: MetaStore, broker_id: int) -> FenceNode | None:
    """What the store remembers of the broker; None before its first registration."""
    (found,) = await store.multi_get([znodes.fence_path(broker_id)])
    return FenceNode.decode(znodes.fence_path(broker_id), found[0]) if found else None


def judge_previous_shutdown(
    *,
    clean_epoch: int | None,
    last_boot_id: str | None,
    boot_id: str | None,
    fence: FenceNode | None,
) -> PreviousShutdown:
    """What may be missing on this broker's disk.

    `clean_epoch` is the broker epoch in the clean-shutdown marker (None: no marker, -1: a marker
    that names none), `last_boot_id` what the machine was called when the broker last was active.
    """
    if fence is None:  # Never registered here: nothing is expected of its disk.
        return PreviousShutdown.CLEAN
    if fence.prev_shutdown is PreviousShutdown.LOSSY:
        # It lost records, and crashed again before the controller acted on it.
        return PreviousShutdown.LOSSY
    if clean_epoch is not None and clean_epoch in (-1, fence.epoch):
        return PreviousShutdown.CLEAN
    if boot_id is not None and last_boot_id == boot_id:
        return PreviousShutdown.CRASH
    return PreviousShutdown.LOSSY


async def register(
    store: MetaStore, newcomer: Newcomer, *, now_ms: int, wait_s: float = 18.0
) -> BrokerRegistration:
    """Write the broker's node and close its fence, in one step.

    A node of the same id is taken over at once if its owner had our log directories, whose locks
    we hold now: that process is dead. Otherwise we wait for it to go, then refuse.
    """
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + wait_s
    while True:
        fence, fence_version = await _fence(store, newcomer)
        try:
            return await _write(store, newcomer, fence, fence_version, now_ms)
        except OutcomeUnknown:
            if done := await _find_own_registration(store, newcomer):
                return done
        except MultiFailed as failure:
            if isinstance(failure.reason, NodeExists):
                await _make_way(store, newcomer, fence, deadline_s - loop.time())
            # Otherwise the fence was written meanwhile; look again.


async def _fence(store: MetaStore, newcomer: Newcomer) -> tuple[FenceNode | None, int]:
    """The fence as it stands and its version; -1 when there is none yet."""
    path = znodes.fence_path(newcomer.broker_id)
    (found,) = await store.multi_get([path])
    return (FenceNode.decode(path, found[0]), found[1].version) if found else (None, -1)


async def _write(
    store: MetaStore,
    newcomer: Newcomer,
    fence: FenceNode | None,
    fence_version: int,
    now_ms: int,
) -> BrokerRegistration:
    path, fence_path = znodes.broker_path(newcomer.broker_id), znodes.fence_path(newcomer.broker_id)
    data = BrokerNode(
        endpoints=newcomer.endpoints, rack=newcomer.rack, registered_ms=now_ms
    ).encode()
    closed = _starting_fence(newcomer, fence).encode()
    ops: list[Op] = [Create(path, data, ephemeral=True), Set(path, data, 0)]
    ops.append(
        Create(fence_path, closed) if fence is None else Set(fence_path, closed, fence_version)
    )
    _, stat, _ = await store.multi(ops)
    assert isinstance(stat, Stat)  # A Set answers with a Stat; a Create would not tell the czxid.
    return BrokerRegistration(
        broker_id=newcomer.broker_id, epoch=stat.czxid, fence_version=fence_version + 1
    )


def _starting_fence(newcomer: Newcomer, fence: FenceNode | None) -> FenceNode:
    is_still_lossy = fence is not None and fence.prev_shutdown is PreviousShutdown.LOSSY
    return FenceNode(
        state=FenceState.STARTING,
        incarnation=newcomer.incarnation,
        directory_ids=newcomer.directory_ids,
        prev_shutdown=PreviousShutdown.LOSSY if is_still_lossy else newcomer.prev_shutdown,
        epoch=fence.epoch if fence else -1,
    )


async def _find_own_registration(store: MetaStore, newcomer: Newcomer) -> BrokerRegistration | None:
    """Look for our own registration after a write that was not answered."""
    paths = [znodes.broker_path(newcomer.broker_id), znodes.fence_path(newcomer.broker_id)]
    node, fence = await store.multi_get(paths)
    if node is None or fence is None or node[1].owner != store.session_id:
        return None
    if FenceNode.decode(paths[1], fence[0]).incarnation != newcomer.incarnation:
        return None
    return BrokerRegistration(
        broker_id=newcomer.broker_id, epoch=node[1].czxid, fence_version=fence[1].version
    )


async def _make_way(
    store: MetaStore, newcomer: Newcomer, fence: FenceNode | None, wait_s: float
) -> None:
    path = znodes.broker_path(newcomer.broker_id)
    gone = await store.watch_once(path, WatchKind.DATA)
    try:
        data, stat = await store.get(path)
        if _is_our_predecessor(newcomer, fence, BrokerNode.decode(path, data)):
            await store.multi([Delete(path, stat.version)])
            return
        await asyncio.wait_for(gone, max(0.0, wait_s))
    except NoNode:
        return
    except MultiFailed:
        return  # It went, or was written again; look again.
    except TimeoutError:
        raise DuplicateBrokerRegistration(_in_use(newcomer, path)) from None
    finally:
        gone.cancel()


def _is_our_predecessor(newcomer: Newcomer, fence: FenceNode | None, node: BrokerNode) -> bool:
    hosts = {endpoint.host for endpoint in newcomer.endpoints}
    is_same_host = not hosts.isdisjoint(endpoint.host for endpoint in node.endpoints)
    has_our_disk = fence is not None and not set(fence.directory_ids).isdisjoint(
        newcomer.directory_ids
    )
    return is_same_host and has_our_disk


def _in_use(newcomer: Newcomer, path: str) -> str:
    return (
        f"Another broker is registered with broker.id {newcomer.broker_id} at {path}. "
        "Stop it, or give this broker another broker.id."
    )


async def withdraw(store: MetaStore, registration: BrokerRegistration) -> None:
    """Leave: the broker's node goes now instead of when the session times out."""
    path = znodes.broker_path(registration.broker_id)
    (found,) = await store.multi_get([path])
    if found is None or found[1].czxid != registration.epoch:
        return  # Already gone, or a successor's.
    try:
        await store.multi([Delete(path)])
    except (MultiFailed, OutcomeUnknown, StoreUnavailable):
        return  # The end of the session takes it away all the same.
