"""Which web pages may ask us: our own alone.

A browser lets any page send simple requests and open WebSockets to any host, also to one that
listens on loopback only, and says in `Origin` whose page it is. Other programs send no such header.
"""

from typing import TYPE_CHECKING, Final

from penstock.http.bodies import as_json

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_REFUSED: Final = 1008  # The code with which a WebSocket closes.
_JSON: Final = "application/json"


def is_own_page(origin: str | None, host: str | None, advertised: str = "") -> bool:
    """Whether a request comes from no page, or from one of ours."""
    if origin is None:
        return True
    return origin.partition("://")[2] == host or (bool(advertised) and origin == advertised)


class OwnPages:
    """Refuses what pages of other hosts send."""

    def __init__(self, app: "ASGIApp", advertised: str = "") -> None:
        self._app = app
        self._advertised = advertised

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        headers = {name: value.decode("latin-1") for name, value in scope.get("headers", ())}
        if is_own_page(headers.get(b"origin"), headers.get(b"host"), self._advertised):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _REFUSED})
        else:
            said = {"error_code": 403, "message": "A page of another host cannot use this service."}
            await as_json(said, media=_JSON, status=403)(scope, receive, send)
