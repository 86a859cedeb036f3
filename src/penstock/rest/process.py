"""The REST proxy's process: sockets, clients, the HTTP server, and a stop in good order.

    listeners bound → clients made → requests answered

The brokers need not be there yet: a request that comes too early is told so. A signal takes no new
connections, ends the answers that have no end, lets the others end, and then leaves the brokers.
"""

import asyncio
import contextlib
import logging
import resource
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from penstock.http.doors import guarding, server_context, serving_all
from penstock.http.server import Limits, listen
from penstock.http.service import OpenService
from penstock.http.signals import stop_on_signals
from penstock.rest.application import application
from penstock.rest.config import RestConfig
from penstock.rest.proxy import Proxy

log = logging.getLogger("penstock.rest")

_OTHER_CONNECTIONS = 1000  # Beside the streams.


async def run(config: RestConfig) -> None:
    """Until a signal comes."""
    stopping = asyncio.Event()
    stop_on_signals(stopping)
    for warning in config.warnings:
        log.warning("%s", warning)
    async with serving_rest(config):
        await stopping.wait()
        log.info("Shutting down the REST proxy")


@asynccontextmanager
async def serving_rest(config: RestConfig) -> AsyncIterator[tuple[int, ...]]:
    """A proxy that answers in the caller's event loop while the context is open; its ports."""
    async with AsyncExitStack() as stack:
        sockets = [listen(one.host, one.port) for one in config.listeners]
        for listener in sockets:
            stack.callback(listener.close)
        opened = await stack.enter_async_context(open_service(config))
        server = serving_all(
            opened.app,
            config.listeners,
            sockets,
            tls=opened.tls,
            limits=limits_of(config),
            with_sockets=True,
        )
        ports = await stack.enter_async_context(server)
        stack.callback(opened.end_streams)
        log.info("Server started, listening for requests on port %s", ", ".join(map(str, ports)))
        yield ports


def _allow_open_files() -> None:
    """Each stream keeps a connection open; the usual 1,024 descriptors are soon used up."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@asynccontextmanager
async def open_service(config: RestConfig) -> AsyncIterator[OpenService]:
    """A proxy with its clients, to be served by whoever has the sockets."""
    tls = server_context(config.tls, config.listeners)
    async with (
        guarding(config.access) as guard,
        Proxy.open(config) as proxy,
        application(proxy, guard) as app,
    ):
        yield OpenService(app=app, tls=tls, end_streams=proxy.stopping.set)


def limits_of(config: RestConfig) -> Limits:
    """Room for every stream that is granted, and for the other requests."""
    return Limits(connections_max=config.streams_max + _OTHER_CONNECTIONS)
