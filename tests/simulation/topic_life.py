"""Topics whose records are deleted, and a topic that is deleted and made anew under its name.

I30  A broker that holds a partition of a topic for the first time begins with an empty log,
     whatever an older topic of the name left on its disk.
I31  A log begins nowhere above its high watermark, and no reader is answered from below the start.
"""

import asyncio
from typing import TYPE_CHECKING

from tests.simulation.admin import Admin
from tests.simulation.clients import Client
from tests.simulation.cluster import World, partition_observers
from tests.simulation.history import Place, Write

from penstock.errors import ErrorCode
from penstock.net.peers import PeerUnreachable
from penstock.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.records.batch import Record, build_batch
from penstock.replica.partition import Partition

if TYPE_CHECKING:
    from tests.simulation.faults import Nemesis

REBORN = "reborn"
_SETTINGS = {"min.insync.replicas": "2"}


class TopicLife:
    """What must hold of every log, whatever becomes of its topic."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._history = world.history
        self._held: set[tuple[int, bytes, int]] = set()
        partition_observers.append(self._judge_new)

    def _judge_new(self, partition: Partition) -> None:
        held = (partition.around.broker_id, partition.topic_id, partition.partition)
        log = partition.log
        if held not in self._held and log.log_end_offset > 0:
            self._history.violate(
                f"I30 {partition} is new to broker {held[0]} and begins with "
                f"[{log.log_start_offset}, {log.log_end_offset})"
            )
        self._held.add(held)

    def look(self) -> None:
        for machine in self._world.machines:
            for partition in machine.broker.partitions.hosted() if machine.broker else ():
                log = partition.log
                if not log.log_start_offset <= log.high_watermark <= log.log_end_offset:
                    self._history.violate(
                        f"I31 {partition} on {machine.name} is [{log.log_start_offset}, "
                        f"{log.log_end_offset}) with high watermark {log.high_watermark}"
                    )


# What an operator does


async def trim(nemesis: "Nemesis") -> None:
    """DeleteRecords up to what somebody has read, or to where nothing is yet: that is refused."""
    place = nemesis.rng.choice([place for place in nemesis.admin.places if place[0] == "safe"])
    seen = nemesis.world.history.seen[place]
    if seen:
        beyond = nemesis.rng.choice((0, 0, 0, 1, 2, 1000))
        end = max(seen) + 1
        offset = end + beyond if beyond else nemesis.rng.randint(0, end)
        await nemesis.admin.delete_records(place, offset)


async def elect_uncleanly(nemesis: "Nemesis") -> None:
    await nemesis.admin.elect_uncleanly("unclean")


async def rebirth(nemesis: "Nemesis") -> None:
    """A topic is deleted and made anew while one of its brokers is away, or is not."""
    machine = nemesis.one()
    if machine is None:
        return
    if nemesis.rng.random() < 0.7:
        machine.kill()
        nemesis.down.add(machine)
    try:
        await asyncio.sleep(nemesis.for_s(0.0, 0.5))
        await nemesis.admin.delete(REBORN)
        await asyncio.sleep(nemesis.for_s(0.0, 0.5))
        await make_reborn(nemesis.admin)
    finally:
        nemesis.down.discard(machine)
        if machine.process is None:
            machine.start()


async def make_reborn(admin: Admin) -> None:
    await admin.create(REBORN, partitions=1, replicas=3, settings=_SETTINGS, is_listed=False)


# Who writes to it


class RebornWriter:
    """Asks anew where the topic is for each of its writes: leader epochs begin again with it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._number = 0
        client.history.loose_topics.add(REBORN)  # It loses everything again and again.

    async def run(self) -> None:
        while not self._client.is_closing:
            await self._client.nap(0.2)
            try:
                leader = await self._leader()
                if leader >= 0:
                    await self._write(leader)
            except PeerUnreachable:
                continue

    async def _leader(self) -> int:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=REBORN)], allow_auto_topic_creation=False
        )
        answer = await self._client.ask_any(request, version=9)
        partitions = answer.topics[0].partitions
        return partitions[0].leader_id if partitions else -1

    async def _write(self, leader: int) -> None:
        self._number += 1
        place: Place = (REBORN, 0)
        write = Write(
            place=place,
            producer=self._client.name,
            number=self._number,
            value=f"{self._client.name}/{self._number}".encode(),
            acks=-1,
            is_idempotent=False,
        )
        self._client.history.begin(write)
        batch = build_batch([Record(0, self._client.process.now_ms(), None, write.value, ())])
        data = PartitionProduceData(index=0, records=bytes(batch))
        answer = await self._client.ask(
            leader,
            ProduceRequest(
                acks=-1,
                timeout_ms=2000,
                topic_data=[TopicProduceData(name=REBORN, partition_data=[data])],
            ),
            version=9,
        )
        told = answer.responses[0].partition_responses[0]
        outcome = "info" if told.error_code else "ok"
        self._client.history.end(write, outcome, told.base_offset)
        if told.error_code == ErrorCode.UNKNOWN_SERVER_ERROR:
            self._client.history.violate(f"a produce to {place} failed for no known reason")
