"""TLS at a listener: settings of its own, new certificates while it runs, whom clients are."""

import socket
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.key_stores import Identity, make_identity

from penstock.broker.security.tls_doors import OutgoingTls, TlsDoor
from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError
from penstock.net.session import ANONYMOUS, Session
from penstock.net.tls_transport import TlsFailed, TlsTransport

LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,INNER://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,INNER:SSL",
    "inter.broker.listener.name": "PLAINTEXT",
}


def config(**settings: str) -> BrokerConfig:
    given = {name.replace("__", "."): value for name, value in settings.items()}
    return BrokerConfig({**LISTENERS, **given})


def pem_settings(directory: Path, name: str, identity: Identity) -> dict[str, str]:
    file = directory / f"{name}.pem"
    file.write_bytes(identity.key_pem() + identity.chain_pem)
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(file)}


def shown_by(door: TlsDoor, client: Identity | None = None) -> tuple[bytes, Session]:
    """The certificate a newcomer sees, and the session it gets."""
    ours, theirs = socket.socketpair()
    session = Session(listener="SSL", address="127.0.0.1:1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if client is not None:
        _load(context, client)
    seen: list[bytes] = []

    def connect() -> None:
        with context.wrap_socket(theirs) as tls:
            seen.append(tls.getpeercert(binary_form=True) or b"")
            tls.sendall(b"x")

    thread = threading.Thread(target=connect)
    thread.start()
    transport: TlsTransport = door(ours, session)
    try:
        while transport.receive_into(bytearray(1)) != 1:
            pass
    finally:
        transport.close()
        thread.join()
    return seen[0], session


def _load(context: ssl.SSLContext, identity: Identity) -> None:
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(identity.key_pem() + identity.chain_pem)
        file.flush()
        context.load_cert_chain(file.name)


def test_a_listener_may_have_a_certificate_of_its_own(tmp_path: Path) -> None:
    outer, inner = make_identity("outer"), make_identity("inner")
    own = pem_settings(tmp_path, "inner", inner)
    settings = pem_settings(tmp_path, "outer", outer) | {
        f"listener.name.inner.{name}": value for name, value in own.items()
    }
    chosen = BrokerConfig({**LISTENERS, **settings})
    assert shown_by(TlsDoor(chosen, "SSL", names_clients=True))[0] == outer.certificate_der
    assert shown_by(TlsDoor(chosen, "INNER", names_clients=True))[0] == inner.certificate_der


def test_a_certificate_can_be_changed_by_its_settings_and_by_its_file(tmp_path: Path) -> None:
    one, two, three = (make_identity(name) for name in ("one", "two", "three"))
    before = BrokerConfig({**LISTENERS, **pem_settings(tmp_path, "one", one)})
    door = TlsDoor(before, "SSL", names_clients=True)
    after = BrokerConfig({**LISTENERS, **pem_settings(tmp_path, "two", two)})
    door.reconfigure(after)
    assert shown_by(door)[0] == two.certificate_der
    pem_settings(tmp_path, "two", three)
    door.reconfigure(after)
    assert shown_by(door)[0] == three.certificate_der


def test_a_certificate_that_cannot_be_used_leaves_the_old_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = make_identity("one")
    settings = pem_settings(tmp_path, "one", one)
    chosen = BrokerConfig({**LISTENERS, **settings})
    door = TlsDoor(chosen, "SSL", names_clients=True)
    Path(settings["ssl.keystore.location"]).write_text("nonsense")
    door.reconfigure(chosen)
    assert shown_by(door)[0] == one.certificate_der
    assert "keeps its certificate" in caplog.text


def test_settings_are_tried_before_they_are_followed(tmp_path: Path) -> None:
    one = make_identity("one")
    settings = pem_settings(tmp_path, "one", one)
    chosen = BrokerConfig({**LISTENERS, **settings})
    for tls in (TlsDoor(chosen, "SSL", names_clients=True), OutgoingTls(chosen, "SSL")):
        tls.check(chosen)
        tls.check(BrokerConfig({**LISTENERS, **pem_settings(tmp_path, "b", make_identity("one"))}))
        missing = {**settings, "ssl.keystore.location": "/nowhere"}
        with pytest.raises(ConfigError, match="/nowhere"):
            tls.check(BrokerConfig({**LISTENERS, **missing}))
        other = {**LISTENERS, **pem_settings(tmp_path, "c", make_identity("two"))}
        with pytest.raises(ConfigError, match="DistinguishedName"):
            tls.check(BrokerConfig(other))
        tls.check(BrokerConfig({**other, "ssl.allow.dn.changes": "true"}))


def test_other_brokers_are_shown_the_certificate_of_the_settings_as_they_are(
    tmp_path: Path,
) -> None:
    authority = make_identity("authority")
    one, two = (make_identity("broker", issuer=authority) for _ in range(2))
    trust = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.certificate_pem.decode(),
    }
    settings = pem_settings(tmp_path, "one", one) | trust
    outgoing = OutgoingTls(BrokerConfig({**LISTENERS, **settings}), "SSL")
    assert _shown_to_a_server(outgoing, authority, two) == one.certificate_der
    pem_settings(tmp_path, "one", two)
    outgoing.reconfigure(BrokerConfig({**LISTENERS, **settings}))
    assert _shown_to_a_server(outgoing, authority, two) == two.certificate_der


