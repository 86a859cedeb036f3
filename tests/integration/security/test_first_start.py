"""Secured clusters that start from nothing: credentials come first, then the brokers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.support.broker import BrokerProcess
from tests.support.cluster import Cluster
from tests.support.key_stores import make_identity
from tests.support.processes import HOST, free_port
from tests.support.waiting import eventually
from tests.support.zookeeper import ZooKeeperProcess

from penstock.cli.tools.configs import configs
from penstock.cli.tools.security import storage
from penstock.client.admin import Admin
from penstock.client.errors import AuthenticationError
from penstock.client.operations.topics import NewTopic
from penstock.errors import CommandError
from penstock.meta.zookeeper.nodes import ZkNodes

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
MECHANISM = "SCRAM-SHA-512"


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    process = ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper"))
    process.start()
    yield process
    process.kill()


def settings(address: str, user: str = "broker") -> dict[str, str]:
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": MECHANISM,
        "sasl.username": user,
        "sasl.password": f"{user}-secret",
    }


REPLICATED = {
    "default.replication.factor": "2",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "min.insync.replicas": "2",
}


def test_brokers_that_come_to_each_other_by_scram_start_from_nothing(
    zookeeper: ZooKeeperProcess, tmp_path: Path
) -> None:
    chroot, connect = "/scram", f"{zookeeper.connect}/scram"
    added = f"{MECHANISM}=[iterations=4096,password=broker-secret]"
    words = ["--alter", "--entity-type", "users", "--entity-name", "broker", "--add-config", added]
    assert configs.main(["--zookeeper", connect, *words]) == 0
    cluster = Cluster(
        tmp_path,
        brokers=2,
        settings={
            **REPLICATED,
            "inter.broker.listener.name": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": MECHANISM,
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": (
                f'{SCRAM} required username="broker" password="broker-secret";'
            ),
            "delegation.token.secret.key": "the key of all tokens",
        },
        zookeeper=zookeeper,
        chroot=chroot,
    )
    for broker in cluster.brokers:
        broker.settings["listeners"] = f"SASL_PLAINTEXT://{HOST}:{broker.port}"
    with cluster:
        _write_everywhere(settings(cluster.bootstrap))
        _use_tokens(cluster, connect)
        for broker in cluster.brokers:
            assert broker.tracebacks() == {}
            assert "-secret" not in broker.log


def _write_everywhere(how: dict[str, str]) -> None:
    with Admin(how) as admin:
        admin.create_topics([NewTopic(name="t", partitions=4)])
    producer = Producer({**how, "acks": "all"})
    for number in range(40):
        producer.produce("t", b"%d" % number, partition=number % 4)
    assert producer.flush(120) == 0  # Both brokers have each record.


def _use_tokens(cluster: Cluster, connect: str) -> None:
    """Made at either broker, known to both, kept as Kafka kept them, and gone when ended."""
    for asked, other in (cluster.brokers, cluster.brokers[::-1]):
        with Admin(settings(asked.address)) as admin:
            token = admin.create_delegation_token()
            bearer: dict[str, object] = {
                "bootstrap.servers": other.address,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": MECHANISM,
                "sasl.jaas.config": token.jaas_config,
            }
            eventually(lambda how=bearer: _comes_in(how))  # type: ignore[misc]
            token_id = token.information.token_id
            with ZkNodes(connect) as nodes:
                kept = json.loads(nodes.get(f"/delegation_token/tokens/{token_id}")[0] or b"")
            assert (kept["version"], kept["owner"]) == (3, "User%3Abroker")
            admin.expire_delegation_token(token.hmac)
            eventually(lambda how=bearer: not _comes_in(how))  # type: ignore[misc]


def _comes_in(how: dict[str, object]) -> bool:
    try:
        with Admin(how) as admin:
            return bool(admin.list_topics())
    except AuthenticationError:
        return False


def test_brokers_come_to_each_other_by_their_certificates(
    zookeeper: ZooKeeperProcess, tmp_path: Path
) -> None:
    authority = make_identity("authority")
    server = make_identity("server", issuer=authority)
    (tmp_path / "server.pem").write_bytes(server.key_pem() + server.chain_pem)
    (tmp_path / "ca.pem").write_bytes(authority.certificate_pem)
    cluster = Cluster(
        tmp_path,
        brokers=2,
        settings={
            **REPLICATED,
            "listener.security.protocol.map": "CLIENTS:PLAINTEXT,INSIDE:SSL",
            "inter.broker.listener.name": "INSIDE",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(tmp_path / "server.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(tmp_path / "ca.pem"),
            "listener.name.inside.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/,DEFAULT",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:server;User:ANONYMOUS",
        },
        zookeeper=zookeeper,
        chroot="/certificates",
    )
    for broker in cluster.brokers:
        broker.settings["listeners"] = (
            f"CLIENTS://{HOST}:{broker.port},INSIDE://{HOST}:{free_port()}"
        )
    with cluster:
        _write_everywhere({"bootstrap.servers": cluster.bootstrap})
        for broker in cluster.brokers:
            assert broker.tracebacks() == {}


def test_a_broker_alone_starts_with_users_given_when_it_was_formatted(tmp_path: Path) -> None:
    port, inside = free_port(), free_port()
    how = {
        "listeners": f"SASL_PLAINTEXT://{HOST}:{port},PLAINTEXT://{HOST}:{inside}",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": MECHANISM,
    }
    with BrokerProcess(tmp_path, how, port=inside) as broker:
        config = tmp_path / "format.properties"
        config.write_text(f"log.dirs={broker.data}\n")
        words = ["format", "--config", str(config), "--cluster-id", "AAAAAAAAQACAAAAAAAAAAQ"]
        user = f"{MECHANISM}=[name=broker,password=broker-secret]"
        assert storage.main([*words, "--add-scram", user]) == 0
        with pytest.raises(CommandError, match="is already formatted"):
            storage.main(words)
        broker.start()
        with Admin(settings(f"{HOST}:{port}")) as admin:
            assert admin.describe_cluster().cluster_id == "AAAAAAAAQACAAAAAAAAAAQ"
        broker.stop()
