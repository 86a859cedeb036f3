"""One consumer instance: a consumer of a group that this process holds for a client.

Every method waits for brokers, and is for one thread at a time. What was polled and did not fit
into an answer stays here for the next one. A position is what the client was given, not what was
polled, so commits by request and by timer never pass over records that nobody has seen; the
consumer's own timer is off for that reason.
"""

import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.client.consumer.consumer import Consumer
from penstock.client.errors import CommitFailedError, WakeupError
from penstock.client.values import ConsumerRecord, OffsetAndMetadata, TopicPartition
from penstock.errors import PenstockError
from penstock.rest.errors import (
    ConsumerInstanceNotFound,
    IllegalConsumerState,
    KafkaFailure,
    UnprocessableRequest,
)
from penstock.rest.payloads.formats import EmbeddedFormat
from penstock.rest.v2.requests import SubscriptionRequest
from penstock.schemas.errors import FormatError

_QUIET_S = 0.1  # After records, how long to wait for more.
_COMMIT_S = 5.0  # auto.commit.interval.ms
_EXCLUSIVE = "Subscription to topics, partitions and pattern are mutually exclusive"
_NO_PARTITIONS = "Consumer is not subscribed to any topics or assigned any partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSettings:
    """How an instance reads."""

    format: EmbeddedFormat
    auto_commit: bool
    timeout_s: float  # For a request that does not say how long it waits; none waits longer.
    bytes_min: int  # Below 1: answer when nothing more comes.
    bytes_max: int


