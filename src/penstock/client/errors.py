"""What goes wrong on the client's side, before or without an answer of a broker.

    PenstockError
    ├── ProtocolError (penstock.errors)   the broker said so; one class per Kafka error code
    └── ClientError                       the client itself gave up
        ├── KafkaTimeoutError             not done in time; also a TimeoutError
        │   └── BufferExhaustedError      no room in buffer.memory within max.block.ms
        ├── SerializationError            a serializer or deserializer refused
        ├── BrokerUnreachableError        no connection, or it broke
        ├── AuthenticationError           client and broker could not prove who they are
        ├── IllegalStateError             a call that this moment does not allow
        ├── CommitFailedError             the group has given the partitions to others
        ├── NoOffsetForPartitionError     nothing committed, and auto.offset.reset=none
        ├── WakeupError                   another thread called wakeup
        └── FatalError                    the client can only be closed

The names are Kafka's with Error for Exception. librdkafka's own codes, which are negative, become
these in `from_librdkafka`; positive ones are Kafka's and become penstock.errors.
"""

from penstock.errors import PenstockError, error_for


class ClientError(PenstockError):
    """The client gave up; the message says on what."""


class KafkaTimeoutError(ClientError, TimeoutError):
    """It was not done within the time allowed."""


class BufferExhaustedError(KafkaTimeoutError):
    """The records waiting to be sent filled buffer.memory for longer than max.block.ms."""


class SerializationError(ClientError):
    """A key or value could not be turned into bytes, or bytes into a key or value."""


class BrokerUnreachableError(ClientError):
    """A broker could not be reached, or the connection to it broke."""


class AuthenticationError(ClientError):
    """TLS or SASL failed: one side could not prove to the other who it is. Not worth a retry."""


class IllegalStateError(ClientError):
    """The call makes no sense now: a closed client, an unassigned partition, no transaction."""


class CommitFailedError(ClientError):
    """The commit came too late: the group has given the partitions to other members."""


class NoOffsetForPartitionError(ClientError):
    """There is no committed offset, and auto.offset.reset=none forbids to choose one."""


class WakeupError(ClientError):
    """Another thread woke the consumer up, to end its polling."""


class FatalError(ClientError):
    """The client cannot go on; close it and make a new one."""


# librdkafka's own codes (negative), by what they mean to a caller. The rest is ClientError.
_CLASS_BY_LOCAL_CODE: dict[int, type[ClientError]] = {
    -185: KafkaTimeoutError,  # _TIMED_OUT
    -166: KafkaTimeoutError,  # _TIMED_OUT_QUEUE
    -192: KafkaTimeoutError,  # _MSG_TIMED_OUT
    -184: BufferExhaustedError,  # _QUEUE_FULL
    -195: BrokerUnreachableError,  # _TRANSPORT
    -193: BrokerUnreachableError,  # _RESOLVE
    -187: BrokerUnreachableError,  # _ALL_BROKERS_DOWN
    -181: AuthenticationError,  # _SSL
    -169: AuthenticationError,  # _AUTHENTICATION
    -172: IllegalStateError,  # _STATE
    -197: IllegalStateError,  # _DESTROY
    -142: CommitFailedError,  # _ASSIGNMENT_LOST
    -168: NoOffsetForPartitionError,  # _NO_OFFSET
    -140: NoOffsetForPartitionError,  # _AUTO_OFFSET_RESET
    -150: FatalError,  # _FATAL
}
_UNKNOWN_TOPIC = -188
_UNKNOWN_PARTITION = -190
_FENCED = -144
_PRODUCER_FENCED_CODE = 90
_UNKNOWN_TOPIC_CODE = 3


def from_librdkafka(code: int, text: str) -> PenstockError:
    """The exception for an error of librdkafka."""
    if code in (_UNKNOWN_TOPIC, _UNKNOWN_PARTITION):
        return error_for(_UNKNOWN_TOPIC_CODE, text)
    if code == _FENCED:
        return error_for(_PRODUCER_FENCED_CODE, text)
    if code > 0:
        return error_for(code, text)
    return _CLASS_BY_LOCAL_CODE.get(code, ClientError)(text)
