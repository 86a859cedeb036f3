"""Writes the in-sync sets of the partitions this broker leads, by compare-and-set.

A partition says that its set should change; this takes its proposal and writes it together with a
check of the fence of everybody who joins (KIP-841 and KIP-903 in one atomic step). Many partitions
go into one multi. Where one of them is refused, each is tried for itself.

    written                    the partition takes the new set on, the controller is told
    somebody else wrote first  read again: still our leader epoch, then adopt and try anew;
                               else stand down, for another leads
    a fence moved              nobody joins; the next fetch may propose it again
    the topic's id is gone     it was deleted, and what has its name is another: stand down
    the store is away          nothing happened; tried again later, records go on meanwhile
    no answer came             whoever may have joined counts, until a read or a write shows more
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from penstock.cluster import znodes
from penstock.cluster.image.image import PartitionKey
from penstock.meta.store import (
    ANY_VERSION,
    Check,
    MetaStore,
    MultiFailed,
    Op,
    OutcomeUnknown,
    Set,
    StoreUnavailable,
)
from penstock.replica.in_sync import Proposal
from penstock.replica.partition import Partition
from penstock.replica.table import PartitionTable

log = logging.getLogger("kafka.cluster.Partition")

_RETRY_S = 1.0

Work = tuple[Partition, Proposal]


class IsrWriter:
    """One task; never two writes of a partition at once."""

    def __init__(
        self,
        *,
        store: MetaStore,
        partitions: PartitionTable,
        tell_controller: Callable[[Sequence[PartitionKey]], None],
        retry_s: float = _RETRY_S,
    ) -> None:
        self._store = store
        self._partitions = partitions
        self._tell_controller = tell_controller
        self._retry_s = retry_s
        self._waiting: dict[Partition, None] = {}
        self._later: dict[Partition, None] = {}
        self._woken = asyncio.Event()
        self._is_away = False  # The store could not be reached; said once.
        partitions.around.on_proposal = self.wake

    def wake(self, partition: Partition) -> None:
        """The partition has something to propose."""
        self._waiting[partition] = None
        self._woken.set()

    async def run(self) -> None:
        """Until cancelled; SessionLost ends it, for then nothing may be written."""
        loop = asyncio.get_running_loop()
        checked_s = loop.time()
        while True:
            pause_s = self._partitions.around.lag_ms_max() / 2000
            due_s = checked_s + pause_s - loop.time()
            if due_s <= 0:
                self._check_lag()
                checked_s = loop.time()
                continue
            if not self._woken.is_set():
                timer = loop.call_later(due_s, self._woken.set)
                try:
                    await self._woken.wait()
                finally:
                    timer.cancel()
            self._woken.clear()
            if not await self.write_all():
                await asyncio.sleep(self._retry_s)
                self._woken.set()

    def _check_lag(self) -> None:
        """Ask all partitions again: with time, followers fall behind or catch up."""
        for partition in self._partitions.hosted():
            if partition.in_sync is not None:
                partition.reconsider()
                self.wake(partition)

    async def write_all(self) -> bool:
        """Write what is proposed at this moment; False: something is to be tried again later."""
        waiting, self._waiting = self._waiting, {}
        work = [(partition, it) for partition in waiting if (it := partition.proposal())]
        try:
            for batch in _in_batches(work, self._store.ops_per_multi_max):
                await self._write(batch)
        except (StoreUnavailable, OutcomeUnknown) as error:
            self._say_away(error)
            self._later.update(waiting)
        finally:
            for partition, proposal in work:
                # Those that were sent are settled; those still open were not written.
                partition.settle_refused(proposal)
        if self._later:
            self._waiting |= self._later
            self._later = {}
            return False
        self._is_away = False
        return True

    def _say_away(self, error: Exception) -> None:
        if not self._is_away:
            log.warning("The in-sync sets cannot be written now, and will be later: %s", error)
        self._is_away = True

    # One multi

    async def _write(self, batch: Sequence[Work]) -> None:
        if len(batch) > 1:
            try:
                await self._put(batch)
            except MultiFailed:
                pass  # One of them was refused; each is tried for itself to find which.
            else:
                self._settle_accepted(batch)
                return
        for work in batch:
            await self._write_one(work)

    async def _write_one(self, work: Work) -> None:
        partition, proposal = work
        try:
            await self._put([work])
        except MultiFailed as failure:
            partition.around.isr_failed_count += 1
            partition.settle_refused(proposal)
            if failure.op.path == znodes.topic_id_path(partition.topic_id):
                self._is_gone(partition)
            elif not isinstance(failure.op, Check):
                await self._read_again([partition])
        else:
            self._settle_accepted([work])

    async def _put(self, batch: Sequence[Work]) -> None:
        try:
            # What several of them check alike is checked once.
            await self._store.multi(list(dict.fromkeys(op for work in batch for op in _ops(*work))))
        except (MultiFailed, StoreUnavailable):
            raise
        except BaseException as error:  # A cancelled write may still reach the store.
            for partition, proposal in batch:
                partition.settle_unknown(proposal)
            if isinstance(error, OutcomeUnknown):
                await self._read_again([partition for partition, _ in batch])
            raise

    def _settle_accepted(self, batch: Sequence[Work]) -> None:
        for partition, proposal in batch:
            partition.settle_accepted(proposal)
            self._report(partition, proposal)
        self._tell_controller([partition.key for partition, _ in batch])

    def _report(self, partition: Partition, proposal: Proposal) -> None:
        joining, leaving = proposal.joining, proposal.leaving
        partition.around.isr_expand_count += bool(joining)
        partition.around.isr_shrink_count += bool(leaving)
        if not joining and not leaving:
            return
        log.info(
            "[Partition %s-%d broker=%d] %s ISR from %s to %s",
            *partition.key,
            proposal.state.leader,
            "Expanding" if joining else "Shrinking",
            ",".join(map(str, proposal.base.isr)),
            ",".join(map(str, proposal.state.isr)),
        )

    async def _read_again(self, partitions: Sequence[Partition]) -> None:
        """Adopt what the store holds: another in-sync set, or that another leads."""
        paths = [znodes.state_path(*partition.key) for partition in partitions]
        # The ids are read after the states: if an id is there, its state is of the same topic.
        ids = [znodes.topic_id_path(partition.topic_id) for partition in partitions]
        nodes = await self._store.multi_get([*paths, *ids])
        states, marks = nodes[: len(paths)], nodes[len(paths) :]
        for partition, path, node, mark in zip(partitions, paths, states, marks, strict=True):
            if node is None or mark is None:
                self._is_gone(partition)
                continue
            data, stat = node
            state = znodes.decode_state(path, data, stat.version)
            if not partition.leads_with(state):
                log.info("%s is in leader epoch %d by now", partition, state.leader_epoch)
                partition.step_down(state)
            elif partition.take_state(state):
                self.wake(partition)
            else:
                self._later[partition] = None  # The read was no newer than what we know.

    def _is_gone(self, partition: Partition) -> None:
        log.info("%s is gone from the metadata store", partition)
        partition.step_down(None)


def _ops(partition: Partition, proposal: Proposal) -> list[Op]:
    checks: list[Op] = [Check(znodes.topic_id_path(partition.topic_id), ANY_VERSION)]
    checks += [Check(znodes.fence_path(broker), version) for broker, version in proposal.fences]
    path, data = znodes.state_path(*partition.key), znodes.encode_state(proposal.state)
    return [*checks, Set(path, data, proposal.base.partition_epoch)]


def _in_batches(work: Sequence[Work], ops_max: int) -> list[list[Work]]:
    batches: list[list[Work]] = []
    size = ops_max
    for one in work:
        count = 2 + len(one[1].fences)
        if size + count > ops_max:
            batches.append([])
            size = 0
        batches[-1].append(one)
        size += count
    return batches
