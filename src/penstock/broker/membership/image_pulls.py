"""Following the controller's images: pulled in order, or taken directly if it is in this process.

When no controller can be heard for a while and the store still answers, the states of our own
partitions are read there: who leads what is never left to a guess.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from penstock.broker.context import Broker
from penstock.broker.membership.controller_location import StoredControllerLocation
from penstock.cluster import znodes
from penstock.cluster.image.follower import ImageFollower
from penstock.cluster.image.image import (
    ClusterImage,
    ImageDelta,
    PartitionImage,
    PartitionKey,
    PartitionState,
)
from penstock.errors import ControllerMoved, ErrorCode
from penstock.meta.store import MetaStore, OutcomeUnknown, SessionLost, StoreUnavailable
from penstock.net.peers import Peers, PeerUnreachable
from penstock.protocol.messages.image_fetch import ImageFetchResponse
from penstock.protocol.primitives import MalformedMessage

log = logging.getLogger("kafka.server.MetadataCache")

_CHANNEL = "image"
_WAIT_MS = 500
_ANSWER_S = 5.0  # A whole image takes its time; a dead controller is known much sooner.
_RETRY_S = 0.02
_RETRY_S_MAX = 0.5  # While no broker is the controller.
_RETRY_S_ELECTED = 0.05  # The one that was elected may be about to begin.
_UNHEARD_S = 3.0  # Without news for so long, the store itself is asked about our partitions.


class ImagePulls:
    """Hands every new image to `take`, in order and never one of a controller that was replaced."""

    def __init__(
        self,
        broker: Broker,
        *,
        peers: Peers,
        location: StoredControllerLocation,
        take: Callable[[ClusterImage], None],
    ) -> None:
        self._broker = broker
        self._peers = peers
        self._location = location
        self._take = take
        self._follower = ImageFollower()
        self._unheard_of: int | None = None  # A silent controller that was logged.

    @property
    def image(self) -> ClusterImage | None:
        """The latest; None before the first."""
        return self._follower.image

    def take_own(self, image: ClusterImage) -> None:
        """An image of the controller in this very process."""
        with contextlib.suppress(ControllerMoved):  # A later controller's image came before it.
            news = self._follower.take_own(image)
            if news is not None:
                self._take(news)

    async def follow(self, store: MetaStore, broker_epoch: int) -> None:
        """Run as a task; SessionLost tells that our registration has a successor."""
        loop = asyncio.get_running_loop()
        heard_s = asked_store_s = loop.time()
        pause_s = _RETRY_S
        while True:
            if self._broker.controller is not None:
                await self._location.wait_for_change(_UNHEARD_S)
                heard_s = loop.time()
            elif await self._pull(broker_epoch):
                heard_s, pause_s = loop.time(), _RETRY_S
            else:
                await self._location.wait_for_change(pause_s)
                is_vacant = self._location.controller_id is None
                pause_s = min(2 * pause_s, _RETRY_S_MAX if is_vacant else _RETRY_S_ELECTED)
            now_s = loop.time()
            if now_s - max(heard_s, asked_store_s) > _UNHEARD_S:
                asked_store_s = now_s
                await self._read_own_states(store)

    async def _pull(self, broker_epoch: int) -> bool:
        """Ask the controller once; False: it did not answer, or is not the controller any more."""
        controller_id, broker_id = self._location.controller_id, self._broker.broker_id
        if controller_id is None or controller_id == broker_id:
            return False
        request = self._follower.request(broker_id, broker_epoch, _WAIT_MS)
        asking = asyncio.create_task(
            self._peers.ask(controller_id, request, timeout_s=_ANSWER_S, channel=_CHANNEL)
        )
        try:
            await self._wait_until_done_or_replaced(asking, controller_id)
            if not asking.done():
                return False  # Another broker is the controller now.
            answer = cast(ImageFetchResponse, await asking)
        except PeerUnreachable as error:
            if self._unheard_of != controller_id:  # Said once, not at every try.
                log.info("No image from broker %d: %s", controller_id, error)
            self._unheard_of = controller_id
            return False
        finally:
            asking.cancel()
        self._unheard_of = None
        return self._take_answer(answer, controller_id)

    async def _wait_until_done_or_replaced(
        self, asking: "asyncio.Task[object]", controller_id: int
    ) -> None:
        while not asking.done() and self._location.controller_id == controller_id:
            change = asyncio.create_task(self._location.wait_for_change(_ANSWER_S))
            try:
                await asyncio.wait([asking, change], return_when=asyncio.FIRST_COMPLETED)
            finally:
                change.cancel()

    def _take_answer(self, answer: ImageFetchResponse, controller_id: int) -> bool:
        if answer.error_code == ErrorCode.STALE_BROKER_EPOCH:
            raise SessionLost("a later registration of this broker's id is known")
        if answer.error_code != ErrorCode.NONE:
            return False
        try:
            news = self._follower.take(answer)
        except (MalformedMessage, ControllerMoved) as error:
            log.warning("The image of broker %d is not taken: %s", controller_id, error)
            return False
        if news is not None:
            self._take(news)
        return True

    async def _read_own_states(self, store: MetaStore) -> None:
        """Read the states of our own partitions from the store: no controller can be reached."""
        image = self._follower.image
        if image is None:
            return
        keys = [(p.topic, p.partition) for p in self._broker.partitions.hosted()]
        paths = [znodes.state_path(*key) for key in keys]
        try:
            nodes = await store.multi_get(paths)
        except (StoreUnavailable, OutcomeUnknown):
            return
        changed: dict[PartitionKey, PartitionImage] = {}
        for key, path, node in zip(keys, paths, nodes, strict=True):
            placed = image.partition(*key)
            if placed is None or node is None:
                continue  # Created or deleted meanwhile; only the controller's image says so.
            state = znodes.decode_state(path, node[0], node[1].version)
            if _age(state) > _age(placed.state):
                changed[key] = placed._replace(state=state)
        if changed:
            log.info("%d partitions changed while no controller was heard", len(changed))
            # No controller made this image: it keeps the number of the image it was made from.
            seen = replace(image.apply(ImageDelta(partitions=changed)), seq=image.seq)
            self._take(seen)


def _age(state: PartitionState) -> tuple[int, int]:
    return state.leader_epoch, state.partition_epoch
