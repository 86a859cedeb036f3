"""Which brokers take part: fences opened for those that register, closed for those that go.

The order is what makes it safe. A broker that is gone is fenced first, so that from that moment
no leader can add it to an in-sync set, and then taken out of its partitions. One that came back
is taken out of everything its previous incarnation had, and only then made active.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.cluster import znodes
from penstock.cluster.control.fenced_writes import FencedWrites
from penstock.cluster.control.ledger import ImageLedger
from penstock.cluster.control.partition_changes import Along, PartitionChanges
from penstock.cluster.image.image import (
    NO_LEADER,
    BrokerImage,
    ImageDelta,
    PartitionImage,
    PartitionKey,
)
from penstock.cluster.image.load import Fence, LoadedBrokers, load_brokers
from penstock.cluster.transition import Elected, Event, Removed
from penstock.cluster.znodes import FenceNode, FenceState, PreviousShutdown
from penstock.errors import RequestTimedOut, StaleBrokerEpoch
from penstock.meta.store import BadVersion, Delete, MultiFailed, NoNode, Set

ATTEMPTS_MAX = 10

_log = logging.getLogger("penstock.cluster.controller")


class Membership:
    def __init__(
        self, writes: FencedWrites, ledger: ImageLedger, changes: PartitionChanges
    ) -> None:
        self._writes = writes
        self._ledger = ledger
        self._changes = changes
        # The version each fence had before all partition states were last read.
        self._read_behind = _versions(ledger.fences)

    async def reconcile(self) -> None:
        """Bring fences and partitions in line with the brokers that are registered now."""
        for _ in range(ATTEMPTS_MAX):
            try:
                return await self._reconcile_once()
            except MultiFailed as failure:
                if not isinstance(failure.reason, BadVersion):
                    raise
                # A broker registered again meanwhile: read again.
        raise RequestTimedOut("brokers register faster than the controller can follow")

    async def begin_shutdown(self, broker_id: int, epoch: int | None = None) -> int:
        """The broker is about to leave: others take what they can, and nobody re-adds it.

        Returns how many partitions it still leads, although they have other replicas: these may
        come back, so it is worth waiting. What has no other replica ends with the broker.
        """
        broker = self._ledger.image.brokers.get(broker_id)
        if broker is None or epoch not in (None, broker.epoch):
            raise StaleBrokerEpoch(f"broker {broker_id} is not registered with epoch {epoch}")
        fence = self._ledger.fences[broker_id]
        if fence.node.state is not FenceState.SHUTTING_DOWN:
            await self._set_fences({broker_id: fence.node.with_state(FenceState.SHUTTING_DOWN)})

        def events_for(_: PartitionKey, partition: PartitionImage) -> Sequence[Event]:
            # What only this broker can lead stays with it until it is gone. Whoever turns out
            # to have registered anew while this is written is not active any more.
            others = self._ledger.image.active_brokers()
            has_others = not others.isdisjoint(partition.state.isr)
            return _removal(partition, broker_id, lossy=False) if has_others else ()

        await self._changes.apply(events_for, self._ledger.image.active_brokers())
        partitions = self._ledger.image.all_partitions()
        return sum(p.state.leader == broker_id and len(p.replicas) > 1 for _, p in partitions)

    async def remove_lost_replicas(
        self, broker_id: int, epoch: int, keys: Sequence[PartitionKey]
    ) -> None:
        """Take these replicas out of their in-sync sets: a disk of a living broker failed."""
        broker = self._ledger.image.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch:
            return  # Of an earlier incarnation; the present one reports its own losses.

        def removal(_: PartitionKey, partition: PartitionImage) -> Sequence[Event]:
            return _removal(partition, broker_id, lossy=True)

        _log.warning("Broker %d has lost %d of its replicas", broker_id, len(keys))
        await self._changes.refresh(
            keys
        )  # A leader may have added it without having told the controller yet.
        await self._changes.apply_to(keys, removal, self._ledger.image.active_brokers())

    async def expel(self, broker_id: int, epoch: int) -> None:
        """The broker's process is certainly gone: do not wait for its session to end.

        The fence tells incarnations apart: if the broker has registered anew, nothing happens.
        """
        broker = self._ledger.image.brokers.get(broker_id)
        fence = self._ledger.fences.get(broker_id)
        if broker is None or fence is None or broker.epoch != epoch:
            return
        closed = fence.node.with_state(FenceState.FENCED)
        try:
            await self._writes.commit(
                [
                    Set(znodes.fence_path(broker_id), closed.encode(), fence.version),
                    Delete(znodes.broker_path(broker_id)),
                ]
            )
        except MultiFailed as failure:
            if not isinstance(failure.reason, BadVersion | NoNode):
                raise
            # It registered again, or its session ended: the next look shows which.
        else:
            _log.info("Broker %d (epoch %d) does not listen any more", broker_id, epoch)
        await self.reconcile()

    async def _reconcile_once(self) -> None:
        seen = await load_brokers(self._writes.store)
        self._ledger.fences.update(seen.fences)
        await self._write_fences(_to_fence(seen))
        before = self._ledger.image.brokers
        self._ledger.publish(ImageDelta(brokers=_changed(before, seen)))
        gone: dict[int, BrokerImage | None] = dict.fromkeys(before.keys() - seen.brokers.keys())
        for broker_id in sorted(seen.fences.keys() - seen.brokers.keys()):
            await self._take_out(broker_id, gone)
            gone = {}
        await self._admit_all(seen)
        await self._changes.apply(_elect_vacant, self._ledger.image.active_brokers())

    async def _set_fences(self, nodes: Mapping[int, FenceNode]) -> None:
        await self._write_fences(nodes)
        known, fences = self._ledger.image.brokers, self._ledger.fences
        self._ledger.publish(
            ImageDelta(brokers={b: _fenced(known[b], fences[b]) for b in nodes if b in known})
        )

    async def _write_fences(self, nodes: Mapping[int, FenceNode]) -> None:
        if not nodes:
            return
        fences = self._ledger.fences
        await self._writes.commit(
            [
                Set(znodes.fence_path(broker_id), node.encode(), fences[broker_id].version)
                for broker_id, node in nodes.items()
            ]
        )
        for broker_id, node in nodes.items():
            fences[broker_id] = Fence(node, fences[broker_id].version + 1)

    async def _take_out(self, broker_id: int, gone: Mapping[int, BrokerImage | None]) -> None:
        """Take a broker out of all its partitions; the first write also publishes who is `gone`."""
        image = self._ledger.image

        def removal(_: PartitionKey, partition: PartitionImage) -> Sequence[Event]:
            return _removal(partition, broker_id, lossy=False)

        def has_leader(key: PartitionKey) -> bool:
            partition = image.partition(*key)
            return partition is not None and partition.state.leader != broker_id

        # Those that nobody leads now come first: clients wait for them.
        keys = sorted(self._changes.concerned(removal), key=has_leader)
        active = image.active_brokers() - gone.keys()
        await self._changes.apply_to(keys, removal, active, along=Along(ops=(), brokers=gone))

    async def _admit_all(self, seen: LoadedBrokers) -> None:
        starting = [
            broker_id
            for broker_id in sorted(seen.brokers)
            if seen.fences[broker_id].node.state is FenceState.STARTING
        ]
        # Leaders write in-sync sets and report them late, or never. So the image can miss a set
        # to which a leader added the broker's previous incarnation. The states are therefore read
        # again, after the fence was closed: from then on nobody adds the broker to another set.
        versions = _versions(seen.fences)
        if any(self._read_behind.get(broker_id) != versions[broker_id] for broker_id in starting):
            await self._changes.refresh_all()
            self._read_behind = versions
        for broker_id in starting:
            await self._admit(seen.brokers[broker_id], seen.fences[broker_id])

    async def _admit(self, broker: BrokerImage, fence: Fence) -> None:
        """Take the previous incarnation out of all partitions; with the last of them the fence
        opens and vacant leaderships are filled, so that a few thousand take a single write."""
        broker_id, active = broker.broker_id, self._ledger.image.active_brokers()
        lossy = fence.node.prev_shutdown is PreviousShutdown.LOSSY

        def removal(_: PartitionKey, partition: PartitionImage) -> Sequence[Event]:
            return _removal(partition, broker_id, lossy=lossy)

        def return_(_: PartitionKey, partition: PartitionImage) -> Sequence[Event]:
            return *_removal(partition, broker_id, lossy=lossy), Elected()

        keys = self._changes.concerned(removal)
        last = max(0, len(keys) - self._changes.batch_size)
        await self._changes.apply_to(keys[:last], removal, active)
        opened = Fence(fence.node.activated(broker.epoch), fence.version + 1)
        op = Set(znodes.fence_path(broker_id), opened.node.encode(), fence.version)
        along = Along(ops=(op,), brokers={broker_id: _fenced(broker, opened)})
        await self._changes.apply_to(keys[last:], return_, active | {broker_id}, along=along)
        self._ledger.fences[broker_id] = opened
        _log.info("Broker %d (epoch %d) is active", broker_id, broker.epoch)


def _versions(fences: Mapping[int, Fence]) -> dict[int, int]:
    return {broker_id: fence.version for broker_id, fence in fences.items()}


def _to_fence(seen: LoadedBrokers) -> dict[int, FenceNode]:
    return {
        broker_id: fence.node.with_state(FenceState.FENCED)
        for broker_id, fence in seen.fences.items()
        if broker_id not in seen.brokers and fence.node.state is not FenceState.FENCED
    }


def _changed(
    before: Mapping[int, BrokerImage], seen: LoadedBrokers
) -> dict[int, BrokerImage | None]:
    return {b: image for b, image in seen.brokers.items() if before.get(b) != image}


def _fenced(broker: BrokerImage, fence: Fence) -> BrokerImage:
    is_active = fence.node.state is FenceState.ACTIVE
    return replace(broker, is_active=is_active, fence_version=fence.version)


def _removal(partition: PartitionImage, broker_id: int, *, lossy: bool) -> Sequence[Event]:
    state = partition.state
    concerned = broker_id in state.isr or broker_id == state.leader
    if concerned or (lossy and broker_id in state.elr):
        return (Removed(broker_id, lossy),)
    return ()


def _elect_vacant(_: PartitionKey, partition: PartitionImage) -> Sequence[Event]:
    return (Elected(),) if partition.state.leader == NO_LEADER else ()
