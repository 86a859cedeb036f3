"""Forward: the controller answers what another broker was asked, as if it had been asked itself."""

from typing import Any

import pytest
from tests.unit.broker.conftest import Served

from penstock.broker.dispatch import Dispatcher
from penstock.errors import ErrorCode
from penstock.protocol.apis import ApiKey, Request, response_class
from penstock.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.forward import ForwardRequest
from penstock.protocol.messages.metadata import MetadataRequest


@pytest.fixture(autouse=True)
def as_a_member(served: Served) -> None:
    """What is passed on is for members of a cluster: they have a dispatcher for it."""
    served.broker.dispatcher = Dispatcher(served.broker, listener="PLAINTEXT")


def forwarded(request: Request, version: int, **fields: Any) -> ForwardRequest:
    return ForwardRequest(
        **{
            "inner_key": type(request).api_key,
            "inner_version": version,
            "principal": "User:alice",
            "client_id": "app",
            "client_host": "10.0.0.1",
            "listener": "PLAINTEXT",
            "body": bytes(request.encode(version)),
            **fields,
        }
    )


def create(name: str) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
    return CreateTopicsRequest(topics=[topic])


def inner(answer: Any, version: int) -> Any:
    return response_class(ApiKey.CREATE_TOPICS).decode(answer.body, version)


@pytest.mark.parametrize("version", [2, 5, 7])
def test_the_answer_comes_in_the_clients_version(served: Served, version: int) -> None:
    answer = served.ask(forwarded(create("t"), version), 0)
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    (topic,) = inner(answer, version).topics
    assert (topic.name, topic.error_code) == ("t", ErrorCode.NONE)
    assert len(served.broker.image.topics["t"].partitions) == 2


def test_the_answer_names_the_image_that_shows_the_change(served: Served) -> None:
    before = served.broker.image
    answer = served.ask(forwarded(create("t"), 7), 0)
    after = served.broker.image
    assert (answer.controller_epoch, answer.seq) == (after.controller_epoch, after.seq)
    assert after.seq > before.seq


def test_an_error_of_the_request_is_in_its_own_answer(served: Served) -> None:
    served.create("t")
    answer = served.ask(forwarded(create("t"), 7), 0)
    assert answer.error_code == ErrorCode.NONE
    (topic,) = inner(answer, 7).topics
    assert topic.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize(
    ("request_", "version"), [(MetadataRequest(), 9), (create("t"), 99), (create("t"), -1)]
)
def test_only_what_belongs_to_the_controller_is_passed_on(
    served: Served, request_: Request, version: int
) -> None:
    asked = forwarded(request_, 7, inner_version=version)
    answer = served.ask(asked, 0)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message == (
        f"version {version} of API {type(request_).api_key} is not passed on"
    )
    assert answer.body == b""
    assert "t" not in served.broker.image.topics


def test_who_is_not_the_controller_says_so(served: Served) -> None:
    controller, served.broker.controller = served.broker.controller, None
    try:
        answer = served.ask(forwarded(create("t"), 7), 0)
    finally:
        served.broker.controller = controller
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
    assert "t" not in served.broker.image.topics
