"""Errors as Confluent's proxy tells them: an HTTP status, a code of five digits, a sentence.

A handler raises one of these, or lets an error of Kafka or of a client through: `translate` finds
the answer for it. The classes here are what both versions of the API say.
"""

from typing import ClassVar

from penstock.client.errors import (
    AuthenticationError,
    BrokerUnreachableError,
    ClientError,
    IllegalStateError,
    KafkaTimeoutError,
    SerializationError,
)
from penstock.errors import (
    ClusterAuthorization,
    ErrorCode,
    GroupAuthorization,
    PenstockError,
    ProtocolError,
    RetriableError,
    SaslAuthentication,
    TopicAuthorization,
    TransactionalIdAuthorization,
    UnknownTopicOrPartition,
)
from penstock.http.errors import HttpError


class RestError(HttpError):
    """An answer whose code is known by its class."""

    error_code: ClassVar[int] = 500
    sentence: ClassVar[str] = ""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.sentence, code=self.error_code)


class BadRequest(RestError):
    """What was asked for makes no sense."""

    status, error_code = 400, 400
    sentence = "Bad Request"


class TopicNotFound(RestError):
    """Of version 2."""

    status, error_code = 404, 40401
    sentence = "Topic not found."


class PartitionNotFound(RestError):
    """Of version 2."""

    status, error_code = 404, 40402
    sentence = "Partition not found."


class ConsumerInstanceNotFound(RestError):
    """No such consumer is held by this process."""

    status, error_code = 404, 40403
    sentence = "Consumer instance not found."


class NoLeader(RestError):
    """The partition has no leader now."""

    status, error_code = 404, 40404
    sentence = "Leader not available."


class ConsumerFormatMismatch(RestError):
    """A consumer of one format is asked for records in another."""

    status, error_code = 406, 40601
    sentence = (
        "The requested embedded data format does not match the deserializer for this consumer "
        "instance"
    )


class AlreadySubscribed(RestError):
    """A consumer either subscribes or is assigned partitions."""

    status, error_code = 409, 40901
    sentence = (
        "Consumer cannot subscribe the the specified target because it has already subscribed to "
        "other topics."
    )


class ConsumerAlreadyExists(RestError):
    """The name is taken in the group."""

    status, error_code = 409, 40902
    sentence = "Consumer with specified consumer ID already exists in the specified consumer group."


class IllegalConsumerState(RestError):
    """The consumer cannot do this now."""

    status, error_code = 409, 40903


class UnprocessableRequest(RestError):
    """The body has the right form, and what it says cannot be done."""

    status, error_code = 422, 422
    sentence = "Unprocessable Entity"


class KeySchemaMissing(RestError):
    """Keys without a schema."""

    status, error_code = 422, 42201
    sentence = "Request includes keys but does not include key schema"


class ValueSchemaMissing(RestError):
    """Values without a schema."""

    status, error_code = 422, 42202
    sentence = "Request includes values but does not include value schema"


class ConversionFailed(RestError):
    """What was given does not fit its schema."""

    status, error_code = 422, 42203


class InvalidConsumerConfig(RestError):
    """A setting of a consumer instance that cannot be used."""

    status, error_code = 422, 42204


class InvalidSchema(RestError):
    """The schema itself cannot be used."""

    status, error_code = 422, 42205


class TooManyRequests(RestError):
    """More is under way than this process takes on."""

    status, error_code = 429, 429
    sentence = "Too many requests are under way. Please try again later."


class KafkaFailure(RestError):
    """Kafka refused, and asking again does not help."""

    status, error_code = 500, 50002


class RetriableKafkaFailure(RestError):
    """Kafka could not, and may be able to later."""

    status, error_code = 500, 50003


class BrokersUnavailable(RestError):
    """No broker answers."""

    status, error_code = 503, 50302


class _Answer(HttpError):
    """Any status with any code."""


# What Kafka's refusals are over HTTP, where it is not a failure of the server.
_BAD_REQUEST = 40002
_NOT_ALLOWED = 40301
_NOT_PROVEN = 40101
_UNKNOWN_PARTITION = 40403
_MINE = frozenset(
    {
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.SECURITY_DISABLED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.TOPIC_DELETION_DISABLED,
    }
)
_FORBIDDEN = (
    ClusterAuthorization,
    GroupAuthorization,
    TopicAuthorization,
    TransactionalIdAuthorization,
)


def translate(error: Exception) -> HttpError | None:
    """The answer for an error that came out of a handler; None: a defect of ours."""
    if isinstance(error, HttpError):
        return error
    if isinstance(error, ProtocolError):
        return _of_protocol(error)
    if isinstance(error, ClientError):
        return _of_client(error)
    return KafkaFailure(str(error)) if isinstance(error, PenstockError) else None


def _of_protocol(error: ProtocolError) -> HttpError:
    if isinstance(error, UnknownTopicOrPartition):
        text = "This server does not host this topic-partition."
        return _Answer(text, status=404, code=_UNKNOWN_PARTITION)
    if isinstance(error, SaslAuthentication):
        return _Answer(str(error), status=401, code=_NOT_PROVEN)
    if isinstance(error, _FORBIDDEN):
        return _Answer(str(error), status=403, code=_NOT_ALLOWED)
    if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
        return _Answer(str(error), status=404, code=404)
    if error.code in _MINE:
        return _Answer(str(error), status=400, code=_BAD_REQUEST)
    if isinstance(error, RetriableError):
        return RetriableKafkaFailure(str(error))
    return KafkaFailure(str(error))


def _of_client(error: ClientError) -> HttpError:
    if isinstance(error, BrokerUnreachableError):
        return BrokersUnavailable(str(error))
    if isinstance(error, AuthenticationError):
        return _Answer(str(error), status=401, code=_NOT_PROVEN)
    if isinstance(error, KafkaTimeoutError):
        return RetriableKafkaFailure(str(error))
    if isinstance(error, IllegalStateError):
        return IllegalConsumerState(f"Illegal state: {error}")
    if isinstance(error, SerializationError):
        return ConversionFailed(str(error))
    return KafkaFailure(str(error))
