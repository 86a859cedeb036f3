"""librdkafka's codes become exceptions named as Kafka names them."""

import confluent_kafka
import pytest

from penstock.client import errors
from penstock.client.errors import from_librdkafka
from penstock.client.librdkafka import is_passing, translated_error
from penstock.errors import ProducerFenced, RecordTooLarge, UnknownTopicOrPartition

E = confluent_kafka.KafkaError


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (E._TIMED_OUT, errors.KafkaTimeoutError),
        (E._MSG_TIMED_OUT, errors.KafkaTimeoutError),
        (E._TIMED_OUT_QUEUE, errors.KafkaTimeoutError),
        (E._QUEUE_FULL, errors.BufferExhaustedError),
        (E._TRANSPORT, errors.BrokerUnreachableError),
        (E._RESOLVE, errors.BrokerUnreachableError),
        (E._ALL_BROKERS_DOWN, errors.BrokerUnreachableError),
        (E._STATE, errors.IllegalStateError),
        (E._DESTROY, errors.IllegalStateError),
        (E._ASSIGNMENT_LOST, errors.CommitFailedError),
        (E._NO_OFFSET, errors.NoOffsetForPartitionError),
        (E._AUTO_OFFSET_RESET, errors.NoOffsetForPartitionError),
        (E._FATAL, errors.FatalError),
        (E._UNKNOWN_TOPIC, UnknownTopicOrPartition),
        (E._UNKNOWN_PARTITION, UnknownTopicOrPartition),
        (E._FENCED, ProducerFenced),
        (E.MSG_SIZE_TOO_LARGE, RecordTooLarge),
        (E._SSL, errors.AuthenticationError),
        (E._AUTHENTICATION, errors.AuthenticationError),
        (E._CRIT_SYS_RESOURCE, errors.ClientError),
    ],
)
def test_each_code_has_its_exception(code: int, kind: type[Exception]) -> None:
    made = from_librdkafka(code, "why")
    assert type(made) is kind
    assert str(made) == "why"


def test_a_timeout_is_pythons_timeout_too() -> None:
    assert issubclass(errors.BufferExhaustedError, TimeoutError)


def test_a_fatal_error_is_fatal_unless_it_is_a_fencing() -> None:
    assert isinstance(translated_error(E(E.UNKNOWN, "x", fatal=True)), errors.FatalError)
    assert isinstance(translated_error(E(E._FENCED, "x", fatal=True)), ProducerFenced)


def test_what_librdkafka_overcomes_by_itself_is_passing() -> None:
    assert is_passing(E(E._ALL_BROKERS_DOWN))
    assert not is_passing(E(E.TOPIC_AUTHORIZATION_FAILED))
