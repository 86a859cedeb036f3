"""The proxy's HTTP interface as one application: both versions of the API beside each other.

They are two services, because they differ in the media types they offer; the path says which one
is meant. Whatever is not version 3 is version 2, whose paths have no number in front.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from penstock.http.handlers import ASGIApp, Receive, Scope, Send
from penstock.http.origins import OwnPages
from penstock.http.service import Guard, Served, service
from penstock.rest.errors import translate
from penstock.rest.proxy import Proxy

_V3 = "/v3"
_JSON = "application/json"


@asynccontextmanager
async def application(proxy: Proxy, guard: Guard | None = None) -> AsyncIterator[ASGIApp]:
    """The application, for as long as what its routes hold is open."""
    async with AsyncExitStack() as stack:
        v2, v3 = await _v2(proxy, guard, stack), await _v3(proxy, guard, stack)
        yield OwnPages(_ByVersion(v2=v2, v3=v3), proxy.config.advertised)


async def _v2(proxy: Proxy, guard: Guard | None, stack: AsyncExitStack) -> ASGIApp:
    if not proxy.config.v2_enabled:
        return service([], Served(offered=[_JSON]), guard=guard)
    from penstock.rest.v2 import routes as v2  # Not loaded where it is not served.

    routes = await stack.enter_async_context(v2.routes(proxy))
    return service(routes, _served(proxy, v2.OFFERED), translate=translate, guard=guard)


async def _v3(proxy: Proxy, guard: Guard | None, stack: AsyncExitStack) -> ASGIApp:
    if not proxy.config.v3_enabled:
        return service([], Served(offered=[_JSON]), guard=guard)
    from penstock.rest.v3 import routes as v3  # Not loaded where it is not served.

    routes = await stack.enter_async_context(v3.routes(proxy))
    return service(routes, _served(proxy, v3.OFFERED), translate=translate, guard=guard)


class _ByVersion:
    """Gives each request to the service of its version."""

    def __init__(self, *, v2: ASGIApp, v3: ASGIApp) -> None:
        self._v2 = v2
        self._v3 = v3

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        is_newer = path == _V3 or path.startswith((f"{_V3}/", "/openapi"))
        await (self._v3 if is_newer else self._v2)(scope, receive, send)


def _served(proxy: Proxy, offered: tuple[str, ...]) -> Served:
    return Served(offered=offered, body_bytes_max=proxy.config.body_bytes_max)
