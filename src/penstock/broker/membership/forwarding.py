"""Passing on to the controller what only the controller can do.

A client may ask any broker. The request travels as it came, with the client's name and address, so
that quotas and the log see the client and not the broker between. Whoever passed it on answers
only after its own image has caught up, so that a client finds what it has just made.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

from penstock.broker.context import RequestContext
from penstock.errors import (
    ErrorCode,
    NotController,
    RequestTimedOut,
    error_for,
)
from penstock.net.peers import Peers, PeerUnreachable
from penstock.net.session import Session
from penstock.protocol.apis import Request, Response, response_class
from penstock.protocol.messages.forward import ForwardRequest, ForwardResponse

log = logging.getLogger("kafka.server.ForwardingManager")

_FIND_S = 10.0  # To find a controller; then the client is told that there is none.
_ANSWER_S = 30.0
_TIMEOUT_MS = 20_000  # Of a request that does not say how long it may take; clients wait 30 s.
_GRACE_S = 2.0  # For an answer of the controller that its own time is over.
_IMAGE_S = 1.0
_RETRY_S = 0.05


def timeout_s_of(request: Any) -> float:
    """How long the client of an administrative request means to wait for its answer."""
    return float(max(0, getattr(request, "timeout_ms", _TIMEOUT_MS))) / 1000


class ControllerLocation(Protocol):
    """Who the controller is, as far as this broker knows."""

    @property
    def controller_id(self) -> int | None: ...

    async def wait_for_change(self, timeout_s: float) -> bool:
        """Wait for another controller; False if the time is over first."""
        ...


AnswerHere = Callable[[Request], Awaitable[Response]]


class ControllerLine:
    """Asks the controller, wherever it is: in this process or behind the network."""

    def __init__(
        self, *, broker_id: int, location: ControllerLocation, peers: Peers, here: AnswerHere
    ) -> None:
        self._broker_id = broker_id
        self._location = location
        self._peers = peers
        self._here = here

    async def ask(self, request: Request, *, find_s: float, answer_s: float) -> Response:
        """The controller's answer; waits up to `find_s` for a controller if there is none.

        Raises NotController when there was none in time, and PeerUnreachable when the request was
        sent and its answer never came: it may have been carried out.
        """
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + find_s
        reason = "no broker is the controller now"
        while True:
            try:
                response = await self._ask_once(request, answer_s)
            except PeerUnreachable as error:
                if error.was_sent:
                    raise
                reason = str(error)
            else:
                if response is not None and not _is_not_controller(response):
                    return response
            left_s = deadline_s - loop.time()
            if left_s <= 0:
                raise NotController(f"the controller could not be asked: {reason}")
            await self._location.wait_for_change(min(left_s, _RETRY_S))

    async def _ask_once(self, request: Request, answer_s: float) -> Response | None:
        controller_id = self._location.controller_id
        if controller_id is None:
            return None
        if controller_id == self._broker_id:
            return await self._here(request)
        return await self._peers.ask(controller_id, request, timeout_s=answer_s)


def _is_not_controller(response: Any) -> bool:
    return int(response.error_code) == ErrorCode.NOT_CONTROLLER


def wrap_request(
    request: Request, version: int, *, client_id: str | None, session: Session
) -> ForwardRequest:
    """A client's request, and what the controller has to know of the client."""
    return ForwardRequest(
        inner_key=int(request.api_key),
        inner_version=version,
        principal=session.principal,
        client_id=client_id,
        client_host=session.address,
        listener=session.listener,
        body=request.encode(version),
    )


def session_of(envelope: ForwardRequest) -> Session:
    """The client's session, as far as the broker told that passed its request on."""
    return Session(
        listener=envelope.listener, address=envelope.client_host, principal=envelope.principal
    )


class Forwarder:
    """For a broker that is not the controller."""

    def __init__(
        self, line: ControllerLine, *, until_image: Callable[[int, int, float], Awaitable[bool]]
    ) -> None:
        self._line = line
        self._until_image = until_image

    async def forward(self, request: Request, context: RequestContext) -> Response:
        """What the controller answers to a client's request."""
        response = await self._pass_on(
            request, context.version, client_id=context.client_id, session=context.session
        )
        throttle_ms = getattr(response, "throttle_time_ms", 0)
        context.throttle_ms = max(context.throttle_ms, throttle_ms)
        return response

    async def ask(self, request: Request, *, client_id: str, listener: str) -> Response:
        """What the controller answers to a request of this broker's own."""
        own = Session(listener=listener, address="")
        return await self._pass_on(request, request.versions[-1], client_id=client_id, session=own)

    async def _pass_on(
        self, request: Request, version: int, *, client_id: str | None, session: Session
    ) -> Response:
        envelope = wrap_request(request, version, client_id=client_id, session=session)
        try:
            timeout_s = timeout_s_of(request)
            asked = await self._line.ask(
                envelope,
                find_s=max(_FIND_S, timeout_s),
                answer_s=max(_ANSWER_S, timeout_s + _GRACE_S),
            )
        except PeerUnreachable as error:
            log.warning("%s was sent to the controller: %s", request.api_key.name, error)
            raise RequestTimedOut(
                f"The controller did not answer; the request may have been carried out: {error}"
            ) from error
        answer = cast(ForwardResponse, asked)
        _raise_error(answer)
        if not await self._until_image(answer.controller_epoch, answer.seq, _IMAGE_S):
            log.info("The image of the controller's answer has not come within %g s", _IMAGE_S)
        return response_class(request.api_key).decode(answer.body, version)


def _raise_error(answer: ForwardResponse) -> None:
    if answer.error_code != ErrorCode.NONE:
        raise error_for(answer.error_code, answer.error_message or "")
