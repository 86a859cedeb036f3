"""The routes of version 3, for as long as they are entered."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock.http.handlers import Route
from penstock.rest.proxy import Proxy

OFFERED = ("application/json",)


@asynccontextmanager
async def routes(proxy: Proxy) -> AsyncIterator[list[Route]]:
    """The routes; what they hold, such as readers of topics, is closed at the end."""
    yield []
