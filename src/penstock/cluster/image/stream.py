"""What the controller hands to brokers that pull: changes in order, or the whole image.

A broker names the image it has and gets what leads from there to the current one; when that is
too long ago, or another controller's, it gets everything. So nothing can arrive out of order or
be lost. What a broker asks for also says what it has taken over: whoever must know that all have
heard of a change waits for that here.
"""

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from penstock.cluster.image.image import ClusterImage
from penstock.cluster.image.wire import encode_deltas, encode_image
from penstock.errors import NotController, StaleBrokerEpoch

if TYPE_CHECKING:
    from penstock.cluster.control.controller import Controller


class ImageNews(NamedTuple):
    """What leads to the image after change `seq` of a controller epoch."""

    controller_epoch: int
    seq: int
    is_snapshot: bool
    payload: bytes  # Written by wire.py; empty: nothing is new.


class Pulled(NamedTuple):
    """Which image an incarnation of a broker last said to have."""

    broker_epoch: int
    controller_epoch: int
    seq: int


class ImageStream:
    """Belongs to one controller; `close` when that is over."""

    def __init__(self, controller: "Controller") -> None:
        self._controller = controller
        self._pulled: dict[int, Pulled] = {}
        self._awaiting_change: set[asyncio.Future[None]] = set()
        self._awaiting_pulls: set[asyncio.Future[None]] = set()
        self._packed: tuple[tuple[int, int], bytes] | None = None  # From seq to seq: its payload.
        self._unsubscribe = controller.subscribe(lambda _: self._wake_all())

    def close(self) -> None:
        """Those who wait learn that this controller has nothing more to tell."""
        self._unsubscribe()
        self._wake_all()

    async def news(
        self, broker_id: int, broker_epoch: int, controller_epoch: int, seq: int, wait_s: float
    ) -> ImageNews:
        """What is new since that image; waits up to `wait_s` when nothing is.

        Raises StaleBrokerEpoch for an incarnation that has a successor, and NotController when
        the broker knows of a later controller than this one.
        """
        self._refuse(broker_id, broker_epoch, controller_epoch)
        self._pulled[broker_id] = Pulled(broker_epoch, controller_epoch, seq)
        _wake(self._awaiting_pulls)
        deadline_s = asyncio.get_running_loop().time() + wait_s
        while self._is_current(controller_epoch, seq) and await _woken(
            self._awaiting_change, deadline_s
        ):
            self._refuse(broker_id, broker_epoch, controller_epoch)
        return self._since(controller_epoch, seq)

    async def until_seen(self, seq: int, brokers: Collection[int], wait_s: float) -> bool:
        """Wait until these brokers have the image after that change; False if some do not in time.

        Brokers that are not active meanwhile are not waited for: they act on no image.
        """
        deadline_s = asyncio.get_running_loop().time() + wait_s
        while not self._have_seen(seq, brokers):
            if not await _woken(self._awaiting_pulls, deadline_s):
                return False
        return True

    def _refuse(self, broker_id: int, broker_epoch: int, controller_epoch: int) -> None:
        image = self._controller.image
        if self._controller.is_over or controller_epoch > image.controller_epoch:
            raise NotController("This is not the correct controller for this cluster.")
        known = image.brokers.get(broker_id)
        if known is not None and broker_epoch < known.epoch:
            raise StaleBrokerEpoch(
                f"broker {broker_id} asks with epoch {broker_epoch}, but has since registered "
                f"with epoch {known.epoch}"
            )

    def _is_current(self, controller_epoch: int, seq: int) -> bool:
        image = self._controller.image
        return (controller_epoch, seq) == (image.controller_epoch, image.seq)

    def _since(self, controller_epoch: int, seq: int) -> ImageNews:
        image = self._controller.image
        if self._is_current(controller_epoch, seq):
            return ImageNews(controller_epoch, seq, is_snapshot=False, payload=b"")
        deltas = self._controller.deltas_since(controller_epoch, seq)
        is_snapshot = deltas is None
        key = (-1 if deltas is None else seq, image.seq)
        if self._packed is None or self._packed[0] != key:
            payload = encode_image(image) if deltas is None else encode_deltas(deltas)
            # Kept, because most brokers are at the same image and ask for the same.
            self._packed = (key, payload)
        return ImageNews(image.controller_epoch, image.seq, is_snapshot, self._packed[1])

    def _have_seen(self, seq: int, brokers: Collection[int]) -> bool:
        image = self._controller.image
        return all(self._has_seen(image, seq, broker_id) for broker_id in brokers)

    def _has_seen(self, image: ClusterImage, seq: int, broker_id: int) -> bool:
        broker = image.brokers.get(broker_id)
        if broker is None or not broker.is_active:
            return True
        pulled = self._pulled.get(broker_id)
        return (
            pulled is not None
            and pulled.broker_epoch == broker.epoch
            and pulled.controller_epoch == image.controller_epoch
            and pulled.seq >= seq
        )

    def _wake_all(self) -> None:
        _wake(self._awaiting_change)
        _wake(self._awaiting_pulls)


def _wake(waiting: set[asyncio.Future[None]]) -> None:
    for waiter in waiting:
        if not waiter.done():
            waiter.set_result(None)
    waiting.clear()


async def _woken(waiting: set[asyncio.Future[None]], deadline_s: float) -> bool:
    """Wait among these; False when the time is over."""
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting.add(waiter)
    try:
        async with asyncio.timeout_at(deadline_s):
            await waiter
    except TimeoutError:
        return False
    finally:
        waiting.discard(waiter)
    return True
