"""The broker process: every part built by hand, in order, and taken down in reverse.

    log directories → metadata store → listeners bound → registration → controller → partitions
    → listeners opened → housekeeping

A first SIGTERM or SIGINT is a controlled shutdown: requests begun are answered, logs are flushed,
the registration is withdrawn. A second one ends the process at once; recovery takes care of it.
"""

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

from penstock import __version__
from penstock.broker.adoption import adopt_found_topics
from penstock.broker.context import Broker, wall_clock_ms
from penstock.broker.dispatch import Dispatcher
from penstock.broker.exactly_once import transactions_of
from penstock.broker.fetch_sessions import FetchSessions
from penstock.broker.gauges import watch_broker
from penstock.broker.housekeeping import keep_house
from penstock.broker.producer_ids import ProducerIds
from penstock.broker.quotas.clients import ClientQuotas
from penstock.broker.quotas.connections import ConnectionQuotas
from penstock.broker.quotas.rates import Window
from penstock.cluster import registration
from penstock.cluster.controller import Controller
from penstock.cluster.image import CLUSTER_WIDE, ClusterImage, Endpoint
from penstock.cluster.registration import Newcomer, Registration
from penstock.cluster.znodes import PreviousShutdown
from penstock.config.broker import BrokerConfig, describe_values
from penstock.config.listeners import advertised_ports
from penstock.config.topic import log_settings
from penstock.errors import ConfigError, PenstockError
from penstock.groups.coordinator import GroupCoordinator
from penstock.groups.kinds import KINDS
from penstock.meta.sqlite import SqliteStore
from penstock.meta.store import MetaStore
from penstock.net.buffers import BufferPool
from penstock.net.connection import ConnectionLimits
from penstock.net.listener import Listener, ListenerLimits
from penstock.protocol.primitives import uuid_text
from penstock.replica.table import PartitionTable
from penstock.storage.log_config import LogConfig
from penstock.storage.log_dirs import LogDirs
from penstock.telemetry.logs import set_up_logging
from penstock.telemetry.metrics import Metrics

log = logging.getLogger("kafka.server.KafkaServer")

METADATA_FILE = "penstock-metadata.db"  # In the first log directory, of an embedded store.
_DRAIN_S = 10.0
_FETCH_SESSION_EVICT_AFTER_MS = 120_000
_EMBEDDED_BROKER_ID = 0


