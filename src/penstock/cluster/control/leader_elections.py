"""Elections somebody asks for, or a setting: of preferred leaders, and unclean ones.

The safe elections after a broker went are not here: they are part of taking it out of its
partitions (membership.py). An unclean one is held only where an administrator asks for it or the
topic allows it, when nobody who is certain to have all records is alive; the live replicas are
asked how far they reach, the furthest leads, and the log says so.

One case is held for every topic: a power cut took records from all who were certain to have them,
and every replica is back. There is nobody left to wait for, so the furthest leads.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from penstock.cluster.control.ledger import ImageLedger
from penstock.cluster.control.partition_changes import PartitionChanges
from penstock.cluster.control.settings import Settings
from penstock.cluster.image.image import NO_LEADER, ClusterImage, PartitionImage, PartitionKey
from penstock.cluster.topics.names import INTERNAL_TOPICS
from penstock.cluster.transition import Elected, Event, Preferred, UncleanlyElected
from penstock.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    PenstockError,
    PreferredLeaderNotAvailable,
    ProtocolError,
    UnknownTopicOrPartition,
)

UNCLEAN = "unclean.leader.election.enable"
MOVES_PER_ROUND_MAX = 500

_log = logging.getLogger("penstock.cluster.controller")


class ElectionKind(IntEnum):
    """As ElectLeaders numbers them."""

    PREFERRED = 0
    UNCLEAN = 1


class ReplicaEnd(NamedTuple):
    """How far a replica's log reaches."""

    latest_epoch: int  # The leader epoch of its last records; -1: it has none.
    log_end_offset: int
    log_start_offset: int = 0


# Asks a broker for the ends of its logs; partitions it does not have are missing in the answer.
AskEnds = Callable[[int, Sequence[PartitionKey]], Awaitable[Mapping[PartitionKey, ReplicaEnd]]]

_NOTHING_KNOWN = ReplicaEnd(latest_epoch=-1, log_end_offset=-1, log_start_offset=-1)


def furthest(partition: PartitionImage, ends: Mapping[int, ReplicaEnd]) -> int | None:
    """Of the replicas that answered, the one whose log reaches furthest.

    Of equals one that was known to have all until it lost records, then the first in order.
    """
    order = [replica for replica in partition.replicas if replica in ends]

    def reach(replica: int) -> tuple[int, int, bool]:
        end = ends[replica]
        return end.latest_epoch, end.log_end_offset, replica in partition.state.lke

    return max(order, key=reach, default=None)


def displaced(image: ClusterImage, *, percent_max: int) -> list[PartitionKey]:
    """Partitions to give back to their preferred leaders, of brokers that miss too many.

    Only where the preferred replica may take over now, and nothing is on the move (KAFKA-9866).
    """
    active = image.active_brokers()
    preferred: dict[int, int] = {}
    missed: dict[int, list[PartitionKey]] = {}
    for key, partition in image.all_partitions():
        first = partition.replicas[0]
        preferred[first] = preferred.get(first, 0) + 1
        if partition.state.leader != first:
            missed.setdefault(first, []).append(key)
    return [
        key
        for broker, keys in sorted(missed.items())
        if broker in active and 100 * len(keys) > percent_max * preferred[broker]
        for key in keys
        if _may_return(image, key)
    ]


def _may_return(image: ClusterImage, key: PartitionKey) -> bool:
    partition = image.topics[key[0]].partitions[key[1]]
    is_moving = bool(partition.adding or partition.removing)
    has_leader = partition.state.leader != NO_LEADER
    return has_leader and not is_moving and partition.replicas[0] in partition.state.isr


