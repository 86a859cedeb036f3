"""Requests on their way to the controller: found, asked once too often never, told when lost."""

import asyncio
from collections.abc import Callable

import pytest
from tests.unit.broker.fake_peers import FakePeers

from penstock.broker.membership.forwarding import ControllerLine, Forwarder
from penstock.errors import ErrorCode, NotController, PolicyViolation, RequestTimedOut
from penstock.net.peers import PeerUnreachable
from penstock.protocol.apis import Request, Response
from penstock.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.protocol.messages.forward import ForwardRequest, ForwardResponse
from penstock.protocol.messages.partitions_changed import (
    PartitionsChangedRequest,
    PartitionsChangedResponse,
)

ME = 1


class _Location:
    """Its holder changes each time somebody waits for a change."""

    def __init__(self, *holders: int | None) -> None:
        self._holders = list(holders)

    @property
    def controller_id(self) -> int | None:
        return self._holders[0]

    async def wait_for_change(self, timeout_s: float) -> bool:
        await asyncio.sleep(0)
        if len(self._holders) > 1:
            self._holders.pop(0)
        return True


async def _nobody_here(_request: Request) -> Response:
    raise AssertionError("this broker is not the controller")


def _line(
    location: _Location, peers: FakePeers, here: Callable[[Request], object] = _nobody_here
) -> ControllerLine:
    return ControllerLine(broker_id=ME, location=location, peers=peers, here=here)  # type: ignore[arg-type]


def _ask(line: ControllerLine, find_s: float = 5.0) -> Response:
    notice = PartitionsChangedRequest(broker_id=ME)
    return asyncio.run(line.ask(notice, find_s=find_s, answer_s=5.0))


def test_whoever_is_elected_next_is_asked_next() -> None:
    def answer(broker_id: int, _request: Request) -> Response:
        if broker_id == 2:
            return PartitionsChangedResponse(error_code=ErrorCode.NOT_CONTROLLER)
        return PartitionsChangedResponse()

    peers = FakePeers(answer)
    answered = _ask(_line(_Location(None, 2, 3), peers))
    assert answered == PartitionsChangedResponse()
    assert [broker_id for broker_id, _ in peers.asked] == [2, 3]


def test_a_controller_in_this_process_is_asked_without_a_network() -> None:
    async def here(_request: Request) -> Response:
        return PartitionsChangedResponse(error_code=7)

    peers = FakePeers()
    assert _ask(_line(_Location(ME), peers, here)) == PartitionsChangedResponse(error_code=7)
    assert peers.asked == []


def test_without_a_controller_the_caller_is_told_after_a_while() -> None:
    with pytest.raises(NotController, match="could not be asked"):
        _ask(_line(_Location(None), FakePeers()), find_s=0.01)


def test_a_request_that_was_sent_is_not_sent_again() -> None:
    def lose(_broker_id: int, _request: Request) -> Response:
        raise PeerUnreachable("the connection was lost")

    peers = FakePeers(lose)
    with pytest.raises(PeerUnreachable):
        _ask(_line(_Location(2), peers))
    assert len(peers.asked) == 1


def _forwarder(peers: FakePeers, images: list[tuple[int, int]]) -> Forwarder:
    async def until_image(controller_epoch: int, seq: int, _timeout_s: float) -> bool:
        images.append((controller_epoch, seq))
        return True

    return Forwarder(_line(_Location(2), peers), until_image=until_image)


def test_the_answer_waits_for_the_image_it_rests_on() -> None:
    made = CreateTopicsResponse(topics=[CreatableTopicResult(name="t")])

    def answer(_broker_id: int, _request: Request) -> Response:
        return ForwardResponse(controller_epoch=4, seq=9, body=made.encode(7))

    peers, images = FakePeers(answer), list[tuple[int, int]]()
    forwarder = _forwarder(peers, images)
    request = CreateTopicsRequest(timeout_ms=5)
    answered = asyncio.run(forwarder.ask(request, client_id="broker-1", listener="INSIDE"))
    assert answered == made
    assert images == [(4, 9)]
    ((broker_id, envelope),) = peers.asked
    assert isinstance(envelope, ForwardRequest)
    assert (broker_id, envelope.client_id, envelope.listener) == (2, "broker-1", "INSIDE")
    assert CreateTopicsRequest.decode(envelope.body, 7) == request


def test_an_error_of_the_controller_is_the_clients() -> None:
    def refuse(_broker_id: int, _request: Request) -> Response:
        return ForwardResponse(error_code=ErrorCode.POLICY_VIOLATION, error_message="no")

    forwarder = _forwarder(FakePeers(refuse), [])
    with pytest.raises(PolicyViolation, match="no"):
        asyncio.run(forwarder.ask(CreateTopicsRequest(), client_id="b", listener="L"))


def test_a_lost_answer_is_told_as_one_that_may_have_happened() -> None:
    def lose(_broker_id: int, _request: Request) -> Response:
        raise PeerUnreachable("the connection was lost")

    forwarder = _forwarder(FakePeers(lose), [])
    with pytest.raises(RequestTimedOut, match="may have been carried out"):
        asyncio.run(forwarder.ask(CreateTopicsRequest(), client_id="b", listener="L"))
