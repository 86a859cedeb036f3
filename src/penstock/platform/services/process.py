"""`penstock services`: sockets, a server for each service, and a stop in good order.

    listeners bound → servers that say "not yet" → services opened, each when it can be

A signal takes no new connections, lets what is under way end, and then leaves the services.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from penstock.http.doors import server_context, serving_all
from penstock.http.server import listen
from penstock.http.signals import stop_on_signals
from penstock.platform.services.keeper import ServiceKeeper
from penstock.platform.services.switch import ServiceSwitch
from penstock.platform.services.table import runner_of
from penstock.platform.settings import LIGHT, PlatformSettings, ServiceKind

log = logging.getLogger("penstock.services")


async def run(settings: PlatformSettings) -> None:
    """Until a signal comes; ConfigError for a port that cannot be had."""
    stopping = asyncio.Event()
    stop_on_signals(stopping)
    async with AsyncExitStack() as stack:
        for kind in LIGHT:
            if kind.name in settings.services:
                await stack.enter_async_context(_kept(kind, settings))
        await stopping.wait()
        log.info("Shutting down the services")


@asynccontextmanager
async def _kept(kind: ServiceKind, settings: PlatformSettings) -> AsyncIterator[None]:
    """A service that answers, or says why not, while the context is open."""
    config = kind.configure(settings.services[kind.name])
    for warning in config.warnings:
        log.warning("%s: %s", kind.name, warning)
    runner = runner_of(kind.name)
    switch = ServiceSwitch(kind.name, kind.title)
    keeper = ServiceKeeper(switch, runner, config)
    tls = server_context(config.tls, config.listeners)
    sockets = [listen(one.host, one.port) for one in config.listeners]
    async with AsyncExitStack() as stack:
        for listener in sockets:
            stack.callback(listener.close)
        keeping = asyncio.create_task(keeper.keep(), name=kind.name)
        stack.push_async_callback(_cancel, keeping)
        ports = await stack.enter_async_context(
            serving_all(
                switch,
                config.listeners,
                sockets,
                tls=tls,
                limits=runner.limits(config),
                with_sockets=runner.with_sockets,
                with_http2=runner.with_http2,
            )
        )
        stack.callback(keeper.end_streams)
        log.info("%s listens on port %s", kind.name, ", ".join(map(str, ports)))
        yield


async def _cancel(task: "asyncio.Task[None]") -> None:
    """End a task and wait until it has left what it had opened."""
    task.cancel()
    await asyncio.wait({task})
