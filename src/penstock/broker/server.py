"""The broker process: listeners, signals and log directories around a node.

    log directories → listeners bound → the node (broker/node.py) → listeners opened

A first SIGTERM or SIGINT is a controlled shutdown: leaderships are handed over, requests begun are
answered, logs are flushed, the registration is withdrawn. A second one ends the process at once;
recovery takes care of it.
"""

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock import __version__
from penstock.broker.context import Broker, wall_clock_ms
from penstock.broker.dispatch import Dispatcher
from penstock.broker.node import running
from penstock.broker.security.access import SUPER_USERS, access_of
from penstock.broker.security.outgoing_login import (
    inter_broker_listener,
    outgoing_login,
    outgoing_wrap,
    own_principal,
)
from penstock.broker.upkeep.failed_disks import FailedDisks
from penstock.broker.validation.port import OpenValidator
from penstock.cluster.image.image import Endpoint
from penstock.config.broker import BrokerConfig, describe_values
from penstock.config.listeners import (
    ENCRYPTED,
    SSL,
    WITH_SASL,
    ListenerAddress,
    advertised_ports,
)
from penstock.errors import ConfigError, PenstockError
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.store import MetaStore
from penstock.net.buffers import BufferPool
from penstock.net.connection import ConnectionLimits, Dispatch
from penstock.net.listener import Listener, ListenerLimits, Wrap, plain
from penstock.security.principals import Principal, parse_super_users
from penstock.storage.directories.log_dirs import LogDirs
from penstock.telemetry.logs import set_up_logging
from penstock.telemetry.loop_watch import LoopWatch, StallWarnings, watched_loop
from penstock.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from penstock.broker.security.sasl_mechanisms import SaslMechanisms

log = logging.getLogger("kafka.server.KafkaServer")

METADATA_FILE = "penstock-metadata.db"  # In the first log directory, of an embedded store.
_DRAIN_S = 10.0


