"""A partition as the memory of a state machine: replayed once, then written record by record.

Coordinators keep their state in internal topics. This is what they have in common: which partition
an id belongs to, reading everything back in pieces small enough for the event loop, writing as the
leader of one epoch, and waiting until what was written can no longer be lost. What the records
mean, and when to throw the state away, is the coordinator's.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from penstock.errors import (
    CoordinatorNotAvailable,
    CorruptRecord,
    KafkaStorage,
    NotCoordinator,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    ProtocolError,
    RecordTooLarge,
    UnknownTopicOrPartition,
)
from penstock.records.batch import (
    LOG_OVERHEAD,
    BatchHeader,
    Record,
    build_key_values,
    check_batch,
    read_header,
    read_records,
)
from penstock.records.compression import Codec
from penstock.replica.partition import Partition

KeyValue = tuple[bytes, bytes | None]  # A record; None is a tombstone.

_INT_MIN = -(1 << 31)
_ALL = -1


def java_hash(text: str) -> int:
    """Java's String.hashCode: 32 bits, signed, over UTF-16 units."""
    value = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


@lru_cache(maxsize=16_384)
def partition_for(key: str, partition_count: int) -> int:
    """The partition of an internal topic that a group or transactional id belongs to."""
    hashed = java_hash(key)
    return 0 if hashed == _INT_MIN else abs(hashed) % partition_count


class StateLog:
    """One partition, led by this broker, for as long as one leader epoch lasts."""

    def __init__(
        self,
        partition: Partition,
        *,
        now_ms: Callable[[], int],
        report: Callable[[str], None],
        codec: Codec = Codec.NONE,
    ) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.now_ms = now_ms
        self._report = report
        self._codec = codec
        self._end_offset = partition.log.log_end_offset  # Behind the last record written here.

    def __repr__(self) -> str:
        return f"{self.partition.topic}-{self.partition.partition} epoch {self.leader_epoch}"

    @property
    def is_led(self) -> bool:
        """Whether this broker still leads the partition in the epoch this log was opened in."""
        partition = self.partition
        return partition.is_leader and partition.leader_epoch == self.leader_epoch

    # Writing

    def write(
        self,
        records: Sequence[KeyValue],
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> int:
        """Append the records as one batch, all or none; the offset of the first.

        With a producer id they belong to its transaction. They may still be lost until `settled`.
        Raises the coordinator's codes, and those of the log for what is wrong with the records.
        """
        size_bytes = 0
        for key, value in records:
            size_bytes += len(key) + (len(value) if value else 0)
        self.check_size(size_bytes)
        now_ms = self.now_ms()
        header, batch = build_key_values(records, now_ms, self._codec, producer_id, producer_epoch)
        try:
            appended = self.partition.append(
                [(header, memoryview(batch))],
                required_acks=_ALL,
                now_ms=now_ms,
                verify_producer=False,
            )
        except ProtocolError as error:
            raise coordinator_error(error) from error
        self._end_offset = appended.last_offset + 1
        return appended.base_offset

    def check_size(self, size_bytes: int) -> None:
        """Raise what `write` would for records of at least so many bytes.

        To put together what the log does not take would keep others waiting for nothing.
        """
        if not self.is_led:
            raise NotCoordinator(f"this broker leads {self!r} no more")
        bytes_max = self.partition.log.config.max_message_bytes
        # How much is left of it where it is packed shows only then.
        if size_bytes > bytes_max and self._codec is Codec.NONE:
            raise RecordTooLarge(
                f"records of {size_bytes} bytes are larger than max.message.bytes {bytes_max}"
            )

    def note_end(self) -> None:
        """Others appended something that counts from now on, such as a transaction's marker."""
        self._end_offset = max(self._end_offset, self.partition.log.log_end_offset)

    @property
    def is_settled(self) -> bool:
        """Whether all that was written is safe on every in-sync replica.

        Nobody knows once another leads: what was written may be cut from our log again, and the
        high watermark then passes over what the new leader wrote in its place.
        """
        return self.is_led and self.partition.log.high_watermark >= self._end_offset

    def settled(self) -> "asyncio.Future[None] | None":
        """A future for when all that was written is safe on every in-sync replica; None: it is."""
        if not self.is_led:
            raise NotCoordinator(f"this broker leads {self!r} no more")
        if self.is_settled:
            return None
        return self.partition.replicated(self._end_offset - 1)

    async def append(
        self,
        records: Sequence[KeyValue],
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> int:
        """`write`, and wait until it is safe."""
        base_offset = self.write(records, producer_id=producer_id, producer_epoch=producer_epoch)
        await self.until_settled()
        return base_offset

    async def until_settled(self) -> None:
        """Wait until all that was written is safe; raises the coordinator's codes."""
        waiting = self.settled()
        if waiting is None:
            return
        try:
            await waiting
        except ProtocolError as error:
            raise coordinator_error(error) from error

    # Reading

    def replay(
        self, *, chunk_bytes: int = 1 << 20
    ) -> Iterator[list[tuple[BatchHeader, list[Record]]]]:
        """Everything from the start of the log to its end at this moment, chunk by chunk.

        A chunk is at most `chunk_bytes` of the log, so whoever loads can let others run between
        two. A batch that cannot be read is reported and left out.
        """
        log = self.partition.log
        end_offset = log.log_end_offset
        offset = log.log_start_offset
        while offset < end_offset:
            read = log.read(offset, bytes_max=chunk_bytes, end_offset=end_offset, min_one=True)
            data = read.records if isinstance(read.records, bytes) else read.records.read()
            if not data:
                return  # The log was cut short underneath: what follows is gone.
            yield self._batches(memoryview(data), offset)
            offset = read.next_offset

    def _batches(
        self, data: memoryview, from_offset: int
    ) -> list[tuple[BatchHeader, list[Record]]]:
        found: list[tuple[BatchHeader, list[Record]]] = []
        at = 0
        while at + LOG_OVERHEAD < len(data):
            try:
                header = read_header(data, at)
                batch = data[at : at + header.size_bytes]
                at += max(header.size_bytes, LOG_OVERHEAD)
                check_batch(batch)
                if header.last_offset >= from_offset:
                    records = [r for r in read_records(batch) if r.offset >= from_offset]
                    found.append((header, records))
            except CorruptRecord as error:
                self._report(f"{self!r}: a batch is left out: {error}")
        return found


def coordinator_error(error: ProtocolError) -> ProtocolError:
    """What a client of a coordinator is told when its partition cannot be written."""
    if isinstance(
        error, NotEnoughReplicas | NotEnoughReplicasAfterAppend | UnknownTopicOrPartition
    ):
        return CoordinatorNotAvailable(str(error))
    if isinstance(error, NotLeaderOrFollower | KafkaStorage):
        return NotCoordinator(str(error))
    return error
