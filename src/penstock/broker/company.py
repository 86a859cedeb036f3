"""In which company a broker works: alone, beside others of its machine, or with a ZooKeeper.

    alone            a file of its own                        meta/sqlite
    beside others    a file that all processes have open      meta/shared
    in a cluster     ZooKeeper                                meta/zookeeper

What a broker is made of does not depend on it (broker/node.py); what it loads does.
"""

import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from penstock.broker.context import Broker
from penstock.broker.node import OpenStore, running
from penstock.broker.security.access import SUPER_USERS
from penstock.broker.security.outgoing_login import outgoing_login, outgoing_wrap, own_principal
from penstock.broker.validation.port import OpenValidator
from penstock.cluster.image.image import Endpoint
from penstock.config.broker import BrokerConfig
from penstock.config.listeners import advertised_ports
from penstock.config.processes import METADATA_FILE, left_out, left_out_sentence
from penstock.errors import ConfigError
from penstock.meta.sqlite.store import SqliteStore
from penstock.meta.store import MetaStore
from penstock.net.listener import Listener
from penstock.security.principals import Principal, parse_super_users
from penstock.storage.directories.log_dirs import LogDirs

log = logging.getLogger("kafka.server.KafkaServer")

Node = Callable[
    [BrokerConfig, LogDirs, list[Listener], OpenValidator | None],
    "contextlib.AbstractAsyncContextManager[Broker]",
]


def node_of(config: BrokerConfig) -> Node:
    if config.zookeeper_connect:
        return _in_cluster
    return _beside_others if config.penstock_shared_metadata else _alone


def keeps_metadata(config: BrokerConfig) -> bool:
    """Whether the metadata are in this broker's first directory, and gone with its disk."""
    if config.zookeeper_connect:
        return False
    shared = config.penstock_shared_metadata
    return shared is None or Path(shared).parent == config.log_dirs[0].absolute()


@asynccontextmanager
async def _alone(
    config: BrokerConfig,
    log_dirs: LogDirs,
    listeners: list[Listener],
    open_validator: OpenValidator | None,
) -> AsyncIterator[Broker]:
    first = log_dirs.dirs[0]
    if (found := left_out(config.log_dirs, 1)) is not None:
        raise ConfigError(left_out_sentence(found, 1))
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
    from penstock.broker.security.zookeeper_login import zookeeper_login
    from penstock.meta.guardian.guardian import Guardian, spawn_guardian
    from penstock.meta.zookeeper.store import ZkStore

    connect = config.zookeeper_connect
    assert connect is not None
    keeper = zookeeper_login(config)

    async def open_store(guardian: Guardian) -> MetaStore:
        store = await ZkStore.open(
            connect,
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            connection_timeout_ms=config.zookeeper_connection_timeout_ms,
            in_flight_max=config.zookeeper_max_in_flight_requests,
            tls=keeper.tls,
            access_of=keeper.access_of,
        )
        guardian.watch(*store.session_secret, config.zookeeper_session_timeout_ms)
        return store

    with contextlib.closing(spawn_guardian(connect, keeper.tls)) as guardian:
        opened = partial(open_store, guardian)
        async with _member(config, log_dirs, listeners, open_validator, opened) as broker:
            yield broker


@asynccontextmanager
async def _beside_others(
    config: BrokerConfig,
    log_dirs: LogDirs,
    listeners: list[Listener],
    open_validator: OpenValidator | None,
) -> AsyncIterator[Broker]:
    """One of several processes of this machine, without ZooKeeper."""
    from penstock.meta.shared.store import SharedStore

    assert config.penstock_shared_metadata is not None
    opened = partial(
        SharedStore.open,
        Path(config.penstock_shared_metadata),
        session_timeout_ms=config.broker_session_timeout_ms,
        make_room=log_dirs.dirs[0].room.give,
    )
    async with _member(config, log_dirs, listeners, open_validator, opened) as broker:
        yield broker


@asynccontextmanager
async def _member(
    config: BrokerConfig,
    log_dirs: LogDirs,
    listeners: list[Listener],
    open_validator: OpenValidator | None,
    open_store: OpenStore,
) -> AsyncIterator[Broker]:
    from penstock.broker.membership.boot_id import present_boot_id
    from penstock.broker.membership.controller_location import AddressBook
    from penstock.net.outgoing import TcpPeers

    addresses = AddressBook(config.inter_broker_listener_name)
    peers = TcpPeers(
        addresses.address_of,
        client_id=f"broker-{config.broker_id}",
        receive_buffer_bytes=buffer_bytes(config, "replica.socket.receive.buffer.bytes"),
        login=outgoing_login(config),
    )
    if (wrap := outgoing_wrap(config)) is not None:
        peers.wrap = wrap
    _warn_of_rights(config)

    with contextlib.closing(peers):
        async with running(
            config,
            open_store=open_store,
            log_dirs=log_dirs,
            endpoints=_endpoints(config, listeners),
            peers=peers,
            addresses=addresses,
            boot_id=present_boot_id(),
            open_validator=open_validator,
        ) as broker:
            if wrap is not None:
                broker.config_followers.append(wrap.reconfigure)
                broker.config_checks.append(wrap.check)
            yield broker


def _endpoints(config: BrokerConfig, listeners: list[Listener]) -> tuple[Endpoint, ...]:
    ports = {listener.name: listener.port for listener in listeners}
    return tuple(
        Endpoint(advertised.name, advertised.host, advertised.port, advertised.security_protocol)
        for advertised in advertised_ports(config.advertised_listeners, ports)
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


def buffer_bytes(config: BrokerConfig, name: str) -> int | None:
    """Only a size somebody asked for is set: the kernel's own tuning beats Kafka's default."""
    value = config.values[name]
    if name not in config.static or not isinstance(value, int) or value < 0:
        return None
    return value
