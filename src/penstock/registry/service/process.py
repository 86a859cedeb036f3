"""The registry's process: sockets, the store, the HTTP server, and a stop in good order.

    listeners bound → topic prepared → everything in it read → part of the group → requests answered

Who leads is settled while it answers already: reads need no leader, and writes wait for one. A
signal takes no new connections, lets what is under way end, and then leaves the topic.
"""

import asyncio
import gc
import logging
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from penstock.client.errors import BrokerUnreachableError, KafkaTimeoutError
from penstock.errors import RetriableError
from penstock.http.basic_auth import BasicAuth, read_users
from penstock.http.server import listen, serving
from penstock.registry.service.application import RegistryNames, application
from penstock.registry.service.config import RegistryConfig
from penstock.registry.service.forwarding import LeaderWrites
from penstock.registry.service.leadership import Leadership
from penstock.registry.service.membership import taking_part
from penstock.registry.service.peers import forward_settings, own_identity, tls_contexts
from penstock.registry.service.preparing import prepare_topic
from penstock.registry.service.store import SchemaStore
from penstock.registry.service.topic import KafkaTopic
from penstock.registry.state import RegistryState

log = logging.getLogger("penstock.registry")

_PAUSE_S = 0.2
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def run(config: RegistryConfig) -> None:
    """Until a signal comes; raises what makes it impossible to go on."""
    for warning in config.warnings:
        log.warning("%s", warning)
    stopping, has_started = asyncio.Event(), asyncio.Event()
    starting = asyncio.current_task()
    assert starting is not None
    # A signal also ends the wait for the brokers.
    _stop_on_signals(stopping, lambda: None if has_started.is_set() else starting.cancel())
    try:
        async with _serving(config) as ends:
            has_started.set()
            await _wait_until_stopped_or_failed(stopping, ends)
            log.info("Shutting down the schema registry")
    except asyncio.CancelledError:
        if has_started.is_set() or not stopping.is_set():
            raise
        log.info("The schema registry was told to stop before it had started")


@asynccontextmanager
async def _serving(config: RegistryConfig) -> AsyncIterator["set[asyncio.Future[None]]"]:
    """A registry that answers while the context is open; what ends when it cannot go on."""
    async with AsyncExitStack() as stack:
        listeners = [(one.scheme, listen(one.host, one.port)) for one in config.listeners]
        for _, listener in listeners:
            stack.callback(listener.close)
        contexts = tls_contexts(config)  # Key stores and users are looked at before anybody waits.
        guard = _guard(config)
        names = RegistryNames(kafka_cluster_id=await _prepare(config), group_id=config.group_id)
        leadership = Leadership()
        topic = await stack.enter_async_context(KafkaTopic.open(config))
        store, following = await stack.enter_async_context(_followed(topic, config, leadership))
        identity = own_identity(config, [one.getsockname()[1] for _, one in listeners])
        failure = await stack.enter_async_context(taking_part(config, identity, leadership))
        writes = LeaderWrites(store, leadership, forward_settings(config, contexts.client))
        app = application(store, writes, guard, names)
        ports: list[int] = []
        for scheme in ("http", "https"):
            its = [listener for name, listener in listeners if name == scheme]
            tls = contexts.server if scheme == "https" else None
            if its:
                ports += await stack.enter_async_context(serving(app, its, tls=tls))
        log.info("Server started, listening for requests on port %s", ", ".join(map(str, ports)))
        yield {following, failure}


def _guard(config: RegistryConfig) -> BasicAuth | None:
    if config.basic is None:
        return None
    basic = config.basic
    users = read_users(basic.users_file)
    return BasicAuth(users, realm=basic.realm, roles=basic.roles, open_paths=basic.open_paths)


async def _prepare(config: RegistryConfig) -> str:
    """Prepare the topic; brokers that are not there yet are waited for. The cluster's id."""
    clock = asyncio.get_running_loop().time
    deadline_s = clock() + config.start_timeout_s
    while True:
        try:
            return await asyncio.to_thread(prepare_topic, config)
        except (RetriableError, BrokerUnreachableError, KafkaTimeoutError):
            if clock() > deadline_s:
                raise
        await asyncio.sleep(_PAUSE_S)


@asynccontextmanager
async def _followed(
    topic: KafkaTopic, config: RegistryConfig, leadership: Leadership
) -> AsyncIterator[tuple[SchemaStore, "asyncio.Task[None]"]]:
    """A store that has read all there is, and the task that goes on reading."""
    state = RegistryState(default_level=config.level)
    store = SchemaStore(topic, state, timeout_s=config.timeout_s, is_leading=leadership.is_leading)
    following = asyncio.create_task(store.follow(), name="schema reader")
    catching_up = asyncio.create_task(store.catch_up())
    tasks = {following, catching_up}
    try:
        with _without_collector():
            done, _ = await asyncio.wait(
                tasks, timeout=config.start_timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
        if not done:
            raise KafkaTimeoutError(
                f"The topic {config.topic} could not be read within {config.start_timeout_s:g} s."
            )
        for task in done:
            task.result()
        yield store, following
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        store.close()


@contextmanager
def _without_collector() -> Iterator[None]:
    """While only what stays is made, Python need not look for what can go; nor there later."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


async def _wait_until_stopped_or_failed(
    stopping: asyncio.Event, ends: "set[asyncio.Future[None]]"
) -> None:
    told = asyncio.create_task(stopping.wait())
    try:
        either: set[asyncio.Future[Any]] = {told, *ends}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            if end.done():
                end.result()
    finally:
        told.cancel()


def _stop_on_signals(stopping: asyncio.Event, also: Callable[[], object]) -> None:
    """The first signal stops in good order, the second one at once."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)  # The kernel's own way is to end the process.
            signal.signal(number, signal.SIG_DFL)
        stopping.set()
        also()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
