"""How `penstock dlq redrive` sends records back exactly once, and remembers what it has sent.

The transactional id is that of the group, so a second replay fences the first, and sees what it
committed. What was replayed is read only after that.
"""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from penstock.cli.tools.dlq.replayed import Replayed
from penstock.client.consumer.consumer import Consumer
from penstock.client.producer.producer import Producer
from penstock.client.values import ConsumerRecord, OffsetAndMetadata, ProducerRecord, TopicPartition
from penstock.errors import CommandError, InvalidProducerEpoch, PenstockError, ProducerFenced

Record = ConsumerRecord[bytes, bytes]
_FENCED = (ProducerFenced, InvalidProducerEpoch)


class Returned(NamedTuple):
    """What is sent in place of a dead letter: the record it was, or its corrected form."""

    letter: Record
    since: int  # The first offset behind the dead letter before.
    topic: str
    partition: int | None
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Replay:
    """One run of the command: what was replayed before, and what is now."""

    def __init__(
        self, settings: Mapping[str, object], topic: str, group: str, *, again: bool
    ) -> None:
        self._settings = settings
        self._topic = topic
        self._group = group
        self._again = again
        self._consumer: Consumer[bytes, bytes] = Consumer(
            {**settings, "group.id": group, "enable.auto.commit": "false"}
        )
        self._producer: Producer[bytes, bytes] | None = None
        self._replayed: dict[int, Replayed] | None = None

    def begin(self) -> None:
        """Get ready to send; whoever else replays for this group is stopped."""
        transactional = {"transactional.id": f"{self._group}-replay", "acks": "all"}
        self._producer = Producer({**self._settings, **transactional})
        self._producer.init_transactions()

    def was_replayed(self, record: Record) -> bool:
        """Whether this dead letter has been replayed before."""
        return not self._again and record.offset in self._of(record.partition)

    def send(self, records: Sequence[Returned]) -> None:
        """Send some, and note that they were sent, both or none."""
        try:
            self._send(records)
        except PenstockError as error:
            if not self._is_fenced(error):
                raise
            raise CommandError(
                f"There is another redrive for the group {self._group}, and it goes on from here; "
                "what this one had sent is noted and is not sent again."
            ) from error

    def _is_fenced(self, error: PenstockError) -> bool:
        """Whether another took over; a record that was thrown away for it may not say so itself."""
        assert self._producer is not None
        if isinstance(error, _FENCED):
            return True
        try:
            with self._producer.transaction():
                pass
        except _FENCED:
            return True
        except PenstockError:
            return False
        return False

    def _send(self, records: Sequence[Returned]) -> None:
        assert self._producer is not None
        by_partition: dict[int, list[tuple[int, int]]] = {}
        for one in records:
            span = (one.since, one.letter.offset)
            by_partition.setdefault(one.letter.partition, []).append(span)
        noted = {
            partition: self._of(partition).with_ranges(spans)
            for partition, spans in by_partition.items()
        }
        with self._producer.transaction():
            futures = [self._producer.send(_record(one)) for one in records]
            self._producer.flush()
            for future in futures:
                future.result()
            self._producer.send_offsets_to_transaction(
                {
                    TopicPartition(self._topic, partition): OffsetAndMetadata(
                        note.below, note.metadata()
                    )
                    for partition, note in noted.items()
                },
                self._consumer.group_metadata(),
            )
        assert self._replayed is not None
        self._replayed.update(noted)

    def close(self) -> None:
        """Let go of the cluster."""
        if self._producer is not None:
            self._producer.close()
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _of(self, partition: int) -> Replayed:
        if self._replayed is None:
            self._replayed = self._read()
        return self._replayed.setdefault(partition, Replayed())

    def _read(self) -> dict[int, Replayed]:
        parts = self._consumer.partitions_for(self._topic)
        places = [TopicPartition(self._topic, one.partition) for one in parts]
        first = self._consumer.beginning_offsets(places)
        return {
            place.partition: Replayed.read(committed, first=first[place])
            for place, committed in self._consumer.committed(places).items()
        }


def _record(one: Returned) -> ProducerRecord[bytes, bytes]:
    return ProducerRecord(
        topic=one.topic,
        partition=one.partition,
        timestamp_ms=one.timestamp_ms,
        key=one.key,
        value=one.value,
        headers=one.headers,
    )
