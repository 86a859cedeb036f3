"""Requests that another worker must answer: passed on, at most twice, as Apache's workers do it.

A request without `forward` comes from a user and goes to the leader with `forward=true`; the leader
may pass it on to an owner with `forward=false`, and there it ends.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias
from urllib.parse import parse_qsl, urlencode

from penstock.connect.group.peers import PeerAnswer, WorkerPeers
from penstock.connect.group.session_keys import SIGNATURE
from penstock.connect.herder.refusals import AskElsewhere, RequestRefused
from penstock.connect.rest.documents import call
from penstock.http.bodies import read_body
from penstock.http.handlers import HTTPConnection, Request, Response, Scope
from penstock.http.service import Guard

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

_FORWARD = "forward"
_CARRIED = ("accept", "authorization", "content-type", "x-connect-authorization",
            "x-connect-request-signature-algorithm")  # fmt: skip
_AT_ONCE_MAX = 32
_OK = range(200, 300)
_NO_LEADER = (
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was"
    " underway."
)
_TOO_FAR = (
    "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
)  # fmt: skip


class Forwarding:
    """Wraps handlers; `catch_up` reads what the other worker has written for the request."""

    def __init__(self, peers: WorkerPeers, catch_up: Callable[[], None]) -> None:
        self._peers = peers
        self._catch_up = catch_up
        self._threads = ThreadPoolExecutor(_AT_ONCE_MAX, thread_name_prefix="connect-forward")

    async def answered(self, request: Request, handle: Handler) -> Response:
        """The handler's answer, or that of the worker it names."""
        try:
            return await handle(request)
        except AskElsewhere as elsewhere:
            url = elsewhere.url
        query = forwarded_query(request.scope["query_string"].decode("latin-1"))
        if query is None:
            raise RequestRefused(409, _TOO_FAR)
        if url is None:
            raise RequestRefused(409, _NO_LEADER)
        path = f"{request.scope['path']}?{query}"  # As it was sent: see http/paths.py.
        body = await read_body(request)
        headers = {name: request.headers[name] for name in _CARRIED if name in request.headers}
        answer = await asyncio.get_running_loop().run_in_executor(
            self._threads, self._peers.pass_on, url, request.method, path, body, headers
        )
        if answer.status in _OK and request.method != "GET":
            await call(self._catch_up)  # Whoever asks here next finds what he has made.
        return _response(answer)


def forwarded_query(query: str) -> str | None:
    """The query to pass on with; None: it was passed on often enough."""
    pairs = parse_qsl(query, keep_blank_values=True)
    hops = [value.lower() for name, value in pairs if name == _FORWARD]
    if hops and hops[-1] != "true":
        return None
    kept = [(name, value) for name, value in pairs if name != _FORWARD]
    return urlencode([*kept, (_FORWARD, "false" if hops else "true")])


def unless_signed(guard: Guard) -> Guard:
    """A guard that lets requests of workers through: their signature is looked at behind it."""

    def watch(request: HTTPConnection) -> None:
        if not (SIGNATURE in request.headers and _is_internal(request.scope)):
            guard(request)

    return watch


def _is_internal(scope: Scope) -> bool:
    method, path = scope.get("method"), str(scope["path"]).rstrip("/")
    return (method, path.rpartition("/")[2]) in (("POST", "tasks"), ("PUT", "fence"))


def _response(answer: PeerAnswer) -> Response:
    made = Response(answer.body, status_code=answer.status, media_type=answer.media)
    if answer.location is not None:
        made.headers["location"] = answer.location
    return made
