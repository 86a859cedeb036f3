"""FindCoordinator: the leader of a partition of an internal topic, made on first use."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.cluster.znodes import CONTROLLER_EPOCH
from penstock.errors import ErrorCode
from penstock.meta.store import Set
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest

SMALL = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "2"}


@pytest.fixture
def small(serve: Callable[..., Any]) -> Any:
    """A broker whose internal topics have few partitions."""
    return serve(SMALL)


@pytest.mark.parametrize("version", range(4))
def test_one_key_is_answered_at_the_top(small: Any, version: int) -> None:
    response = small.ask(FindCoordinatorRequest(key="group"), version)
    port = small.broker.image.brokers[7].endpoints[0].port
    assert (response.error_code, response.error_message) in ((0, None), (0, ""))
    assert (response.node_id, response.host, response.port) == (7, "127.0.0.1", port)
    assert len(small.broker.image.topics["__consumer_offsets"].partitions) == 3


@pytest.mark.parametrize("version", [4, 5, 6])
def test_many_keys_are_answered_one_by_one(small: Any, version: int) -> None:
    asked = FindCoordinatorRequest(key_type=0, coordinator_keys=["a", "b", ""])
    found = small.ask(asked, version).coordinators
    assert [(it.key, it.node_id, it.error_code) for it in found] == [
        ("a", 7, 0),
        ("b", 7, 0),
        ("", 7, 0),
    ]


@pytest.mark.parametrize("version", [1, 4])
def test_transactions_have_a_topic_of_their_own(small: Any, version: int) -> None:
    keyed: dict[str, Any] = {"key": "t"} if version < 4 else {"coordinator_keys": ["t"]}
    small.ask(FindCoordinatorRequest(key_type=1, **keyed), version)
    assert set(small.broker.image.topics) == {"__transaction_state"}
    overrides = small.broker.image.config("topics", "__transaction_state")
    assert overrides["cleanup.policy"] == "compact"


def test_the_topic_is_made_once(small: Any) -> None:
    ask = FindCoordinatorRequest(key="group")
    small.ask(ask, 3)
    before = small.partition("__consumer_offsets").topic_id
    small.ask(ask, 3)
    assert small.partition("__consumer_offsets").topic_id == before


@pytest.mark.parametrize("key_type", [2, 3, -1])
def test_what_this_broker_does_not_coordinate_is_refused(small: Any, key_type: int) -> None:
    old = small.ask(FindCoordinatorRequest(key="k", key_type=key_type), 3)
    assert (old.error_code, old.node_id) == (ErrorCode.INVALID_REQUEST, -1)
    assert old.error_message
    asked = FindCoordinatorRequest(coordinator_keys=["k", "l"], key_type=key_type)
    found = small.ask(asked, 6).coordinators
    assert [(it.key, it.error_code, it.node_id) for it in found] == [
        ("k", ErrorCode.INVALID_REQUEST, -1),
        ("l", ErrorCode.INVALID_REQUEST, -1),
    ]


def test_a_client_of_another_listener_finds_no_coordinator(small: Any) -> None:
    asked = FindCoordinatorRequest(coordinator_keys=["k"])
    (found,) = small.ask(asked, 6, listener="OTHER").coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


@pytest.mark.parametrize("key_type", [0, 1, 2, -1])
def test_no_keys_have_no_coordinators(small: Any, key_type: int) -> None:
    asked = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[])
    assert small.ask(asked, 4).coordinators == []


def test_a_topic_that_cannot_be_made_now_leaves_the_coordinator_for_later(
    serve: Callable[..., Any],
) -> None:
    served = serve({"controlled.shutdown.enable": "false"})
    served.run(served.broker.store.multi([Set(CONTROLLER_EPOCH, b"99")]))
    response = served.ask(FindCoordinatorRequest(key="group"), 3)
    assert (response.error_code, response.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
