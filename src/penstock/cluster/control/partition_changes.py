"""Partition states changed by compare-and-set, many per multi, and several multis under way.

The controller is not alone: leaders write the in-sync sets of their partitions, and brokers that
register anew their fences, which every write checks that lets them lead or be in sync. Who loses
such a race reads what the other wrote and decides anew. What the store has taken is published at
once, in the order it was written: clients wait for the first partitions while the last are written.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from penstock.cluster import znodes
from penstock.cluster.control.fenced_writes import FencedWrites
from penstock.cluster.control.ledger import ImageLedger
from penstock.cluster.image.image import (
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    ImageDelta,
    PartitionImage,
    PartitionKey,
    PartitionState,
)
from penstock.cluster.image.load import find_brokers, find_states
from penstock.cluster.topics.steps import in_batches
from penstock.cluster.transition import RECOVERING, Event, TransitionFacts, transition
from penstock.errors import PenstockError, RequestTimedOut
from penstock.meta.store import BadVersion, Check, MultiFailed, Op, Result, Set

LOST_RACES_MAX = 10
UNDER_WAY_MAX = 16  # Multis that the store has not answered yet.

_NO_BROKERS: Mapping[int, BrokerImage | None] = {}

_log = logging.getLogger("penstock.cluster.controller")

# What happens to a partition, one after the other in one write; nothing: leave it as it is.
EventsFor = Callable[[PartitionKey, PartitionImage], Sequence[Event]]


class Along(NamedTuple):
    """A change of brokers that happens in the same step as that of the first partitions."""

    ops: Sequence[Op]  # Empty: the store has the change already, and it is only published.
    brokers: Mapping[int, BrokerImage | None]


class DecidedState(NamedTuple):
    """A state as it will be, with the version its node will have, and as it is written."""

    state: PartitionState
    data: bytes
    trusted: frozenset[int]  # See `newly_trusted`.


class UnderWay(NamedTuple):
    """A multi that was sent."""

    keys: Sequence[PartitionKey]
    decisions: Mapping[PartitionKey, DecidedState]
    written: "asyncio.Task[list[Result]]"


def newly_trusted(before: PartitionState, after: PartitionState) -> frozenset[int]:
    """The brokers that begin to lead or to be in sync; the write checks that they are active."""
    elected = {after.leader} - {before.leader, NO_LEADER}
    return frozenset(elected | ({*after.isr} - {*before.isr}))


def fence_checks(brokers: Iterable[int], image: ClusterImage) -> list[Op]:
    """That each of them is still the incarnation that the image has, and active.

    There is one for each broker, however many partitions it is given: they are few and small, so
    no room is kept for them in a batch.
    """
    known = image.brokers
    return [Check(znodes.fence_path(b), known[b].fence_version) for b in sorted(brokers)]


class PartitionChanges:
    def __init__(self, writes: FencedWrites, ledger: ImageLedger) -> None:
        self._writes = writes
        self._ledger = ledger

    @property
    def batch_size(self) -> int:
        """How many states are written at once; there is room for what goes along."""
        return self._writes.ops_max - 1

    def concerned(self, events_for: EventsFor) -> list[PartitionKey]:
        """The partitions to which anything happens."""
        partitions = self._ledger.image.all_partitions()
        return [key for key, partition in partitions if events_for(key, partition)]

    async def apply(self, events_for: EventsFor, active: frozenset[int]) -> None:
        """Decide for every partition in the cluster, and write what changes."""
        await self.apply_to(self.concerned(events_for), events_for, active)

    async def apply_to(
        self,
        keys: Sequence[PartitionKey],
        events_for: EventsFor,
        active: frozenset[int],
        *,
        along: Along | None = None,
    ) -> None:
        """Decide for these partitions and write what changes; `along` is in the first multi."""
        batches = in_batches(keys, self.batch_size) if keys or not along else [()]
        first, *rest = batches if along and along.ops else [(), *batches]
        brokers = _NO_BROKERS
        if along and along.ops:
            await self._apply_batch(first, events_for, active, along)
        elif along:
            brokers = along.brokers
        await self._apply_batches(rest, events_for, active, brokers)

    async def _apply_batches(
        self,
        batches: Iterable[Sequence[PartitionKey]],
        events_for: EventsFor,
        active: frozenset[int],
        brokers: Mapping[int, BrokerImage | None],
    ) -> None:
        """Publish every write that the store has accepted, even if another one failed."""
        sent: deque[UnderWay] = deque()
        failures: list[PenstockError] = []

        async def land() -> None:
            nonlocal brokers
            landing, brokers = brokers, _NO_BROKERS
            try:
                await self._land(sent, landing, events_for, active)
            except PenstockError as error:
                failures.append(error)

        try:
            for keys in batches:
                if decisions := self._decide(keys, events_for, active):
                    written = asyncio.create_task(self._writes.commit(self._ops(decisions)))
                    sent.append(UnderWay(keys, decisions, written))
                    await asyncio.sleep(0)  # Sent before the next one is decided.
                if len(sent) >= UNDER_WAY_MAX:
                    await land()
                if failures:
                    break
            while sent:
                await land()
        finally:
            for one in sent:  # Raised only if this task itself is cancelled.
                one.written.cancel()
            if brokers:
                self._publish({}, brokers)
        if failures:
            raise failures[0]

    async def _land(
        self,
        sent: deque[UnderWay],
        brokers: Mapping[int, BrokerImage | None],
        events_for: EventsFor,
        active: frozenset[int],
    ) -> None:
        """Wait for the oldest multi; publish it, with those the store has answered meanwhile."""
        changed: dict[PartitionKey, PartitionState] = {}
        try:
            while sent and (not changed or sent[0].written.done()):
                keys, decisions, written = sent.popleft()
                try:
                    await written
                except MultiFailed as failure:
                    if not isinstance(failure.reason, BadVersion):
                        raise
                    await self.look_again(keys, failure)
                    await self._apply_batch(keys, events_for, active, None)
                else:
                    changed |= {key: decision.state for key, decision in decisions.items()}
        finally:
            self._report_uncertain(changed)
            self._publish(changed, brokers)

    async def look_again(self, keys: Sequence[PartitionKey], failure: MultiFailed) -> None:
        """Read what somebody else wrote, because of which a change of these was refused."""
        if isinstance(failure.op, Check):
            await self._refresh_brokers()
        else:
            await self.refresh(keys)

    async def _refresh_brokers(self) -> None:
        """Publish which active brokers of the image have registered anew, or are fenced, since.

        That is all: taking them out and letting them in is the membership's.
        """
        known = {b: broker for b, broker in self._ledger.image.brokers.items() if broker.is_active}
        seen = await find_brokers(self._writes.store, sorted(known))
        moved = {b: f for b, f in seen.fences.items() if f.version != known[b].fence_version}
        self._ledger.fences.update(moved)
        self._publish({}, {broker_id: seen.brokers.get(broker_id) for broker_id in moved})

    async def refresh_all(self) -> None:
        """Read every state again, for notices of leaders that came late or not at all."""
        await self.refresh([key for key, _ in self._ledger.image.all_partitions()])

    async def refresh(self, keys: Sequence[PartitionKey]) -> None:
        """Read these states again and publish what somebody else has changed.

        A state that is gone went with its topic, of which the topics' own watch tells.
        """
        known = [(key, self._ledger.image.partition(*key)) for key in keys]
        before = {key: partition for key, partition in known if partition is not None}
        states = await find_states(self._writes.store, list(before))
        self._publish({key: s for key, s in states.items() if s != before[key].state})

    async def _apply_batch(
        self,
        keys: Sequence[PartitionKey],
        events_for: EventsFor,
        active: frozenset[int],
        along: Along | None,
    ) -> None:
        first_ops = along.ops if along else ()
        # The brokers whose fence this write opens; that operation checks the version.
        entering = frozenset(along.brokers if along else ())
        for _ in range(LOST_RACES_MAX):
            decisions = self._decide(keys, events_for, active, entering)
            if not decisions and not first_ops:
                return
            try:
                await self._writes.commit([*first_ops, *self._ops(decisions, entering)])
            except MultiFailed as failure:
                if not isinstance(failure.reason, BadVersion) or failure.index < len(first_ops):
                    raise
                await self.look_again(keys, failure)
                continue
            changed = {key: decision.state for key, decision in decisions.items()}
            self._report_uncertain(changed)
            self._publish(changed, along.brokers if along else _NO_BROKERS)
            return
        raise RequestTimedOut(f"lost {LOST_RACES_MAX} races for the state of {keys[0]} and others")

    def _decide(
        self,
        keys: Sequence[PartitionKey],
        events_for: EventsFor,
        active: frozenset[int],
        entering: frozenset[int] = frozenset(),
    ) -> dict[PartitionKey, DecidedState]:
        image = self._ledger.image
        active &= image.active_brokers() | entering  # Some brokers may have been fenced since.
        # Most partitions are in the same state as many others: decide once for all of them.
        known: dict[object, DecidedState | None] = {}
        decisions: dict[PartitionKey, DecidedState] = {}
        for key in keys:
            partition = image.partition(*key)
            if partition is None:
                continue
            events = events_for(key, partition)
            # Events of two kinds may be equal as tuples, so their kinds are part of the case.
            case = (partition.state, partition.replicas, events, *map(type, events))
            if case not in known:
                known[case] = _decision(partition, events, active, image.controller_epoch)
            if decision := known[case]:
                decisions[key] = decision
        return decisions

    def _ops(
        self, decisions: Mapping[PartitionKey, DecidedState], entering: frozenset[int] = frozenset()
    ) -> list[Op]:
        trusted = frozenset[int]().union(*{decision.trusted for decision in decisions.values()})
        return [
            *fence_checks(trusted - entering, self._ledger.image),
            *(
                Set(znodes.state_path(*key), decision.data, decision.state.partition_epoch - 1)
                for key, decision in decisions.items()
            ),
        ]

    def _report_uncertain(self, changed: Mapping[PartitionKey, PartitionState]) -> None:
        """An election that may have cost records is never silent."""
        uncertain = Counter(
            (key[0], state.leader)
            for key, state in changed.items()
            if state.leader_recovery_state == RECOVERING
            and state.leader != NO_LEADER
            and state.leader_epoch != self._epoch_of(key)
        )
        self._ledger.unclean_elections += uncertain.total()
        for (topic, leader), count in uncertain.items():
            _log.warning(
                "UNCLEAN ELECTION: %d partition(s) of topic %s are led by broker %d, which may "
                "lack acknowledged records; nobody who is certain to have them all is alive",
                count,
                topic,
                leader,
            )

    def _epoch_of(self, key: PartitionKey) -> int | None:
        partition = self._ledger.image.partition(*key)
        return partition.state.leader_epoch if partition else None

    def _publish(
        self,
        states: Mapping[PartitionKey, PartitionState],
        brokers: Mapping[int, BrokerImage | None] = _NO_BROKERS,
    ) -> None:
        image = self._ledger.image
        partitions = {
            key: partition._replace(state=state)
            for key, state in states.items()
            if (partition := image.partition(*key)) is not None
        }
        self._ledger.publish(ImageDelta(partitions=partitions, brokers=brokers))


def _decision(
    partition: PartitionImage, events: Sequence[Event], active: frozenset[int], epoch: int
) -> DecidedState | None:
    state = partition.state
    facts = TransitionFacts(replicas=partition.replicas, active=active)
    for event in events:
        state = transition(state, event, facts)
    if state == partition.state:
        return None
    written = state._replace(
        # One write is one step of the leader epoch, whatever went into it.
        leader_epoch=min(state.leader_epoch, partition.state.leader_epoch + 1),
        controller_epoch=epoch,
        partition_epoch=state.partition_epoch + 1,
    )
    trusted = newly_trusted(partition.state, written)
    return DecidedState(written, znodes.encode_state(written), trusted)
