"""One writer of a partition at a time: whoever begins later fences whoever came before.

A writer takes a transactional id over (InitProducerId), which gives it an epoch above that of every
earlier owner, and writes plain idempotent batches with it. The partition's leader refuses a batch
of an older epoch from the moment on that it has stored one of the newer, and it knows epochs from
the log itself: so in the log nothing of an older writer stands behind the first batch of a newer
one. No transaction is ever opened, and readers of any isolation level see the same.
"""

import time
from collections.abc import Sequence

from penstock.client.errors import BrokerUnreachableError, ClientError, KafkaTimeoutError
from penstock.client.values import TopicPartition
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.transaction_control import ProducerIdAndEpoch, begin
from penstock.errors import (
    ErrorCode,
    InvalidProducerEpoch,
    ProducerFenced,
    ProtocolError,
    RetriableError,
    UnknownTopicOrPartition,
    error_for,
)
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from penstock.records.batch import build_batch
from penstock.records.record import Record

EPOCH_MAX = (1 << 15) - 1
_SEQUENCE_MASK = 0x7FFFFFFF
_BY_NAME_MAX = 12  # The last version of Produce with names of topics.
_PAUSE_S = 0.05
_UNKNOWN_S = 5.0
_TRANSACTION_TIMEOUT_MS = 60_000  # Of transactions that are never opened.
_NOBODY = ProducerIdAndEpoch(-1, -1)
_FENCED = (InvalidProducerEpoch, ProducerFenced)
# Refusals by a leader that may have the batch in its log all the same.
_MAYBE_STORED = {
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}


class WriterFenced(ClientError):
    """Somebody else writes now; nothing was stored."""


class WriteOutcomeUnknown(ClientError):
    """Nobody can say whether the records were stored; a new beginning settles it."""


class FencedWriter:
    """The writer of one partition. Not for several threads."""

    def __init__(self, cluster: ClusterClient, at: TopicPartition, writer_id: str) -> None:
        self._cluster = cluster
        self._at = at
        self._writer_id = writer_id
        self._identity: ProducerIdAndEpoch | None = None  # None: not begun.
        self._sequence = 0
        self._leader: int | None = None

    def begin(self) -> ProducerIdAndEpoch:
        """Take the writer's id over; earlier owners are out with the first record that follows."""
        self._identity = None
        taken = begin(self._cluster, self._writer_id, timeout_ms=_TRANSACTION_TIMEOUT_MS)
        self._identity, self._sequence = taken.identity, 0
        return taken.identity

    def append(self, records: Sequence[Record]) -> int:
        """Store all of them or none; the offset of the first, once all in-sync replicas have them.

        WriterFenced, WriteOutcomeUnknown: this writer must begin again.
        """
        if self._identity is None:
            raise WriterFenced("The writer has not begun.")
        try:
            offset = self._persist(records, self._identity, self._sequence)
        except (WriterFenced, WriteOutcomeUnknown):
            self._identity = None
            raise
        self._sequence = self._sequence + len(records) & _SEQUENCE_MASK
        return offset

    def append_unfenced(self, record: Record) -> int:
        """Store a record that may stand anywhere, and more than once; its offset."""
        return self._persist([record], _NOBODY, -1)

    def retire(self, producer_id: int, record: Record) -> None:
        """Fence the owner of an id that the coordinator has given up, at whatever epoch he is."""
        identity = ProducerIdAndEpoch(producer_id, EPOCH_MAX)
        try:
            self._persist([record], identity, 0)
        except WriterFenced:
            return  # It was retired before.

    def _persist(
        self, records: Sequence[Record], identity: ProducerIdAndEpoch, sequence: int
    ) -> int:
        """Send the same batch until its outcome is known: a leader stores a sequence only once."""
        batch = build_batch(
            [record._replace(offset=at) for at, record in enumerate(records)],
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=sequence,
        )
        began_s = time.monotonic()
        is_unknown = False
        while True:
            try:
                return self._ask(batch)
            except (ProtocolError, BrokerUnreachableError, KafkaTimeoutError) as error:
                failure: Exception = error
            is_unknown = is_unknown or _may_be_stored(failure)
            left_s = began_s + self._patience_s(failure) - time.monotonic()
            if not _may_pass(failure) or left_s < _PAUSE_S:
                raise _outcome(failure, is_unknown) from failure
            self._leader = None
            time.sleep(_PAUSE_S)

    def _patience_s(self, failure: Exception) -> float:
        """A broker may not have heard of a topic yet; after a while the topic is gone."""
        whole_s = self._cluster.api_timeout_s
        return min(whole_s, _UNKNOWN_S) if _is_absent(failure) else whole_s

    def _ask(self, batch: bytearray) -> int:
        if self._leader is None:
            self._leader = self._cluster.leaders([self._at])[self._at]
        data = PartitionProduceData(index=self._at.partition, records=memoryview(batch))
        request = ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=int(self._cluster.request_timeout_s * 1000),
            topic_data=[TopicProduceData(name=self._at.topic, partition_data=[data])],
        )
        result = self._exchange(self._leader, request).responses[0].partition_responses[0]
        if result.error_code:
            said = result.error_message or error_for(result.error_code)
            raise error_for(result.error_code, f"{self._at}: {said}")
        return result.base_offset

    def _exchange(self, leader: int, request: ProduceRequest) -> ProduceResponse:
        """One attempt on one connection: whether to try again is decided by the clock.

        A process that slept for days must not send again what nobody would fence any more.
        """
        connection = self._cluster.node_connection(leader)
        spoken = connection.versions(ApiKey.PRODUCE)
        version = min(_BY_NAME_MAX, spoken[-1]) if spoken else None
        try:
            return connection.ask(request, ProduceResponse, version)
        except (BrokerUnreachableError, KafkaTimeoutError):
            self._cluster.drop(connection)
            raise


def _may_be_stored(failure: Exception) -> bool:
    if isinstance(failure, ProtocolError):
        return failure.code in _MAYBE_STORED
    return True  # The connection broke, or no answer came.


def _may_pass(failure: Exception) -> bool:
    return isinstance(failure, RetriableError | BrokerUnreachableError | KafkaTimeoutError)


def _is_absent(failure: Exception) -> bool:
    return isinstance(failure, UnknownTopicOrPartition)


def _outcome(failure: Exception, is_unknown: bool) -> Exception:
    if is_unknown:
        return WriteOutcomeUnknown(f"It is not known whether a record was stored: {failure}")
    if isinstance(failure, _FENCED):
        return WriterFenced(f"Somebody else writes now: {failure}")
    return failure
