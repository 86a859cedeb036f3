"""A broker without its doors: every part built by hand, in order, and taken down in reverse.

    metadata store → whose log directories → parts → registration → controller → partitions

A broker alone and a member of a cluster are the same parts. Alone, the store is a file, this
broker is its controller from the start and there are no peers. In a cluster all that follows the
session with the store is in membership/cluster_member.py. Listeners and signals are server.py's.
"""

import asyncio
import contextlib
import logging
import secrets
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from penstock.broker.context import Broker, wall_clock_ms
from penstock.broker.fetching.sessions import FetchSessions
from penstock.broker.gauges import watch_broker
from penstock.broker.membership.adoption import adopt_found_topics
from penstock.broker.membership.image_taking import note_image, take_partitions
from penstock.broker.membership.new_partitions import PartitionOpener
from penstock.broker.quotas.clients import ClientQuotas
from penstock.broker.quotas.connections import ConnectionQuotas
from penstock.broker.quotas.rates import QuotaWindow
from penstock.broker.security.access import access_of
from penstock.broker.transactions.exactly_once import Reach, transactions_of
from penstock.broker.transactions.producer_ids import ProducerIds
from penstock.broker.upkeep.housekeeping import keep_house
from penstock.broker.validation.gate import ValidationGate
from penstock.broker.validation.port import OpenValidator
from penstock.cluster import registration, znodes
from penstock.cluster.control.controller import Controller
from penstock.cluster.control.settings import ControlSettings
from penstock.cluster.decoy_key import keep_decoy_key
from penstock.cluster.image.image import ClusterImage, Endpoint
from penstock.cluster.registration import BrokerRegistration, Newcomer
from penstock.cluster.znodes import PreviousShutdown
from penstock.config.broker import BrokerConfig
from penstock.config.listeners import WITH_SASL
from penstock.config.topic import log_settings
from penstock.errors import ConfigError, PenstockError, ProtocolError
from penstock.groups.coordinator import GroupCoordinator
from penstock.groups.kinds import KINDS
from penstock.meta.store import (
    MetaStore,
    OutcomeUnknown,
    SessionLost,
    Set,
    Stat,
    StoreUnavailable,
)
from penstock.protocol.primitives import uuid_text
from penstock.replica.table import PartitionTable
from penstock.storage.directories.log_dirs import LogDirs, WantedLog
from penstock.storage.log.config import LogConfig
from penstock.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from penstock.broker.membership.controller_location import AddressBook
    from penstock.broker.security.delegation_tokens import DelegationTokens
    from penstock.net.peers import Peers

log = logging.getLogger("kafka.server.KafkaServer")

_FETCH_SESSION_EVICT_AFTER_MS = 120_000
_ALONE_BROKER_ID = 0
_DECOY_KEY_BYTES = 32
_BEGIN_AGAIN_S = 0.2
_SEQUENCE_OF_IDS = "/brokers/seqid"

OpenStore = Callable[[], Awaitable[MetaStore]]
T = TypeVar("T")