def _shown_to_a_server(outgoing: OutgoingTls, authority: Identity, own: Identity) -> bytes:
    """The certificate with which a broker comes to another."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(context, own)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority.certificate_pem.decode())
    ours, theirs = socket.socketpair()
    seen: list[bytes] = []

    def serve() -> None:
        with context.wrap_socket(theirs, server_side=True) as tls:
            seen.append(tls.getpeercert(binary_form=True) or b"")
            tls.sendall(b"x")

    thread = threading.Thread(target=serve)
    thread.start()
    transport = outgoing(ours, "127.0.0.1")
    try:
        while transport.receive_into(bytearray(1)) != 1:
            pass
    finally:
        transport.close()
        thread.join()
    return seen[0]


def _door(tmp_path: Path, more: Mapping[str, str], *, names_clients: bool = True) -> TlsDoor:
    server, authority = make_identity("server"), make_identity("authority")
    settings = pem_settings(tmp_path, "server", server) | {
        "ssl.client.auth": "requested",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.certificate_pem.decode(),
    }
    door = BrokerConfig({**LISTENERS, **settings, **more})
    made = TlsDoor(door, "SSL", names_clients=names_clients)
    made_by[made] = authority
    return made


made_by: dict[TlsDoor, Identity] = {}


def test_a_certificate_names_its_client_by_the_rules(tmp_path: Path) -> None:
    rules = {"ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/U,DEFAULT"}
    door = _door(tmp_path, rules)
    client = make_identity("alice", issuer=made_by[door])
    assert shown_by(door, client)[1].principal == "User:ALICE"
    assert shown_by(door)[1].principal == ANONYMOUS


def test_a_certificate_under_no_rule_is_refused(tmp_path: Path) -> None:
    door = _door(tmp_path, {"ssl.principal.mapping.rules": "RULE:^CN=bob$/bob/"})
    client = make_identity("alice", issuer=made_by[door])
    with pytest.raises(TlsFailed, match="names nobody"):
        shown_by(door, client)


def test_with_sasl_a_certificate_says_nothing(tmp_path: Path) -> None:
    door = _door(tmp_path, {}, names_clients=False)
    client = make_identity("alice", issuer=made_by[door])
    assert shown_by(door, client)[1].principal == ANONYMOUS


def test_with_sasl_only_a_listeners_own_setting_asks_for_certificates(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server, authority = make_identity("server"), make_identity("authority")
    settings = pem_settings(tmp_path, "server", server) | {
        "listeners": "SASL_SSL://127.0.0.1:0,SSL://127.0.0.1:0",
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,SSL:SSL",
        "inter.broker.listener.name": "SSL",
        "ssl.client.auth": "required",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.certificate_pem.decode(),
    }
    door = TlsDoor(BrokerConfig(settings), "SASL_SSL", names_clients=False)
    assert shown_by(door)[0] == server.certificate_der
    assert "the listener SASL_SSL asks for no certificate" in caplog.text
    caplog.clear()
    own = {"listener.name.sasl_ssl.ssl.client.auth": "required"}
    for listener in ("SASL_SSL", "SSL"):
        asking = TlsDoor(BrokerConfig(settings | own), listener, names_clients=False)
        with pytest.raises(TlsFailed, match="certificate"):
            shown_by(asking)
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "needs ssl.keystore.location"),
        ({"ssl.keystore.location": "/nowhere", "ssl.keystore.password": "x"}, "/nowhere"),
        ({"ssl.engine.factory.class": "com.acme.Engines"}, "Java classes cannot be loaded"),
    ],
)
def test_a_listener_that_cannot_have_tls_says_why(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        TlsDoor(BrokerConfig({**LISTENERS, **settings}), "SSL", names_clients=True)
