"""The worker's process: sockets, the brokers, Spark, the herder, the HTTP server; a stop in order.

listeners bound → brokers asked → Spark started → topics read → group joined → requests answered →
tasks begin
"""

import asyncio
import contextlib
import logging
import secrets
import socket
import ssl
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from penstock.client.admin import Admin
from penstock.client.errors import BrokerUnreachableError, KafkaTimeoutError
from penstock.config.listeners import ANY_ADDRESS
from penstock.connect.group.membership import WorkerMembership
from penstock.connect.group.peers import WorkerPeers
from penstock.connect.herder.herder import Herder, Launch
from penstock.connect.herder.requests import ConnectRequests
from penstock.connect.java.connector import close_hosts
from penstock.connect.java.plugins import offer_java
from penstock.connect.rest.application import application
from penstock.connect.rest.forwarding import Forwarding
from penstock.connect.running.control import ControlServer
from penstock.connect.settings import WorkerSettings
from penstock.errors import PenstockError, RetriableError
from penstock.http.doors import guarding, server_context, serving_all
from penstock.http.health import Health
from penstock.http.server import listen
from penstock.http.signals import stop_on_signals

if TYPE_CHECKING:
    from penstock.queries.engine import Engine

log = logging.getLogger("penstock.connect")
T = TypeVar("T")

_START_S = 120.0
_PAUSE_S = 0.5
_LOOK_S = 1.0
_PEER_S = 90.0  # As long as a request may take that writes to a topic.


class SparkEnded(PenstockError):
    """Spark's process is gone; the worker's supervisor starts both anew."""


async def run(settings: WorkerSettings, connectors: Sequence[Mapping[str, str]] = ()) -> None:
    """Until a signal comes; `connectors` are those of a standalone worker's command line."""
    stopping, has_started = asyncio.Event(), asyncio.Event()
    call_off = threading.Event()
    starting = asyncio.current_task()
    assert starting is not None

    def also() -> None:
        call_off.set()
        if not has_started.is_set():
            starting.cancel()

    stop_on_signals(stopping, also)
    offer_java(settings.given)
    for warning in settings.warnings:
        log.warning("%s", warning)
    try:
        async with _serving(settings, call_off) as (requests, check):
            has_started.set()
            await asyncio.to_thread(_create_all, requests, connectors)
            await _wait(stopping, check)
            log.info("Kafka Connect stopping")
    except asyncio.CancelledError:
        if has_started.is_set() or not stopping.is_set():
            raise
        log.info("Kafka Connect was told to stop before it had started")
    finally:
        await asyncio.to_thread(close_hosts)


@asynccontextmanager
async def _serving(
    settings: WorkerSettings, call_off: threading.Event
) -> AsyncIterator[tuple[ConnectRequests, Callable[[], None]]]:
    async with AsyncExitStack() as stack:
        sockets = [listen(one.host, one.port) for one in settings.listeners]
        for listener in sockets:
            stack.callback(listener.close)
        tls = server_context(settings.tls, settings.listeners)
        guard = await stack.enter_async_context(guarding(settings.access))
        cluster_id = await _ask_cluster(settings)
        worker_id = _worker_id(settings, sockets[0].getsockname()[1])
        peers = WorkerPeers(settings.signing, _peer_context(settings), _PEER_S)
        engine = await _enter_in_thread(stack, _spark(settings, call_off))
        herder = await _enter_in_thread(stack, _herding(settings, engine, worker_id, peers))
        url = f"{settings.listeners[0].scheme}://{worker_id}/"
        member = await _enter_in_thread(stack, _member(settings, url, herder, call_off))
        requests, health = ConnectRequests(herder, settings), Health()
        forwarding = Forwarding(peers, requests.catch_up)
        app = application(requests, cluster_id, health, forwarding, guard)
        server = serving_all(app, settings.listeners, sockets, tls=tls)
        ports = await stack.enter_async_context(server)
        await stack.enter_async_context(_metrics_endpoint(settings, herder))
        herder.start()
        log.info("REST resources initialized; server is started on port %s", ports[0])
        yield requests, lambda: _check(engine, member)


def _check(engine: "Engine", member: WorkerMembership | None) -> None:
    """Raise what makes it impossible to go on."""
    if member is not None and member.failure is not None:
        raise member.failure
    if not engine.is_alive:
        raise SparkEnded("Spark's process ended; the Connect worker ends with it.")


