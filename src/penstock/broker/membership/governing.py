"""Controller election: standing for it, and being the controller after it is won.

Every member of a cluster stands whenever there is no controller; the metadata store decides who
wins. What a controller does is in the `cluster` package; here it is given its links to the rest of
the broker, and told of brokers that do not answer any more.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

from penstock.broker.context import Broker
from penstock.cluster import znodes
from penstock.cluster.control.controller import (
    Controller,
    ControlSettings,
    ReplicaEnd,
)
from penstock.cluster.control.controller_election import wait_for_vacancy
from penstock.cluster.image.image import ClusterImage, PartitionKey
from penstock.errors import ErrorCode, ProtocolError
from penstock.meta.store import (
    Delete,
    MetaError,
    MetaStore,
    MultiFailed,
    OutcomeUnknown,
    StoreUnavailable,
)
from penstock.net.peers import Peers, PeerUnreachable
from penstock.protocol.apis import Request, Response
from penstock.protocol.messages.api_versions import ApiVersionsRequest
from penstock.protocol.messages.replica_ends import (
    AskedTopic,
    ReplicaEndsRequest,
    ReplicaEndsResponse,
)

log = logging.getLogger("kafka.controller.KafkaController")

_STORE_RETRY_S = 0.5
_PROBE_S = 2.0


class Governing:
    """`broker.controller` is set while this broker is the controller, and only then."""

    def __init__(
        self,
        broker: Broker,
        *,
        peers: Peers,
        here: Callable[[Request], Awaitable[Response]],
        take_image: Callable[[ClusterImage], None],
    ) -> None:
        self._broker = broker
        self._peers = peers
        self._here = here
        self._take_image = take_image
        self._is_leaving = False
        self._governed: Controller | None = None  # None: this broker is not the controller.
        self._ignore_images: Callable[[], None] = lambda: None
        self._probes: set[asyncio.Task[None]] = set()

    async def stand(self, store: MetaStore) -> None:
        """Stand for election whenever there is no controller. Run as a task."""
        while not self._is_leaving:
            try:
                await self._stand_once(store)
            except (StoreUnavailable, OutcomeUnknown, ProtocolError) as error:
                log.warning("Standing for the controller's office again: %s", error)
                await self._vacate(store)
                await asyncio.sleep(_STORE_RETRY_S)
        await asyncio.Event().wait()  # Leaving is no reason to end the session.

    async def _stand_once(self, store: MetaStore) -> None:
        try:
            controller = await self._elect(store)
            if controller is None:
                # An election won just before the link broke leaves a node of ours without a
                # controller behind it. Nobody else could win while it is there.
                await self._delete_unused_controller_node(store)
                await wait_for_vacancy(store)
            elif not self._is_leaving:
                await controller.follow()
        finally:
            await self._leave()

    async def resign(self) -> None:
        """Let another broker be the controller, and never stand again."""
        self._is_leaving = True
        controller = self._broker.controller
        if controller is not None:
            await controller.resign()
            self.drop_controller()

    def drop_controller(self) -> None:
        """Decide nothing more here, whatever the store says."""
        controller, self._broker.controller = self._broker.controller, None
        if controller is not None:
            controller.stream.close()

    async def close(self) -> None:
        for probe in self._probes:
            probe.cancel()
        await asyncio.gather(*self._probes, return_exceptions=True)

    async def _elect(self, store: MetaStore) -> Controller | None:
        return await Controller.elect(
            store,
            self._broker.broker_id,
            now_ms=self._broker.now_ms(),
            min_insync_replicas=self._broker.config.min_insync_replicas,
            settings=lambda: ControlSettings.of(self._broker.config),
            ask_ends=self._ask_ends,
            enter=self._enter,
            known=self._broker.image,
        )

    def _enter(self, controller: Controller) -> None:
        """Publish to other brokers from here on, beginning with the first change."""
        log.info("[Controller id=%d] in office", self._broker.broker_id)
        self._governed = self._broker.controller = controller
        self._ignore_images = controller.subscribe(self._take_image)
        self._take_image(controller.image)

    async def _leave(self) -> None:
        controller, self._governed = self._governed, None
        if controller is None:
            return
        self._ignore_images()
        self.drop_controller()
        if not controller.is_over:
            await controller.resign()
        log.info("[Controller id=%d] out of office", self._broker.broker_id)

    async def _vacate(self, store: MetaStore) -> None:
        """Let others win: this broker could not begin its work as controller."""
        with contextlib.suppress(MetaError):
            await self._delete_unused_controller_node(store)

    async def _delete_unused_controller_node(self, store: MetaStore) -> None:
        (node,) = await store.multi_get([znodes.CONTROLLER])
        if node is not None and node[1].owner == store.session_id:
            with contextlib.suppress(MultiFailed):  # Somebody else deleted it.
                await store.multi([Delete(znodes.CONTROLLER, node[1].version)])

    async def _ask_ends(
        self, broker_id: int, keys: Sequence[PartitionKey]
    ) -> dict[PartitionKey, ReplicaEnd]:
        """How far a broker's logs reach; what it does not tell is left out."""
        controller = self._broker.controller
        topics = controller.image.topics if controller else self._broker.image.topics
        by_topic: dict[str, list[int]] = {}
        for topic, number in keys:
            if topic in topics:
                by_topic.setdefault(topic, []).append(number)
        request = ReplicaEndsRequest(
            topics=[
                AskedTopic(name=name, topic_id=topics[name].topic_id, partitions=numbers)
                for name, numbers in by_topic.items()
            ]
        )
        try:
            if broker_id == self._broker.broker_id:
                asked = await self._here(request)
            else:
                asked = await self._peers.ask(broker_id, request, timeout_s=_PROBE_S)
        except PeerUnreachable as error:
            log.info("Broker %d does not tell how far its logs reach: %s", broker_id, error)
            return {}
        return {
            (topic.name, end.partition_index): ReplicaEnd(
                end.latest_epoch, end.log_end_offset, end.log_start_offset
            )
            for topic in cast(ReplicaEndsResponse, asked).topics
            for end in topic.partitions
            if end.error_code == ErrorCode.NONE
        }

    def on_pull_lost(self, broker_id: int, epoch: int) -> None:
        """Probe a broker whose connection for images was closed: it may have died."""
        if self._broker.controller is None or self._is_leaving:
            return
        probe = asyncio.create_task(self._probe(broker_id, epoch))
        self._probes.add(probe)
        probe.add_done_callback(self._probes.discard)

    async def _probe(self, broker_id: int, epoch: int) -> None:
        """Only a refused connection counts, for it says that nobody listens; silence never does."""
        try:
            await self._peers.ask(
                broker_id, ApiVersionsRequest(), timeout_s=_PROBE_S, channel="probe", version=0
            )
        except PeerUnreachable as error:
            controller = self._broker.controller
            if not error.is_refused or controller is None:
                return
            log.info("Broker %d (epoch %d) is gone: nobody listens there", broker_id, epoch)
            try:
                await controller.broker_unreachable(broker_id, epoch)
            except (MetaError, ProtocolError) as failure:
                log.info("It is left to its session: %s", failure)