def main(config: BrokerConfig) -> int:
    """Run until told to stop; the exit code."""
    try:
        set_up_logging()
        asyncio.run(run(config))
    except (ConfigError, PenstockError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1
    return 0


async def run(config: BrokerConfig) -> None:
    stopping = asyncio.Event()
    _stop_on_signals(stopping)
    async with serving(config) as broker:
        log.info("[KafkaServer id=%d] started", broker.broker_id)
        await stopping.wait()
        log.info("[KafkaServer id=%d] shutting down", broker.broker_id)
    log.info("[KafkaServer id=%d] shut down completed", broker.broker_id)


@asynccontextmanager
async def serving(config: BrokerConfig) -> AsyncIterator[Broker]:
    """A broker that answers requests while the context is open."""
    _refuse_what_is_not_there_yet(config)
    _allow_open_files()
    executor = ThreadPoolExecutor(config.background_threads, "background")
    asyncio.get_running_loop().set_default_executor(executor)
    async with AsyncExitStack() as stack:
        log_dirs = stack.enter_context(_opened(config))
        config = _with_broker_id(config, log_dirs)
        log.info("Penstock %s", __version__)
        logging.getLogger("kafka.server.KafkaConfig").info("%s", describe_values(config))
        for warning in config.warnings:
            log.warning("%s", warning)
        metadata_file = log_dirs.paths[0] / METADATA_FILE
        is_new = not metadata_file.exists()
        store = await SqliteStore.open(metadata_file)
        stack.push_async_callback(store.close)
        cluster_id = await registration.prepare_tree(store, cluster_id=_cluster_id(log_dirs))
        log_dirs.claim(broker_id=config.broker_id, cluster_id=cluster_id)
        listeners = _bind(config, stack)
        registered = await _register(config, store, listeners, log_dirs)
        controller = await _elect(config, store)
        if is_new:
            await adopt_found_topics(controller, log_dirs, broker_id=config.broker_id)
        broker = _assemble(config, store, controller, log_dirs)
        broker.log_dirs.note_broker_epoch(registered.epoch)
        stack.push_async_callback(_leave, broker, registered)
        house = asyncio.create_task(keep_house(broker), name="housekeeping")
        stack.push_async_callback(_cancelled, house)
        if config.metrics_listeners:
            await stack.enter_async_context(_metrics_endpoint(config, broker.metrics))
        _open_doors(broker, listeners)
        stack.push_async_callback(_close_doors, broker, listeners)
        # Before the doors close: members that wait for a rebalance would hold them open.
        stack.push_async_callback(broker.groups.close)
        stack.callback(broker.transactions.coordinator.close)
        _settle_memory()
        yield broker


_NO_POLICY = "checks topics and settings by Kafka's own rules alone"
_STOCK_QUOTAS = "applies the quotas set with kafka-configs"


def _refuse_what_is_not_there_yet(config: BrokerConfig) -> None:
    """Starting without what was asked for would be worse than not starting."""
    if config.zookeeper_connect:
        raise ConfigError(
            "zookeeper.connect is set, but clusters are not supported yet: remove it to run this "
            "broker on its embedded metadata store"
        )
    for name, value, loss in (
        ("authorizer.class.name", config.authorizer_class_name, "lets every client do everything"),
        ("create.topic.policy.class.name", config.create_topic_policy_class_name, _NO_POLICY),
        ("alter.config.policy.class.name", config.alter_config_policy_class_name, _NO_POLICY),
        ("client.quota.callback.class", config.client_quota_callback_class, _STOCK_QUOTAS),
    ):
        if value:
            raise ConfigError(
                f"{name} is set to {value}, but Java classes cannot be loaded here: remove it "
                f"to run a broker that {loss}"
            )


def _allow_open_files() -> None:
    """A partition keeps a file open and so does a connection; the usual 1,024 are soon used up."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# The parts, in the order of `serving`


@contextmanager
def _opened(config: BrokerConfig) -> Iterator[LogDirs]:
    log_dirs = LogDirs.open(
        config.log_dirs,
        now_ms=wall_clock_ms(),
        recovery_threads=config.num_recovery_threads_per_data_dir,
        report=logging.getLogger("kafka.log.LogManager").info,
    )
    try:
        yield log_dirs
    finally:
        log_dirs.close()


def _with_broker_id(config: BrokerConfig, log_dirs: LogDirs) -> BrokerConfig:
    """A broker that was given no number keeps the one its directories know."""
    if config.broker_id >= 0:
        return config
    known = log_dirs.broker_id
    chosen = _EMBEDDED_BROKER_ID if known is None else known
    return config.with_static({"broker.id": str(chosen)})


def _cluster_id(log_dirs: LogDirs) -> str:
    """The id of the cluster these directories belong to, or a new one for new directories."""
    return log_dirs.cluster_id or uuid_text(uuid.uuid4().bytes)


def _bind(config: BrokerConfig, stack: AsyncExitStack) -> list[Listener]:
    """Take the ports early: their numbers are part of the registration."""
    pool = BufferPool()
    listeners = []
    for asked in config.listeners:
        listener = Listener(
            name=asked.name,
            host=asked.host or "0.0.0.0",
            port=asked.port,
            limits=_limits(config),
            pool=pool,
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


def _limits(config: BrokerConfig) -> ListenerLimits:
    idle_ms = config.connections_max_idle_ms
    return ListenerLimits(
        connection=ConnectionLimits(frame_bytes_max=config.socket_request_max_bytes),
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


async def _register(
    config: BrokerConfig, store: MetaStore, listeners: list[Listener], log_dirs: LogDirs
) -> Registration:
    ports = {listener.name: listener.port for listener in listeners}
    endpoints = tuple(
        Endpoint(advertised.name, advertised.host, advertised.port, advertised.security_protocol)
        for advertised in advertised_ports(config.advertised_listeners, ports)
    )
    # Nobody else can have what this disk lost, so a broker alone goes on with what is there.
    was_clean = log_dirs.was_clean
    newcomer = Newcomer(
        broker_id=config.broker_id,
        endpoints=endpoints,
        rack=config.broker_rack,
        incarnation=uuid.uuid4().hex,
        directory_ids=log_dirs.directory_ids,
        prev_shutdown=PreviousShutdown.CLEAN if was_clean else PreviousShutdown.CRASH,
    )
    return await registration.register(store, newcomer, now_ms=wall_clock_ms())


async def _elect(config: BrokerConfig, store: MetaStore) -> Controller:
    controller = await Controller.elect(
        store,
        config.broker_id,
        now_ms=wall_clock_ms(),
        min_insync_replicas=config.min_insync_replicas,
    )
    if controller is None:
        raise PenstockError("another process is the controller of this metadata store")
    return controller


def _assemble(
    config: BrokerConfig, store: MetaStore, controller: Controller, log_dirs: LogDirs
) -> Broker:
    partitions = PartitionTable(
        broker_id=config.broker_id,
        log_dirs=log_dirs,
        log_config=lambda image, topic: _log_config(broker, image, topic),
        now_ms=wall_clock_ms,
    )
    producer_ids = ProducerIds(store=store, broker_id=config.broker_id)
    groups = GroupCoordinator(
        partitions=partitions,
        config=lambda: broker.config,
        image=lambda: broker.image,
        now_ms=wall_clock_ms,
        families=KINDS,
    )
    broker = Broker(
        config=config,
        store=store,
        controller=controller,
        image=controller.image,
        partitions=partitions,
        log_dirs=log_dirs,
        metrics=Metrics(),
        producer_ids=producer_ids,
        fetch_sessions=FetchSessions(
            slots=config.max_incremental_fetch_session_cache_slots,
            evict_after_ms=_FETCH_SESSION_EVICT_AFTER_MS,
        ),
        groups=groups,
        transactions=transactions_of(
            partitions=partitions,
            producer_ids=producer_ids,
            groups=groups,
            config=lambda: broker.config,
            now_ms=wall_clock_ms,
        ),
        quotas=ClientQuotas(
            window=_quota_window(config),
            mutation_window=Window(
                config.controller_quota_window_num,
                config.controller_quota_window_size_seconds * 1000,
            ),
        ),
        connection_quotas=ConnectionQuotas(
            window=_quota_window(config), config=lambda: broker.config
        ),
    )
    _take_image(broker, controller.image)
    broker.partitions.set_aside_strays(controller.image)
    controller.subscribe(lambda image: _take_image(broker, image))
    watch_broker(broker)
    return broker


def _quota_window(config: BrokerConfig) -> Window:
    return Window(config.quota_window_num, config.quota_window_size_seconds * 1000)


def _log_config(broker: Broker, image: ClusterImage, topic: str) -> LogConfig:
    return LogConfig.from_settings(log_settings(image.config("topics", topic), broker.config))


def _take_image(broker: Broker, image: ClusterImage) -> None:
    """A new image first changes the broker's own settings, then its partitions."""
    before, broker.image = broker.image, image
    if before is image or before.configs is not image.configs:
        _take_dynamic_settings(broker, image)
        broker.quotas.take_configs(image.configs)
        broker.connection_quotas.take_configs(image.configs)
    broker.partitions.apply(image)
    broker.groups.take_image(image)
    broker.transactions.coordinator.take_image(image)
    for gone in before.topics.keys() - image.topics.keys():
        broker.metrics.forget_topic(gone)


def _take_dynamic_settings(broker: Broker, image: ClusterImage) -> None:
    cluster_wide = image.config("brokers", CLUSTER_WIDE)
    per_broker = image.config("brokers", str(broker.broker_id))
    known = broker.config
    broker.config = known.with_dynamic(cluster_wide, per_broker)
    if broker.config is known:
        return
    for warning in broker.config.warnings:
        log.warning("%s", warning)
    broker.partitions.reconfigure_all(image)


def _metrics_endpoint(
    config: BrokerConfig, metrics: Metrics
) -> "contextlib.AbstractAsyncContextManager[object]":
    from penstock.telemetry.prometheus import MetricsEndpoint  # Most brokers run without it.

    return MetricsEndpoint(
        [(listener.host, listener.port) for listener in config.metrics_listeners], metrics
    )


def _open_doors(broker: Broker, listeners: list[Listener]) -> None:
    for listener in listeners:
        listener.start(
            Dispatcher(broker, listener=listener.name),
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


def _settle_memory() -> None:
    """What start-up made stays for good: keep the collector from walking it again and again."""
    gc.collect()
    gc.freeze()


# Leaving


async def _close_doors(broker: Broker, listeners: list[Listener]) -> None:
    for listener in listeners:
        listener.stop_accepting()
    broker.is_stopping = True
    broker.partitions.wake_readers()
    await asyncio.gather(*(listener.drain(_DRAIN_S) for listener in listeners))


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _leave(broker: Broker, registered: Registration) -> None:
    """Controlled shutdown: say goodbye while everything still works."""
    try:
        if broker.config.controlled_shutdown_enable:
            await broker.controller.begin_shutdown(broker.broker_id)
        await registration.withdraw(broker.store, registered)
        await broker.controller.resign()
    except PenstockError as error:
        # The logs must be closed cleanly all the same; the end of the session says the rest.
        log.warning("The goodbye did not reach the metadata store: %s", error)


def _stop_on_signals(stopping: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def stop() -> None:
        stopping.set()
        for number in numbers:
            # The next one is the kernel's: at once, even while a flush holds up the event loop.
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        loop.add_signal_handler(number, stop)
