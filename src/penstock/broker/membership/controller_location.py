"""Who the controller is, and where, as the metadata store says.

The address book of the cluster is here too: where each broker listens for the others. Addresses
come from the image. The controller's own comes from its registration, because its image can only be
had once its address is known. Of two registrations of a broker the newer one counts.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from penstock.cluster import znodes
from penstock.cluster.image.image import ClusterImage, Endpoint
from penstock.cluster.znodes import BrokerNode
from penstock.meta.store import (
    Change,
    MetaStore,
    OutcomeUnknown,
    SessionLost,
    StoreUnavailable,
    WatchKind,
)

log = logging.getLogger("kafka.server.BrokerToControllerChannelManager")

_RETRY_S = 0.2

Address = tuple[str, int]


class AddressBook:
    """Where brokers listen for each other."""

    def __init__(self, listener: str) -> None:
        self._listener = listener
        self._known: dict[int, tuple[int, Address]] = {}  # Broker → its epoch and address.

    def address_of(self, broker_id: int) -> Address | None:
        known = self._known.get(broker_id)
        return known[1] if known else None

    def note(self, broker_id: int, epoch: int, endpoints: Sequence[Endpoint]) -> bool:
        """Keep the address of the newest registration; True: the broker has moved."""
        address = next(((e.host, e.port) for e in endpoints if e.listener == self._listener), None)
        known = self._known.get(broker_id)
        if address is None or (known is not None and epoch <= known[0]):
            return False
        self._known[broker_id] = (epoch, address)
        return known is not None and known[1] != address

    def note_image(self, image: ClusterImage) -> list[int]:
        """The brokers that have moved."""
        brokers = image.brokers.values()
        return [b.broker_id for b in brokers if self.note(b.broker_id, b.epoch, b.endpoints)]


class StoredControllerLocation:
    """Follows `/controller` for as long as one session lasts."""

    def __init__(self, addresses: AddressBook) -> None:
        self.controller_id: int | None = None  # None: nobody, or not known yet.
        self._addresses = addresses
        self._change = asyncio.Event()

    async def wait_for_change(self, timeout_s: float) -> bool:
        """True: `/controller` was read again; False: the time was over first."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._change.wait()
        except TimeoutError:
            return False
        return True

    async def follow(self, store: MetaStore) -> None:
        """Run as a task; returns when the session is over."""
        while True:
            try:
                changed = await store.watch_once(znodes.CONTROLLER, WatchKind.DATA)
            except (StoreUnavailable, OutcomeUnknown):
                await asyncio.sleep(_RETRY_S)  # Without a store nobody can be elected either.
                continue
            try:
                with suppress(StoreUnavailable, OutcomeUnknown):
                    await self._look(store)
                    if (await changed).change is Change.SESSION_LOST:
                        raise SessionLost("the session ended")
            finally:
                changed.cancel()

    async def _look(self, store: MetaStore) -> None:
        (node,) = await store.multi_get([znodes.CONTROLLER])
        if node is None:
            self._set(None)
            return
        controller_id = znodes.decode_controller(node[0])
        path = znodes.broker_path(controller_id)
        (broker,) = await store.multi_get([path])
        if broker is not None:
            endpoints = BrokerNode.decode(path, broker[0]).endpoints
            self._addresses.note(controller_id, broker[1].czxid, endpoints)
        self._set(controller_id)

    def _set(self, controller_id: int | None) -> None:
        self.controller_id = controller_id
        self._change.set()  # Wakes all who wait now; who comes later waits for the next change.
        self._change.clear()
