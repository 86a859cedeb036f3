"""A service as an ASGI application: its routes, with everything around them that all share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute, Router

from penstock.http.bodies import SERVED
from penstock.http.error_answers import Document, ErrorAnswers, Translate
from penstock.http.errors import HttpError, plain_document
from penstock.http.health import Health
from penstock.http.paths import UndecodedPaths

if TYPE_CHECKING:
    import asyncio
    import ssl

    from starlette.types import ASGIApp, Receive, Scope, Send

Guard: TypeAlias = Callable[[HTTPConnection], None]

_BODY_BYTES_MAX = 16 << 20
_BODY_TIMEOUT_S = 30.0
_REFUSED = 1008  # The code with which a WebSocket closes for somebody without the right.


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a service takes and offers."""

    offered: Sequence[str]  # Media types, the first one where the client does not care.
    body_bytes_max: int = _BODY_BYTES_MAX
    body_timeout_s: float = _BODY_TIMEOUT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenService:
    """A service that can be served, for as long as the context is open that it comes from."""

    app: "ASGIApp"
    failing: "asyncio.Future[None] | None" = None  # Raises what ends it; None: nothing does.
    tls: "ssl.SSLContext | None" = None  # For its listeners of https.
    end_streams: Callable[[], object] = lambda: None  # Before the server stops: they have no end.


def service(
    routes: Sequence[BaseRoute],
    served: Served,
    *,
    health: Health | None = None,  # None: always ready and well.
    document: Document = plain_document,
    translate: Translate = lambda _: None,
    guard: Guard | None = None,  # None: whoever reaches the port may use it.
) -> "ASGIApp":
    """The application; `translate` makes an HttpError of the service's own errors, or None."""
    own = (health or Health()).routes()
    # A slash too many is another path: a redirect would lose the body of a POST in some clients.
    router = Router(routes=[*own, *routes], redirect_slashes=False)
    guarded = router if guard is None else _Guarded(router, guard)
    answering = ErrorAnswers(guarded, document=document, translate=translate)
    return _Serving(UndecodedPaths(answering), served)


class _Guarded:
    """Asks the guard before anything is routed; an HttpError that it raises is the answer."""

    def __init__(self, app: "ASGIApp", guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        try:
            self._guard(HTTPConnection(scope))
        except HttpError:
            if scope["type"] != "websocket":
                raise
            await send({"type": "websocket.close", "code": _REFUSED})  # An answer of HTTP: 403.
        else:
            await self._app(scope, receive, send)


class _Serving:
    """Puts what the service takes and offers where bodies and errors find it."""

    def __init__(self, app: "ASGIApp", served: Served) -> None:
        self._app = app
        self._served = served

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        await self._app({**scope, SERVED: self._served}, receive, send)