class ConsumerInstance:
    """A consumer, what is still to be handed out, and where the client is."""

    def __init__(
        self,
        make: Callable[[], Consumer[bytes, bytes]],
        settings: InstanceSettings,
        decode: Callable[[bytes | None], Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self._make = make
        self._consumer = make()
        self._decode = decode
        self._clock = clock
        self._pending: deque[ConsumerRecord[bytes, bytes]] = deque()
        self._next: dict[TopicPartition, int] = {}
        self._is_assigned = False
        self._pattern = ""
        self._committed_s = clock()

    def wake(self) -> None:
        """End a read that waits; from any thread."""
        self._consumer.wakeup()

    # Which partitions ------------------------------------------------------------------------

    def subscribe(self, wanted: SubscriptionRequest) -> None:
        """Share topics with the group."""
        if self._is_assigned:
            raise IllegalConsumerState(f"Illegal state: {_EXCLUSIVE}")
        if wanted.topics is None:
            # Kafka's patterns match whole names, librdkafka's are found within them.
            self._consumer.subscribe(_compiled(f"^({wanted.pattern})$"), self)
        elif wanted.topics:
            self._consumer.subscribe(wanted.topics, self)
        else:
            self.unsubscribe()
        self._pattern = wanted.pattern

    def unsubscribe(self) -> None:
        """Leave the group, and give up what was assigned.

        A consumer that has left a group of the cooperative kind cannot be assigned partitions by
        hand any more, so a new one takes its place.
        """
        self._commit_by_timer(due=True)
        self._consumer.close()
        self._consumer = self._make()
        self._forget(list(self._next))
        self._pending.clear()
        self._is_assigned, self._pattern = False, ""

    def subscription(self) -> list[str]:
        """The topics; of a pattern, those that this consumer reads."""
        if self._pattern:
            return sorted({one.topic for one in self._consumer.assignment()})
        return sorted(self._consumer.subscription())

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read exactly these."""
        if self._consumer.subscription():
            raise IllegalConsumerState(f"Illegal state: {_EXCLUSIVE}")
        if not partitions:
            self.unsubscribe()
            return
        gone = self._consumer.assignment() - set(partitions)
        self._commit_by_timer(due=True)
        self._consumer.assign(partitions)
        self._forget(gone)
        self._is_assigned = True

    def assignment(self) -> list[TopicPartition]:
        """What it reads now; a member of a group has something once it has asked for records."""
        return sorted(self._consumer.assignment())

    # Reading ---------------------------------------------------------------------------------

    def read(self, timeout_s: float | None, bytes_max: int | None) -> list[dict[str, Any]]:
        """Records as documents: what is there, or what comes within the time."""
        if not self._consumer.subscription() and not self._is_assigned:
            raise KafkaFailure(f"Kafka error: {_NO_PARTITIONS}")
        self._commit_by_timer(due=False)
        limit_s = self.settings.timeout_s
        deadline_s = self._clock() + min(timeout_s or limit_s, limit_s)
        room = min(bytes_max or self.settings.bytes_max, self.settings.bytes_max)
        answer = _RecordAnswer(room)
        while True:
            self._hand_out(answer)
            if answer.is_full or (answer.records and answer.size >= self.settings.bytes_min > 0):
                break
            if not self._poll(deadline_s, has_some=bool(answer.records)):
                break
        return answer.records

    def _poll(self, deadline_s: float, *, has_some: bool) -> bool:
        """Wait for more; False: it is not worth it any longer."""
        left_s = max(0.0, deadline_s - self._clock())
        waits_for_more = has_some and self.settings.bytes_min < 1
        try:
            polled = self._consumer.poll(min(left_s, _QUIET_S) if waits_for_more else left_s)
        except WakeupError:
            if has_some:
                return False  # They count as handed out, and must reach the client.
            raise ConsumerInstanceNotFound from None
        except PenstockError as error:
            if has_some:
                return False  # The next request is told, if it is still true then.
            raise KafkaFailure(f"Kafka error: {error}") from error
        self._pending.extend(polled)
        return bool(polled) or (not waits_for_more and self._clock() < deadline_s)

    def _hand_out(self, answer: "_RecordAnswer") -> None:
        """What is pending, as far as it fits; what cannot be decoded stays first in line."""
        while self._pending:
            record = self._pending[0]
            if not answer.has_room_for(record):
                answer.is_full = True
                return
            try:
                document = self._document(record)
            except FormatError as error:
                if answer.records:
                    answer.is_full = True
                    return
                raise KafkaFailure(_undecodable(record, error)) from error
            answer.add(record, document)
            self._pending.popleft()
            self._next[TopicPartition(record.topic, record.partition)] = record.offset + 1

    def _document(self, record: ConsumerRecord[bytes, bytes]) -> dict[str, Any]:
        return {
            "topic": record.topic,
            "key": self._decode(record.key),
            "value": self._decode(record.value),
            "partition": record.partition,
            "offset": record.offset,
        }

    # Positions -------------------------------------------------------------------------------

    def seek(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Read these records next."""
        for there, wanted in offsets.items():
            self._consumer.seek(there, wanted.offset)
            self._forget([there])
            self._next[there] = wanted.offset

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """Read from the first record there is."""
        self._seek_to(partitions, self._consumer.seek_to_beginning)

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """Read only what comes from now on."""
        self._seek_to(partitions, self._consumer.seek_to_end)

    def _seek_to(
        self,
        partitions: Iterable[TopicPartition],
        seek: Callable[[Iterable[TopicPartition]], None],
    ) -> None:
        for there in partitions:
            seek([there])
            self._forget([there])
            self._next[there] = self._consumer.position(there)

    # Committing ------------------------------------------------------------------------------

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None, *, waits: bool = True
    ) -> None:
        """Commit the records that are named, or all that the client was given.

        As Confluent has it, a record is named by its own offset: the next one is committed.
        """
        if offsets is None:
            wanted = {at: OffsetAndMetadata(number) for at, number in self._next.items()}
        else:
            wanted = {
                at: OffsetAndMetadata(one.offset + 1, one.metadata) for at, one in offsets.items()
            }
        if wanted:
            (self._consumer.commit if waits else self._consumer.commit_async)(wanted)
            self._committed_s = self._clock()

    def committed(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed."""
        return self._consumer.committed(partitions) if partitions else {}

    def close(self) -> None:
        """Commit by timer for the last time, leave the group, free everything."""
        try:
            self._commit_by_timer(due=True)
        except PenstockError:
            pass  # The group hands the records out again.
        finally:
            self._consumer.close()

    def _commit_by_timer(self, *, due: bool) -> None:
        """Where the instance commits by itself: what was handed out before this request."""
        now_s = self._clock()
        if not self.settings.auto_commit or not self._next:
            return
        if due or now_s - self._committed_s >= _COMMIT_S:
            try:
                self.commit(None)
            except CommitFailedError:
                self._committed_s = now_s  # Others have the partitions; a later poll tells.

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        gone = set(partitions)
        for one in gone:
            self._next.pop(one, None)
        kept = (one for one in self._pending if (one.topic, one.partition) not in gone)
        self._pending = deque(kept)

    # The group's word, on the thread that polls ------------------------------------------------

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition], /) -> None:
        """They begin where the group is."""

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition], /) -> None:
        """Commit while that is allowed; what is pending will be read by others."""
        try:
            self._commit_by_timer(due=True)
        finally:
            self._forget(partitions)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition], /) -> None:
        """Others have them already."""
        self._forget(partitions)


class _RecordAnswer:
    """Records as far as they fit; the first always does, or a client would wait for ever."""

    __slots__ = ("_room", "is_full", "records", "size")

    def __init__(self, room: int) -> None:
        self.records: list[dict[str, Any]] = []
        self.size = 0
        self.is_full = False
        self._room = room

    def has_room_for(self, record: ConsumerRecord[bytes, bytes]) -> bool:
        return not self.records or self.size + _size(record) <= self._room

    def add(self, record: ConsumerRecord[bytes, bytes], document: dict[str, Any]) -> None:
        self.records.append(document)
        self.size += _size(record)


def _size(record: ConsumerRecord[bytes, bytes]) -> int:
    return max(0, record.serialized_key_size) + max(0, record.serialized_value_size)


def _compiled(pattern: str) -> re.Pattern[str]:
    """For its syntax alone: librdkafka does the matching."""
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UnprocessableRequest(f"topic_pattern is no pattern: {error}") from None


def _undecodable(record: ConsumerRecord[bytes, bytes], error: FormatError) -> str:
    return (
        f"Kafka error: Error deserializing key/value for partition {record.topic}-"
        f"{record.partition} at offset {record.offset}: {error}. If needed, please seek past the "
        "record to continue consumption."
    )
