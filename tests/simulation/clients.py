"""Producers and readers inside the simulation: the real messages, the retries of a real client.

A producer that asked for acks=all tries until it is told an outcome, as the Java client does, so
an acknowledged value is one that must never be lost. What may have been written and what was
certainly not is kept apart.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence

from tests.simulation.clock import Process
from tests.simulation.history import History, Place, Write
from tests.simulation.network import Network, host_name

from penstock.errors import ErrorCode
from penstock.net.peers import PeerUnreachable
from penstock.protocol.apis import Request, Response
from penstock.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from penstock.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from penstock.records.batch import LOG_OVERHEAD, Record, build_batch, read_header, read_records

_LATEST, _EARLIEST = -1, -2
REQUEST_S = 3.0
_BATCH_BYTES_MAX = 1 << 20

# What proves that nothing was appended. Others may come after an append, or from a retry.
_REFUSED_BEFORE_APPEND = frozenset({ErrorCode.NOT_ENOUGH_REPLICAS})
_NEVER_RIGHT = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.MESSAGE_TOO_LARGE,
    }
)
_IDENTITY_LOST = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


class Client:
    """A process of its own with connections to all brokers, and what it knows of leaders."""

    def __init__(
        self,
        process: Process,
        network: Network,
        history: History,
        rng: random.Random,
        broker_ids: Sequence[int],
    ) -> None:
        self.process = process
        self.history = history
        self.rng = rng
        self.name = process.name
        self.is_closing = False  # No new operations; those begun go on.
        self._network = network
        self._broker_ids = tuple(broker_ids)
        self._leaders: dict[Place, tuple[int, int]] = {}  # Leader epoch and leader.

    async def ask(
        self, broker_id: int, request: Request, *, version: int, timeout_s: float = REQUEST_S
    ) -> Response:
        return await self._network.ask(
            self.process,
            host_name(broker_id),
            request,
            timeout_s=timeout_s,
            channel="client",
            version=version,
        )

    async def ask_any(self, request: Request, *, version: int) -> Response:
        return await self.ask(self.rng.choice(self._broker_ids), request, version=version)

    async def leader(self, place: Place) -> tuple[int, int]:
        """The leader epoch and the leader; older news than what is known does not count."""
        while True:
            known = self._leaders.get(place)
            if known is not None and known[1] >= 0:
                return known
            try:
                await self._refresh(place)
            except PeerUnreachable:
                await asyncio.sleep(0.1)
            if self._leaders.get(place, (0, -1))[1] < 0:
                await asyncio.sleep(0.1 + 0.2 * self.rng.random())

    def forget_leader(self, place: Place) -> None:
        if place in self._leaders:
            self._leaders[place] = (self._leaders[place][0], -1)

    async def _refresh(self, place: Place) -> None:
        topic, partition = place
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        answer = await self.ask_any(request, version=9)
        for found in answer.topics[0].partitions:
            if found.partition_index != partition or found.leader_id < 0:
                continue
            if found.leader_epoch >= self._leaders.get(place, (-1, -1))[0]:
                self._leaders[place] = (found.leader_epoch, found.leader_id)

    async def nap(self, mean_s: float) -> None:
        await asyncio.sleep(self.rng.expovariate(1 / mean_s))

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        self.process.start(work(), name=self.name)  # type: ignore[arg-type]


class Producer:
    """Writes numbered values to one partition, one batch at a time."""

    def __init__(
        self, client: Client, place: Place, *, acks: int, is_idempotent: bool, interval_s: float
    ) -> None:
        self._client = client
        self._place = place
        self._acks = acks
        self._is_idempotent = is_idempotent
        self._interval_s = interval_s
        self._number = 0
        self._id, self._epoch = -1, -1
        self._sequence = 0
        self.is_idle = True

    async def run(self) -> None:
        client = self._client
        while not client.is_closing:
            if self._is_idempotent and self._id < 0:
                await self._take_identity()
                continue
            await client.nap(self._interval_s)
            if client.is_closing:
                return
            self.is_idle = False
            await self._write([self._next() for _ in range(client.rng.choice((1, 1, 1, 3)))])
            self.is_idle = True

    def _next(self) -> Write:
        self._number += 1
        topic, partition = self._place
        name = self._client.name
        write = Write(
            place=self._place,
            producer=name,
            number=self._number,
            value=f"{name}/{topic}-{partition}/{self._number}".encode(),
            acks=self._acks,
            is_idempotent=self._is_idempotent,
        )
        self._client.history.begin(write)
        return write

    async def _take_identity(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        try:
            answer = await self._client.ask_any(request, version=4)
        except PeerUnreachable:
            await self._client.nap(0.2)
            return
        if answer.error_code in _NEVER_RIGHT:
            self._client.history.violate(f"InitProducerId failed with {answer.error_code}")
        if answer.error_code:
            await self._client.nap(0.2)
            return
        self._id, self._epoch, self._sequence = answer.producer_id, answer.producer_epoch, 0

    async def _write(self, writes: Sequence[Write]) -> None:
        client = self._client
        batch = self._batch(writes)
        while True:
            leader_epoch, leader = await client.leader(self._place)
            for write in writes:
                write.attempts += 1
            try:
                answer = await self._ask(leader, batch)
            except PeerUnreachable:
                client.forget_leader(self._place)
                if self._may_give_up(None):
                    return self._end(writes, "info")
                await client.nap(0.05)
                continue
            error = ErrorCode(answer.error_code)
            if error is ErrorCode.NONE:
                return self._acked(writes, answer.base_offset)
            if error is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                return self._acked(writes, -1)
            if error in _NEVER_RIGHT:
                client.history.violate(f"a produce to {self._place} failed with {error.name}")
            if error in _IDENTITY_LOST:
                return self._lose_identity(writes, error, leader_epoch, leader)
            client.forget_leader(self._place)
            if self._may_give_up(error):
                return self._end(writes, "info")
            await client.nap(0.05)

    def _may_give_up(self, error: ErrorCode | None) -> bool:
        """Without an identity a retry could double the record, so only refusals are retried."""
        return not self._is_idempotent and error not in _REFUSED_BEFORE_APPEND

    async def _ask(self, leader: int, batch: bytes) -> PartitionProduceResponse:
        topic, partition = self._place
        request = ProduceRequest(
            acks=self._acks,
            timeout_ms=2000,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[PartitionProduceData(index=partition, records=batch)],
                )
            ],
        )
        answer = await self._client.ask(leader, request, version=9)
        found: PartitionProduceResponse = answer.responses[0].partition_responses[0]
        return found

    def _batch(self, writes: Sequence[Write]) -> bytes:
        now_ms = self._client.process.now_ms()
        return bytes(
            build_batch(
                [Record(at, now_ms, None, w.value, ()) for at, w in enumerate(writes)],
                producer_id=self._id,
                producer_epoch=self._epoch,
                base_sequence=self._sequence if self._is_idempotent else -1,
            )
        )

    def _acked(self, writes: Sequence[Write], base_offset: int) -> None:
        if self._is_idempotent:
            self._sequence += len(writes)
        for at, write in enumerate(writes):
            self._client.history.end(write, "ok", base_offset + at if base_offset >= 0 else None)

    def _end(self, writes: Sequence[Write], outcome: str) -> None:
        for write in writes:
            self._client.history.end(write, outcome)

    def _lose_identity(
        self, writes: Sequence[Write], error: ErrorCode, leader_epoch: int, leader: int
    ) -> None:
        """Only a lost record makes the leader forget what came before.

        One that was deposed and has not heard of it never knew; whoever has not heard either may
        still ask it.
        """
        history = self._client.history
        if self._place[0] not in history.loose_topics and history.leads(self._place, leader):
            history.violate(
                f"I20 {self._client.name} lost its place in {self._place}: {error.name} at leader "
                f"epoch {leader_epoch}, sequence {self._sequence}"
            )
        self._id = -1
        self._end(writes, "info")


class Reader:
    """Reads one partition from its beginning, over and over to its end."""

    isolation_level = 0  # Everything below the high watermark.

    def __init__(self, client: Client, place: Place) -> None:
        self._client = client
        self._place = place
        self._watermarks: dict[int, int] = {}  # The highest told, by leader epoch.
        self._is_before_start = False
        self.position = 0

    async def run(self) -> None:
        while not self._client.is_closing:
            await self.poll()
            await self._client.nap(0.2)

    async def poll(self) -> bool:
        """Whether anything was read."""
        client, place = self._client, self._place
        epoch, leader = await client.leader(place)
        try:
            if client.rng.random() < 0.2:
                await self._ask_latest(epoch, leader)
            if self._is_before_start:
                await self._skip_to_start(epoch, leader)
            answer = await self._fetch(epoch, leader)
        except PeerUnreachable:
            client.forget_leader(place)
            return False
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.NONE:
            self._note_watermark(epoch, answer.high_watermark)
            if not answer.log_start_offset <= self.position:
                client.history.violate(
                    f"I31 {client.name} asked {place} for {self.position}, before its start, and "
                    f"was answered: {answer}"
                )
            return self._take(memoryview(answer.records or b""))
        self._complain(error, epoch)
        client.forget_leader(place)
        return False

    def _complain(self, error: ErrorCode, epoch: int) -> None:
        topic = self._place[0]
        history = self._client.history
        if error in _NEVER_RIGHT:
            history.violate(f"a fetch of {self._place} failed with {error.name}")
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            if self.position < history.trimmed.get(self._place, 0):
                self._is_before_start = True
                return
            if topic not in history.loose_topics:
                history.violate(
                    f"I1 {self._client.name} at {self._place} offset {self.position} is out of "
                    f"range at leader epoch {epoch}"
                )
            self.position = 0

    def _note_watermark(self, epoch: int, high_watermark: int) -> None:
        before = self._watermarks.get(epoch, 0)
        if high_watermark < before:
            self._client.history.violate(
                f"I10 the high watermark of {self._place} went from {before} back to "
                f"{high_watermark} in leader epoch {epoch}"
            )
        self._watermarks[epoch] = max(before, high_watermark)

    async def _fetch(self, epoch: int, leader: int) -> PartitionData:
        topic, partition = self._place
        wanted = FetchPartition(
            partition=partition,
            current_leader_epoch=epoch,
            fetch_offset=self.position,
            partition_max_bytes=_BATCH_BYTES_MAX,
        )
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            isolation_level=self.isolation_level,
            session_id=0,
            session_epoch=-1,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        answer = await self._client.ask(leader, request, version=11)
        if answer.error_code or not answer.responses:
            return PartitionData(error_code=answer.error_code or int(ErrorCode.REQUEST_TIMED_OUT))
        found: PartitionData = answer.responses[0].partitions[0]
        return found

    async def _ask_latest(self, epoch: int, leader: int) -> None:
        # Of two questions under way at once the later may be answered first.
        before = self._client.history.latest.get(self._place, 0)
        offset = await self._offset_at(_LATEST, epoch, leader)
        if offset >= 0:
            self._client.history.note_latest(self._place, offset, at_least=before)

    async def _skip_to_start(self, epoch: int, leader: int) -> None:
        offset = await self._offset_at(_EARLIEST, epoch, leader)
        if offset >= 0:
            self._is_before_start = False
            self.position = max(self.position, offset)

    async def _offset_at(self, timestamp: int, epoch: int, leader: int) -> int:
        """Negative: it was not told."""
        topic, partition = self._place
        wanted = ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])]
        )
        answer = await self._client.ask(leader, request, version=5)
        found = answer.topics[0].partitions[0]
        return -1 if found.error_code else int(found.offset)

    def _take(self, records: memoryview) -> bool:
        at, is_any = 0, False
        while at + LOG_OVERHEAD <= len(records):
            header = read_header(records, at)
            if at + header.size_bytes > len(records):
                break
            batch = records[at : at + header.size_bytes]
            at += header.size_bytes
            for record in () if header.is_control else read_records(batch, bytes_max=1 << 20):
                if record.offset >= self.position and record.value is not None:
                    self._client.history.read(
                        self._place, record.offset, bytes(record.value), self._client.name
                    )
            self.position = max(self.position, header.next_offset)
            is_any = True
        return is_any
