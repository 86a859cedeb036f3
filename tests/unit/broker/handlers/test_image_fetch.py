"""ImageFetch: a broker follows the cluster from its whole image by its changes."""

from typing import Any

from penstock.cluster.image.follower import ImageFollower
from penstock.errors import ErrorCode
from penstock.net.session import Session
from penstock.protocol.messages.image_fetch import ImageFetchRequest


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


def test_who_is_not_the_controller_says_so(served: Any) -> None:
    controller, served.broker.controller = served.broker.controller, None
    try:
        answer = served.ask(ImageFetchRequest(), 0)
    finally:
        served.broker.controller = controller
    assert answer.error_code == ErrorCode.NOT_CONTROLLER


class Member:
    """A member of a cluster that notes which brokers' pulls it lost."""

    def __init__(self) -> None:
        self.lost: list[tuple[int, int]] = []

    def on_pull_lost(self, broker_id: int, epoch: int) -> None:
        self.lost.append((broker_id, epoch))


def test_a_broker_whose_connection_breaks_is_missed_once_by_its_last_epoch(served: Any) -> None:
    member = served.broker.member = Member()
    session = Session(listener="PLAINTEXT", address="127.0.0.1:5")
    try:
        for broker_epoch in (8, 9):
            served.ask(ImageFollower().request(1, broker_epoch, max_wait_ms=0), 0, session=session)
        assert member.lost == []
        session.close()
    finally:
        served.broker.member = None
    assert member.lost == [(1, 9)]
