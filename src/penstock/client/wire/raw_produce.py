"""Record batches, ready made, to the leaders of their partitions: the blocking raw producer.

One request to a leader is under way at a time, so order and sequence numbers need no further care:
whatever was not stored is simply sent again, byte for byte, and a broker that has it already says
so. Encoding the next rows meanwhile is the caller's thread; sending is one of its own. Batches are
built by others (`spark.encode_batches`); transactions are begun and ended by `transaction_control`.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from penstock.client.errors import BrokerUnreachableError, KafkaTimeoutError
from penstock.client.operations.coordinators import ask_within
from penstock.client.values import TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import (
    DuplicateSequence,
    ErrorCode,
    LeaderNotAvailable,
    PenstockError,
    ProtocolError,
    RecordTooLarge,
    RetriableError,
    UnknownTopicOrPartition,
    error_for,
)
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from penstock.records.batch import build_batch, read_header, read_records

_BY_NAME_MAX = 12  # The last version of Produce with names of topics; it also adds partitions.
_ADDED_BEFORE_MAX = 11  # The last one for a transaction whose partitions were added before.
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


class OutgoingBatch(NamedTuple):
    """A sealed batch and where it goes."""

    at: TopicPartition
    data: bytearray


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceSettings:
    """How to send, in Kafka's terms."""

    acks: int = -1
    request_bytes_max: int = 1_048_576
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 120_000
    max_block_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    retries: int = 2_147_483_647


