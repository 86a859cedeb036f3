"""TxnOffsetCommit: a group's offsets that count only if the transaction commits.

The group says whether the committer may commit (its generation fences old members), and the
transaction whether the offsets are part of it; then they are written as pending until its marker.
"""

from collections.abc import Coroutine, Iterable
from typing import Any, NamedTuple

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import code_of
from penstock.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    ProtocolError,
)
from penstock.groups.offsets.commits import OffsetToCommit
from penstock.groups.shard import GroupShard
from penstock.groups.surroundings import MemberClaim
from penstock.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from penstock.transactions.admission import NO_SEQUENCE, BatchClaim
from penstock.transactions.transaction import ProducerIdentity

_FIRST_VERSION_THAT_WAITS = 2  # Older clients break on a coordinator that is still loading.
_FIRST_VERSION_WITH_ABORTABLE = 4
_FIRST_VERSION_THAT_ADDS = 5

Answer = TxnOffsetCommitResponse | Coroutine[Any, Any, TxnOffsetCommitResponse]


class _Commit(NamedTuple):
    """What a request asks for, as far as its topics are known."""

    request: TxnOffsetCommitRequest
    known: frozenset[str]  # Of the topics it names.
    offsets: list[OffsetToCommit]  # Of the known topics, in the request's order.
    claim: BatchClaim


def handle(request: TxnOffsetCommitRequest, context: RequestContext) -> Answer:
    commit = _read(request, context)
    if not commit.offsets:
        return _response(commit, [])
    broker = context.broker
    try:
        led = broker.groups.led_shard(request.group_id)
        if broker.transactions.admission.is_admitted(led.log.partition, commit.claim):
            return _write(commit, context)
    except ProtocolError as error:
        return _refused(commit, error, context.version)
    return _write_in_turn(commit, context)


def error_response(
    request: TxnOffsetCommitRequest, error: ProtocolError
) -> TxnOffsetCommitResponse:
    """The same error for every partition."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=code_of(error)
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _read(request: TxnOffsetCommitRequest, context: RequestContext) -> _Commit:
    known = frozenset(
        topic.name for topic in request.topics if topic.name in context.broker.image.topics
    )
    offsets = [
        OffsetToCommit(
            topic.name,
            partition.partition_index,
            partition.committed_offset,
            partition.committed_leader_epoch,
            partition.committed_metadata,
        )
        for topic in request.topics
        if topic.name in known
        for partition in topic.partitions
    ]
    claim = BatchClaim(
        transactional_id=request.transactional_id,
        identity=ProducerIdentity(request.producer_id, request.producer_epoch),
        first_sequence=NO_SEQUENCE,
        adds_partition=context.version >= _FIRST_VERSION_THAT_ADDS,
        knows_abortable=context.version >= _FIRST_VERSION_WITH_ABORTABLE,
        busy=CoordinatorLoadInProgress,
    )
    return _Commit(request, known, offsets, claim)


async def _write_in_turn(commit: _Commit, context: RequestContext) -> TxnOffsetCommitResponse:
    """Write once the transaction's coordinator lets the offsets in."""
    broker = context.broker
    try:
        led = broker.groups.led_shard(commit.request.group_id)
        async with broker.transactions.admission.line_up(led.log.partition, commit.claim):
            answer = _write(commit, context)
        return answer if isinstance(answer, TxnOffsetCommitResponse) else await answer
    except ProtocolError as error:
        return _refused(commit, error, context.version)


def _write(commit: _Commit, context: RequestContext) -> Answer:
    request, version = commit.request, context.version
    claim = MemberClaim(request.member_id, request.generation_id, request.group_instance_id)

    def write(shard: GroupShard) -> TxnOffsetCommitResponse:
        try:
            codes = shard.commits.commit_transactional(
                request.group_id,
                claim,
                (request.producer_id, request.producer_epoch),
                commit.offsets,
                version=version,
            )
        except ProtocolError as error:
            return _refused(commit, error, version)
        return _response(commit, codes)

    return context.broker.groups.run(request.group_id, write)


def _refused(commit: _Commit, error: ProtocolError, version: int) -> TxnOffsetCommitResponse:
    if isinstance(error, CoordinatorLoadInProgress) and version < _FIRST_VERSION_THAT_WAITS:
        error = CoordinatorNotAvailable(str(error))
    return _response(commit, [error.code] * len(commit.offsets))


def _response(commit: _Commit, codes: Iterable[ErrorCode]) -> TxnOffsetCommitResponse:
    """The answer, with the codes of `commit.offsets`."""
    left = iter(codes)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=int(next(left) if topic.name in commit.known else unknown),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in commit.request.topics
        ]
    )
