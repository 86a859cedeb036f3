"""Partition states changed by compare-and-set, many per multi.

The controller is not alone: leaders write the in-sync sets of their partitions. Who loses such a
race reads what the other wrote and decides anew.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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
from penstock.cluster.image_load import load_states
from penstock.cluster.ledger import Ledger
from penstock.cluster.topic_steps import in_batches
from penstock.cluster.transition import RECOVERING, Event, Facts, transition
from penstock.errors import RequestTimedOut
from penstock.meta.store import BadVersion, MultiFailed, Op, Set

STATES_PER_MULTI = 500
LOST_RACES_MAX = 10

_NO_BROKERS: Mapping[int, BrokerImage] = {}

_log = logging.getLogger("penstock.cluster.controller")

EventFor = Callable[[PartitionKey, PartitionImage], Event | None]  # None: leave it as it is.


@dataclass(frozen=True, slots=True, kw_only=True)
class Along:
    """A change of brokers that happens in the same step as that of the first partitions."""

    ops: Sequence[Op]
    brokers: Mapping[int, BrokerImage]


class PartitionChanges:
    def __init__(self, writes: FencedWrites, ledger: Ledger) -> None:
        self._writes = writes
        self._ledger = ledger

    async def apply(
        self, event_for: EventFor, active: frozenset[int], *, along: Along | None = None
    ) -> None:
        """Decide for every partition and write what changes; `along` is in the first multi."""
        keys = [
            key
            for key, partition in self._ledger.image.all_partitions()
            if _decided(key, partition, event_for, active) is not partition.state
        ]
        for batch in in_batches(keys, STATES_PER_MULTI):
            await self._apply_batch(batch, event_for, active, along)
            along = None
        if along is not None:
            await self._writes.commit(along.ops)
            self._ledger.publish(ImageDelta(brokers=along.brokers))

    async def refresh(self, keys: Sequence[PartitionKey]) -> None:
        """Read these states again and publish what somebody else has changed."""
        known = [(key, self._ledger.image.partition(*key)) for key in keys]
        before = {key: partition for key, partition in known if partition is not None}
        states = await load_states(self._writes.store, list(before))
        self._publish({key: s for key, s in states.items() if s != before[key].state})

    async def _apply_batch(
        self,
        keys: Sequence[PartitionKey],
        event_for: EventFor,
        active: frozenset[int],
        along: Along | None,
    ) -> None:
        first_ops = along.ops if along else ()
        for _ in range(LOST_RACES_MAX):
            changed = self._changed(keys, event_for, active)
            ops = [
                Set(znodes.state_path(*key), znodes.encode_state(state), state.partition_epoch)
                for key, state in changed.items()
            ]
            try:
                await self._writes.commit([*first_ops, *ops])
            except MultiFailed as failure:
                if not isinstance(failure.reason, BadVersion) or failure.index < len(first_ops):
                    raise
                await self.refresh(keys)
                continue
            _report_uncertain(changed)
            self._publish(
                {k: s._replace(partition_epoch=s.partition_epoch + 1) for k, s in changed.items()},
                along.brokers if along else {},
            )
            return
        raise RequestTimedOut(f"lost {LOST_RACES_MAX} races for the state of {keys[0]} and others")

    def _changed(
        self, keys: Sequence[PartitionKey], event_for: EventFor, active: frozenset[int]
    ) -> dict[PartitionKey, PartitionState]:
        image = self._ledger.image
        changed: dict[PartitionKey, PartitionState] = {}
        for key in keys:
            partition = image.partition(*key)
            if partition is None:
                continue
            after = _decided(key, partition, event_for, active)
            if after is not partition.state:
                changed[key] = after._replace(controller_epoch=image.controller_epoch)
        return changed

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


def _decided(
    key: PartitionKey, partition: PartitionImage, event_for: EventFor, active: frozenset[int]
) -> PartitionState:
    event = event_for(key, partition)
    if event is None:
        return partition.state
    facts = Facts(replicas=partition.replicas, active=active)
    return transition(partition.state, event, facts)


def _report_uncertain(changed: Mapping[PartitionKey, PartitionState]) -> None:
    for (topic, number), state in changed.items():
        if state.leader_recovery_state == RECOVERING and state.leader != NO_LEADER:
            _log.warning(
                "Partition %s-%d is led by broker %d, which may have lost records in a power cut "
                "or with its disk; nobody else has more",
                topic,
                number,
                state.leader,
            )
