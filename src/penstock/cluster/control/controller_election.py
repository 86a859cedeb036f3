"""The election of the controller: who makes its node first, with the next epoch, has won."""

from penstock.cluster import znodes
from penstock.meta.store import (
    BadVersion,
    Change,
    Create,
    MetaStore,
    MultiFailed,
    NodeExists,
    OutcomeUnknown,
    SessionLost,
    Set,
    WatchKind,
)


async def win_election(store: MetaStore, broker_id: int, now_ms: int) -> tuple[int, int] | None:
    """The new controller epoch and the version of its node, if there was no controller."""
    while True:
        data, stat = await store.get(znodes.CONTROLLER_EPOCH)
        epoch = znodes.decode_controller_epoch(data) + 1
        node = znodes.encode_controller(broker_id, now_ms)
        try:
            await store.multi(
                [
                    Create(znodes.CONTROLLER, node, ephemeral=True),
                    Set(znodes.CONTROLLER_EPOCH, b"%d" % epoch, stat.version),
                ]
            )
        except OutcomeUnknown:
            if not await _has_won(store, epoch, node):
                continue
        except MultiFailed as failure:
            if isinstance(failure.reason, NodeExists):
                return None
            if not isinstance(failure.reason, BadVersion):
                raise
            continue
        return epoch, stat.version + 1


async def _has_won(store: MetaStore, epoch: int, written: bytes) -> bool:
    node, counted = await store.multi_get([znodes.CONTROLLER, znodes.CONTROLLER_EPOCH])
    if node is None or counted is None:
        return False
    is_ours = node[1].owner == store.session_id and node[0] == written
    return is_ours and counted[0] == b"%d" % epoch


async def wait_for_vacancy(store: MetaStore) -> None:
    """Return when nobody is the controller: `Controller.elect` may try then.

    Raises SessionLost when the session is over.
    """
    while True:
        changed = await store.watch_once(znodes.CONTROLLER, WatchKind.DATA)
        try:
            (node,) = await store.multi_get([znodes.CONTROLLER])
            if node is None:
                return
            event = await changed
        finally:
            changed.cancel()
        if event.change is Change.SESSION_LOST:
            raise SessionLost("the session ended while waiting for a controller election")