def main(config: BrokerConfig, open_validator: OpenValidator | None = None) -> int:
    """Run until told to stop; the exit code. `open_validator` opens what knows schemas."""
    try:
        set_up_logging()
        loop, watch = watched_loop()
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(run(config, watch, open_validator))
    except (ConfigError, PenstockError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1
    return 0


async def run(
    config: BrokerConfig,
    watch: LoopWatch | None = None,
    open_validator: OpenValidator | None = None,
) -> None:
    """`watch` is the selector of the running loop, where its turns are measured."""
    stopping = asyncio.Event()
    starting = asyncio.current_task()
    assert starting is not None
    # A signal also ends the wait for the cluster to admit this broker.
    has_started = asyncio.Event()
    _stop_on_signals(stopping, lambda: None if has_started.is_set() else starting.cancel())
    try:
        opened = serving(config, halt=_halt, watch=watch, open_validator=open_validator)
        async with opened as broker:
            has_started.set()
            log.info("[KafkaServer id=%d] started", broker.broker_id)
            await _wait_until_stopped_or_failed(broker, stopping)
            log.info("[KafkaServer id=%d] shutting down", broker.broker_id)
    except asyncio.CancelledError:
        if has_started.is_set() or not stopping.is_set():
            raise
        log.info("[KafkaServer] told to stop before it had started")
        return
    log.info("[KafkaServer id=%d] shut down completed", broker.broker_id)


async def _wait_until_stopped_or_failed(broker: Broker, stopping: asyncio.Event) -> None:
    """Return when a signal comes; raises what ends this broker's membership for good."""
    waits: list[asyncio.Task[Any]] = [asyncio.create_task(stopping.wait())]
    if broker.member is not None:
        waits.append(asyncio.create_task(broker.member.until_over()))
    try:
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in done:
            await wait
    finally:
        for wait in waits:
            wait.cancel()


@asynccontextmanager
async def serving(
    config: BrokerConfig,
    *,
    halt: Callable[[], None] = lambda: None,
    watch: LoopWatch | None = None,
    open_validator: OpenValidator | None = None,
) -> AsyncIterator[Broker]:
    """A broker that answers requests while the context is open.

    `halt` ends the process at once, where nothing it does may count any more.
    """
    _refuse_what_is_not_there_yet(config)
    _allow_open_files()
    executor = ThreadPoolExecutor(config.background_threads, "background")
    asyncio.get_running_loop().set_default_executor(executor)
    async with AsyncExitStack() as stack:
        log_dirs = stack.enter_context(_open_log_dirs(config))
        failed_disks = FailedDisks(log_dirs, is_alone=not config.zookeeper_connect, halt=halt)
        log.info("Penstock %s", __version__)
        logging.getLogger("kafka.server.KafkaConfig").info("%s", describe_values(config))
        for warning in config.warnings:
            log.warning("%s", warning)
        logins = _logins(config)
        listeners = _bind(config, stack)
        node = _in_cluster if config.zookeeper_connect else _alone
        broker = await stack.enter_async_context(node(config, log_dirs, listeners, open_validator))
        stack.callback(broker.slow_lane.close)
        stack.push_async_callback(broker.validation.close)
        failed_disks.serve(broker)
        if config.metrics_listeners:
            await stack.enter_async_context(_metrics_endpoint(config, broker.metrics))
        for login in logins.values():
            await stack.enter_async_context(_fresh_keys(login))
        _open_doors(broker, listeners, logins)
        stack.push_async_callback(_close_doors, broker, listeners)
        # Before the doors close: members that wait for a rebalance would hold them open.
        stack.callback(broker.groups.close)
        stack.callback(broker.transactions.coordinator.close)
        if broker.member is not None:
            stack.push_async_callback(broker.member.hand_over)
        _settle_memory()
        if watch is not None:
            broker.metrics.watch(watch.gauges)
            stack.enter_context(StallWarnings(watch))
        yield broker


@asynccontextmanager
async def _alone(
    config: BrokerConfig,
    log_dirs: LogDirs,
    listeners: list[Listener],
    open_validator: OpenValidator | None,
) -> AsyncIterator[Broker]:
    first = log_dirs.dirs[0]
    async with running(
        config,
        open_store=partial(SqliteStore.open, first.path / METADATA_FILE, make_room=first.room.give),
        log_dirs=log_dirs,
        endpoints=_endpoints(config, listeners),
        open_validator=open_validator,
    ) as broker:
        yield broker


@asynccontextmanager
async def _in_cluster(
    config: BrokerConfig,
    log_dirs: LogDirs,
    listeners: list[Listener],
    open_validator: OpenValidator | None,
) -> AsyncIterator[Broker]:
    # A broker alone does without all of these.
    from penstock.broker.membership.boot_id import present_boot_id
    from penstock.broker.membership.controller_location import AddressBook
    from penstock.meta.guardian.guardian import Guardian, spawn_guardian
    from penstock.meta.zookeeper.store import ZkStore
    from penstock.net.outgoing import TcpPeers

    connect = config.zookeeper_connect
    assert connect is not None
    addresses = AddressBook(config.inter_broker_listener_name)
    peers = TcpPeers(
        addresses.address_of,
        client_id=f"broker-{config.broker_id}",
        receive_buffer_bytes=_buffer_bytes(config, "replica.socket.receive.buffer.bytes"),
        login=outgoing_login(config),
    )
    if (wrap := outgoing_wrap(config)) is not None:
        peers.wrap = wrap
    _warn_of_rights(config)

    async def open_store(guardian: Guardian) -> MetaStore:
        store = await ZkStore.open(
            connect,
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            connection_timeout_ms=config.zookeeper_connection_timeout_ms,
            in_flight_max=config.zookeeper_max_in_flight_requests,
        )
        guardian.watch(*store.session_secret, config.zookeeper_session_timeout_ms)
        return store

    with contextlib.closing(spawn_guardian(connect)) as guardian, contextlib.closing(peers):
        async with running(
            config,
            open_store=partial(open_store, guardian),
            log_dirs=log_dirs,
            endpoints=_endpoints(config, listeners),
            peers=peers,
            addresses=addresses,
            boot_id=present_boot_id(),
            open_validator=open_validator,
        ) as broker:
            yield broker


def _endpoints(config: BrokerConfig, listeners: list[Listener]) -> tuple[Endpoint, ...]:
    ports = {listener.name: listener.port for listener in listeners}
    return tuple(
        Endpoint(advertised.name, advertised.host, advertised.port, advertised.security_protocol)
        for advertised in advertised_ports(config.advertised_listeners, ports)
    )


_BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
_NO_POLICY = "checks topics and settings by Kafka's own rules alone"
_STOCK_QUOTAS = "applies the quotas set with kafka-configs"


def _own_builder(config: BrokerConfig) -> str:
    """A builder of somebody's own; empty: it is Kafka's."""
    name = config.principal_builder_class
    return "" if name == _BUILDER else name


def _refuse_what_is_not_there_yet(config: BrokerConfig) -> None:
    """Starting without what was asked for would be worse than not starting."""
    access_of(config)
    if config.zookeeper_connect:
        inter_broker_listener(config)
        _check_zookeeper_security(config)
    for name, value, loss in (
        ("principal.builder.class", _own_builder(config), "names clients as Kafka does"),
        ("create.topic.policy.class.name", config.create_topic_policy_class_name, _NO_POLICY),
        ("alter.config.policy.class.name", config.alter_config_policy_class_name, _NO_POLICY),
        ("client.quota.callback.class", config.client_quota_callback_class, _STOCK_QUOTAS),
    ):
        if value:
            raise ConfigError(
                f"{name} is set to {value}, but Java classes cannot be loaded here: remove it "
                f"to run a broker that {loss}"
            )


def _warn_of_rights(config: BrokerConfig) -> None:
    """Brokers without the right to act for the cluster refuse each other."""
    principal = own_principal(config)
    if not config.authorizer_class_name or principal is None:
        return
    if Principal.parse(principal) not in parse_super_users(config.static.get(SUPER_USERS, "")):
        log.warning(
            "Brokers are %s to each other, whom %s does not name: they need an ACL for "
            "ClusterAction on the cluster",
            principal,
            SUPER_USERS,
        )


def _check_zookeeper_security(config: BrokerConfig) -> None:
    """Whoever asked for protection must not go without it unknowingly."""
    for name, is_wanted, loss in (
        ("zookeeper.ssl.client.enable", config.zookeeper_ssl_client_enable, "is not encrypted"),
        ("zookeeper.set.acl", config.zookeeper_set_acl, "writes nodes that all may change"),
    ):
        if is_wanted:
            raise ConfigError(
                f"{name} is true, but the connection to ZooKeeper {loss} yet: keep ZooKeeper on "
                "a private network and remove the setting"
            )


def _allow_open_files() -> None:
    """A partition keeps a file open and so does a connection; the usual 1,024 are soon used up."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# The parts, in the order of `serving`


@contextmanager
def _open_log_dirs(config: BrokerConfig) -> Iterator[LogDirs]:
    manager = logging.getLogger("kafka.log.LogManager")
    log_dirs = LogDirs.open(
        config.log_dirs,
        now_ms=wall_clock_ms(),
        recovery_threads=config.num_recovery_threads_per_data_dir,
        reserve_bytes=config.log_dir_reserve_bytes,
        report=manager.info,
        warn=manager.warning,
    )
    try:
        yield log_dirs
    finally:
        log_dirs.close()


def _bind(config: BrokerConfig, stack: AsyncExitStack) -> list[Listener]:
    """Take the ports early: their numbers are part of the registration."""
    pool = BufferPool()
    listeners = []
    for asked in config.listeners:
        listener = Listener(
            name=asked.name,
            host=asked.host or "0.0.0.0",
            port=asked.port,
            limits=_limits(config, asked),
            pool=pool,
            wrap=_wrap(config, asked),
        )
        try:
            listener.bind()
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {asked}: {error.strerror}; stop what uses the port or change "
                "listeners"
            ) from error
        stack.callback(listener.close)
        listeners.append(listener)
    return listeners


def _wrap(config: BrokerConfig, asked: ListenerAddress) -> Wrap:
    """What lies between the socket of a newcomer and its frames."""
    if asked.security_protocol not in ENCRYPTED:
        return plain
    from penstock.broker.security.tls_doors import TlsDoor  # Most brokers run without TLS.

    return TlsDoor(config, asked.name, names_clients=asked.security_protocol == SSL)


def _limits(config: BrokerConfig, asked: ListenerAddress) -> ListenerLimits:
    idle_ms = config.connections_max_idle_ms
    key = "socket.request.max.bytes"
    if asked.security_protocol in WITH_SASL:  # Until the client is known.
        key = "sasl.server.max.receive.size"
    size = config.for_listener(asked.name, key)
    assert isinstance(size, int)
    return ListenerLimits(
        connection=ConnectionLimits(
            frame_bytes_max=size,
            frame_bytes_key=key,
            failed_authentication_delay_s=config.connection_failed_authentication_delay_ms / 1000,
        ),
        connections_max=config.max_connections,
        connections_per_ip_max=config.max_connections_per_ip,
        connections_per_ip_overrides=config.max_connections_per_ip_overrides,
        idle_s_max=idle_ms / 1000 if idle_ms >= 0 else None,
        backlog=config.socket_listen_backlog_size,
        send_buffer_bytes=_buffer_bytes(config, "socket.send.buffer.bytes"),
        receive_buffer_bytes=_buffer_bytes(config, "socket.receive.buffer.bytes"),
    )


def _buffer_bytes(config: BrokerConfig, name: str) -> int | None:
    """Only a size somebody asked for is set: the kernel's own tuning beats Kafka's default."""
    value = config.values[name]
    if name not in config.static or not isinstance(value, int) or value < 0:
        return None
    return value


def _metrics_endpoint(
    config: BrokerConfig, metrics: Metrics
) -> "contextlib.AbstractAsyncContextManager[object]":
    from penstock.telemetry.prometheus import MetricsEndpoint  # Most brokers run without it.

    return MetricsEndpoint(
        [(listener.host, listener.port) for listener in config.metrics_listeners], metrics
    )


def _logins(config: BrokerConfig) -> "dict[str, SaslMechanisms]":
    """How clients prove who they are, by listener; those that ask nobody are not in it."""
    if not any(asked.security_protocol in WITH_SASL for asked in config.listeners):
        return {}
    from penstock.broker.security.sasl_mechanisms import SaslMechanisms

    return {
        asked.name: SaslMechanisms(
            config, asked.name, protocol=asked.security_protocol, now_ms=wall_clock_ms
        )
        for asked in config.listeners
        if asked.security_protocol in WITH_SASL
    }


@asynccontextmanager
async def _fresh_keys(login: "SaslMechanisms") -> AsyncIterator[None]:
    """Keys that sign tokens are fetched again and again while the context is open."""
    if login.bearer is None:
        yield
        return
    fetching = asyncio.create_task(login.bearer.keep_fresh(), name="token keys")
    try:
        yield
    finally:
        fetching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await fetching


def _open_doors(
    broker: Broker, listeners: list[Listener], logins: "Mapping[str, SaslMechanisms]"
) -> None:
    for listener in listeners:
        if hasattr(listener.wrap, "reconfigure"):
            broker.config_followers.append(listener.wrap.reconfigure)
        listener.start(
            _dispatch(broker, listener.name, logins.get(listener.name)),
            broker.metrics.listener(listener.name),
            broker.connection_quotas,
        )
        log.info(
            "[SocketServer listenerType=BROKER, nodeId=%d] Started data-plane acceptor on %s://%s:%d",
            broker.broker_id,
            listener.name,
            listener.host,
            listener.port,
        )


def _dispatch(broker: Broker, listener: str, login: "SaslMechanisms | None") -> Dispatch:
    """What serves the frames of a listener; with SASL a gate stands before it."""
    serve = Dispatcher(broker, listener=listener)
    if login is None:
        return serve
    from penstock.broker.security.sasl_gate import SaslGate

    def session_ms_max(mechanism: str) -> int:
        found = broker.config.for_mechanism(listener, mechanism, "connections.max.reauth.ms")
        return found if isinstance(found, int) else 0

    broker.config_followers.append(login.reconfigure)
    return SaslGate(
        serve,
        lambda: login.offered(broker.image),
        frame_bytes_max=broker.config.socket_request_max_bytes,
        failure_delay_s=broker.config.connection_failed_authentication_delay_ms / 1000,
        session_ms_max=session_ms_max,
        now_ms=broker.now_ms,
    )


def _settle_memory() -> None:
    """What start-up made stays for good: keep the collector from walking it again and again."""
    gc.collect()
    gc.freeze()


# Leaving


async def _close_doors(broker: Broker, listeners: list[Listener]) -> None:
    for listener in listeners:
        listener.stop_accepting()
    broker.is_stopping = True
    if broker.controller is not None:
        broker.controller.make_no_more_topics()
    broker.partitions.wake_readers()
    await asyncio.gather(*(listener.drain(_DRAIN_S) for listener in listeners))


def _halt() -> None:
    """End the process at once, from any thread: nothing is flushed, noted or answered."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(1)


def _stop_on_signals(stopping: asyncio.Event, on_stop: Callable[[], object]) -> None:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def stop() -> None:
        stopping.set()
        on_stop()
        for number in numbers:
            # The next signal ends the process at once, even while a flush blocks the event loop.
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        loop.add_signal_handler(number, stop)
