"""Coming to a secured broker: settings under both names, and a real server with TLS and SASL."""

import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.support.certificates import KEY_PASSWORD, Certificates, make_certificates
from tests.support.secured_server import Cheats, SecuredServer
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.client.errors import AuthenticationError, BrokerUnreachableError
from penstock.client.wire.connection import BrokerConnection
from penstock.client.wire.security import Security
from penstock.errors import ConfigError
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.metadata import MetadataRequest, MetadataResponse

USERS = {"alice": "pencil", "b,o=b": 'p"w, =x é'}
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def server_context(world: Certificates, *, ask: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(world.server, world.server_key)
    if ask:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(world.ca)
    return context


@pytest.fixture
def tls_server(world: Certificates) -> Iterator[SecuredServer]:
    with SecuredServer(context=server_context(world)).serving() as server:
        yield server


@pytest.fixture
def sasl_server() -> Iterator[SecuredServer]:
    with SecuredServer(passwords=USERS).serving() as server:
        yield server


def cluster_id(server: SecuredServer, settings: Mapping[str, object]) -> str | None:
    security = Security.from_settings(settings)
    with BrokerConnection("127.0.0.1", server.port, timeout_s=60, security=security) as connection:
        return connection.ask(MetadataRequest(topics=[]), MetadataResponse).cluster_id


def sasl(mechanism: str = "PLAIN", **more: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": "pencil",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def tls(world: Certificates, **more: object) -> dict[str, object]:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return {"security.protocol": "SSL", "ssl.ca.location": str(world.ca), **given}


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", USERS)
def test_every_mechanism_brings_the_user_in(
    sasl_server: SecuredServer, mechanism: str, user: str
) -> None:
    settings = sasl(mechanism, sasl_username=user, sasl_password=USERS[user])
    assert cluster_id(sasl_server, settings) == "secured"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("change", [{"sasl_password": "pencils"}, {"sasl_username": "nobody"}])
def test_a_wrong_name_or_password_is_told_with_the_brokers_reason(
    sasl_server: SecuredServer, mechanism: str, change: dict[str, str]
) -> None:
    settings = sasl(mechanism, **change)
    with pytest.raises(AuthenticationError, match="Invalid username or password") as caught:
        cluster_id(sasl_server, settings)
    assert settings["sasl.username"] in str(caught.value)
    assert settings["sasl.password"] not in str(caught.value)


def test_a_login_line_of_java_does_as_well(sasl_server: SecuredServer) -> None:
    line = (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="alice" password="pencil";'
    )
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": line,
    }
    assert cluster_id(sasl_server, settings) == "secured"


def test_a_mechanism_that_the_broker_lacks_is_told_with_those_it_has() -> None:
    with SecuredServer(passwords=USERS, mechanisms=("SCRAM-SHA-256",)).serving() as server:
        words = "does not take sasl.mechanism=PLAIN; it takes: SCRAM-SHA-256"
        with pytest.raises(AuthenticationError, match=words):
            cluster_id(server, sasl())


def test_a_listener_without_sasl_is_told() -> None:
    with (
        SecuredServer().serving() as server,
        pytest.raises(AuthenticationError, match="asks for no SASL"),
    ):
        cluster_id(server, sasl())


@pytest.mark.parametrize(
    ("cheats", "reason"),
    [
        (Cheats(signature=bytes(32)), "could not prove that it knows the password"),
        (Cheats(drop_client_nonce=True), "nonce"),
        (Cheats(iterations=1), "iterations"),
        (Cheats(extension="m=new,"), "extension"),
        (Cheats(refuse="other-error"), "other-error"),
    ],
)
def test_a_broker_that_cheats_is_left(cheats: Cheats, reason: str) -> None:
    with (
        SecuredServer(passwords=USERS, cheats=cheats).serving() as server,
        pytest.raises(AuthenticationError, match=reason),
    ):
        cluster_id(server, sasl("SCRAM-SHA-256"))


def test_a_session_that_ends_is_renewed_on_the_same_connection() -> None:
    with SecuredServer(passwords=USERS, lifetime_ms=1).serving() as server:
        security = Security.from_settings(sasl("SCRAM-SHA-256"))
        with BrokerConnection("127.0.0.1", server.port, security=security) as connection:

            def renewed() -> bool:
                connection.ask(MetadataRequest(topics=[]), MetadataResponse)
                return server.asked.count(ApiKey.SASL_HANDSHAKE) == 4

            eventually(renewed, what="the third renewal")
        assert server.asked.count(ApiKey.API_VERSIONS) == 1


def test_a_session_without_an_end_is_not_renewed(sasl_server: SecuredServer) -> None:
    security = Security.from_settings(sasl())
    with BrokerConnection("127.0.0.1", sasl_server.port, security=security) as connection:
        for _ in range(3):
            connection.ask(MetadataRequest(topics=[]), MetadataResponse)
    assert sasl_server.asked.count(ApiKey.SASL_HANDSHAKE) == 1


def test_the_right_authority_opens_the_door(tls_server: SecuredServer, world: Certificates) -> None:
    assert cluster_id(tls_server, tls(world)) == "secured"
    java = {"ssl.truststore.location": str(world.ca), "ssl.truststore.type": "PEM"}
    assert cluster_id(tls_server, {"security.protocol": "SSL", **java}) == "secured"
    text = {"security.protocol": "ssl", "ssl.ca.pem": world.ca.read_text()}
    assert cluster_id(tls_server, text) == "secured"


def test_a_certificate_of_a_stranger_is_not_believed(
    tls_server: SecuredServer, world: Certificates
) -> None:
    for ca in ({"ssl.ca.location": str(world.stranger_ca)}, {}):
        with pytest.raises(AuthenticationError, match="not to be trusted"):
            cluster_id(tls_server, {"security.protocol": "SSL", **ca})


def test_a_certificate_for_another_name_is_not_believed_unless_asked_to(
    tls_server: SecuredServer, world: Certificates
) -> None:
    def by_name(settings: Mapping[str, object]) -> None:
        security = Security.from_settings(settings)
        BrokerConnection("localhost", tls_server.port, security=security).close()

    with pytest.raises(AuthenticationError, match="localhost"):
        by_name(tls(world))
    for word in ("none", ""):
        by_name({**tls(world), "ssl.endpoint.identification.algorithm": word})
        with pytest.raises(AuthenticationError):  # The chain is verified all the same.
            by_name(
                {
                    **tls(world),
                    "ssl.ca.location": str(world.stranger_ca),
                    "ssl.endpoint.identification.algorithm": word,
                }
            )


def test_verification_can_be_switched_off_in_so_many_words(tls_server: SecuredServer) -> None:
    settings = {"security.protocol": "SSL", "enable.ssl.certificate.verification": "false"}
    assert cluster_id(tls_server, settings) == "secured"


def test_a_broker_that_asks_who_we_are_gets_our_certificate(world: Certificates) -> None:
    ways: list[dict[str, object]] = [
        {"ssl.certificate.location": world.client, "ssl.key.location": world.client_key},
        {"ssl.keystore.location": world.client_both, "ssl.keystore.type": "PEM"},
        {
            "ssl.keystore.certificate.chain": world.client.read_text(),
            "ssl.keystore.key": world.client_key.read_text(),
        },
        {
            "ssl.certificate.location": world.client,
            "ssl.key.location": world.client_key_locked,
            "ssl.key.password": KEY_PASSWORD,
        },
    ]
    with SecuredServer(context=server_context(world, ask=True)).serving() as server:
        for way in ways:
            assert cluster_id(server, tls(world) | way) == "secured", way
        # Either the alert comes first or the end of the stream.
        with pytest.raises((AuthenticationError, BrokerUnreachableError)):
            cluster_id(server, tls(world))


def test_both_layers_together(world: Certificates) -> None:
    with SecuredServer(context=server_context(world), passwords=USERS).serving() as server:
        settings = {**tls(world), **sasl("SCRAM-SHA-512"), "security.protocol": "SASL_SSL"}
        assert cluster_id(server, settings) == "secured"


def test_admin_comes_in_with_its_secrets_by_name(
    sasl_server: SecuredServer, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("pencil\n")
    settings = sasl("SCRAM-SHA-256", sasl_password=f"file:{tmp_path / 'password'}")
    settings["bootstrap.servers"] = f"127.0.0.1:{sasl_server.port}"
    with Admin(settings) as admin:
        assert admin.list_topics() == []


def test_tls_at_a_plain_listener_and_the_other_way_round_are_told(
    sasl_server: SecuredServer, tls_server: SecuredServer, world: Certificates
) -> None:
    with pytest.raises((AuthenticationError, BrokerUnreachableError), match="TLS"):
        cluster_id(sasl_server, tls(world))
    with pytest.raises(BrokerUnreachableError):
        cluster_id(tls_server, {})


def test_a_plain_client_that_hears_a_tls_alert_is_told_what_it_met(stub: object) -> None:
    stub.raw_reply = b"\x15\x03\x03\x00\x02\x02\x46"  # type: ignore[attr-defined]
    with pytest.raises(BrokerUnreachableError, match="It speaks TLS"):
        BrokerConnection("127.0.0.1", stub.port)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"security.protocol": "TLS"}, "security.protocol=TLS is not one of"),
        (sasl("OAUTHBEARER"), "sasl.mechanism=OAUTHBEARER is not served here"),
        (sasl("GSSAPI", **{"sasl.kerberos.keytab": "/k"}), "needs sasl.kerberos.principal"),
        (sasl("SCRAM-SHA-1"), "sasl.mechanism=SCRAM-SHA-1 is not served here"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is missing"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
            "sasl.username and sasl.password are missing",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "a"},
            "sasl.password is missing",
        ),
        ({"security.protocol": "SSL", "ssl.ca.locaton": "x"}, "Did you mean 'ssl.ca.location'"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "t.jks"}, "Java key store"),
        (
            {
                "security.protocol": "SSL",
                "ssl.keystore.location": "k",
                "ssl.keystore.type": "PKCS12",
            },
            "Java key store",
        ),
        (
            {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "dns"},
            "ssl.endpoint.identification.algorithm=dns",
        ),
    ],
)
def test_settings_that_cannot_be_are_told_by_name(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Security.from_settings(settings)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ssl.ca.location": "/nowhere.pem"}, "ssl.ca.location=/nowhere.pem: there is no such"),
        ({"ssl.ca.pem": "nonsense"}, "ssl.ca.pem"),
        ({"ssl.certificate.location": "/nowhere.pem"}, "/nowhere.pem"),
        ({"ssl.key.location": "/nowhere.key"}, "set ssl.certificate.location"),
        ({"ssl.cipher.suites": "ROT13"}, "ssl.cipher.suites=ROT13"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols=TLSv1.1"),
    ],
)
def test_files_and_words_that_cannot_be_used_are_told_by_name(
    world: Certificates, change: dict[str, object], reason: str
) -> None:
    made = Security.from_settings({**tls(world), **change}).tls
    assert made is not None
    with pytest.raises(ConfigError, match=reason):
        made.context()


def test_a_locked_key_without_its_password_is_told_and_never_asked_for(
    world: Certificates,
) -> None:
    keys = {"ssl.certificate.location": world.client, "ssl.key.location": world.client_key_locked}
    made = Security.from_settings({**tls(world), **keys}).tls
    assert made is not None
    with pytest.raises(ConfigError, match="password"):
        made.context()


def test_secrets_are_not_printed() -> None:
    keys = {"ssl.key.pem": "hush-key", "ssl.key.password": "hush-lock"}
    settings = {**sasl(sasl_password="hush-word"), **keys, "security.protocol": "SASL_SSL"}
    assert "hush" not in repr(Security.from_settings(settings))


def test_settings_of_security_that_is_off_do_not_matter() -> None:
    assert Security.from_settings({"sasl.mechanism": "GSSAPI"}) == Security()
