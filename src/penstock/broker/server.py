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
from penstock.broker.company import buffer_bytes, keeps_metadata, node_of
from penstock.broker.context import Broker, wall_clock_ms
from penstock.broker.dispatch import Dispatcher
from penstock.broker.quotas.connections import crowd_limits
from penstock.broker.security.access import AccessControl, access_of
from penstock.broker.security.outgoing_login import (
    inter_broker_listener,
)
from penstock.broker.upkeep.failed_disks import FailedDisks
from penstock.broker.validation.port import OpenValidator
from penstock.cluster.topics.names import check_topic_name
from penstock.config.broker import BrokerConfig, describe_values
from penstock.config.listeners import (
    ENCRYPTED,
    SSL,
    WITH_SASL,
    ListenerAddress,
)
from penstock.errors import ConfigError, InvalidTopic, PenstockError
from penstock.net.buffers import BufferPool
from penstock.net.connection import ConnectionLimits, Dispatch
from penstock.net.crowd import Crowd
from penstock.net.listener import Listener, ListenerLimits, Wrap, plain
from penstock.storage.directories.log_dirs import LogDirs
from penstock.telemetry.logs import set_up_logging
from penstock.telemetry.loop_watch import LoopWatch, StallWarnings, watched_loop
from penstock.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from penstock.broker.security.sasl_mechanisms import SaslMechanisms

log = logging.getLogger("kafka.server.KafkaServer")

_DRAIN_S = 10.0
_GARBAGE_THRESHOLDS = (1400, 10, 100)


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
        failed_disks = FailedDisks(log_dirs, is_alone=keeps_metadata(config), halt=halt)
        log.info("Penstock %s", __version__)
        logging.getLogger("kafka.server.KafkaConfig").info("%s", describe_values(config))
        for warning in config.warnings:
            log.warning("%s", warning)
        logins = _logins(config)
        crowd = Crowd(crowd_limits(config))
        listeners = _bind(config, crowd, stack)
        node = node_of(config)
        broker = await stack.enter_async_context(node(config, log_dirs, listeners, open_validator))
        stack.callback(broker.slow_lane.close)
        stack.push_async_callback(broker.validation.close)
        failed_disks.serve(broker)
        if config.metrics_listeners:
            await stack.enter_async_context(_metrics_endpoint(config, broker.metrics))
        for login in logins.values():
            await stack.enter_async_context(_fresh_keys(login))
        broker.config_followers.append(lambda changed: crowd.obey(crowd_limits(changed)))
        if broker.access is not None and config.penstock_audit_topic:
            await stack.enter_async_context(_audited(broker, broker.access))
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
    _check_audit(config)
    if config.is_in_cluster:
        inter_broker_listener(config)
    if config.zookeeper_connect:
        from penstock.broker.security.zookeeper_login import zookeeper_login

        zookeeper_login(config)
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


def _check_audit(config: BrokerConfig) -> None:
    topic = config.penstock_audit_topic
    if not topic:
        return
    if not config.authorizer_class_name:
        raise ConfigError(
            "penstock.audit.topic is set, but nothing is decided without an authorizer: set "
            "authorizer.class.name, or remove it"
        )
    try:
        check_topic_name(topic)
    except InvalidTopic as error:
        raise ConfigError(f"penstock.audit.topic is {topic}: {error}") from None


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


def _bind(config: BrokerConfig, crowd: Crowd, stack: AsyncExitStack) -> list[Listener]:
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
            crowd=crowd,
            wrap=_wrap(config, asked),
            asks_who=asked.security_protocol in WITH_SASL,
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
    handshake_ms = config.for_listener(asked.name, "penstock.handshake.timeout.ms")
    assert isinstance(size, int)
    assert isinstance(handshake_ms, int)
    return ListenerLimits(
        connection=ConnectionLimits(
            frame_bytes_max=size,
            frame_bytes_key=key,
            failed_authentication_delay_s=config.connection_failed_authentication_delay_ms / 1000,
        ),
        idle_s_max=idle_ms / 1000 if idle_ms >= 0 else None,
        handshake_s_max=handshake_ms / 1000,
        backlog=config.socket_listen_backlog_size,
        send_buffer_bytes=buffer_bytes(config, "socket.send.buffer.bytes"),
        receive_buffer_bytes=buffer_bytes(config, "socket.receive.buffer.bytes"),
    )


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


def _audited(
    broker: Broker, access: AccessControl
) -> "contextlib.AbstractAsyncContextManager[None]":
    """What the authorizer decides goes to a topic while the context is open."""
    from penstock.broker.own_records import write_own_records
    from penstock.broker.security.audit_topic import AuditTopic  # Few brokers have one.

    topic = broker.config.penstock_audit_topic
    access.audit.records = AuditTopic(
        topic,
        broker_id=broker.broker_id,
        with_allowed=broker.config.penstock_audit_allowed,
        write=partial(write_own_records, broker, topic, broker.broker_id),
        now_ms=broker.now_ms,
    )
    return access.audit.records.at_work()


def _open_doors(
    broker: Broker, listeners: list[Listener], logins: "Mapping[str, SaslMechanisms]"
) -> None:
    for listener in listeners:
        if hasattr(listener.wrap, "reconfigure"):
            broker.config_followers.append(listener.wrap.reconfigure)
        if hasattr(listener.wrap, "check"):
            broker.config_checks.append(listener.wrap.check)
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
        return serve.__call__  # The method itself: Python calls it for less than the object.
    from penstock.broker.security.sasl_gate import SaslGate
    from penstock.broker.security.sasl_mechanisms import KnownUsers

    def session_ms_max(mechanism: str) -> int:
        found = broker.config.for_mechanism(listener, mechanism, "connections.max.reauth.ms")
        return found if isinstance(found, int) else 0

    broker.config_followers.append(login.reconfigure)
    return SaslGate(
        serve,
        lambda: login.offered(KnownUsers(broker.image, broker.tokens, broker.decoy_key)),
        frame_bytes_max=broker.config.socket_request_max_bytes,
        failure_delay_s=broker.config.connection_failed_authentication_delay_ms / 1000,
        session_ms_max=session_ms_max,
        now_ms=broker.now_ms,
    )


def _settle_memory() -> None:
    """What start-up made stays for good: keep the collector from walking it again and again.

    A full collection stops the loop for as long as it walks what requests keep: 80 to 100 ms with a
    session of 30,000 partitions. It finds next to nothing here, so it comes ten times as seldom as
    with Python's own thresholds (700, 10, 10).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)


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
