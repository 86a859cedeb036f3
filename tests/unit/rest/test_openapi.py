"""The document of what is served says what is served."""

import asyncio
import re
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager

import pytest

from penstock.http.handlers import BaseRoute, Route
from penstock.rest.config import RestConfig
from penstock.rest.openapi import SCHEMAS, V2, V3, ApiCall, document, page, routes
from penstock.rest.proxy import Proxy
from penstock.rest.v2.routes import routes as v2_routes
from penstock.rest.v3.routes import routes as v3_routes

Routes = Callable[[Proxy], AbstractAsyncContextManager[list[BaseRoute]]]


def served_by(found: Iterable[BaseRoute]) -> set[tuple[str, str]]:
    """Methods and paths, as the document writes them."""
    return {
        (method, re.sub(r":segment\}", "}", route.path))
        for route in found
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }


async def paths_of(version: Routes) -> set[tuple[str, str]]:
    config = RestConfig.of({"bootstrap.servers": "127.0.0.1:9"})
    async with Proxy.open(config) as proxy, version(proxy) as found:
        return served_by(found)


@pytest.mark.parametrize(("version", "told"), [(v2_routes, V2), (v3_routes, V3)])
def test_every_route_is_in_the_document_and_nothing_else(
    version: Routes, told: tuple[ApiCall, ...]
) -> None:
    own = served_by(routes())
    assert asyncio.run(paths_of(version)) - own == {(one.method, one.path) for one in told}


def test_every_schema_that_is_mentioned_is_there() -> None:
    mentioned = set(re.findall(r"#/components/schemas/(\w+)", str(document())))
    assert mentioned <= SCHEMAS.keys()


def test_the_page_takes_nothing_from_other_hosts() -> None:
    assert "://" not in page()
    assert "<script" not in page()
    assert all(one.path.replace("{", "{") in page() for one in (*V3, *V2))
