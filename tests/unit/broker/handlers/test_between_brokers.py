"""What brokers ask of the controller: images, notices, and leave to go."""

from typing import Any

import pytest

from penstock.cluster.image_follower import ImageFollower
from penstock.errors import ErrorCode
from penstock.protocol.apis import Request
from penstock.protocol.messages.broker_shutdown import BrokerShutdownRequest
from penstock.protocol.messages.image_fetch import ImageFetchRequest
from penstock.protocol.messages.partitions_changed import (
    ChangedTopic,
    PartitionsChangedRequest,
)


def epoch(served: Any) -> int:
    known: int = served.broker.image.brokers[7].epoch
    return known


def test_a_broker_follows_from_the_whole_image_by_its_changes(served: Any) -> None:
    follower = ImageFollower()
    for is_snapshot in (True, False, False):
        served.create(f"topic-{served.broker.image.seq}")
        answer = served.ask(follower.request(1, 999, max_wait_ms=0), 0)
        assert (answer.error_code, answer.is_snapshot) == (ErrorCode.NONE, is_snapshot)
        assert follower.take(answer) == served.broker.image


def test_a_broker_that_is_up_to_date_is_told_that_nothing_is_new(served: Any) -> None:
    follower = ImageFollower()
    follower.take(served.ask(follower.request(1, 999, max_wait_ms=0), 0))
    answer = served.ask(follower.request(1, 999, max_wait_ms=1), 0)
    assert answer.payload == b""
    assert follower.take(answer) is None


def test_an_incarnation_that_has_a_successor_gets_no_image(served: Any) -> None:
    request = ImageFetchRequest(broker_id=7, broker_epoch=epoch(served) - 1)
    assert served.ask(request, 0).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_knows_of_a_later_controller_gets_no_image(served: Any) -> None:
    later = served.broker.image.controller_epoch + 1
    request = ImageFetchRequest(broker_id=1, broker_epoch=9, controller_epoch=later)
    assert served.ask(request, 0).error_code == ErrorCode.NOT_CONTROLLER


def test_a_notice_makes_the_controller_read(served: Any) -> None:
    served.create("t")
    topics = [ChangedTopic(name="t", partitions=[0, 9]), ChangedTopic(name="x", partitions=[0])]
    notice = PartitionsChangedRequest(broker_id=7, broker_epoch=epoch(served), topics=topics)
    assert served.ask(notice, 0).error_code == ErrorCode.NONE


def test_a_broker_need_not_wait_for_what_only_it_has_before_it_goes(served: Any) -> None:
    served.create("t", 3)
    request = BrokerShutdownRequest(broker_id=7, broker_epoch=epoch(served))
    answer = served.ask(request, 0)
    assert (answer.error_code, answer.remaining) == (ErrorCode.NONE, 0)
    assert not served.broker.controller.image.brokers[7].is_active


def test_only_the_incarnation_that_runs_can_go(served: Any) -> None:
    for broker_id, broker_epoch in ((7, epoch(served) - 1), (8, 1)):
        request = BrokerShutdownRequest(broker_id=broker_id, broker_epoch=broker_epoch)
        assert served.ask(request, 0).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert served.broker.controller.image.brokers[7].is_active


@pytest.mark.parametrize(
    "request_class", [ImageFetchRequest, PartitionsChangedRequest, BrokerShutdownRequest]
)
def test_who_is_not_the_controller_says_so(served: Any, request_class: type[Request]) -> None:
    controller, served.broker.controller = served.broker.controller, None
    try:
        answer = served.ask(request_class(), 0)
    finally:
        served.broker.controller = controller
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
