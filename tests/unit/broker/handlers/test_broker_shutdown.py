"""BrokerShutdown: a broker asks the controller for leave to go."""

from typing import Any

from penstock.errors import ErrorCode
from penstock.protocol.messages.broker_shutdown import BrokerShutdownRequest


def epoch(served: Any) -> int:
    known: int = served.broker.image.brokers[7].epoch
    return known


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


def test_who_is_not_the_controller_says_so(served: Any) -> None:
    controller, served.broker.controller = served.broker.controller, None
    try:
        answer = served.ask(BrokerShutdownRequest(), 0)
    finally:
        served.broker.controller = controller
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
