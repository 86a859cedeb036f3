"""Whoever coordinates an id, looked for and asked until there is an answer that counts.

The rules of a real client: an answer that may pass is waited out, a coordinator that is not one any
more is looked for again, and a request that got no answer is sent again, since nobody knows what
became of it.
"""

from collections.abc import Callable
from typing import NamedTuple

from tests.simulation.clients import Client

from penstock.errors import ErrorCode
from penstock.net.peers import PeerUnreachable
from penstock.protocol.apis import Request, Response
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest

GROUP, TRANSACTION = 0, 1  # Types of keys.
_FIND_VERSION = 3

_ELSEWHERE = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
_LATER = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class Told(NamedTuple):
    """What came of asking."""

    error: ErrorCode
    answer: Response
    attempts: int  # How often it was sent so that it may have arrived, this time included.
    unanswered: int  # How many of these got no answer.


class Line:
    def __init__(self, client: Client, key: str, key_type: int) -> None:
        self.client = client
        self.key = key
        self._key_type = key_type
        self._coordinator: int | None = None  # None: to be looked for.

    async def ask(
        self,
        request: Request,
        *,
        version: int,
        code: Callable[[Response], int],
        timeout_s: float = 3.0,
    ) -> Told:
        attempts = unanswered = 0
        while True:
            coordinator = await self._found()
            try:
                answer = await self.client.ask(
                    coordinator, request, version=version, timeout_s=timeout_s
                )
            except PeerUnreachable as error:
                attempts += error.was_sent
                unanswered += error.was_sent
                await self._lost()
                continue
            attempts += 1
            told = ErrorCode(code(answer))
            self.client.history.trace.note("told", self.client.name, told.name)
            if told in _ELSEWHERE:
                await self._lost()
            elif told in _LATER:
                await self.client.nap(0.1)
            else:
                return Told(told, answer, attempts, unanswered)

    async def _lost(self) -> None:
        self._coordinator = None
        await self.client.nap(0.1)

    async def _found(self) -> int:
        request = FindCoordinatorRequest(key=self.key, key_type=self._key_type)
        while self._coordinator is None:
            try:
                answer = await self.client.ask_any(request, version=_FIND_VERSION)
            except PeerUnreachable:
                await self.client.nap(0.1)
                continue
            if answer.error_code == ErrorCode.NONE:
                self._coordinator = answer.node_id
            elif answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                await self.client.nap(0.2)
            else:
                code = ErrorCode(answer.error_code)
                self.client.history.violate(f"FindCoordinator of {self.key} failed: {code.name}")
                await self.client.nap(0.5)
        return self._coordinator