class RawProducer:
    """Sends batches for one task. Used by one thread; `close` it to end the sending thread."""

    def __init__(
        self,
        cluster: ClusterClient,
        settings: ProduceSettings,
        *,
        transactional_id: str | None = None,
        add_partitions: Callable[[Sequence[TopicPartition]], None] | None = None,
        on_stored: Callable[[OutgoingBatch, int], None] | None = None,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._transactional_id = transactional_id
        # None: the broker adds a partition to the transaction when its first batch comes.
        self._add_partitions = add_partitions
        # Told each batch and the offset of its first record, -1 where the leader does not say.
        self._on_stored = on_stored
        self._added: set[TopicPartition] = set()
        self._leaders: dict[TopicPartition, int] = {}
        self._counts: dict[str, int] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="penstock-produce")
        self._under_way: Future[None] | None = None

    def partition_count(self, topic: str) -> int:
        """How many partitions a topic has; it is created where the broker does so by itself."""
        if topic not in self._counts:
            self.flush()  # The cluster's connections belong to one thread at a time.
            deadline_s = time.monotonic() + self._settings.max_block_ms / 1000
            self._persist(lambda: self._look_up([topic]), deadline_s, self._absent(topic))
        return self._counts[topic]

    def submit(self, batches: Iterable[OutgoingBatch]) -> None:
        """Send in the background; waits for what was submitted before, and raises its error."""
        ready = list(batches)
        self.flush()
        self._under_way = self._thread.submit(self._send, ready)

    def flush(self) -> None:
        """Wait until everything submitted is stored."""
        if self._under_way is not None:
            under_way, self._under_way = self._under_way, None
            under_way.result()

    def begin_transaction(self) -> None:
        """The next one begins: partitions have to be added to it anew."""
        self.flush()
        self._added.clear()

    def close(self) -> None:
        """End the thread; what it is just sending is waited for, and its outcome dropped."""
        self._thread.shutdown(wait=True)

    def _send(self, batches: Sequence[OutgoingBatch]) -> None:
        settings = self._settings
        deadline_s = time.monotonic() + settings.delivery_timeout_ms / 1000
        queues: dict[TopicPartition, list[OutgoingBatch]] = {}
        for batch in batches:
            queues.setdefault(batch.at, []).append(batch)
        self._announce(list(queues), deadline_s)
        for queue in queues.values():
            queue.reverse()  # The next one is at the end.
        attempts = 0
        while queues:
            failure = self._round(queues)
            if failure is None:
                attempts = 0
                continue
            attempts += 1
            pause_s = self._pause_s(attempts)
            if attempts > settings.retries or time.monotonic() + pause_s > deadline_s:
                raise failure
            time.sleep(pause_s)
            self._leaders.clear()

    def _announce(self, partitions: Sequence[TopicPartition], deadline_s: float) -> None:
        new = [at for at in partitions if at not in self._added]
        add = self._add_partitions
        if new and add is not None:
            self._persist(lambda: add(new), deadline_s, None)
        self._added.update(new)

    def _round(self, queues: dict[TopicPartition, list[OutgoingBatch]]) -> PenstockError | None:
        """One request to each leader; None, or why something must be sent again."""
        failure: PenstockError | None = None
        try:
            by_leader = self._by_leader(queues)
        except (RetriableError, BrokerUnreachableError, KafkaTimeoutError) as error:
            return error
        for leader, partitions in by_leader.items():
            chosen = self._fill_request([queues[at][-1] for at in partitions])
            try:
                results = self._ask(leader, chosen)
            except (BrokerUnreachableError, KafkaTimeoutError) as error:
                failure = error
                continue
            for batch in chosen:
                failure = self._settle(queues, batch, results.get(batch.at)) or failure
        return failure

    def _by_leader(
        self, queues: Mapping[TopicPartition, object]
    ) -> dict[int, list[TopicPartition]]:
        missing = [at for at in queues if at not in self._leaders]
        if missing:
            self._look_up(sorted({at.topic for at in missing}))
        grouped: dict[int, list[TopicPartition]] = {}
        for at in queues:
            if at not in self._leaders:
                raise LeaderNotAvailable(f"Partition {at} has no leader now.")
            grouped.setdefault(self._leaders[at], []).append(at)
        return grouped

    def _fill_request(self, batches: Sequence[OutgoingBatch]) -> list[OutgoingBatch]:
        """As many as fit, one of each partition; the first always does."""
        chosen: list[OutgoingBatch] = []
        room = self._settings.request_bytes_max
        for batch in batches:
            room -= len(batch.data)
            if chosen and room < 0:
                break
            chosen.append(batch)
        return chosen

    def _ask(
        self, leader: int, batches: Sequence[OutgoingBatch]
    ) -> dict[TopicPartition, PartitionProduceResponse]:
        topics: dict[str, list[PartitionProduceData]] = {}
        for batch in batches:
            entry = PartitionProduceData(index=batch.at.partition, records=memoryview(batch.data))
            topics.setdefault(batch.at.topic, []).append(entry)
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=[TopicProduceData(name=n, partition_data=its) for n, its in topics.items()],
        )
        version_max = _BY_NAME_MAX if self._add_partitions is None else _ADDED_BEFORE_MAX
        answer = ask_within(
            self._cluster, leader, request, ProduceResponse, version_max=version_max
        )
        return {
            TopicPartition(topic.name, part.index): part
            for topic in answer.responses
            for part in topic.partition_responses
        }

    def _settle(
        self,
        queues: dict[TopicPartition, list[OutgoingBatch]],
        batch: OutgoingBatch,
        result: PartitionProduceResponse | None,
    ) -> ProtocolError | None:
        """Take a stored batch from its queue; what may pass is returned, the rest raised."""
        code = ErrorCode.UNKNOWN_SERVER_ERROR if result is None else result.error_code
        queue = queues[batch.at]
        if code in _TOO_LARGE and read_header(batch.data).record_count > 1:
            queue[-1:] = reversed(halves(batch))
            return None
        if code in (0, DuplicateSequence.code):
            queue.pop()
            if self._on_stored is not None and result is not None:
                self._on_stored(batch, -1 if code else result.base_offset)
            if not queue:
                del queues[batch.at]
            return None
        said = (result.error_message if result is not None else None) or error_for(code)
        error = error_for(code, f"{batch.at}: {said}")
        if isinstance(error, RetriableError):
            return error
        raise error

    def _look_up(self, topics: Sequence[str]) -> None:
        answer = self._cluster.metadata(topics, allow_auto_creation=True)
        for topic in answer.topics:
            name = topic.name or ""
            if topic.error_code:
                raise error_for(topic.error_code, f"Topic {name}: error {topic.error_code}")
            self._counts[name] = len(topic.partitions)
            for part in topic.partitions:
                if part.leader_id >= 0:
                    self._leaders[TopicPartition(name, part.partition_index)] = part.leader_id

    def _persist(
        self,
        attempt: Callable[[], None],
        deadline_s: float,
        in_the_end: Callable[[PenstockError], PenstockError] | None,
    ) -> None:
        attempts = 0
        while True:
            try:
                return attempt()
            except (RetriableError, BrokerUnreachableError, KafkaTimeoutError) as error:
                attempts += 1
                pause_s = self._pause_s(attempts)
                if time.monotonic() + pause_s > deadline_s:
                    if in_the_end is None:
                        raise
                    raise in_the_end(error) from error
                time.sleep(pause_s)

    def _absent(self, topic: str) -> Callable[[PenstockError], PenstockError]:
        def explain(error: PenstockError) -> PenstockError:
            if isinstance(error, UnknownTopicOrPartition | LeaderNotAvailable):
                waited_ms = self._settings.max_block_ms
                return KafkaTimeoutError(
                    f"Topic {topic} not present in metadata after {waited_ms} ms."
                )
            return error

        return explain

    def _pause_s(self, attempts: int) -> float:
        settings = self._settings
        grown_ms = settings.retry_backoff_ms << min(attempts - 1, 20)
        return min(grown_ms, settings.retry_backoff_max_ms) / 1000


def halves(batch: OutgoingBatch) -> list[OutgoingBatch]:
    """The same records in two batches, for a topic that takes only smaller ones."""
    header = read_header(batch.data)
    records = list(read_records(batch.data))
    if len(records) < 2:
        raise RecordTooLarge(f"{batch.at} does not take a record of {len(batch.data)} bytes.")
    middle = len(records) // 2
    return [
        OutgoingBatch(
            batch.at,
            build_batch(
                [record._replace(offset=at) for at, record in enumerate(part)],
                codec=header.codec,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=_sequence(header.base_sequence, skipped),
                is_transactional=header.is_transactional,
            ),
        )
        for part, skipped in ((records[:middle], 0), (records[middle:], middle))
    ]


def _sequence(base: int, skipped: int) -> int:
    return base if base < 0 else base + skipped & 0x7FFFFFFF
