"""What fetches of consumers and of followers have in common, of the request and of the answer."""

from typing import Final

from penstock.broker.error_answers import code_of
from penstock.errors import ProtocolError
from penstock.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    PartitionData,
)
from penstock.replica.reads import PartitionRead

FIRST_VERSION_WITH_SESSIONS: Final = 7
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
UNKNOWN: Final = -1


def forgotten(request: FetchRequest, version: int) -> list[tuple[str | bytes, int]]:
    """The partitions that leave the session, as its keys."""
    uses_topic_ids = version >= FIRST_VERSION_WITH_TOPIC_IDS
    return [
        (topic.topic_id if uses_topic_ids else topic.topic, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]


def topic_response(named: str | bytes) -> FetchableTopicResponse:
    """The answer for a topic, by its name or its id, without partitions so far."""
    if isinstance(named, str):
        return FetchableTopicResponse(topic=named, partitions=[])
    return FetchableTopicResponse(topic_id=named, partitions=[])


def answered(
    index: int, read: PartitionRead, aborted: list[AbortedTransaction] | None
) -> PartitionData:
    """What was read of a partition."""
    data = PartitionData(
        partition_index=index,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        aborted_transactions=aborted,
        records=read.records,
    )
    if read.diverging is not None:
        epoch, end_offset = read.diverging
        data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return data


def failed(index: int, error: ProtocolError) -> PartitionData:
    """That nothing could be read of a partition."""
    return PartitionData(
        partition_index=index,
        error_code=code_of(error),
        high_watermark=UNKNOWN,
        last_stable_offset=UNKNOWN,
        log_start_offset=UNKNOWN,
        records=b"",
    )