@asynccontextmanager
async def running(
    config: BrokerConfig,
    *,
    open_store: OpenStore,
    log_dirs: LogDirs,
    endpoints: Sequence[Endpoint],
    peers: "Peers | None" = None,
    addresses: "AddressBook | None" = None,
    boot_id: str | None = None,
    now_ms: Callable[[], int] = wall_clock_ms,
    new_uuid: Callable[[], uuid.UUID] = uuid.uuid4,
    open_validator: OpenValidator | None = None,
) -> AsyncIterator[Broker]:
    """A broker that works while the context is open; when this yields, the cluster counts on it.

    `open_store` opens a session with the metadata store, and in a cluster another one whenever a
    session is lost. Without `peers` the broker is alone; `addresses` is told where the peers are.
    `boot_id` names the present run of the machine; None: a crash may have lost what was not on
    disk. `open_validator` opens what knows schemas; None: no record can be checked here. A member
    of a cluster hands its leaderships over with `broker.member.hand_over()`, while its doors are
    still open; this only leaves.
    """
    has_marker = log_dirs.was_clean and log_dirs.broker_id is not None
    clean_epoch = log_dirs.previous_broker_epoch if has_marker else None

    async def begin() -> tuple[Broker, bool, PreviousShutdown]:
        store = await open_store()
        try:
            was_prepared = await store.multi_get([znodes.CLUSTER_ID]) != [None]
            cluster_id = log_dirs.cluster_id or uuid_text(new_uuid().bytes)
            cluster_id = await registration.prepare_tree(store, cluster_id=cluster_id)
            own = await _with_broker_id(config, log_dirs, store, is_alone=peers is None)
            log_dirs.claim(broker_id=own.broker_id, cluster_id=cluster_id)
            broker = _assemble(
                own, store, log_dirs, cluster_id=cluster_id, peers=peers, now_ms=now_ms
            )
            broker.decoy_key = await _decoy_key(config, store)
            broker.validation = ValidationGate(broker, open_validator)
            broker.metrics.watch(broker.validation.gauges)
            before = PreviousShutdown.CLEAN if log_dirs.was_clean else PreviousShutdown.CRASH
            if peers is not None:
                before = await _previous_shutdown(broker, boot_id, clean_epoch)
            return broker, was_prepared, before
        except BaseException:
            await store.close()
            raise

    if peers is None:
        broker, was_prepared, before = await begin()
        life = _alone(broker, endpoints, new_uuid, before, is_new=not was_prepared)
    else:
        broker, _, before = await _begin_with_retries(begin, config)
        life = _in_cluster(
            broker, endpoints, new_uuid, peers, addresses, open_store, boot_id, before
        )
    async with life, _housekeeping(broker):
        yield broker


async def _begin_with_retries(begin: Callable[[], Awaitable[T]], config: BrokerConfig) -> T:
    """Run `begin` until it succeeds: ZooKeeper may start after this broker, or restart."""
    loop = asyncio.get_running_loop()
    timeout_ms = config.zookeeper_connection_timeout_ms or config.zookeeper_session_timeout_ms
    deadline_s = loop.time() + timeout_ms / 1000
    while True:
        try:
            return await begin()
        except (StoreUnavailable, OutcomeUnknown, SessionLost) as error:
            if loop.time() >= deadline_s:
                raise
            log.warning("The metadata store went away while this broker was starting: %s", error)
        await asyncio.sleep(_BEGIN_AGAIN_S)


@asynccontextmanager
async def _housekeeping(broker: Broker) -> AsyncIterator[None]:
    house = asyncio.create_task(keep_house(broker), name="housekeeping")
    try:
        yield
    finally:
        house.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await house


# Alone


@asynccontextmanager
async def _alone(
    broker: Broker,
    endpoints: Sequence[Endpoint],
    new_uuid: Callable[[], uuid.UUID],
    before: PreviousShutdown,
    *,
    is_new: bool,
) -> AsyncIterator[None]:
    try:
        # No other broker has what this disk lost, so a lone broker goes on with what is left.
        newcomer = _newcomer(broker, endpoints, new_uuid, before)
        registered = await registration.register(broker.store, newcomer, now_ms=broker.now_ms())
        controller = await Controller.elect(
            broker.store,
            broker.broker_id,
            now_ms=broker.now_ms(),
            min_insync_replicas=broker.config.min_insync_replicas,
            settings=lambda: ControlSettings(
                with_acls=bool(broker.config.authorizer_class_name),
                with_tokens=bool(broker.config.delegation_token_secret_key),
            ),
        )
        if controller is None:
            raise PenstockError("another process is the controller of this metadata store")
        if is_new:
            await adopt_found_topics(controller, broker.log_dirs, broker_id=broker.broker_id)
        broker.controller = controller
        await _recover_logs(broker, controller.image)
        newcomers = PartitionOpener(
            broker.partitions, obey=partial(take_partitions, broker), is_alone=True
        )

        def take(image: ClusterImage) -> None:
            note_image(broker, image)
            newcomers.take(image)

        take(controller.image)
        await newcomers.wait_until_settled()
        broker.partitions.set_aside_strays(controller.image)
        controller.subscribe(take, newcomers.wait_until_settled)
        broker.log_dirs.note_broker_epoch(registered.epoch)
        try:
            yield
        finally:
            await _leave(broker, controller, registered)
            await newcomers.close()
    finally:
        await broker.store.close()


