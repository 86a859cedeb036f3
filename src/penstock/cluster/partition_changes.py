"""Partition states changed by compare-and-set, many per multi.

The controller is not alone: leaders write the in-sync sets of their partitions. Who loses such a
race reads what the other wrote and decides anew.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from penstock.cluster import znodes
from penstock.cluster.fenced_writes import FencedWrites
from penstock.cluster.image import (
    NO_LEADER,
    BrokerImage,
    ImageDelta,
    PartitionImage,
    PartitionKey,
    PartitionState,
)
from penstock.cluster.image_load import find_states
from penstock.cluster.ledger import Ledger
from penstock.cluster.topic_steps import in_batches
from penstock.cluster.transition import RECOVERING, Event, Facts, transition
from penstock.errors import RequestTimedOut
from penstock.meta.store import BadVersion, MultiFailed, Op, Set

LOST_RACES_MAX = 10

_NO_BROKERS: Mapping[int, BrokerImage] = {}

_log = logging.getLogger("penstock.cluster.controller")

# What happens to a partition, one after the other in one write; nothing: leave it as it is.
EventsFor = Callable[[PartitionKey, PartitionImage], Sequence[Event]]


class Along(NamedTuple):
    """A change of brokers that happens in the same step as that of the first partitions."""

    ops: Sequence[Op]
    brokers: Mapping[int, BrokerImage]


class Decision(NamedTuple):
    """A state as it will be, with the version its node will have, and as it is written."""

    state: PartitionState
    data: bytes


class PartitionChanges:
    def __init__(self, writes: FencedWrites, ledger: Ledger) -> None:
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
        batches = in_batches(keys, self.batch_size) if keys or not along else ((),)
        for batch in batches:
            await self._apply_batch(batch, events_for, active, along)
            along = None

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
        for _ in range(LOST_RACES_MAX):
            decisions = self._decide(keys, events_for, active)
            ops = [
                Set(znodes.state_path(*key), decision.data, decision.state.partition_epoch - 1)
                for key, decision in decisions.items()
            ]
            if not ops and not first_ops:
                return
            try:
                await self._writes.commit([*first_ops, *ops])
            except MultiFailed as failure:
                if not isinstance(failure.reason, BadVersion) or failure.index < len(first_ops):
                    raise
                await self.refresh(keys)
                continue
            changed = {key: decision.state for key, decision in decisions.items()}
            self._report_uncertain(changed)
            self._publish(changed, along.brokers if along else {})
            return
        raise RequestTimedOut(f"lost {LOST_RACES_MAX} races for the state of {keys[0]} and others")

    def _decide(
        self, keys: Sequence[PartitionKey], events_for: EventsFor, active: frozenset[int]
    ) -> dict[PartitionKey, Decision]:
        image = self._ledger.image
        # Most partitions are in the same state as many others: decide once for all of them.
        known: dict[object, Decision | None] = {}
        decisions: dict[PartitionKey, Decision] = {}
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
        brokers: Mapping[int, BrokerImage] = _NO_BROKERS,
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
) -> Decision | None:
    state = partition.state
    facts = Facts(replicas=partition.replicas, active=active)
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
    return Decision(written, znodes.encode_state(written))
