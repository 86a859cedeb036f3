"""Kafka's settings of TLS to ZooKeeper, and bytes that TLS has decrypted before anybody asks."""

import socket
import ssl
import threading
from pathlib import Path

import pytest
from tests.support.secure_zookeeper import KeyFiles

from penstock.config.tables.zookeeper import SETTINGS
from penstock.errors import ConfigError
from penstock.meta.zookeeper.tls import NAMES, TlsHandler, zookeeper_tls

ON = {"zookeeper.ssl.client.enable": "true"}


def test_without_the_setting_there_is_no_tls() -> None:
    assert zookeeper_tls({}) is None
    assert zookeeper_tls({"zookeeper.ssl.client.enable": False}) is None


def test_every_setting_of_tls_is_read() -> None:
    known = {one.name for one in SETTINGS if "ssl" in one.name or "Cnxn" in one.name}
    assert set(NAMES) == known


def test_kafkas_defaults_are_one_version_and_names_that_are_checked() -> None:
    found = zookeeper_tls(ON)
    assert found is not None
    assert found.protocols == ("TLSv1.2",)
    assert found.checks_host
    newer = zookeeper_tls({**ON, "zookeeper.ssl.protocol": "TLSv1.3"})
    both = zookeeper_tls({**ON, "zookeeper.ssl.enabled.protocols": "TLSv1.2, TLSv1.3"})
    assert newer is not None and newer.protocols == ("TLSv1.3",)
    assert both is not None and both.protocols == ("TLSv1.2", "TLSv1.3")
    name = "zookeeper.ssl.endpoint.identification.algorithm"
    unchecked = zookeeper_tls({**ON, name: ""})
    assert unchecked is not None and not unchecked.checks_host


@pytest.mark.parametrize(
    ("file", "kind", "password", "key_password"),
    [("a.jks", "JKS", "p", None), ("a.p12", "PKCS12", "p", None), ("a.pem", "PEM", None, "p")],
)
def test_the_ending_of_a_name_tells_the_format(
    file: str, kind: str, password: str | None, key_password: str | None
) -> None:
    lead = "zookeeper.ssl.keystore"
    found = zookeeper_tls({**ON, f"{lead}.location": file, f"{lead}.password": "p"})
    assert found is not None
    store = found.key_store
    assert (store.type, store.password, store.key_password) == (kind, password, key_password)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("zookeeper.ssl.keystore.location", "/etc/keys"),
        ("zookeeper.ssl.truststore.type", "BCFKS"),
        ("zookeeper.ssl.protocol", "TLSv1.1"),
        ("zookeeper.ssl.enabled.protocols", "SSLv3"),
        ("zookeeper.ssl.endpoint.identification.algorithm", "LDAPS"),
        ("zookeeper.ssl.crl.enable", "true"),
        ("zookeeper.ssl.ocsp.enable", "true"),
        ("zookeeper.clientCnxnSocket", "org.apache.zookeeper.ClientCnxnSocketNIO"),
    ],
)
def test_what_cannot_be_done_is_refused_by_its_name(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        zookeeper_tls({**ON, name: value})


def test_bytes_that_are_decrypted_already_are_there_to_be_read(tmp_path: Path) -> None:
    keys = KeyFiles(tmp_path, "server", "client")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(keys.path("server"))
    near, far = socket.socketpair()
    wrapped: list[ssl.SSLSocket] = []
    accepting = threading.Thread(
        target=lambda: wrapped.append(serving.wrap_socket(far, server_side=True))
    )
    accepting.start()
    client = keys.context("client").wrap_socket(near, server_hostname="127.0.0.1")
    accepting.join()
    quiet, _ = other = socket.socketpair()
    with client, wrapped[0] as server, other[0], other[1]:
        server.sendall(b"two answers")
        assert client.recv(4) == b"two "
        readable, _, _ = TlsHandler(None).select([client, quiet], [], [], 60)
        assert readable == [client]
        assert client.recv(100) == b"answers"
        assert TlsHandler(None).select([client, quiet], [], [], 0)[0] == []
