"""Reassignments: begun, finished and cancelled, each in a single write.

A reassignment begins by naming old and new replicas together; the new ones follow the leader like
any replica, and the leader takes them into the in-sync set when they have all. When every target
replica is in it, one write leaves only the targets, in assignment and in-sync set alike. Taking
back is the same step towards the old replicas. The in-sync set is never more than the replicas.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from penstock.cluster import znodes
from penstock.cluster.control.fenced_writes import FencedWrites
from penstock.cluster.control.ledger import ImageLedger
from penstock.cluster.control.partition_changes import (
    LOST_RACES_MAX,
    PartitionChanges,
    fence_checks,
    newly_trusted,
)
from penstock.cluster.image.image import (
    ClusterImage,
    ImageDelta,
    PartitionImage,
    PartitionKey,
)
from penstock.cluster.topics.steps import in_batches, topic_node
from penstock.cluster.topics.topics import Topics
from penstock.cluster.transition import Reassigned, TransitionFacts, transition
from penstock.errors import (
    InvalidReplicaAssignment,
    NoReassignmentInProgress,
    ProtocolError,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
from penstock.meta.store import BadVersion, MultiFailed, NoNode, Op, Set

T = TypeVar("T")

_log = logging.getLogger("penstock.cluster.controller")


class Reassignment(NamedTuple):
    """The replicas a partition shall have, the preferred leader first; None: those it had."""

    topic: str
    partition: int
    replicas: tuple[int, ...] | None


def is_moving(partition: PartitionImage) -> bool:
    return bool(partition.adding or partition.removing)


def target(partition: PartitionImage) -> tuple[int, ...]:
    """The replicas it shall have in the end; without a reassignment those it has."""
    return _less(partition.replicas, partition.removing)


def origin(partition: PartitionImage) -> tuple[int, ...]:
    """The replicas it had before; without a reassignment those it has."""
    return _less(partition.replicas, partition.adding)


def lasting_count(partition: PartitionImage) -> int:
    """The replicas that min.insync.replicas is bounded by; those that may go do not count."""
    return min(len(target(partition)), len(origin(partition)))


def is_caught_up(partition: PartitionImage, active: frozenset[int]) -> bool:
    """Whether all target replicas are in sync and one of them can lead."""
    wanted = target(partition)
    return set(wanted) <= set(partition.state.isr) and not active.isdisjoint(wanted)


def finish_move(partition: PartitionImage) -> PartitionImage:
    """On its target replicas alone; its state follows by a transition."""
    return PartitionImage(replicas=target(partition), state=partition.state)


def cancel_move(partition: PartitionImage) -> PartitionImage:
    return PartitionImage(replicas=origin(partition), state=partition.state)


def begin_move(partition: PartitionImage, wanted: tuple[int, ...]) -> PartitionImage:
    """Old and wanted replicas together; one that is under way already is given a new target."""
    old = origin(partition)
    return PartitionImage(
        replicas=wanted + _less(old, wanted),
        state=partition.state,
        adding=_less(wanted, old),
        removing=_less(old, wanted),
    )


def plan_move(wanted: Reassignment, image: ClusterImage) -> PartitionImage:
    """The partition as it is to be next; raises what the client is to be told."""
    partition = image.partition(wanted.topic, wanted.partition)
    if partition is None:
        if wanted.topic not in image.topics:
            raise UnknownTopicOrPartition(f"Unable to find a topic named {wanted.topic}.")
        raise UnknownTopicOrPartition(
            f"Unable to find partition {wanted.topic}:{wanted.partition}."
        )
    if wanted.replicas is None:
        if not is_moving(partition):
            raise NoReassignmentInProgress("No partition reassignment is in progress.")
        return cancel_move(partition)
    _check_replicas(wanted.replicas, partition, image)
    after = begin_move(partition, wanted.replicas)
    return finish_move(after) if is_caught_up(after, image.active_brokers()) else after


def _check_replicas(
    replicas: tuple[int, ...], partition: PartitionImage, image: ClusterImage
) -> None:
    if not replicas:
        raise InvalidReplicaAssignment(
            "The manual partition assignment includes an empty replica list."
        )
    twice = [broker for broker in replicas if replicas.count(broker) > 1]
    if twice:
        raise InvalidReplicaAssignment(
            f"The manual partition assignment includes the broker {twice[0]} more than once."
        )
    unknown = [r for r in replicas if r not in image.brokers and r not in partition.replicas]
    if unknown:
        raise InvalidReplicaAssignment(
            f"The manual partition assignment includes broker {unknown[0]}, but no such broker "
            "is registered."
        )


def _less(replicas: Sequence[int], others: Sequence[int]) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica not in others)


class Reassignments:
    def __init__(
        self, writes: FencedWrites, ledger: ImageLedger, changes: PartitionChanges, topics: Topics
    ) -> None:
        self._writes = writes
        self._ledger = ledger
        self._changes = changes
        self._topics = topics

    def under_way(self) -> dict[PartitionKey, PartitionImage]:
        return {key: p for key, p in self._ledger.image.all_partitions() if is_moving(p)}

    async def alter(self, wanted: Sequence[Reassignment]) -> list[ProtocolError | None]:
        """Begin, change or take back; one outcome for each, in order. The last word counts."""
        by_topic: dict[str, dict[int, Reassignment]] = {}
        for one in wanted:
            by_topic.setdefault(one.topic, {})[one.partition] = one
        outcomes: dict[PartitionKey, ProtocolError | None] = {}
        for topic, requests in by_topic.items():
            outcomes |= await self._alter_topic(topic, list(requests.values()))
        return [outcomes[one.topic, one.partition] for one in wanted]

    async def finish(self, keys: Iterable[PartitionKey]) -> None:
        """Of these partitions, leave those that have caught up on their targets alone."""
        by_topic: dict[str, list[int]] = {}
        for key in keys:
            if self._is_ready(key):
                by_topic.setdefault(key[0], []).append(key[1])
        for topic, numbers in by_topic.items():
            for some in self._batches(numbers):
                await self._finish_some(topic, some)

    async def _alter_topic(
        self, topic: str, wanted: Sequence[Reassignment]
    ) -> dict[PartitionKey, ProtocolError | None]:
        await self._topics.clear_doubt(topic)
        outcomes: dict[PartitionKey, ProtocolError | None] = {}
        for some in self._batches(wanted):
            outcomes |= await self._alter_some(topic, some)
        return outcomes

    async def _alter_some(
        self, topic: str, wanted: Sequence[Reassignment]
    ) -> dict[PartitionKey, ProtocolError | None]:
        outcomes: dict[PartitionKey, ProtocolError | None] = {}

        def plan() -> dict[int, PartitionImage]:
            outcomes.clear()
            plans: dict[int, PartitionImage] = {}
            for one in wanted:
                try:
                    plans[one.partition] = self._decide_state(
                        topic, plan_move(one, self._ledger.image)
                    )
                    outcomes[topic, one.partition] = None
                except ProtocolError as error:
                    outcomes[topic, one.partition] = error
            return plans

        await self._write(topic, plan)
        return outcomes

    async def _finish_some(self, topic: str, numbers: Sequence[int]) -> None:
        def plan() -> dict[int, PartitionImage]:
            image = self._ledger.image
            return {
                number: self._decide_state(
                    topic, finish_move(image.topics[topic].partitions[number])
                )
                for number in numbers
                if self._is_ready((topic, number))
            }

        await self._write(topic, plan)

    def _is_ready(self, key: PartitionKey) -> bool:
        image = self._ledger.image
        partition = image.partition(*key)
        if partition is None or not is_moving(partition):
            return False
        return is_caught_up(partition, image.active_brokers())

    def _batches(self, items: Sequence[T]) -> Iterable[Sequence[T]]:
        return in_batches(
            items, self._writes.ops_max - 1
        )  # One operation is for the topic's own node.

    def _decide_state(self, topic: str, after: PartitionImage) -> PartitionImage:
        """Add the state that fits these replicas; raises if it would lose committed records."""
        image = self._ledger.image
        min_isr = self._ledger.min_isr(topic, lasting_count(after))
        facts = TransitionFacts(replicas=after.replicas, active=image.active_brokers())
        state = transition(after.state, Reassigned(min_isr), facts)
        if state is after.state:
            raise InvalidReplicaAssignment(
                "None of the replicas that would be left has all records: this would require an "
                "unclean leader election."
            )
        return after._replace(
            state=state._replace(
                controller_epoch=image.controller_epoch,
                partition_epoch=after.state.partition_epoch + 1,
            )
        )

    async def _write(self, topic: str, plan: Callable[[], Mapping[int, PartitionImage]]) -> None:
        """Write the plan with the topic's node; plan again if another write came first."""
        for _ in range(LOST_RACES_MAX):
            plans = plan()
            if not plans:
                return
            ops = self._ops(topic, plans)
            try:
                async with self._topics.doubt_on_failure(topic):
                    await self._writes.commit(ops)
            except MultiFailed as failure:
                if not isinstance(failure.reason, BadVersion | NoNode):
                    raise
                await self._changes.look_again([(topic, number) for number in plans], failure)
                continue
            self._ledger.topic_versions[topic] += 1
            keyed = {(topic, number): partition for number, partition in plans.items()}
            self._ledger.publish(ImageDelta(partitions=keyed))
            _report(topic, plans)
            return
        raise RequestTimedOut(f"lost {LOST_RACES_MAX} races for the partitions of {topic}")

    def _ops(self, topic: str, plans: Mapping[int, PartitionImage]) -> list[Op]:
        known = self._ledger.image.topics[topic]
        node = topic_node(replace(known, partitions={**known.partitions, **plans}))
        version = self._ledger.topic_versions[topic]
        trusted = [newly_trusted(known.partitions[n].state, p.state) for n, p in plans.items()]
        return [
            *fence_checks(frozenset[int]().union(*trusted), self._ledger.image),
            Set(znodes.topic_path(topic), node.encode(), version),
            *(
                Set(
                    znodes.state_path(topic, number),
                    znodes.encode_state(partition.state),
                    partition.state.partition_epoch - 1,
                )
                for number, partition in plans.items()
            ),
        ]


def _report(topic: str, plans: Mapping[int, PartitionImage]) -> None:
    for number, partition in plans.items():
        if is_moving(partition):
            _log.info(
                "Partition %s-%d moves to %s (comes: %s, goes: %s)",
                topic,
                number,
                list(target(partition)),
                list(partition.adding),
                list(partition.removing),
            )
        else:
            _log.info("Partition %s-%d is on %s", topic, number, list(partition.replicas))
