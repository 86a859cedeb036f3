"""The registry's process: sockets, the store, the HTTP server, and a stop in good order.

    listeners bound → topic prepared → everything in it read → part of the group → requests answered

Who leads is settled while it answers already: reads need no leader, and writes wait for one. A
signal takes no new connections, lets what is under way end, and then leaves the topic.
"""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from penstock.client.errors import BrokerUnreachableError, KafkaTimeoutError
from penstock.errors import RetriableError
from penstock.http.doors import guarding, serving_all
from penstock.http.server import listen
from penstock.http.service import OpenService
from penstock.http.signals import stop_on_signals
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


async def run(config: RegistryConfig) -> None:
    """Until a signal comes; raises what makes it impossible to go on."""
    stopping, has_started = asyncio.Event(), asyncio.Event()
    starting = asyncio.current_task()
    assert starting is not None
    # A signal also ends the wait for the brokers.
    stop_on_signals(stopping, lambda: None if has_started.is_set() else starting.cancel())
    for warning in config.warnings:
        log.warning("%s", warning)
    try:
        async with _serving(config) as failing:
            has_started.set()
            await _wait_until_stopped_or_failed(stopping, failing)
            log.info("Shutting down the schema registry")
    except asyncio.CancelledError:
        if has_started.is_set() or not stopping.is_set():
            raise
        log.info("The schema registry was told to stop before it had started")


@asynccontextmanager
async def _serving(config: RegistryConfig) -> AsyncIterator["asyncio.Future[None]"]:
    """A registry that answers while the context is open; what ends when it cannot go on."""
    async with AsyncExitStack() as stack:
        sockets = [listen(one.host, one.port) for one in config.listeners]
        for listener in sockets:
            stack.callback(listener.close)
        opened = await stack.enter_async_context(
            open_service(config, [one.getsockname()[1] for one in sockets])
        )
        server = serving_all(opened.app, config.listeners, sockets, tls=opened.tls)
        ports = await stack.enter_async_context(server)
        log.info("Server started, listening for requests on port %s", ", ".join(map(str, ports)))
        assert opened.failing is not None
        yield opened.failing


@asynccontextmanager
async def open_service(
    config: RegistryConfig, ports: Sequence[int] = ()
) -> AsyncIterator[OpenService]:
    """A registry that has read all there is, to be served by whoever has the sockets.

    `ports` are those that the listeners really have; without them, those of the settings.
    """
    # Key stores and users are looked at before anybody waits.
    contexts = tls_contexts(config)
    async with guarding(config.access) as guard:
        names = RegistryNames(kafka_cluster_id=await _prepare(config), group_id=config.group_id)
        leadership = Leadership()
        identity = own_identity(config, ports or [one.port for one in config.listeners])
        async with (
            KafkaTopic.open(config) as topic,
            _followed(topic, config, leadership) as (store, following),
            taking_part(config, identity, leadership) as failure,
            _first_of(following, failure) as failing,
        ):
            writes = LeaderWrites(store, leadership, forward_settings(config, contexts.client))
            app = application(store, writes, guard, names)
            yield OpenService(app=app, failing=failing, tls=contexts.server)


@asynccontextmanager
async def _first_of(*ends: "asyncio.Future[None]") -> AsyncIterator["asyncio.Future[None]"]:
    """What ends as the first of them does."""

    async def wait() -> None:
        done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in done:
            end.result()

    waiting = asyncio.create_task(wait(), name="registry's end")
    try:
        yield waiting
    finally:
        waiting.cancel()
        await asyncio.wait({waiting})


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
    stopping: asyncio.Event, failing: "asyncio.Future[None]"
) -> None:
    told = asyncio.create_task(stopping.wait())
    either: set[asyncio.Future[Any]] = {told, failing}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if failing.done():
            failing.result()
    finally:
        told.cancel()
