"""The REST proxy's process: sockets, clients, the HTTP server, and a stop in good order.

    listeners bound → clients made → requests answered

The brokers need not be there yet: a request that comes too early is told so. A signal takes no new
connections, ends the answers that have no end, lets the others end, and then leaves the brokers.
"""

import asyncio
import contextlib
import logging
import resource
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from penstock.http.server import Limits, listen, serving
from penstock.rest.application import application
from penstock.rest.config import RestConfig
from penstock.rest.proxy import Proxy

log = logging.getLogger("penstock.rest")

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_OTHER_CONNECTIONS = 1000  # Beside the streams.


async def run(config: RestConfig) -> None:
    """Until a signal comes."""
    for warning in config.warnings:
        log.warning("%s", warning)
    _allow_open_files()
    stopping = asyncio.Event()
    _stop_on_signals(stopping)
    async with serving_rest(config):
        await stopping.wait()
        log.info("Shutting down the REST proxy")


@asynccontextmanager
async def serving_rest(config: RestConfig) -> AsyncIterator[tuple[int, ...]]:
    """A proxy that answers in the caller's event loop while the context is open; its ports."""
    async with AsyncExitStack() as stack:
        listeners = [listen(host, port) for host, port in config.listeners]
        for listener in listeners:
            stack.callback(listener.close)
        proxy = await stack.enter_async_context(Proxy.open(config))
        app = await stack.enter_async_context(application(proxy))
        limits = Limits(connections_max=config.streams_max + _OTHER_CONNECTIONS)
        server = serving(app, listeners, limits=limits, with_sockets=True)
        ports = await stack.enter_async_context(server)
        stack.callback(proxy.stopping.set)
        log.info("Server started, listening for requests on port %s", ", ".join(map(str, ports)))
        yield ports


def _allow_open_files() -> None:
    """Each stream keeps a connection open; the usual 1,024 descriptors are soon used up."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _stop_on_signals(stopping: asyncio.Event) -> None:
    """The first signal stops in good order, the second one at once."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)  # The kernel's own way is to end the process.
            signal.signal(number, signal.SIG_DFL)
        stopping.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