async def _leave(broker: Broker, controller: Controller, registered: BrokerRegistration) -> None:
    """Controlled shutdown: say goodbye while everything still works."""
    try:
        if broker.config.controlled_shutdown_enable:
            await controller.begin_shutdown(broker.broker_id)
        await registration.withdraw(broker.store, registered)
        await controller.resign()
    except PenstockError as error:
        # Without the controller's answer the logs are still closed cleanly.
        log.warning("The goodbye did not reach the metadata store: %s", error)


# In a cluster


@asynccontextmanager
async def _in_cluster(
    broker: Broker,
    endpoints: Sequence[Endpoint],
    new_uuid: Callable[[], uuid.UUID],
    peers: "Peers",
    addresses: "AddressBook | None",
    open_store: OpenStore,
    boot_id: str | None,
    prev_shutdown: PreviousShutdown,
) -> AsyncIterator[None]:
    from penstock.broker.membership.cluster_member import ClusterMember
    from penstock.broker.membership.controller_location import AddressBook

    member = broker.member = ClusterMember(
        broker,
        peers=peers,
        open_store=open_store,
        newcomer=lambda before: _newcomer(broker, endpoints, new_uuid, before),
        prev_shutdown=prev_shutdown,
        boot_id=boot_id,
        addresses=addresses or AddressBook(broker.config.inter_broker_listener_name),
    )
    member.start(broker.store)
    try:
        await member.until_active()
        with contextlib.suppress(ProtocolError):  # Tried again when a producer asks for one.
            await broker.producer_ids.prepare()
        yield
    finally:
        await member.close()


async def _previous_shutdown(
    broker: Broker, boot_id: str | None, clean_epoch: int | None
) -> PreviousShutdown:
    """What may be missing on these disks; after a crash the logs are recovered first."""
    from penstock.broker.membership.boot_id import noted_boot_id

    store, log_dirs = broker.store, broker.log_dirs
    fence = await registration.load_fence(store, broker.broker_id)
    judged = registration.judge_previous_shutdown(
        clean_epoch=clean_epoch,
        last_boot_id=noted_boot_id(log_dirs.paths[0]),
        boot_id=boot_id,
        fence=fence,
    )
    if judged is PreviousShutdown.LOSSY:
        log_dirs.set_aside_nameless()
    if not log_dirs.was_clean:
        await _recover_logs(broker, await _load_image(broker, store))
    is_missing = fence is not None and not set(fence.directory_ids) <= set(log_dirs.directory_ids)
    # What was on a disk that is missing or has failed is lost.
    return PreviousShutdown.LOSSY if is_missing or log_dirs.failed else judged


async def _load_image(broker: Broker, store: MetaStore) -> ClusterImage:
    """The topics and settings in the store; no image of a controller has come yet."""
    from penstock.cluster.image.load import load_configs, load_topics

    topics, configs = await load_topics(store), await load_configs(store)
    return ClusterImage(
        cluster_id=broker.image.cluster_id, topics=topics.topics, configs=configs.configs
    )


async def _recover_logs(broker: Broker, image: ClusterImage) -> None:
    """After a crash, walk the logs before anybody is told that this broker is back.

    It is work for threads, and may take minutes; the session is kept alive meanwhile.
    """
    log_dirs = broker.log_dirs
    if log_dirs.was_clean:
        return
    found = dict(log_dirs.found_logs())
    wanted = [
        WantedLog(partition, topic.topic_id, _log_config(broker, image, partition.topic))
        for partition, topic_id in found.items()
        if (topic := image.topics.get(partition.topic)) is not None
        and topic_id in (None, topic.topic_id)
        and partition.partition in topic.partitions
        and broker.broker_id in topic.partitions[partition.partition].replicas
    ]
    recovering = asyncio.ensure_future(
        asyncio.to_thread(log_dirs.recover_logs, wanted, now_ms=broker.now_ms())
    )
    try:
        await asyncio.shield(recovering)
    except asyncio.CancelledError:
        log_dirs.stop_recovering()
        await recovering  # The thread still reads logs, so the directories must not be closed yet.
        raise


# Who we are


