"""The one broker that changes the cluster: elected through the store, fenced by its epoch.

Every change goes the same way: decided by a pure function, written by a multi that checks the
controller epoch, then put into the image, then published. So the image may be behind the store
for a moment, but never shows what the store does not have. One change at a time.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.cluster import znodes
from penstock.cluster.control.acl_changes import AclChanges
from penstock.cluster.control.config_changes import ConfigChanges, EntityOverrides
from penstock.cluster.control.controller_election import win_election
from penstock.cluster.control.fenced_writes import FencedWrites
from penstock.cluster.control.leader_elections import (
    UNCLEAN,
    AskEnds,
    ElectionKind,
    LeaderElections,
    ReplicaEnd,
)
from penstock.cluster.control.ledger import MIN_ISR, ImageCallback, ImageLedger
from penstock.cluster.control.membership import Membership
from penstock.cluster.control.partition_changes import PartitionChanges
from penstock.cluster.control.reassignment import Reassignment, Reassignments, lasting_count
from penstock.cluster.control.settings import ControlSettings, Settings
from penstock.cluster.control.token_changes import AlterToken, TokenChanges
from penstock.cluster.image.image import (
    CLUSTER_WIDE,
    ClusterImage,
    ImageDelta,
    PartitionImage,
    PartitionKey,
    TopicImage,
)
from penstock.cluster.image.load import (
    Unsettled,
    load_acls,
    load_brokers,
    load_configs,
    load_tokens,
    load_topics,
)
from penstock.cluster.producer_ids import allocate_producer_ids
from penstock.cluster.topics.plan import (
    PartitionsToAdd,
    TopicToCreate,
    in_slices,
    refuse_too_many,
    requested_partitions,
)
from penstock.cluster.topics.topics import Planned, RandomBytes, Topics
from penstock.cluster.transition import Event, MinIsrChanged
from penstock.errors import (
    ElectionNotNeeded,
    InvalidUpdateVersion,
    KafkaStorage,
    NotController,
    ProtocolError,
    RequestTimedOut,
    UnknownServerError,
)
from penstock.meta.deadline import DeadlineStore, StoreTimedOut, acquire_in_time
from penstock.meta.store import (
    BadVersion,
    Delete,
    MetaError,
    MetaStore,
    MultiFailed,
    NoNode,
    OutcomeUnknown,
    SessionLost,
    StoreUnavailable,
)
from penstock.security.acls.rules import AclBinding
from penstock.security.delegation import TokenInformation

if TYPE_CHECKING:
    from penstock.cluster.image.stream import ImageStream

__all__ = [
    "AskEnds",
    "ControlSettings",
    "Controller",
    "ElectionKind",
    "EntityOverrides",
    "PartitionsToAdd",
    "Reassignment",
    "ReplicaEnd",
    "TopicToCreate",
    "allocate_producer_ids",
]

T = TypeVar("T")

_log = logging.getLogger("penstock.cluster.controller")


class Controller:
    """Runs on the elected broker; on a lone broker that is always this one."""

    def __init__(
        self,
        writes: FencedWrites,
        ledger: ImageLedger,
        random_bytes: RandomBytes,
        *,
        settings: Settings = ControlSettings,
        ask_ends: AskEnds | None = None,
    ) -> None:
        self._writes = writes
        self._ledger = ledger
        self._settings = settings
        self._is_leaving = False
        self._one_at_a_time = asyncio.Lock()
        self._under_way: set[asyncio.Task[Any]] = (
            set()
        )  # Referenced, because the event loop keeps only weak references to tasks.
        self._changes = PartitionChanges(writes, ledger)
        self._membership = Membership(writes, ledger, self._changes)
        self._topics = Topics(writes, ledger, random_bytes)
        self._configs = ConfigChanges(writes, ledger)
        self._acls = AclChanges(writes, ledger)
        self._tokens = TokenChanges(writes, ledger)
        self._reassignments = Reassignments(writes, ledger, self._changes, self._topics)
        self._elections = LeaderElections(ledger, self._changes, settings, ask_ends)

    @classmethod
    async def elect(
        cls,
        store: MetaStore,
        broker_id: int,
        *,
        now_ms: int,
        min_insync_replicas: int = 1,
        random_bytes: RandomBytes = os.urandom,
        settings: Settings = ControlSettings,
        ask_ends: AskEnds | None = None,
        enter: "Callable[[Controller], None]" = lambda _: None,
        known: ClusterImage | None = None,
    ) -> "Controller | None":
        """Become the controller and take over the cluster; None if another broker is it.

        `min_insync_replicas` is the broker's own setting, for topics that have none. Through
        `ask_ends` other brokers say how far their logs reach, before an unclean election. `enter`
        is called as soon as the cluster is known: what is then done about it, such as elections
        for a broker that is gone, can be followed step by step. What is as in the image `known`
        so far is taken from there, for then nobody has to look whether it is news.
        """
        won = await win_election(store, broker_id, now_ms)
        if won is None:
            return None
        epoch, epoch_version = won
        # Fences are read before partitions. Nobody adds a broker whose fence is closed, so the
        # partitions read afterwards show every in-sync set that such a broker is in.
        brokers = await load_brokers(store)
        topics, configs, acls, tokens, (cluster_id, _) = await asyncio.gather(
            load_topics(store),
            load_configs(store),
            load_acls(store, is_wanted=settings().with_acls),
            load_tokens(store, is_wanted=settings().with_tokens),
            store.get(znodes.CLUSTER_ID),
        )
        image = ClusterImage(
            cluster_id=znodes.decode_cluster_id(cluster_id),
            controller_id=broker_id,
            controller_epoch=epoch,
        )
        ledger = ImageLedger(image, min_insync_replicas=min_insync_replicas, known=known)
        ledger.fill(topics, configs, brokers, acls, tokens)
        writes = FencedWrites(DeadlineStore(store), epoch_version)
        controller = cls(writes, ledger, random_bytes, settings=settings, ask_ends=ask_ends)
        enter(controller)
        await controller._carry_out(controller._take_over(topics.unsettled))
        return controller

    @property
    def image(self) -> ClusterImage:
        return self._ledger.image

    @property
    def is_over(self) -> bool:
        """Another controller has been elected; this one can change nothing any more."""
        return self._writes.is_over

    @property
    def unclean_elections(self) -> int:
        """How many partitions were given a leader that may lack acknowledged records."""
        return self._ledger.unclean_elections

    @cached_property
    def stream(self) -> "ImageStream":
        """What other brokers pull."""
        from penstock.cluster.image.stream import ImageStream  # A broker alone has no use for it.

        return ImageStream(self)

    def subscribe(
        self, callback: ImageCallback, settled: Callable[[], Awaitable[None]] | None = None
    ) -> Callable[[], None]:
        """Call back with every image from now on, in order; returns how to stop that.

        New topics are answered for only after `settled`, and made no faster.
        """
        if settled is not None:
            self._ledger.settled = settled
        return self._ledger.subscribe(callback)

    def make_no_more_topics(self) -> None:
        """This broker is about to stop: what a request still wants is refused."""
        self._is_leaving = True

    def deltas_since(self, controller_epoch: int, seq: int) -> list[ImageDelta] | None:
        """What leads from that image to the current one; None: take the image whole."""
        return self._ledger.deltas_since(controller_epoch, seq)

    async def create_topics(
        self, topics: Sequence[TopicToCreate], *, validate_only: bool
    ) -> list[TopicImage | ProtocolError]:
        """One outcome for each, in order; small topics are made many in one write."""
        refuse_too_many(sum(max(0, requested_partitions(new)) for new in topics))
        outcomes: list[TopicImage | ProtocolError] = []
        names: dict[str, set[str]] = {}
        for some in in_slices(topics):
            try:
                if self._is_leaving:
                    raise NotController("This controller is shutting down.")
                change = self._create_topics(some, names, validate_only)
                outcomes += await self._carry_out(change)
                await self._ledger.settled()
            except ProtocolError as error:
                if not outcomes:
                    raise
                outcomes += [error] * len(some)
        return outcomes

    async def delete_topics(self, names: Sequence[str]) -> list[ProtocolError | None]:
        """One outcome for each, in order; small topics are deleted many in one write."""
        outcomes: list[ProtocolError | None] = []
        for some in self._topics.in_writes(names):
            outcomes += await self._deletions(some)
        return outcomes

    async def create_partitions(
        self, requests: Sequence[PartitionsToAdd], *, validate_only: bool
    ) -> list[ProtocolError | None]:
        grow = self._topics.check_growth if validate_only else self._topics.grow
        outcomes = []
        for request in requests:
            outcomes.append(await self._outcome(grow(request)))
            await self._ledger.settled()
        return outcomes

    def config_version(self, kind: str, name: str) -> int:
        """What `EntityOverrides.expected_version` is compared with; -1 where nothing is set."""
        return self._ledger.config_versions.get((kind, name), -1)

    async def set_configs(self, changes: Sequence[EntityOverrides]) -> None:
        """Replace the settings of all these entities in one step."""
        await self._carry_out(self._set_configs(changes))
        if any(UNCLEAN in change.config for change in changes):
            await self.fill_vacancies()

    async def add_acls(self, bindings: Sequence[AclBinding]) -> None:
        """Let these rules hold from now on; those that hold already stay."""
        await self._carry_out(self._acls.add(bindings))

    async def remove_acls(self, bindings: Sequence[AclBinding]) -> None:
        """Let these rules hold no more."""
        await self._carry_out(self._acls.remove(bindings))

    async def hear_of_acls(self) -> None:
        """Act on rules that somebody else wrote to the store."""
        await self._carry_out(self._acls.hear())

    async def create_token(self, token: TokenInformation) -> None:
        """Let this delegation token open doors from now on."""
        await self._carry_out(self._tokens.create(token))

    async def alter_token(self, token_id: str, alter: AlterToken) -> TokenInformation | None:
        """Renew or end a token; what it is then, and None if it is gone."""
        return await self._carry_out(self._tokens.alter(token_id, alter))

    async def remove_tokens(self, token_ids: Sequence[str]) -> None:
        """Let these tokens open no doors any more."""
        await self._carry_out(self._tokens.remove(token_ids))

    async def hear_of_tokens(self) -> None:
        """Act on tokens that somebody else wrote to the store."""
        await self._carry_out(self._tokens.hear())

    async def alter_reassignments(
        self, wanted: Sequence[Reassignment]
    ) -> list[ProtocolError | None]:
        """Begin, change or take back reassignments; one outcome for each, in order."""
        return await self._carry_out(self._reassignments.alter(wanted))

    def reassignments(self) -> dict[PartitionKey, PartitionImage]:
        """Those under way."""
        return self._reassignments.under_way()

    async def elect_leaders(
        self, kind: ElectionKind, keys: Sequence[PartitionKey] | None
    ) -> dict[PartitionKey, ProtocolError | None]:
        """Hold elections for these partitions, or for all (then told of only where one was needed).

        An unclean one is held whatever the topic's settings say: somebody asks for it.
        """
        asked = self._elections.all_keys() if keys is None else list(keys)
        if kind is ElectionKind.PREFERRED:
            outcomes = await self._carry_out(self._elections.prefer(asked))
        else:
            outcomes = await self._elect_uncleanly(asked)
        if keys is None:
            return {k: e for k, e in outcomes.items() if not isinstance(e, ElectionNotNeeded)}
        return outcomes

    async def balance_leaders(self) -> int:
        """Give leaderships back to brokers that miss too many; returns how many moved."""
        return await self._carry_out(self._elections.balance())

    async def reconcile_brokers(self) -> None:
        """Act on brokers that came or went."""
        await self._carry_out(self._reconcile_brokers())
        await self.fill_vacancies()

    async def fill_vacancies(self) -> None:
        """Hold unclean elections where topics allow them and nothing better is left."""
        keys = self._elections.vacant_uncleanly()
        if keys and (chosen := await self._elections.survey(keys)):
            await self._carry_out(self._elections.elect_uncleanly(chosen))
        await self.recover_from_power_cuts()

    async def recover_from_power_cuts(self) -> None:
        """Elect where every eligible replica lost records, once all replicas are back."""
        keys = self._elections.all_back()
        if keys and (chosen := await self._elections.survey(keys, needs_all=True)):
            await self._carry_out(self._elections.elect_uncleanly(chosen))

    async def broker_unreachable(self, broker_id: int, epoch: int) -> None:
        """Take out a broker whose port refuses connections: its process is gone."""
        await self._carry_out(self._membership.expel(broker_id, epoch))
        await self.fill_vacancies()

    async def refresh_partitions(self, keys: Sequence[PartitionKey]) -> None:
        """A leader has written the in-sync sets of these: take them into the image."""
        await self._carry_out(self._refresh(keys))

    async def remove_lost_replicas(
        self, broker_id: int, epoch: int, keys: Sequence[PartitionKey]
    ) -> None:
        """A disk of this broker failed, and with it these replicas: let others lead."""
        await self._carry_out(self._membership.remove_lost_replicas(broker_id, epoch, keys))
        await self.fill_vacancies()

    async def begin_shutdown(self, broker_id: int, epoch: int | None = None) -> int:
        """Move away what other brokers can lead, before this broker goes.

        Returns how many it still leads although they have other replicas; raises StaleBrokerEpoch
        for another incarnation.
        """
        return await self._carry_out(self._membership.begin_shutdown(broker_id, epoch))

    async def sweep(self) -> None:
        """Read everything again, for notices that were lost, and do what they would have led to."""
        await self._carry_out(self._sweep())
        await self.fill_vacancies()

    async def look_at_topics(self) -> None:
        """Act on topics that somebody else made or removed in the store."""
        await self._carry_out(self._topics.look_around())

    async def hear_of_configs(self) -> None:
        """Act on settings that somebody else wrote to the store."""
        await self._carry_out(self._hear_of_configs())
        await self.fill_vacancies()

    async def delete_node(self, path: str, version: int) -> None:
        """Delete a node below /admin that was dealt with, unless it was written again."""
        await self._carry_out(self._delete_node(path, version))

    async def follow(self) -> None:
        """Act on all that happens until this controller is over. Run it as a task."""
        from penstock.cluster.control.following import follow  # A broker alone has no use for it.

        await follow(self, self._writes, self._settings)

    async def resign(self) -> None:
        """Delete `/controller`, so that the next election need not wait for our session to end."""
        if self.is_over:
            return
        try:
            await self._carry_out(self._writes.commit([Delete(znodes.CONTROLLER)]))
        except (MetaError, ProtocolError) as error:
            _log.info("The controller's node is left to the end of the session: %s", error)
        self._writes.is_over = True

    async def _elect_uncleanly(
        self, keys: Sequence[PartitionKey]
    ) -> dict[PartitionKey, ProtocolError | None]:
        refusals = self._elections.unclean_refusals(keys)
        wanted = [key for key, refusal in refusals.items() if refusal is None]
        chosen = await self._elections.survey(wanted)
        await self._carry_out(self._elections.elect_uncleanly(chosen))
        return {key: refusals[key] or self._elections.leaderless(key) for key in keys}

    async def _create_topics(
        self, topics: Sequence[TopicToCreate], names: dict[str, set[str]], validate_only: bool
    ) -> list[TopicImage | ProtocolError]:
        plans = self._topics.plan(topics, names)
        possible = [plan for plan in plans if isinstance(plan, Planned)]
        errors = {} if validate_only else await self._topics.create(possible)
        return [
            errors.get(plan.topic.name, plan.topic) if isinstance(plan, Planned) else plan
            for plan in plans
        ]

    async def _set_configs(self, changes: Sequence[EntityOverrides]) -> None:
        before = [self.image.config(change.kind, change.name) for change in changes]
        await self._configs.apply(changes)
        if any(MIN_ISR in {**c.config, **old} for c, old in zip(changes, before, strict=True)):
            await self._align_min_isr()

    async def _reconcile_brokers(self) -> None:
        await self._membership.reconcile()
        await self._reassignments.finish(self._reassignments.under_way())

    async def _refresh(self, keys: Sequence[PartitionKey]) -> None:
        await self._changes.refresh(keys)
        await self._reassignments.finish(keys)

    async def _sweep(self) -> None:
        await self._topics.look_around()
        await self._changes.refresh_all()
        await self._reconcile_brokers()
        await self._align_min_isr()

    async def _hear_of_configs(self) -> None:
        if await self._configs.hear():
            await self._align_min_isr()

    async def _delete_node(self, path: str, version: int) -> None:
        try:
            await self._writes.commit([Delete(path, version)])
        except MultiFailed as failure:
            if not isinstance(failure.reason, BadVersion | NoNode):
                raise

    async def _take_over(self, unsettled: Sequence[Unsettled]) -> None:
        await self._topics.align_ids(unsettled)
        for left in unsettled:
            await self._topics.look_again(left.name)
        await self._reconcile_brokers()
        await self._store_min_isr()
        await self._align_min_isr()

    async def _store_min_isr(self) -> None:
        """Once and for all: a number of the controller's own could change with the controller.

        Until it can be written, the setting of this broker stands for it.
        """
        stored = self.image.config("brokers", CLUSTER_WIDE)
        if MIN_ISR in stored:
            return
        change = EntityOverrides(
            kind="brokers",
            name=CLUSTER_WIDE,
            config={**stored, MIN_ISR: str(self._ledger.min_insync_replicas)},
            expected_version=self.config_version("brokers", CLUSTER_WIDE),
        )
        try:
            await self._configs.apply([change])
        except (StoreUnavailable, MultiFailed, InvalidUpdateVersion) as error:
            _log.warning("%s could not be stored for the whole cluster: %s", MIN_ISR, error)

    async def _align_min_isr(self) -> None:
        """The high watermark obeys the number in the partition's state, so it must follow."""
        ledger = self._ledger

        def events_for(key: PartitionKey, partition: PartitionImage) -> Sequence[Event]:
            wanted = ledger.min_isr(key[0], lasting_count(partition))
            return () if wanted == partition.state.min_isr else (MinIsrChanged(wanted),)

        await self._changes.apply(events_for, ledger.image.active_brokers())

    async def _deletions(self, names: Sequence[str]) -> list[ProtocolError | None]:
        try:
            if len(names) > 1 and await self._carry_out(self._topics.delete_together(names)):
                return [None] * len(names)
        except ProtocolError as error:
            return [error] * len(names)
        return [await self._outcome(self._topics.delete(name)) for name in names]

    async def _outcome(self, change: Coroutine[None, None, None]) -> ProtocolError | None:
        try:
            await self._carry_out(change)
        except ProtocolError as error:
            return error
        return None

    async def _carry_out(self, change: Coroutine[None, None, T]) -> T:
        """Carry a change out to its end, even if the caller leaves: the image follows the store."""
        task = asyncio.create_task(self._alone(change))
        self._under_way.add(task)
        task.add_done_callback(self._forget_task)
        # A task that is cancelled before its first step never awaits the coroutine.
        task.add_done_callback(lambda _: change.close())
        return await asyncio.shield(task)

    def _forget_task(self, task: "asyncio.Task[Any]") -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            # Read here, because nobody does for a caller that left: asyncio would log it.
            task.exception()

    async def _alone(self, change: Coroutine[None, None, T]) -> T:
        """Make one change at a time; errors of the store become errors of Kafka's protocol."""
        try:
            await acquire_in_time(self._one_at_a_time)
        except StoreTimedOut as error:
            change.close()
            raise RequestTimedOut(f"The metadata store is away: {error}") from error
        try:
            return await self._translate_errors(change)
        finally:
            self._one_at_a_time.release()

    async def _translate_errors(self, change: Coroutine[None, None, T]) -> T:
        try:
            return await change
        except SessionLost as error:
            self._writes.is_over = True
            raise NotController(f"The session with the store is over: {error}") from error
        except StoreTimedOut as error:
            raise RequestTimedOut(f"The metadata store is away: {error}") from error
        except StoreUnavailable as error:
            raise KafkaStorage(f"The metadata store cannot be written: {error}") from error
        except OutcomeUnknown as error:
            raise RequestTimedOut(f"The metadata store did not answer: {error}") from error
        except MultiFailed as error:
            raise UnknownServerError(
                f"Somebody else writes to the metadata store: {error}"
            ) from error
