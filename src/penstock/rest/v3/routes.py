"""The routes of version 3, for as long as they are entered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock.http.handlers import BaseRoute
from penstock.rest import openapi
from penstock.rest.brokers import Brokers
from penstock.rest.proxy import Proxy
from penstock.rest.v3.acls import RuleResources
from penstock.rest.v3.clusters import ClusterResources
from penstock.rest.v3.configs import SettingResources
from penstock.rest.v3.groups import GroupResources
from penstock.rest.v3.produce import StreamedProduce
from penstock.rest.v3.records import PartitionRecords
from penstock.rest.v3.streams.hub import StreamHub
from penstock.rest.v3.streams.routes import StreamRoutes
from penstock.rest.v3.topics import TopicResources

OFFERED = ("application/json",)
_READERS = 16  # How many may wait for records of the past at the same time.


@asynccontextmanager
async def routes(proxy: Proxy) -> AsyncIterator[list[BaseRoute]]:
    """The routes; what they hold, such as readers of topics, is closed at the end."""
    produce = StreamedProduce(proxy)
    async with (
        Brokers.open(proxy.config.admin, admins=_READERS) as readers,
        StreamHub.open(proxy, readers) as hub,
    ):
        ending = asyncio.create_task(_end_at_stop(proxy, produce, hub), name="end of streams")
        # Paths with `-` for all come before those with a name: configs before topics and clusters.
        yield [
            *SettingResources(proxy).routes(),
            *TopicResources(proxy).routes(),
            *produce.routes(),
            *PartitionRecords(proxy, readers).routes(),
            *StreamRoutes(proxy, hub).routes(),
            *GroupResources(proxy).routes(),
            *RuleResources(proxy).routes(),
            *ClusterResources(proxy).routes(),
            *openapi.routes(),
        ]
        ending.cancel()


async def _end_at_stop(proxy: Proxy, produce: StreamedProduce, hub: StreamHub) -> None:
    """The server waits for answers that are under way, and some have no end of their own."""
    await proxy.stopping.wait()
    produce.end()
    hub.end()
