"""What errors of Kafka and of clients are over HTTP."""

import pytest

from penstock.client.errors import (
    AuthenticationError,
    BrokerUnreachableError,
    ClientError,
    KafkaTimeoutError,
)
from penstock.errors import (
    InvalidReplicationFactor,
    NotEnoughReplicas,
    SecurityDisabled,
    TopicAuthorization,
    TopicExists,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from penstock.rest.errors import TopicNotFound, translate


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (UnknownTopicOrPartition("x"), 404, 40403),
        (TopicAuthorization("x"), 403, 40301),
        (TopicExists("x"), 400, 40002),
        (SecurityDisabled("x"), 400, 40002),
        (InvalidReplicationFactor("x"), 400, 40002),
        (NotEnoughReplicas("x"), 500, 50003),
        (UnknownServerError("x"), 500, 50002),
        (BrokerUnreachableError("x"), 503, 50302),
        (AuthenticationError("x"), 401, 40101),
        (KafkaTimeoutError("x"), 500, 50003),
        (ClientError("x"), 500, 50002),
        (TopicNotFound(), 404, 40401),
    ],
)
def test_each_has_confluents_status_and_code(error: Exception, status: int, code: int) -> None:
    found = translate(error)
    assert found is not None
    assert (found.answer_status, found.code) == (status, code)


def test_an_unknown_topic_is_told_in_kafkas_words() -> None:
    found = translate(UnknownTopicOrPartition("Topic 'x' does not exist."))
    assert str(found) == "This server does not host this topic-partition."


def test_a_defect_is_nobodys_answer() -> None:
    assert translate(ValueError("x")) is None
