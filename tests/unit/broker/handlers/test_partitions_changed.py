"""PartitionsChanged: a leader tells the controller what to read again."""

from typing import Any

from penstock.errors import ErrorCode
from penstock.protocol.messages.partitions_changed import (
    ChangedTopic,
    PartitionsChangedRequest,
)


def epoch(served: Any) -> int:
    known: int = served.broker.image.brokers[7].epoch
    return known


def test_a_notice_makes_the_controller_read(served: Any) -> None:
    served.create("t")
    topics = [ChangedTopic(name="t", partitions=[0, 9]), ChangedTopic(name="x", partitions=[0])]
    notice = PartitionsChangedRequest(broker_id=7, broker_epoch=epoch(served), topics=topics)
    assert served.ask(notice, 0).error_code == ErrorCode.NONE


def test_who_is_not_the_controller_says_so(served: Any) -> None:
    controller, served.broker.controller = served.broker.controller, None
    try:
        answer = served.ask(PartitionsChangedRequest(), 0)
    finally:
        served.broker.controller = controller
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
