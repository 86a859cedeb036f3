"""Clusters whose brokers come to each other over TLS and SASL, with rules that hold."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from tests.support.cluster import Cluster
from tests.support.key_stores import make_identity
from tests.support.processes import HOST, free_port
from tests.support.waiting import eventually
from tests.support.wire import RawConnection

from penstock.broker.dispatch import PEER_HANDLERS
from penstock.client.admin import Admin
from penstock.client.errors import BrokerUnreachableError
from penstock.client.operations.topics import NewTopic
from penstock.client.wire.connection import BrokerConnection
from penstock.client.wire.security import Security
from penstock.protocol.apis import ApiKey, request_class, supported_versions
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    ResourcePattern,
)

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"


class Secured:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def settings(self, user: str) -> dict[str, str]:
        return {
            "bootstrap.servers": self.cluster.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": f"{user}-secret",
        }


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory: Path = tmp_path_factory.mktemp("cluster")
    authority = make_identity("authority")
    server = make_identity("server", issuer=authority)
    (directory / "server.pem").write_bytes(server.key_pem() + server.chain_pem)
    (directory / "ca.pem").write_bytes(authority.certificate_pem)
    users = " ".join(f'user_{name}="{name}-secret"' for name in ("broker", "admin", "alice"))
    settings = {
        "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,INSIDE:SASL_SSL",
        "inter.broker.listener.name": "INSIDE",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "connections.max.reauth.ms": "4000",  # Brokers come in again and again.
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
        "authorizer.class.name": ACL_AUTHORIZER,
        "super.users": "User:broker;User:admin",
        "default.replication.factor": "2",
        "offsets.topic.replication.factor": "2",
        "min.insync.replicas": "2",
    }
    for listener in ("clients", "inside"):
        settings[f"listener.name.{listener}.plain.sasl.jaas.config"] = (
            f'{PLAIN} required username="broker" password="broker-secret" {users};'
        )
    cluster = Cluster(directory, brokers=2, settings=settings)
    for broker in cluster.brokers:
        broker.settings["listeners"] = (
            f"CLIENTS://{HOST}:{broker.port},INSIDE://{HOST}:{free_port()}"
        )
    with cluster:
        yield Secured(cluster)
        for broker in cluster.brokers:
            assert broker.tracebacks() == {}
            assert "-secret" not in broker.log


def allow(kind: AclResourceType, name: str, *operations: AclOperation) -> list[AclBinding]:
    return [
        AclBinding(
            ResourcePattern(kind, name),
            AccessControlEntry("User:alice", "*", operation, AclPermission.ALLOW),
        )
        for operation in operations
    ]


def test_replicas_are_copied_and_rules_hold_on_every_broker(secured: Secured) -> None:
    with Admin(secured.settings("admin")) as admin:
        admin.create_topics([NewTopic(name="t", partitions=4)])
        rules = allow(AclResourceType.TOPIC, "t", AclOperation.WRITE, AclOperation.READ)
        rules += allow(AclResourceType.GROUP, "g", AclOperation.READ)
        admin.create_acls(rules)
        # Each broker reads the rules by itself, a moment after the one that wrote them.
        eventually(lambda: len(admin.describe_acls(AclBindingFilter())) == 3)
    alice = secured.settings("alice")
    producer = Producer({**alice, "acks": "all"})
    for number in range(40):
        producer.produce("t", b"%d" % number, partition=number % 4)
    assert producer.flush(120) == 0  # Both brokers have each record.
    consumer = Consumer({**alice, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    found: set[bytes | None] = set()
    while len(found) < 40:
        found |= {one.value() for one in consumer.consume(40, 1) if not one.error()}
    consumer.close()
    with Admin(alice) as admin:
        assert [listing.name for listing in admin.list_topics()] == ["t"]


def test_brokers_authenticate_again_before_their_sessions_end(secured: Secured) -> None:
    producer = Producer({**secured.settings("alice"), "acks": "all"})
    logs = [broker.log for broker in secured.cluster.brokers]
    with Admin(secured.settings("admin")) as admin:
        for number in range(60):
            producer.produce("t", b"more", partition=number % 4)
            assert producer.flush(120) == 0
            admin.describe_acls(AclBindingFilter())
            eventually(lambda: True, every_s=0.1)
    for broker, before in zip(secured.cluster.brokers, logs, strict=True):
        assert "session has expired" not in broker.log[len(before) :]


def test_nobody_passes_for_a_broker(secured: Secured) -> None:
    port = int(secured.cluster.brokers[0].settings["listeners"].rpartition(":")[2])
    with RawConnection(port) as connection:
        connection.send(bytes.fromhex("0000000a") + bytes(10))
        assert connection.is_closed_by_peer()


@pytest.mark.parametrize("key", PEER_HANDLERS)
def test_what_brokers_tell_each_other_is_told_to_nobody_else(secured: Secured, key: ApiKey) -> None:
    listeners = secured.cluster.brokers[0].settings["listeners"]
    port = int(listeners.rpartition(":")[2])
    how = secured.settings("alice") | {"security.protocol": "SASL_SSL"}
    how["ssl.ca.location"] = str(secured.cluster.directory / "ca.pem")
    security = Security.from_settings(how)
    for version in supported_versions(key):
        with BrokerConnection(HOST, port, timeout_s=120, security=security) as alice:
            with pytest.raises(BrokerUnreachableError):
                alice.request(request_class(key)(), version)
            assert "User:alice is no broker" in secured.cluster.brokers[0].log