async def _with_broker_id(
    config: BrokerConfig, log_dirs: LogDirs, store: MetaStore, *, is_alone: bool
) -> BrokerConfig:
    """A broker that was given no number keeps the one its directories know, or gets a new one."""
    if config.broker_id >= 0:
        return config
    chosen = log_dirs.broker_id
    if chosen is None:
        chosen = _ALONE_BROKER_ID if is_alone else await _generate_id(config, store)
    return config.with_static({"broker.id": str(chosen)}, is_id_generated=True)


async def _generate_id(config: BrokerConfig, store: MetaStore) -> int:
    """A new id above `reserved.broker.max.id`: the version of a node counts the ids given out."""
    if not config.broker_id_generation_enable:
        raise ConfigError(
            "broker.id is not set and broker.id.generation.enable is false: set broker.id"
        )
    while True:
        try:
            (stat,) = await store.multi([Set(_SEQUENCE_OF_IDS, b"")])
        except OutcomeUnknown:
            continue  # A number may be skipped.
        assert isinstance(stat, Stat)
        return config.reserved_broker_max_id + stat.version


def _newcomer(
    broker: Broker,
    endpoints: Sequence[Endpoint],
    new_uuid: Callable[[], uuid.UUID],
    prev_shutdown: PreviousShutdown,
) -> Newcomer:
    return Newcomer(
        broker_id=broker.broker_id,
        endpoints=tuple(endpoints),
        rack=broker.config.broker_rack,
        incarnation=new_uuid().hex,
        directory_ids=broker.log_dirs.directory_ids,
        prev_shutdown=prev_shutdown,
    )


# The parts


def _assemble(
    config: BrokerConfig,
    store: MetaStore,
    log_dirs: LogDirs,
    *,
    cluster_id: str,
    peers: "Peers | None",
    now_ms: Callable[[], int],
) -> Broker:
    partitions = PartitionTable(
        broker_id=config.broker_id,
        log_dirs=log_dirs,
        log_config=lambda image, topic: _log_config(broker, image, topic),
        now_ms=now_ms,
        lag_ms_max=lambda: broker.config.replica_lag_time_max_ms,
    )
    partitions.around.commits.is_on = lambda: broker.config.flush_on_ack
    producer_ids = ProducerIds(store=lambda: broker.store, broker_id=config.broker_id)
    groups = GroupCoordinator(
        partitions=partitions,
        config=lambda: broker.config,
        image=lambda: broker.image,
        now_ms=now_ms,
        families=KINDS,
    )
    broker = Broker(
        config=config,
        store=store,
        controller=None,
        image=ClusterImage(cluster_id=cluster_id),
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
            now_ms=now_ms,
            reach=None if peers is None else _reach(config.broker_id, lambda: broker.image, peers),
        ),
        quotas=ClientQuotas(
            window=_quota_window(config),
            mutation_window=QuotaWindow(
                config.controller_quota_window_num,
                config.controller_quota_window_size_seconds * 1000,
            ),
        ),
        connection_quotas=ConnectionQuotas(
            window=_quota_window(config), config=lambda: broker.config
        ),
        access=access_of(config),
        tokens=_tokens(config),
        now_ms=now_ms,
        peers=peers,
    )
    watch_broker(broker)
    return broker


async def _decoy_key(config: BrokerConfig, store: MetaStore) -> bytes:
    """What unknown users are shown salts of; only where users log in."""
    if not any(asked.security_protocol in WITH_SASL for asked in config.listeners):
        return b""
    return await keep_decoy_key(store, secrets.token_bytes(_DECOY_KEY_BYTES))


def _tokens(config: BrokerConfig) -> "DelegationTokens | None":
    if not config.delegation_token_secret_key:
        return None
    from penstock.broker.security.delegation_tokens import tokens_of  # Most brokers have none.

    return tokens_of(config)


def _reach(broker_id: int, image: Callable[[], ClusterImage], peers: "Peers") -> Reach:
    from penstock.broker.transactions.reach import ClusterReach

    return ClusterReach(broker_id=broker_id, image=image, peers=peers)


def _quota_window(config: BrokerConfig) -> QuotaWindow:
    return QuotaWindow(config.quota_window_num, config.quota_window_size_seconds * 1000)


def _log_config(broker: Broker, image: ClusterImage, topic: str) -> LogConfig:
    return LogConfig.from_settings(log_settings(image.config("topics", topic), broker.config))
