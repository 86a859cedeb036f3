"""What a controller does all day: it watches the store and acts on what happens there.

About ten watches, whatever the number of partitions: `/controller`, brokers coming and going,
topics and settings that somebody edits past the controller, and the nodes below /admin in which
the classic tools leave their wishes. A timer reads everything again, in case a notice was lost.
While the store does not answer, all of this pauses; the broker stays the controller as long as its
session lasts.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING

from penstock.cluster import znodes
from penstock.cluster.control.fenced_writes import FencedWrites
from penstock.cluster.control.leader_elections import ElectionKind
from penstock.cluster.control.reassignment import Reassignment
from penstock.cluster.control.settings import Settings
from penstock.cluster.znodes import AskedPartition, NodeUnreadable
from penstock.errors import (
    NotController,
    PenstockError,
    ProtocolError,
    UnknownTopicOrPartition,
)
from penstock.meta.store import (
    ANY_VERSION,
    Change,
    SessionLost,
    SessionState,
    WatchKind,
)
from penstock.security.acls.nodes import EXTENDED_CHANGES, LITERAL_CHANGES

if TYPE_CHECKING:
    from penstock.cluster.control.controller import Controller

PAUSE_S = 0.25  # The backoff after a failure of the store; it grows up to the next number.
PAUSE_S_MAX = 4.0
RECOVER_EVERY_S = 2.0

_log = logging.getLogger("penstock.cluster.controller")

Act = Callable[[], Awaitable[object]]


async def follow(controller: "Controller", writes: FencedWrites, settings: Settings) -> None:
    """Watch and act until the controller is over; an error of ours ends it too, and is raised."""
    stop = writes.store.on_session(_ends_on_loss(writes))
    following = _Following(controller, writes, settings)
    # Not a task group: in Python 3.11 one that ends by an error of a task counts as cancelled, and
    # one that is cancelled just then forgets about it.
    tasks = [asyncio.create_task(part) for part in following.parts()]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    except NotController:
        _log.info("This broker is not the controller any more")
    finally:
        stop()
        controller.stream.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _ends_on_loss(writes: FencedWrites) -> Callable[[SessionState], None]:
    def note(state: SessionState) -> None:
        if state is SessionState.LOST:
            writes.is_over = True

    return note


class _Following:
    def __init__(self, controller: "Controller", writes: FencedWrites, settings: Settings) -> None:
        self._controller = controller
        self._writes = writes
        self._store = writes.store
        self._settings = settings

    def _acl_parts(self) -> tuple[Coroutine[None, None, None], ...]:
        """Nobody listens to rules where nobody obeys them."""
        if not self._settings().with_acls:
            return ()
        hear, children = self._controller.hear_of_acls, WatchKind.CHILDREN
        return (
            self._watch(LITERAL_CHANGES, children, hear),
            self._watch(EXTENDED_CHANGES, children, hear),
        )

    def _token_parts(self) -> tuple[Coroutine[None, None, None], ...]:
        if not self._settings().with_tokens:
            return ()
        hear = self._controller.hear_of_tokens
        return (self._watch(znodes.DELEGATION_TOKEN_CHANGES, WatchKind.CHILDREN, hear),)

    def parts(self) -> tuple[Coroutine[None, None, None], ...]:
        controller, children, data = self._controller, WatchKind.CHILDREN, WatchKind.DATA
        return (
            self._watch(znodes.CONTROLLER, data, self._check_controller_node),
            self._watch(znodes.BROKER_IDS, children, controller.reconcile_brokers),
            self._watch(znodes.TOPICS, children, controller.look_at_topics),
            self._watch(znodes.CONFIG_CHANGES, children, controller.hear_of_configs),
            *self._acl_parts(),
            *self._token_parts(),
            self._watch(znodes.DELETE_TOPICS, children, self._delete_topics),
            self._watch(znodes.REASSIGN_PARTITIONS, data, self._reassign),
            self._watch(znodes.PREFERRED_ELECTION, data, self._prefer),
            self._every(lambda: self._settings().sweep_every_s, controller.sweep),
            # Brokers that have just come back need a moment before they can tell of their logs.
            self._every(lambda: RECOVER_EVERY_S, controller.recover_from_power_cuts),
            self._every(lambda: self._settings().balance_every_s, self._balance),
        )

    async def _watch(self, path: str, kind: WatchKind, act: Act) -> None:
        """Act now and after every change; what fails is tried again after a pause."""
        pause_s = PAUSE_S
        while True:
            self._raise_if_over()
            try:
                await self._watch_once(path, kind, act)
                pause_s = PAUSE_S
            except NotController:
                raise
            except SessionLost:
                self._writes.is_over = True
            except PenstockError as error:
                _log.warning("The controller tries again what failed at %s: %s", path, error)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, PAUSE_S_MAX)

    async def _watch_once(self, path: str, kind: WatchKind, act: Act) -> None:
        changed = await self._store.watch_once(path, kind)
        try:
            await act()
            event = await changed
        finally:
            changed.cancel()
        if event.change is Change.SESSION_LOST:
            self._writes.is_over = True

    async def _every(self, interval_s: Callable[[], float], act: Act) -> None:
        while True:
            await asyncio.sleep(interval_s())
            self._raise_if_over()
            try:
                await act()
            except NotController:
                raise
            except PenstockError as error:  # Done in the next round, when the store is back.
                _log.warning("The controller's round was broken off: %s", error)

    def _raise_if_over(self) -> None:
        if self._writes.is_over:
            raise NotController("This is not the correct controller for this cluster.")

    async def _check_controller_node(self) -> None:
        """Whoever deletes the controller's node wants another election, as with Kafka."""
        (node,) = await self._store.multi_get([znodes.CONTROLLER])
        if node is None or node[1].owner != self._store.session_id:
            self._writes.is_over = True
            self._raise_if_over()

    async def _balance(self) -> None:
        if self._settings().balances_leaders:
            await self._controller.balance_leaders()

    async def _delete_topics(self) -> None:
        names = await self._store.children(znodes.DELETE_TOPICS)
        outcomes: list[ProtocolError | None] = [None] * len(names)
        if self._settings().deletes_topics:
            outcomes = await self._controller.delete_topics(names)
        for name, error in zip(names, outcomes, strict=True):
            if error is not None and not isinstance(error, UnknownTopicOrPartition):
                raise error
            await self._controller.delete_node(f"{znodes.DELETE_TOPICS}/{name}", ANY_VERSION)

    async def _reassign(self) -> None:
        await self._fulfil(znodes.REASSIGN_PARTITIONS, self._alter_reassignments)

    async def _prefer(self) -> None:
        await self._fulfil(znodes.PREFERRED_ELECTION, self._elect_preferred)

    async def _fulfil(
        self, path: str, act: Callable[[Sequence[AskedPartition]], Awaitable[None]]
    ) -> None:
        """Do what the node asks for, then delete it; what cannot be read in it is logged."""
        (node,) = await self._store.multi_get([path])
        if node is None:
            return
        try:
            asked = znodes.decode_asked_partitions(path, node[0])
        except NodeUnreadable as error:
            _log.warning("What is asked for is passed over: %s", error)
        else:
            await act(asked)
        await self._controller.delete_node(path, node[1].version)

    async def _alter_reassignments(self, asked: Sequence[AskedPartition]) -> None:
        wanted = [Reassignment(*one) for one in asked]
        outcomes = await self._controller.alter_reassignments(wanted)
        _report(asked, outcomes)

    async def _elect_preferred(self, asked: Sequence[AskedPartition]) -> None:
        keys = [(one.topic, one.partition) for one in asked]
        outcomes = await self._controller.elect_leaders(ElectionKind.PREFERRED, keys)
        _report(asked, [outcomes[key] for key in keys])


def _report(asked: Sequence[AskedPartition], outcomes: Sequence[ProtocolError | None]) -> None:
    for one, error in zip(asked, outcomes, strict=True):
        if error is not None:
            _log.warning("Partition %s-%d stays as it is: %s", one.topic, one.partition, error)
