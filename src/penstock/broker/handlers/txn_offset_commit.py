"""TxnOffsetCommit: a group's offsets that count only if the transaction commits.

The group says whether the committer may commit (its generation fences old members), and the
transaction whether the offsets are part of it; then they are written as pending until its marker.
"""

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any

from penstock.broker.context import RequestContext
from penstock.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    ProtocolError,
)
from penstock.groups.offset_commits import OffsetToCommit
from penstock.groups.shard import Shard
from penstock.groups.surroundings import Claim as MemberClaim
from penstock.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from penstock.transactions.admission import NO_SEQUENCE, Claim
from penstock.transactions.transaction import Identity

_FIRST_VERSION_THAT_WAITS = 2  # Older clients break on a coordinator that is still loading.
_FIRST_VERSION_WITH_ABORTABLE = 4
_FIRST_VERSION_THAT_ADDS = 5

Answer = TxnOffsetCommitResponse | Coroutine[Any, Any, TxnOffsetCommitResponse]


def handle(request: TxnOffsetCommitRequest, context: RequestContext) -> Answer:
    commit = _Commit(request, context)
    if not commit.offsets:
        return commit.response
    try:
        if commit.is_admitted():
            return commit.run()
    except ProtocolError as error:
        return commit.failed(error)
    return commit.later()


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
                        partition_index=partition.partition_index, error_code=int(error.code)
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


class _Commit:
    """One request on its way: admitted by the transaction, then written by the group's shard."""

    def __init__(self, request: TxnOffsetCommitRequest, context: RequestContext) -> None:
        self.request = request
        self.context = context
        self.offsets: list[OffsetToCommit] = []
        self._accepted: list[TxnOffsetCommitResponsePartition] = []  # Results of `offsets`.
        self.response = TxnOffsetCommitResponse(
            topics=[self._topic(index) for index in range(len(request.topics))]
        )

    def _topic(self, index: int) -> TxnOffsetCommitResponseTopic:
        topic = self.request.topics[index]
        is_known = topic.name in self.context.broker.image.topics
        error = ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        results = [
            TxnOffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=int(error)
            )
            for partition in topic.partitions
        ]
        if is_known:
            self._accepted += results
            self.offsets += [
                OffsetToCommit(
                    topic.name,
                    partition.partition_index,
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata,
                )
                for partition in topic.partitions
            ]
        return TxnOffsetCommitResponseTopic(name=topic.name, partitions=results)

    @property
    def _claim(self) -> Claim:
        version = self.context.version
        return Claim(
            transactional_id=self.request.transactional_id,
            identity=Identity(self.request.producer_id, self.request.producer_epoch),
            first_sequence=NO_SEQUENCE,
            adds_partition=version >= _FIRST_VERSION_THAT_ADDS,
            knows_abortable=version >= _FIRST_VERSION_WITH_ABORTABLE,
            busy=CoordinatorLoadInProgress,
        )

    def is_admitted(self) -> bool:
        broker = self.context.broker
        led = broker.groups.led_shard(self.request.group_id)
        return broker.transactions.admission.is_admitted(led.log.partition, self._claim)

    def run(self) -> Answer:
        return self.context.broker.groups.run(self.request.group_id, self._write)

    async def later(self) -> TxnOffsetCommitResponse:
        broker = self.context.broker
        try:
            led = broker.groups.led_shard(self.request.group_id)
            written: asyncio.Task[Answer] = broker.transactions.admission.later(
                led.log.partition, self._claim, self.run
            )
            answer = await written
            if inspect.isawaitable(answer):
                return await answer
            return answer
        except ProtocolError as error:
            return self.failed(error)

    def _write(self, shard: Shard) -> TxnOffsetCommitResponse:
        request = self.request
        claim = MemberClaim(request.member_id, request.generation_id, request.group_instance_id)
        try:
            codes = shard.commits.commit_transactional(
                request.group_id,
                claim,
                (request.producer_id, request.producer_epoch),
                self.offsets,
                version=self.context.version,
            )
        except ProtocolError as error:
            return self.failed(error)
        for result, code in zip(self._accepted, codes, strict=True):
            result.error_code = int(code)
        return self.response

    def failed(self, error: ProtocolError) -> TxnOffsetCommitResponse:
        if (
            isinstance(error, CoordinatorLoadInProgress)
            and self.context.version < _FIRST_VERSION_THAT_WAITS
        ):
            error = CoordinatorNotAvailable(str(error))
        for result in self._accepted:
            result.error_code = int(error.code)
        return self.response
