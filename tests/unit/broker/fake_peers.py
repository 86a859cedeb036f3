"""Peers without a network: what each broker answers is a function of the test's."""

from collections.abc import Callable
from typing import Any

from penstock.net.peers import PeerUnreachable
from penstock.protocol.apis import Request, Response

Answer = Callable[[int, Any], Response]


class FakePeers:
    """Notes who was asked what; `answer` may raise PeerUnreachable."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.asked: list[tuple[int, Any]] = []
        self.forgotten: list[int] = []
        self._answer = answer

    async def ask(
        self,
        broker_id: int,
        request: Request,
        *,
        timeout_s: float,
        channel: str = "control",
        version: int | None = None,
    ) -> Response:
        self.asked.append((broker_id, request))
        if self._answer is None:
            raise PeerUnreachable("nobody is there", is_refused=True, was_sent=False)
        return self._answer(broker_id, request)

    def forget(self, broker_id: int) -> None:
        self.forgotten.append(broker_id)
