"""DeleteTopics: by name, by id, and what contradicts itself."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.protocol.primitives import ZERO_UUID


def by_name(name: str | None) -> DeleteTopicState:
    return DeleteTopicState(name=name)


def by_id(topic_id: bytes) -> DeleteTopicState:
    return DeleteTopicState(name=None, topic_id=topic_id)


def delete(served: Any, *topics: DeleteTopicState) -> list[Any]:
    results: list[Any] = served.ask(DeleteTopicsRequest(topics=list(topics)), 6).responses
    return results


@pytest.mark.parametrize("version", range(6))
def test_names_are_enough_for_the_older_versions(served: Any, version: int) -> None:
    served.create("orders")
    asked = DeleteTopicsRequest(topic_names=["orders", "absent"])
    gone, absent = served.ask(asked, version).responses
    assert (gone.name, gone.error_code) == ("orders", ErrorCode.NONE)
    assert (absent.name, absent.error_code) == ("absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert served.ask(MetadataRequest(topics=None), 1).topics == []
    assert served.broker.partitions.get("orders", 0) is None


def test_the_reason_is_told_from_version_five_on(served: Any) -> None:
    asked = DeleteTopicsRequest(topic_names=["absent"])
    assert served.ask(asked, 4).responses[0].error_message is None
    assert served.ask(asked, 5).responses[0].error_message


def test_a_topic_is_deleted_by_id_and_told_by_both(served: Any) -> None:
    served.create("orders")
    topic_id = served.partition("orders").topic_id
    (gone,) = delete(served, by_id(topic_id))
    assert (gone.name, gone.topic_id, gone.error_code) == ("orders", topic_id, ErrorCode.NONE)
    assert not served.broker.image.topics


def test_a_topic_deleted_by_name_is_told_with_its_id(served: Any) -> None:
    served.create("orders")
    topic_id = served.partition("orders").topic_id
    (gone,) = delete(served, by_name("orders"))
    assert (gone.topic_id, gone.error_code) == (topic_id, ErrorCode.NONE)


def test_an_unknown_id_stays_nameless(served: Any) -> None:
    (missing,) = delete(served, by_id(b"\x05" * 16))
    assert (missing.name, missing.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


def test_an_entry_needs_a_name_or_an_id_and_not_both(served: Any) -> None:
    served.create("orders")
    topic_id = served.partition("orders").topic_id
    neither, both = delete(
        served, by_name(None), DeleteTopicState(name="orders", topic_id=topic_id)
    )
    assert neither.error_code == both.error_code == ErrorCode.INVALID_REQUEST
    assert "orders" in served.broker.image.topics


def test_what_is_named_twice_is_not_deleted(served: Any) -> None:
    served.create("orders")
    served.create("fine")
    results = delete(served, by_name("orders"), by_name("fine"), by_name("orders"))
    assert [(result.name, result.error_code) for result in results] == [
        ("orders", ErrorCode.INVALID_REQUEST),
        ("fine", ErrorCode.NONE),
    ]
    assert set(served.broker.image.topics) == {"orders"}


def test_a_name_and_an_id_of_one_topic_are_refused(served: Any) -> None:
    served.create("orders")
    topic_id = served.partition("orders").topic_id
    (result,) = delete(served, by_name("orders"), by_id(topic_id))
    assert (result.name, result.topic_id) == ("orders", topic_id)
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert "orders" in served.broker.image.topics


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (0, ErrorCode.INVALID_REQUEST),
        (2, ErrorCode.INVALID_REQUEST),
        (3, ErrorCode.TOPIC_DELETION_DISABLED),
        (5, ErrorCode.TOPIC_DELETION_DISABLED),
    ],
)
def test_a_broker_may_refuse_all_deletion(
    serve: Callable[..., Any], version: int, code: ErrorCode
) -> None:
    served = serve({"delete.topic.enable": "false"})
    served.create("orders")
    (result,) = served.ask(DeleteTopicsRequest(topic_names=["orders"]), version).responses
    assert (result.name, result.error_code) == ("orders", code)
    assert "orders" in served.broker.image.topics


def test_refused_deletion_names_what_was_asked_for(serve: Callable[..., Any]) -> None:
    served = serve({"delete.topic.enable": "false"})
    named, nameless = delete(served, by_name("orders"), by_id(b"\x05" * 16))
    assert (named.name, named.topic_id) == ("orders", ZERO_UUID)
    assert (nameless.name, nameless.topic_id) == (None, b"\x05" * 16)
    assert named.error_code == nameless.error_code == ErrorCode.TOPIC_DELETION_DISABLED


def test_a_topic_made_again_has_another_id_and_no_records(served: Any) -> None:
    served.create("orders")
    served.append("orders", 1, 2, 3)
    before = served.partition("orders").topic_id
    delete(served, by_name("orders"))
    served.create("orders")
    assert served.partition("orders").topic_id != before
    assert served.partition("orders").log.log_end_offset == 0
