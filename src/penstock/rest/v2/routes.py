"""The routes of version 2, for as long as they are entered."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock.http.handlers import Route
from penstock.rest.proxy import Proxy
from penstock.rest.v2.consumers import ConsumerRoutes
from penstock.rest.v2.instances import ConsumerInstances
from penstock.rest.v2.media import OFFERED as OFFERED
from penstock.rest.v2.produce import ProduceRoutes
from penstock.rest.v2.schemas import Schemas
from penstock.rest.v2.topics import TopicRoutes


@asynccontextmanager
async def routes(proxy: Proxy) -> AsyncIterator[list[Route]]:
    """The routes; the consumers that clients have here are closed at the end."""
    schemas = Schemas(proxy.schemas)
    async with ConsumerInstances.open(proxy.config, schemas) as instances:
        yield [
            *TopicRoutes(proxy.brokers).routes(),
            *ProduceRoutes(proxy, schemas).routes(),
            *ConsumerRoutes(proxy.config, instances).routes(),
        ]
