"""How this broker comes to ZooKeeper: TLS, and to whom the nodes belong that it makes there."""

from dataclasses import dataclass

from penstock.cluster.znode_access import secure_access
from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError
from penstock.meta.zookeeper.requests import AccessOf, all_open
from penstock.meta.zookeeper.tls import ENABLE, KEY_STORE, NAMES, SOCKET, zookeeper_tls
from penstock.security.tls.contexts import TlsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperLogin:
    """What a session with ZooKeeper is opened with."""

    tls: TlsSettings | None
    access_of: AccessOf


def zookeeper_login(config: BrokerConfig) -> ZooKeeperLogin:
    """From `zookeeper.*`; ConfigError says what is missing."""
    tls = zookeeper_tls({name: config.values[name] for name in NAMES})
    if not config.zookeeper_set_acl:
        return ZooKeeperLogin(tls=tls, access_of=all_open)
    if tls is None or not tls.key_store.is_given:
        raise ConfigError(
            "zookeeper.set.acl is true, but ZooKeeper would not know to whom the nodes belong: "
            f"give brokers a certificate with {ENABLE}=true, {SOCKET} and {KEY_STORE}.location"
        )
    return ZooKeeperLogin(tls=tls, access_of=secure_access)
