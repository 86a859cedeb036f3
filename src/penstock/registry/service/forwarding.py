"""Writes go to the leader: done here if this instance leads, else passed on as they came.

A request that was passed on carries `X-Forward: true` and is not passed on again. Its answer says
how far the leader had read then, and goes out when we have read as far: whoever asks here next
finds what he has made. A request that could not be handed over, because nobody listens there any
more, waits for the next leader; one that was handed over and not answered is told to the client,
since it may have been carried out.
"""

import asyncio
import http.client
import ssl
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

from penstock.errors import PenstockError
from penstock.http.bodies import read_body
from penstock.http.handlers import Request, Response
from penstock.http.whole_answers import read_whole
from penstock.registry import errors
from penstock.registry.election import InstanceIdentity
from penstock.registry.service.leadership import Leadership
from penstock.registry.service.store import NotLeading, SchemaStore

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
Shortcut: TypeAlias = Callable[[Request], Awaitable[Response | None]]

FORWARDED = "X-Forward"
_CARRIED = ("accept", "authorization", "content-type")
POSITION = "X-Penstock-Position"
_ANSWER_BYTES_MAX = 64 << 20
_PAUSE_S = 0.1
_FORWARDS_MAX = 32


class NotDelivered(PenstockError):
    """The leader could not be reached; it knows nothing of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardSettings:
    """How to reach a leader."""

    timeout_s: float
    tls: ssl.SSLContext | None = None  # For leaders at https; None: the system's authorities.
    headers: Sequence[str] = ()  # Further headers of the client that go along.


class LeaderWrites:
    """Wraps the handlers that write."""

    def __init__(
        self, store: SchemaStore, leadership: Leadership, settings: ForwardSettings
    ) -> None:
        self._store = store
        self._leadership = leadership
        self._settings = settings
        self._threads = ThreadPoolExecutor(_FORWARDS_MAX, thread_name_prefix="registry-forward")

    def by_leader(self, handle: Handler, *, known: Shortcut | None = None) -> Handler:
        """The handler, run where the leader is; `known` may answer where there is nothing to do."""

        async def handled(request: Request) -> Response:
            await read_body(request)  # It may be needed twice, and a slow one holds up nobody.
            if known is not None and not self._leadership.is_leading():
                answer = await known(request)
                if answer is not None:
                    return answer
            return await self._decide(request, handle)

        return handled

    async def _decide(self, request: Request, handle: Handler) -> Response:
        deadline_s = asyncio.get_running_loop().time() + self._settings.timeout_s
        failure: PenstockError = errors.leader_unknown()
        while asyncio.get_running_loop().time() < deadline_s:
            try:
                if self._leadership.is_leading():
                    return self._told_position(request, await handle(request))
                leader = self._leadership.leader
                if leader is not None and not self._leadership.is_chosen:
                    return await self._forward(request, leader)
            except NotLeading:
                failure = errors.leader_unknown()
            except NotDelivered as error:
                failure = errors.forwarding_failed(str(error))
            else:
                await self._leadership.wait_for_change(deadline_s)
                continue
            await asyncio.sleep(_PAUSE_S)  # Who leads is about to be told.
        raise failure

    def _told_position(self, request: Request, answer: Response) -> Response:
        if _is_forwarded(request):
            answer.headers[POSITION] = str(self._store.position)
        return answer

    async def _forward(self, request: Request, leader: InstanceIdentity) -> Response:
        if _is_forwarded(request):
            raise errors.leader_unknown()
        path = request.scope["path"]  # As it was sent: see http/paths.py.
        query = request.scope["query_string"].decode("latin-1")
        carried = (*_CARRIED, *(name.lower() for name in self._settings.headers))
        headers = {name: request.headers[name] for name in carried if name in request.headers}
        answer, position = await asyncio.get_running_loop().run_in_executor(
            self._threads,
            self._ask,
            leader,
            request.method,
            f"{path}?{query}" if query else path,
            await read_body(request),
            {**headers, FORWARDED: "true"},
        )
        if position.isdecimal() and len(position) < 20:  # Confluent's say nothing of it.
            await self._store.wait_until_read(int(position), self._settings.timeout_s)
        return answer

    def _ask(
        self, leader: InstanceIdentity, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> tuple[Response, str]:
        connection = self._connection(leader)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise NotDelivered(f"{leader.url} is not there: {error}") from error
            try:
                connection.request(method, path, body or None, headers)
                answer = connection.getresponse()
                content = read_whole(answer, _ANSWER_BYTES_MAX)
            except (OSError, http.client.HTTPException) as error:
                raise errors.forwarding_failed(f"{leader.url} did not answer: {error}") from error
            media = answer.getheader("content-type")
            made = Response(content, status_code=answer.status, media_type=media)
            return made, answer.getheader(POSITION) or ""
        finally:
            connection.close()

    def _connection(self, leader: InstanceIdentity) -> http.client.HTTPConnection:
        timeout_s = self._settings.timeout_s
        if leader.scheme == "https":
            context = self._settings.tls or ssl.create_default_context()
            return http.client.HTTPSConnection(
                leader.host, leader.port, timeout=timeout_s, context=context
            )
        return http.client.HTTPConnection(leader.host, leader.port, timeout=timeout_s)


def _is_forwarded(request: Request) -> bool:
    return request.headers.get(FORWARDED, "").lower() == "true"
