"""How a broker comes to ZooKeeper, and what it refuses to start without."""

import pytest

from penstock.broker.security.zookeeper_login import zookeeper_login
from penstock.cluster.znode_access import secure_access
from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError
from penstock.meta.zookeeper.requests import all_open

TLS = {"zookeeper.ssl.client.enable": "true"}
KEY = {"zookeeper.ssl.keystore.location": "k.p12", "zookeeper.ssl.keystore.password": "secret"}
ACLS = {"zookeeper.set.acl": "true"}


def test_without_settings_nodes_are_open_and_nothing_is_encrypted() -> None:
    found = zookeeper_login(BrokerConfig({}))
    assert (found.tls, found.access_of) == (None, all_open)


def test_with_a_certificate_nodes_are_the_brokers() -> None:
    found = zookeeper_login(BrokerConfig({**TLS, **KEY, **ACLS}))
    assert found.access_of is secure_access
    assert found.tls is not None
    assert found.tls.key_store.password == "secret"
    assert "secret" not in repr(found)
    assert zookeeper_login(BrokerConfig({**TLS, **KEY})).access_of is all_open


def test_values_of_a_file_are_read() -> None:
    name = "zookeeper.ssl.endpoint.identification.algorithm"
    more = {name: "", "zookeeper.ssl.enabled.protocols": "TLSv1.2,TLSv1.3"}
    tls = zookeeper_login(BrokerConfig({**TLS, **more})).tls
    assert tls is not None
    assert not tls.checks_host
    assert tls.protocols == ("TLSv1.2", "TLSv1.3")
    default = zookeeper_login(BrokerConfig(TLS)).tls
    assert default is not None and default.checks_host


@pytest.mark.parametrize("given", [ACLS, {**ACLS, **TLS}, {**ACLS, **KEY}])
def test_nodes_cannot_belong_to_nobody(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.set\.acl is true"):
        zookeeper_login(BrokerConfig(given))
