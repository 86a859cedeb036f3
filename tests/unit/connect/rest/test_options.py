"""OPTIONS tells the methods of a path, as Connect's own server does."""

import asyncio

import httpx
from starlette.applications import Starlette

from penstock.connect.rest.options import with_options
from penstock.http.handlers import Request, Response, Route


async def handle(request: Request) -> Response:
    return Response(request.method)


def test_each_path_tells_the_methods_of_all_its_routes() -> None:
    routes = [
        Route("/loggers/{name:segment}", handle, methods=["GET"]),
        Route("/loggers/{name:segment}", handle, methods=["PUT"]),
        Route("/restart", handle, methods=["POST"]),
    ]
    app = Starlette(routes=with_options(routes))

    async def ask(method: str, path: str) -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://worker") as client:
            return await client.request(method, path)

    told = asyncio.run(ask("OPTIONS", "/loggers/root"))
    assert (told.status_code, told.text) == (200, "GET, HEAD, OPTIONS, PUT")
    assert told.headers["allow"] == told.text
    assert asyncio.run(ask("OPTIONS", "/restart")).text == "OPTIONS, POST"
    assert asyncio.run(ask("PUT", "/loggers/root")).text == "PUT"
    assert asyncio.run(ask("DELETE", "/loggers/root")).status_code == 405
    assert asyncio.run(ask("OPTIONS", "/nothing")).status_code == 404
