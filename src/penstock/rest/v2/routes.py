"""The routes of version 2, for as long as they are entered."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock.http.handlers import Route
from penstock.rest.proxy import Proxy

OFFERED = ("application/vnd.kafka.v2+json", "application/vnd.kafka+json", "application/json")


@asynccontextmanager
async def routes(proxy: Proxy) -> AsyncIterator[list[Route]]:
    """The routes; what they hold, such as consumers, is closed at the end."""
    yield []
