"""DeleteShareGroupOffsets: forget topics of an empty share group."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, string, uuid


class DeleteShareGroupOffsetsRequestTopic(Struct):
    """A topic to forget."""

    topic_name: str = string("0+")


class DeleteShareGroupOffsetsRequest(Request, api=ApiKey.DELETE_SHARE_GROUP_OFFSETS):
    """The group and the topics."""

    group_id: str = string("0+")
    topics: list[DeleteShareGroupOffsetsRequestTopic] = array(
        DeleteShareGroupOffsetsRequestTopic, "0+"
    )


class DeleteShareGroupOffsetsResponseTopic(Struct):
    """What became of one topic."""

    topic_name: str = string("0+")
    topic_id: bytes = uuid("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)


class DeleteShareGroupOffsetsResponse(Response, api=ApiKey.DELETE_SHARE_GROUP_OFFSETS):
    """One result per topic."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = array(
        DeleteShareGroupOffsetsResponseTopic, "0+"
    )
