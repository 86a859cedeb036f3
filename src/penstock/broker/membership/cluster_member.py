"""A broker's life in a cluster: one session with the metadata store after the other.

    register → seen active, with our own epoch, in an image → lead and follow → session lost
                                                                    ↓
             register anew ← lead nothing, fetch nothing, end every wait

Within a session some tasks run side by side: standing for election as controller and being
it, knowing which broker is the controller, pulling its images, minding our own registration,
writing in-sync sets. When the link to the store is gone, all goes on as it is; only a session
that is lost for good takes leaderships away. No clock decides anything here that safety needs.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, cast

from penstock.broker.context import Broker
from penstock.broker.dispatch import Dispatcher
from penstock.broker.membership.boot_id import note_boot_id
from penstock.broker.membership.controller_location import AddressBook, StoredControllerLocation
from penstock.broker.membership.forwarding import ControllerLine, Forwarder
from penstock.broker.membership.governing import Governing
from penstock.broker.membership.image_pulls import ImagePulls
from penstock.broker.membership.image_taking import note_image, take_partitions
from penstock.broker.membership.new_partitions import PartitionOpener
from penstock.cluster import registration, znodes
from penstock.cluster.image.image import ClusterImage, PartitionKey
from penstock.cluster.registration import BrokerRegistration, Newcomer
from penstock.cluster.znodes import PreviousShutdown
from penstock.errors import (
    ConfigError,
    DuplicateBrokerRegistration,
    ErrorCode,
    NotController,
    NotLeaderOrFollower,
    PenstockError,
    ProtocolError,
    error_for,
)
from penstock.meta.store import (
    Change,
    MetaError,
    MetaStore,
    OutcomeUnknown,
    SessionLost,
    SessionState,
    StoreUnavailable,
    WatchKind,
)
from penstock.net.peers import Peers, PeerUnreachable
from penstock.protocol.apis import Request, Response
from penstock.protocol.messages.broker_shutdown import (
    BrokerShutdownRequest,
    BrokerShutdownResponse,
)
from penstock.protocol.messages.partitions_changed import (
    ChangedTopic,
    PartitionsChangedRequest,
)
from penstock.replica.fetchers import ReplicaFetchers
from penstock.replica.isr_writer import IsrWriter
from penstock.replica.partition import Partition
from penstock.storage.directories.disk_room import is_no_room
from penstock.storage.directories.log_dir import LogDir

log = logging.getLogger("kafka.server.KafkaServer")

_STORE_RETRY_S = 0.5
_REOPEN_S = 1.0
_NOTICE_S = 5.0
_SHUTDOWN_ANSWER_S = 30.0
_SHUTDOWN_FIND_S = 10.0  # To find a controller...
_SHUTDOWN_UNLINKED_S = 2.0  # ...or for the metadata store, without which nothing can be moved.

OpenStore = Callable[[], Awaitable[MetaStore]]
MakeNewcomer = Callable[[PreviousShutdown], Newcomer]


class ClusterMember:
    """Owns what a broker has only as a member of a cluster."""

    def __init__(
        self,
        broker: Broker,
        *,
        peers: Peers,
        open_store: OpenStore,
        newcomer: MakeNewcomer,
        prev_shutdown: PreviousShutdown,
        boot_id: str | None,
        addresses: AddressBook,
    ) -> None:
        self._broker = broker
        self._peers = peers
        self._open_store = open_store
        self._newcomer = newcomer
        self._prev_shutdown = prev_shutdown
        self._boot_id = boot_id
        self._addresses = addresses
        self._location = StoredControllerLocation(addresses)
        self._here = Dispatcher(broker, listener=broker.config.inter_broker_listener_name)
        broker.dispatcher = self._here
        self._pulls = ImagePulls(broker, peers=peers, location=self._location, take=self._take)
        self._newcomers = PartitionOpener(broker.partitions, obey=self._obey)
        self._governing = Governing(
            broker, peers=peers, here=self._ask_here, take_image=self._pulls.take_own
        )
        self._line = ControllerLine(
            broker_id=broker.broker_id, location=self._location, peers=peers, here=self._ask_here
        )
        self._registered: BrokerRegistration | None = None
        self._is_admitted = False  # Seen active with the epoch of the present registration.
        self._is_leaving = False
        self._was_active = asyncio.Event()
        self._image_news = asyncio.Event()
        self._fetchers: ReplicaFetchers | None = None
        self._changed: set[PartitionKey] = set()  # Written by us, not yet told to the controller.
        self._has_changed = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        broker.peers = peers
        broker.forwarder = Forwarder(self._line, until_image=self._until_image)

    # Life

    @property
    def broker_epoch(self) -> int:
        return self._registered.epoch if self._registered else -1

    def start(self, store: MetaStore) -> None:
        self._life = asyncio.create_task(self._live(store), name="cluster membership")

    async def until_active(self) -> None:
        """Wait until an image shows this broker active; raises what keeps it out for good."""
        active = asyncio.create_task(self._was_active.wait())
        try:
            await asyncio.wait([active, self._lived()], return_when=asyncio.FIRST_COMPLETED)
            if not self._was_active.is_set():
                await self._lived()
        finally:
            active.cancel()

    async def until_over(self) -> None:
        """Wait for the end of the membership: raises what this broker cannot recover from."""
        await asyncio.shield(self._lived())

    def _lived(self) -> "asyncio.Task[None]":
        assert self._life is not None
        return self._life

    async def _live(self, store: MetaStore) -> None:
        broker_id = self._broker.broker_id
        while True:
            self._broker.store = store
            try:
                await self._session(store)
            except (ConfigError, DuplicateBrokerRegistration):
                raise  # Trying again would not help.
            except MetaError as error:
                log.warning("[KafkaServer id=%d] the session is over: %s", broker_id, error)
            except Exception:
                # Whatever it was, this is safe: lead nothing, and register again.
                log.exception("[KafkaServer id=%d] the session is ended", broker_id)
                await asyncio.sleep(_REOPEN_S)
            finally:
                await self._stand_down(store)
            if self._is_leaving:
                return  # The session ended during the shutdown: no new one is opened.
            store = await self._reopen_store()

    async def _reopen_store(self) -> MetaStore:
        while True:
            try:
                return await self._open_store()
            except MetaError as error:
                log.warning("The metadata store cannot be reached: %s", error)
            await asyncio.sleep(_REOPEN_S)

    async def _session(self, store: MetaStore) -> None:
        """From registration to the end of the session; SessionLost tells of it."""
        lost, reconnected = asyncio.Event(), asyncio.Event()

        def note(state: SessionState) -> None:
            if state is SessionState.LOST:
                self._lead_nothing()  # First of all; then the tasks of the session are ended.
                lost.set()
            if state is SessionState.CONNECTED:
                reconnected.set()

        stop_listening = store.on_session(note)
        try:
            if store.session_state is SessionState.LOST:
                raise SessionLost("the session was lost before this broker could register")
            await self._register(store)
            await self._race(
                _when_set(lost, SessionLost("the metadata store has given up on it")),
                self._location.follow(store),
                self._governing.stand(store),
                self._pulls.follow(store, self.broker_epoch),
                self._mind_registration(store, reconnected),
                self._tell_controller(),
                self._write_in_sync_sets(store),
            )
        finally:
            stop_listening()

    async def _register(self, store: MetaStore) -> None:
        broker = self._broker
        newcomer = self._newcomer(self._prev_shutdown)
        wait_s = 1.5 * broker.config.zookeeper_session_timeout_ms / 1000
        self._registered = await registration.register(
            store, newcomer, now_ms=broker.now_ms(), wait_s=wait_s
        )
        # The fence knows now what was lost before; this process itself has lost nothing.
        self._prev_shutdown = PreviousShutdown.CLEAN
        log.info(
            "[KafkaServer id=%d] registered with epoch %d (%s before)",
            broker.broker_id,
            self.broker_epoch,
            newcomer.prev_shutdown.value,
        )
        self._fetchers = ReplicaFetchers(
            broker_id=broker.broker_id,
            broker_epoch=lambda: self.broker_epoch,
            peers=self._peers,
            partitions=broker.partitions,
            config=lambda: broker.config,
            now_ms=broker.now_ms,
        )

    async def _race(self, *works: Coroutine[Any, Any, None]) -> None:
        """Run side by side until one of them ends or fails; the others end with it."""
        tasks = [asyncio.create_task(work) for work in works]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _stand_down(self, store: MetaStore) -> None:
        """Lead nothing, follow nothing; what waited is told to look elsewhere."""
        self._lead_nothing()
        await self._newcomers.close()
        if self._fetchers is not None:
            await self._fetchers.close()
            self._fetchers = None
        with contextlib.suppress(MetaError):
            await store.close()

    def _lead_nothing(self) -> None:
        broker = self._broker
        self._registered = None  # An image still on its way must not make this broker lead again.
        self._is_admitted = False
        self._governing.drop_controller()
        if self._is_leaving:
            return  # Listeners are closed, and leaderships have been handed over.
        broker.partitions.stand_down_all(
            NotLeaderOrFollower("this broker has lost its place in the cluster")
        )
        broker.groups.take_image(broker.image)
        broker.transactions.coordinator.take_image(broker.image)

    # Leaving

    async def hand_over(self) -> None:
        """Controlled shutdown: let others lead what they can, while all still works."""
        config = self._broker.config
        if not config.controlled_shutdown_enable or not self._is_admitted:
            return
        request = BrokerShutdownRequest(
            broker_id=self._broker.broker_id, broker_epoch=self.broker_epoch
        )
        tries = max(1, config.controlled_shutdown_max_retries) if self._has_company() else 1
        if not await self._hand_over_with_retries(request, tries):
            log.warning("Leaving without a controlled shutdown: not all partitions were moved")
        self._is_leaving = True
        await self._governing.resign()

    async def _hand_over_with_retries(self, request: BrokerShutdownRequest, tries: int) -> bool:
        pause_s = self._broker.config.controlled_shutdown_retry_backoff_ms / 1000
        for attempt in range(tries):
            if attempt:
                await asyncio.sleep(pause_s)
            is_linked = await self._is_linked(_SHUTDOWN_UNLINKED_S)
            if await self._hand_over(request, _SHUTDOWN_FIND_S if is_linked else 0):
                return True
            if not is_linked:
                break  # The store may be away for long; the listeners close without a handover.
        return False

    async def _is_linked(self, timeout_s: float) -> bool:
        """Wait for the link to the metadata store; False if there is none in time."""
        store, is_linked = self._broker.store, asyncio.Event()
        stop = store.on_session(lambda _: is_linked.set())
        try:
            if store.session_state is not SessionState.CONNECTED:
                await _when_set_or_late(is_linked, timeout_s)
            return store.session_state is SessionState.CONNECTED
        finally:
            stop()

    def _has_company(self) -> bool:
        """The last broker of a cluster to leave need not wait for anybody to take over."""
        return bool(self._broker.image.active_brokers() - {self._broker.broker_id})

    async def _hand_over(self, request: BrokerShutdownRequest, find_s: float) -> bool:
        try:
            asked = await self._line.ask(request, find_s=find_s, answer_s=_SHUTDOWN_ANSWER_S)
            answer = cast(BrokerShutdownResponse, asked)
            if answer.error_code != ErrorCode.NONE:
                raise error_for(answer.error_code)
        except (PeerUnreachable, ProtocolError) as error:
            log.warning("The controller did not move partitions away: %s", error)
            return False
        if answer.remaining:
            log.info("%d partitions still have nobody else to lead them", answer.remaining)
        return not answer.remaining

    async def close(self) -> None:
        """Leave the cluster: the registration is withdrawn and the session ended."""
        self._is_leaving = True
        registered, store = self._registered, self._broker.store
        await self._governing.resign()
        try:
            if registered is not None:
                await registration.withdraw(store, registered)
        except PenstockError as error:
            log.warning("The goodbye did not reach the metadata store: %s", error)
        await self._governing.close()
        self._lived().cancel()
        await asyncio.gather(self._lived(), return_exceptions=True)

    def on_pull_lost(self, broker_id: int, epoch: int) -> None:
        """The connection on which a broker pulled images is gone."""
        self._governing.on_pull_lost(broker_id, epoch)

    # Our own registration

    async def _mind_registration(self, store: MetaStore, reconnected: asyncio.Event) -> None:
        """A broker that is alive and not registered would be of no use to anybody (KAFKA-7165)."""
        path = znodes.broker_path(self._broker.broker_id)
        while True:
            reconnected.clear()
            try:
                changed = await store.watch_once(path, WatchKind.DATA)
            except (StoreUnavailable, OutcomeUnknown):
                await _when_set_or_late(reconnected, _STORE_RETRY_S)
                continue
            try:
                if not await self._is_registered(store, path):
                    raise SessionLost("our registration was taken away")
                await _first_of(changed, reconnected)
                if changed.done() and changed.result().change is Change.SESSION_LOST:
                    raise SessionLost("the session ended")
            except (StoreUnavailable, OutcomeUnknown):
                await _when_set_or_late(reconnected, _STORE_RETRY_S)
            finally:
                changed.cancel()

    async def _is_registered(self, store: MetaStore, path: str) -> bool:
        (found,) = await store.multi_get([path])
        if found is None or found[1].czxid != self.broker_epoch:
            return False
        return found[1].owner == store.session_id

    # Images

    def _take(self, image: ClusterImage) -> None:
        """Partitions are taken only from images made after the cluster admitted us.

        An earlier one may show the leaderships of an incarnation before this one. A later one is
        obeyed even if it does not count on us any more: it takes away, and cannot give.
        """
        broker = self._broker
        for moved in self._addresses.note_image(image):
            self._peers.forget(moved)
        own = image.brokers.get(broker.broker_id)
        if not self._is_admitted and own is not None and own.is_active:
            self._is_admitted = own.epoch == self.broker_epoch
            if self._is_admitted:
                self._note_admission()
        note_image(broker, image)
        if self._is_admitted:
            self._newcomers.take(image)
        self._image_news.set()
        self._image_news.clear()

    def _obey(self, image: ClusterImage) -> None:
        broker = self._broker
        if not self._is_admitted:
            return  # The session was lost while logs were being opened.
        led_count = broker.partitions.around.led_count
        take_partitions(broker, image)
        if broker.partitions.around.led_count != led_count:
            broker.fetch_sessions.followers.hurry()
        if broker.partitions.not_held(image):
            self._has_changed.set()
        if self._fetchers is not None:
            self._fetchers.take_image(image)
        if not self._was_active.is_set():
            broker.partitions.set_aside_strays(image)
            self._was_active.set()

    def _note_admission(self) -> None:
        """Note the boot id and epoch: what was lost before this start is accounted for."""
        if not self._broker.log_dirs.failed:  # What a failed disk lost stays lost.
            self._note_boot_id(self._broker.log_dirs.dirs[0])
        self._broker.log_dirs.note_broker_epoch(self.broker_epoch)

    def _note_boot_id(self, first: LogDir) -> None:
        try:
            first.room.with_room(lambda: note_boot_id(first.path, self._boot_id))
        except OSError as error:
            if not is_no_room(error):
                raise
            # Without the note a crash counts as one that lost records, which is safe.
            log.warning("The note of this run could not be made: %s", error)

    async def _until_image(self, controller_epoch: int, seq: int, timeout_s: float) -> bool:
        """Wait until our image is at least that one."""
        broker = self._broker
        wanted = (controller_epoch, seq)
        try:
            async with asyncio.timeout(timeout_s):
                while (broker.image.controller_epoch, broker.image.seq) < wanted:
                    await self._image_news.wait()
        except TimeoutError:
            return False
        return True

    # What we write

    async def _write_in_sync_sets(self, store: MetaStore) -> None:
        writer = IsrWriter(
            store=store, partitions=self._broker.partitions, tell_controller=self._note_changed
        )
        await writer.run()

    def on_partitions_lost(self) -> None:
        """A disk failed, and some partitions are not hosted any more."""
        if self._fetchers is not None:
            self._fetchers.forget_dropped()
        self._has_changed.set()

    def on_partitions_found(self, found: Sequence[Partition]) -> None:
        """Logs that could not be had when the image came are there now."""
        if self._fetchers is not None:
            self._fetchers.take_found(found)

    def _note_changed(self, keys: Sequence[PartitionKey]) -> None:
        self._changed.update(keys)
        self._has_changed.set()

    async def _tell_controller(self) -> None:
        """Notices of what we wrote; one that is lost is made up for by the controller's sweep."""
        while True:
            await self._has_changed.wait()
            self._has_changed.clear()
            keys, self._changed = self._changed, set()
            offline = self._broker.partitions.not_held(self._broker.image)
            if not keys and not offline:
                continue
            notice = PartitionsChangedRequest(
                broker_id=self._broker.broker_id,
                broker_epoch=self.broker_epoch,
                topics=_by_topic(keys),
                offline=_by_topic(offline),
            )
            try:
                await self._line.ask(notice, find_s=_NOTICE_S, answer_s=_NOTICE_S)
            except (PeerUnreachable, NotController) as error:
                log.info("The controller was not told of in-sync sets: %s", error)
            if offline:
                await asyncio.sleep(_STORE_RETRY_S)
                self._has_changed.set()  # Until the controller has let others lead them.

    async def _ask_here(self, request: Request) -> Response:
        answer = await self._here.handle(request, request.versions[-1])
        assert answer is not None  # Only produce requests may want no answer.
        return answer


def _by_topic(keys: Iterable[PartitionKey]) -> list[ChangedTopic]:
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(keys):
        by_topic.setdefault(topic, []).append(number)
    return [ChangedTopic(name=name, partitions=numbers) for name, numbers in by_topic.items()]


async def _when_set(event: asyncio.Event, error: Exception) -> None:
    await event.wait()
    raise error


async def _when_set_or_late(event: asyncio.Event, timeout_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()


async def _first_of(future: "asyncio.Future[Any]", event: asyncio.Event) -> None:
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait([future, waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
