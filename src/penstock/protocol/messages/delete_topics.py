"""DeleteTopics: topics to remove, by name or by id."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, string, uuid


class DeleteTopicState(Struct):
    """A topic by name or, where that is null, by id."""

    name: str | None = string("6+", nullable=True, default=None)
    topic_id: bytes = uuid("6+")


class DeleteTopicsRequest(Request, api=ApiKey.DELETE_TOPICS):
    """Topics to delete; a plain list of names until version 5."""

    topics: list[DeleteTopicState] = array(DeleteTopicState, "6+")
    topic_names: list[str] = array(string, "0-5", ignorable=True)
    timeout_ms: int = int32("0+")


class DeletableTopicResult(Struct):
    """What became of one topic."""

    name: str | None = string("0+", nullable="6+")
    topic_id: bytes = uuid("6+", ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("5+", nullable=True, default=None, ignorable=True)


class DeleteTopicsResponse(Response, api=ApiKey.DELETE_TOPICS):
    """One result per topic."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult, "0+")