class LeaderElections:
    """What is called `survey` asks other brokers and must not hold up the controller meanwhile."""

    def __init__(
        self,
        ledger: ImageLedger,
        changes: PartitionChanges,
        settings: Settings,
        ask_ends: AskEnds | None,
    ) -> None:
        self._ledger = ledger
        self._changes = changes
        self._settings = settings
        self._ask_ends = ask_ends

    def all_keys(self) -> list[PartitionKey]:
        return [key for key, _ in self._ledger.image.all_partitions()]

    async def prefer(
        self, keys: Sequence[PartitionKey]
    ) -> dict[PartitionKey, ProtocolError | None]:
        """Hand each partition to its first replica, where that is needed and safe."""
        refusals = {key: self._refusal(key, ElectionKind.PREFERRED) for key in keys}
        wanted = [key for key, refusal in refusals.items() if refusal is None]
        await self._changes.apply_to(
            wanted, lambda _, __: (Elected(), Preferred()), self._ledger.image.active_brokers()
        )
        return {key: refusals[key] or self._not_preferred(key) for key in keys}

    async def balance(self) -> int:
        """One round of giving leaderships back; returns how many were."""
        percent_max = self._settings().imbalance_percent_max
        keys = displaced(self._ledger.image, percent_max=percent_max)[:MOVES_PER_ROUND_MAX]
        outcomes = await self.prefer(keys)
        moved = sum(error is None for error in outcomes.values())
        if moved:
            _log.info("%d partition(s) went back to their preferred leaders", moved)
        return moved

    def vacant_uncleanly(self) -> list[PartitionKey]:
        """Partitions without a leader, of topics with unclean.leader.election.enable."""
        image = self._ledger.image
        allowed: dict[str, bool] = {}
        found = []
        for key, partition in image.all_partitions():
            if partition.state.leader != NO_LEADER:
                continue
            if key[0] not in allowed:
                allowed[key[0]] = self._allows_unclean(key[0])
            if allowed[key[0]]:
                found.append(key)
        return found

    def all_back(self) -> list[PartitionKey]:
        """Partitions without an eligible leader though all replicas are back: all lost records."""
        image = self._ledger.image
        active = image.active_brokers()
        return [
            key
            for key, partition in image.all_partitions()
            if partition.state.leader == NO_LEADER
            and not (partition.state.isr or partition.state.elr)
            and partition.state.lke
            and active.issuperset(partition.replicas)
        ]

    async def survey(
        self, keys: Iterable[PartitionKey], *, needs_all: bool = False
    ) -> dict[PartitionKey, int]:
        """Who should lead each of these that nobody leads; those without any live replica miss.

        With `needs_all` those miss, too, of which any replica is silent.
        """
        image = self._ledger.image
        vacant = {
            key: partition
            for key in keys
            if (partition := image.partition(*key)) and partition.state.leader == NO_LEADER
        }
        active = image.active_brokers()
        asked: dict[int, list[PartitionKey]] = {}
        for key, partition in vacant.items():
            for replica in active.intersection(partition.replicas):
                asked.setdefault(replica, []).append(key)
        brokers = sorted(asked)
        answers = await asyncio.gather(*(self._ends(broker, asked[broker]) for broker in brokers))
        ends: dict[PartitionKey, dict[int, ReplicaEnd]] = {}
        for broker, answer in zip(brokers, answers, strict=True):
            for key, end in answer.items():
                ends.setdefault(key, {})[broker] = end
        if needs_all:
            ends = {k: known for k, known in ends.items() if known.keys() >= {*vacant[k].replicas}}
        chosen = {key: furthest(vacant[key], known) for key, known in ends.items()}
        return {key: leader for key, leader in chosen.items() if leader is not None}

    async def elect_uncleanly(self, chosen: Mapping[PartitionKey, int]) -> None:
        """Let these lead. If somebody safe has come back meanwhile, that one leads instead."""

        def events_for(key: PartitionKey, _: PartitionImage) -> Sequence[Event]:
            return (UncleanlyElected(chosen[key]),)

        active = self._ledger.image.active_brokers()
        await self._changes.apply_to(list(chosen), events_for, active)

    def unclean_refusals(
        self, keys: Sequence[PartitionKey]
    ) -> dict[PartitionKey, ProtocolError | None]:
        """Why no unclean election is to be held, before anybody is asked."""
        return {key: self._refusal(key, ElectionKind.UNCLEAN) for key in keys}

    def _refusal(self, key: PartitionKey, kind: ElectionKind) -> ProtocolError | None:
        partition = self._ledger.image.partition(*key)
        if partition is None:
            if key[0] not in self._ledger.image.topics:
                return UnknownTopicOrPartition(f"No such topic as {key[0]}")
            return UnknownTopicOrPartition(f"No such partition as {key[0]}-{key[1]}")
        leader = partition.state.leader
        if leader == NO_LEADER:
            return None
        if kind is ElectionKind.UNCLEAN or leader == partition.replicas[0]:
            return ElectionNotNeeded("Leader election not needed for topic partition.")
        return None

    def _not_preferred(self, key: PartitionKey) -> ProtocolError | None:
        partition = self._ledger.image.partition(*key)
        if partition is not None and partition.state.leader == partition.replicas[0]:
            return None
        return PreferredLeaderNotAvailable("The preferred leader was not available.")

    def leaderless(self, key: PartitionKey) -> ProtocolError | None:
        """What to tell of a partition that still has no leader; None: it has one."""
        partition = self._ledger.image.partition(*key)
        if partition is not None and partition.state.leader != NO_LEADER:
            return None
        return EligibleLeadersNotAvailable("Eligible topic partition leaders are not available.")

    def _allows_unclean(self, topic: str) -> bool:
        if topic in INTERNAL_TOPICS:
            return False  # Internal topics wait for a safe leader, whatever the setting says.
        own = self._ledger.image.config("topics", topic).get(UNCLEAN)
        if own is None:
            return self._settings().allows_unclean_election
        return own.lower() == "true"

    async def _ends(
        self, broker: int, keys: Sequence[PartitionKey]
    ) -> Mapping[PartitionKey, ReplicaEnd]:
        if (
            self._ask_ends is None
        ):  # There is no way to ask other brokers: only what is known here counts.
            return dict.fromkeys(keys, _NOTHING_KNOWN)
        try:
            return await self._ask_ends(broker, keys)
        except PenstockError as error:
            _log.warning("Broker %d did not say how far its logs reach: %s", broker, error)
            return {}
