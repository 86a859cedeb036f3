"""The routes of version 3, for as long as they are entered."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock.http.handlers import Route
from penstock.rest.proxy import Proxy
from penstock.rest.v3.acls import AclRoutes
from penstock.rest.v3.clusters import ClusterRoutes
from penstock.rest.v3.configs import ConfigRoutes
from penstock.rest.v3.groups import GroupRoutes
from penstock.rest.v3.topics import TopicRoutes

OFFERED = ("application/json",)


@asynccontextmanager
async def routes(proxy: Proxy) -> AsyncIterator[list[Route]]:
    """The routes; what they hold, such as readers of topics, is closed at the end."""
    # Paths with `-` for all come before those with a name, so configs before topics and clusters.
    yield [
        *ConfigRoutes(proxy).routes(),
        *TopicRoutes(proxy).routes(),
        *GroupRoutes(proxy).routes(),
        *AclRoutes(proxy).routes(),
        *ClusterRoutes(proxy).routes(),
    ]