@contextmanager
def _member(
    settings: WorkerSettings, url: str, herder: Herder, call_off: threading.Event
) -> Iterator[WorkerMembership | None]:
    """A member of the group; it leaves when its work has ended. Standalone there is no group."""
    if not settings.is_distributed:
        try:
            yield None
        finally:
            herder.halt()
        return
    member = WorkerMembership(settings, url, herder)
    herder.watch_changes(member.poke)
    member.start()
    try:
        member.wait_until_member(call_off)
        yield member
    finally:
        herder.halt()
        member.close()


@contextmanager
def _spark(settings: WorkerSettings, call_off: threading.Event) -> Iterator["Engine"]:
    from penstock.connect.running.resident import spark_conf, spark_master
    from penstock.queries.engine import Engine

    scratch = Path(tempfile.gettempdir()) / f"penstock-connect-{settings.listeners[0].port}.log"
    engine = Engine.start(
        "penstock-connect",
        master=settings.spark_master or spark_master(settings.tasks_max),
        conf=spark_conf(),
        log=settings.spark_log or scratch,
        stop=call_off,
    )
    try:
        yield engine
    finally:
        engine.stop()


@contextmanager
def _herding(
    settings: WorkerSettings, engine: "Engine", worker_id: str, peers: WorkerPeers
) -> Iterator[Herder]:
    token = secrets.token_hex(16)
    control = ControlServer(_control_host(settings), token)
    herder = Herder(
        settings,
        _launcher(engine),
        control,
        token=token,
        worker_id=worker_id,
        peers=peers,
    )
    try:
        yield herder
    finally:
        herder.close()
        control.close()


def _launcher(engine: "Engine") -> Launch:
    from penstock.connect.running.resident import ResidentTask

    context = engine.spark.sparkContext
    return lambda spec, on_end: ResidentTask(context, spec, on_end)


@asynccontextmanager
async def _metrics_endpoint(settings: WorkerSettings, herder: Herder) -> AsyncIterator[None]:
    """Where metrics can be scraped; most workers have none."""
    if not settings.metrics_listeners:
        yield
        return
    from penstock.telemetry.metrics import Metrics
    from penstock.telemetry.prometheus import MetricsEndpoint

    metrics = Metrics()
    metrics.watch(herder.gauges)
    addresses = [(one.host, one.port) for one in settings.metrics_listeners]
    async with MetricsEndpoint(addresses, metrics, gauges_alone=True):
        yield


def _peer_context(settings: WorkerSettings) -> ssl.SSLContext | None:
    """How workers at https are believed; None: as this machine believes others."""
    return None if settings.tls is None else settings.tls.client_context()


def _control_host(settings: WorkerSettings) -> str:
    """Tasks of this machine call on loopback; those of a cluster need the machine's name."""
    is_here = not settings.spark_master or settings.spark_master.startswith("local")
    return "127.0.0.1" if is_here else settings.advertised_host or socket.getfqdn()


def _worker_id(settings: WorkerSettings, port: int) -> str:
    host = settings.advertised_host or settings.listeners[0].host
    if not host or host in ANY_ADDRESS:
        host = socket.getfqdn()
    return f"{host}:{settings.advertised_port or port}"


async def _ask_cluster(settings: WorkerSettings) -> str:
    """The id of the cluster; brokers that are not there yet are waited for."""

    def ask() -> str:
        with Admin(settings.client) as admin:
            return admin.describe_cluster().cluster_id or ""

    clock = asyncio.get_running_loop().time
    deadline_s = clock() + _START_S
    while True:
        try:
            return await asyncio.to_thread(ask)
        except (RetriableError, BrokerUnreachableError, KafkaTimeoutError):
            if clock() > deadline_s:
                raise
        await asyncio.sleep(_PAUSE_S)


async def _enter_in_thread(
    stack: AsyncExitStack, context: "contextlib.AbstractContextManager[T]"
) -> T:
    """Enter and leave what waits, while the loop goes on."""
    entered = await asyncio.to_thread(context.__enter__)
    stack.push_async_callback(asyncio.to_thread, context.__exit__, None, None, None)
    return entered


def _create_all(requests: ConnectRequests, configs: Sequence[Mapping[str, str]]) -> None:
    for config in configs:
        requests.put_config(config.get("name", ""), config)
        log.info("Created connector %s", config.get("name"))


async def _wait(stopping: asyncio.Event, check: Callable[[], None]) -> None:
    while not stopping.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await stopping.wait()
        if not stopping.is_set():
            check()
