"""Brokers that know each other by certificates, and certificates that change while they run."""

import ssl
import struct
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from tests.support.cluster import Cluster
from tests.support.key_stores import Identity, make_identity
from tests.support.processes import HOST, free_port
from tests.support.secure_zookeeper import KeyFiles
from tests.support.waiting import eventually
from tests.support.wire import FETCH, RawConnection, Reader, fetch_body

from penstock.cli.main import main
from penstock.client.admin import Admin
from penstock.client.operations.topics import NewTopic
from penstock.errors import ErrorCode


class Ground:
    def __init__(self, cluster: Cluster, keys: KeyFiles) -> None:
        self.cluster = cluster
        self.keys = keys

    def port(self, broker: int, listener: str) -> int:
        listed = self.cluster.brokers[broker].settings["listeners"].split(",")
        return next(int(one.rpartition(":")[2]) for one in listed if one.startswith(listener))

    def settings(self, name: str) -> dict[str, str]:
        key = str(self.keys.path(name))
        return {
            "bootstrap.servers": f"{HOST}:{self.port(0, 'CLIENTS')}",
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.keys.ca),
            "ssl.certificate.location": key,
            "ssl.key.location": key,
        }

    def come(self, listener: str, name: str | None) -> RawConnection:
        """A connection to broker 0 with the certificate of somebody."""
        context = ssl.create_default_context(cafile=str(self.keys.ca))
        if name is not None:
            context.load_cert_chain(self.keys.path(name))
        connection = RawConnection(self.port(0, listener))
        connection.socket = context.wrap_socket(connection.socket, server_hostname=HOST)
        return connection

    def shown(self) -> bytes:
        """The certificate that broker 0 shows to newcomers."""
        with self.come("CLIENTS", "admin") as connection:
            assert isinstance(connection.socket, ssl.SSLSocket)
            return connection.socket.getpeercert(binary_form=True) or b""

    def alter(self, *settings: str, broker: int = 0) -> int:
        """What an operator types."""
        file = self.keys.directory / "admin.properties"
        lines = [f"{name}={value}\n" for name, value in self.settings("admin").items()]
        file.write_text("".join(lines))
        where = ["--bootstrap-server", f"{HOST}:{self.port(broker, 'CLIENTS')}"]
        where += ["--command-config", str(file)]
        which = ["--entity-type", "brokers", "--entity-name", str(broker)]
        return main(["configs", *where, "--alter", *which, "--add-config", ",".join(settings)])

    def renew(self, name: str, owner: str = "broker", host: str = HOST) -> Identity:
        made = make_identity(owner, issuer=self.keys.authority, host=host)
        self.keys.add(name, made)
        return made


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    directory = tmp_path_factory.mktemp("keys")
    keys = KeyFiles(directory / "keys", "broker", "admin", "alice")
    settings = {
        "listener.security.protocol.map": "LOOK:PLAINTEXT,CLIENTS:SSL,INSIDE:SSL",
        "inter.broker.listener.name": "INSIDE",
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/,DEFAULT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys.path("broker")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(keys.ca),
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:broker;User:admin",
        "default.replication.factor": "2",
        "offsets.topic.replication.factor": "2",
    }
    cluster = Cluster(directory, brokers=2, settings=settings)
    for broker in cluster.brokers:
        listeners = {"LOOK": broker.port, "CLIENTS": free_port(), "INSIDE": free_port()}
        broker.settings["listeners"] = ",".join(
            f"{name}://{HOST}:{port}" for name, port in listeners.items()
        )
    with cluster:
        yield Ground(cluster, keys)
        cluster.assert_no_tracebacks()


def test_brokers_know_each_other_by_their_certificates(ground: Ground) -> None:
    with Admin(ground.settings("admin")) as admin:
        admin.create_topics([NewTopic(name="t", partitions=4)])
    producer = Producer({**ground.settings("admin"), "acks": "all"})
    for number in range(40):
        producer.produce("t", b"%d" % number, partition=number % 4)
    assert producer.flush(120) == 0  # Both brokers have each record: min.insync.replicas is two.


def test_a_certificate_of_somebody_else_is_no_brokers(ground: Ground) -> None:
    body = struct.pack(">i", 1) + fetch_body({("t", 0): 0})[4:]  # As broker 1 would ask.
    with ground.come("INSIDE", "alice") as connection:
        answer = connection.ask(FETCH, 11, body)
        answer.take(4 + 2 + 4)  # Throttle time, error code, session.
        assert _first_error(answer) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(OSError), ground.come("INSIDE", None) as connection:
        connection.api_versions()


def _first_error(answer: Reader) -> int:
    assert answer.number("i") == 1
    answer.text()
    assert answer.number("i") == 1
    answer.number("i")
    return answer.number("h")


def test_newcomers_see_a_new_certificate_and_who_is_inside_stays(ground: Ground) -> None:
    key = "listener.name.clients.ssl.keystore.location"
    with ground.come("CLIENTS", "admin") as inside:
        before = ground.shown()
        second = ground.renew("second")
        assert ground.alter(f"{key}={ground.keys.path('second')}") == 0
        eventually(lambda: ground.shown() == second.certificate_der, timeout_s=60)
        third = ground.renew("second")  # Another key in the same file.
        assert ground.alter(f"{key}={ground.keys.path('second')}") == 0
        eventually(lambda: ground.shown() == third.certificate_der, timeout_s=60)
        assert before not in (second.certificate_der, third.certificate_der)
        assert inside.api_versions().error_code == 0


@pytest.mark.parametrize("broker", [0, 1])  # One of them is the controller.
def test_a_key_store_that_cannot_be_used_is_refused(
    ground: Ground, broker: int, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "listener.name.clients.ssl.keystore.location"
    before = ground.shown()
    assert ground.alter(f"{key}=/nowhere/at.pem", broker=broker) == 1
    assert "/nowhere/at.pem cannot be read" in capsys.readouterr().err
    ground.renew("other-name", owner="somebody else")
    assert ground.alter(f"{key}={ground.keys.path('other-name')}", broker=broker) == 1
    assert "DistinguishedName does not match" in capsys.readouterr().err
    ground.renew("other-host", host="127.0.0.2")
    assert ground.alter(f"{key}={ground.keys.path('other-host')}", broker=broker) == 1
    assert "SubjectAltNames do not match" in capsys.readouterr().err
    assert ground.shown() == before


def test_brokers_go_on_with_new_certificates_between_them(ground: Ground) -> None:
    key = "listener.name.inside.ssl.keystore.location"
    renewed = ground.renew("inside")
    for broker in (0, 1):
        assert ground.alter(f"{key}={ground.keys.path('inside')}", broker=broker) == 0

    def inside_shows() -> bytes | None:
        with ground.come("INSIDE", "admin") as connection:
            assert isinstance(connection.socket, ssl.SSLSocket)
            return connection.socket.getpeercert(binary_form=True)

    eventually(lambda: inside_shows() == renewed.certificate_der, timeout_s=60)
    ground.cluster.brokers[1].kill()
    ground.cluster.brokers[1].start()  # All connections between them are made anew.
    producer = Producer({**ground.settings("admin"), "acks": "all"})
    for number in range(8):
        producer.produce("t", b"again", partition=number % 4)
    assert producer.flush(120) == 0
