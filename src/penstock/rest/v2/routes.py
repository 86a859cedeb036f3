"""The routes of version 2, for as long as they are entered."""

import asyncio
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
        ending = asyncio.create_task(_end_at_stop(proxy, instances), name="end of consumers")
        yield [
            *TopicRoutes(proxy.brokers).routes(),
            *ProduceRoutes(proxy, schemas).routes(),
            *ConsumerRoutes(proxy.config, instances).routes(),
        ]
        if not proxy.stopping.is_set():
            ending.cancel()
        await asyncio.wait([ending])


async def _end_at_stop(proxy: Proxy, instances: ConsumerInstances) -> None:
    """The server waits for answers that are under way, and a read may wait for minutes."""
    await proxy.stopping.wait()
    await instances.end_all()
