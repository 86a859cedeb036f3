"""The mechanisms of a listener: what it offers, and what keeps it from starting."""

import logging

import pytest

from penstock.broker.security.sasl_mechanisms import KnownUsers, SaslMechanisms
from penstock.cluster.image.image import ClusterImage
from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError
from penstock.security.sasl.outcome import Authenticated, Challenge, SaslRefused, SaslServer
from penstock.security.sasl.plain import plain_message
from penstock.security.sasl.scram import ScramCredential, attributes, decode_base64
from penstock.security.sasl.scram_client import ScramClient

NOBODY = KnownUsers(ClusterImage(cluster_id="c"), None, b"decoys")
USERS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_al="{}";'


def config(mechanisms: str, **more: str) -> BrokerConfig:
    lead = "listener.name.sasl_plaintext"
    given = {f"{lead}.{name.replace('_', '.')}": value for name, value in more.items()}
    listeners = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0"}
    return BrokerConfig({**listeners, "sasl.enabled.mechanisms": mechanisms, **given})


def mechanisms(given: BrokerConfig) -> SaslMechanisms:
    return SaslMechanisms(given, "SASL_PLAINTEXT", protocol="SASL_PLAINTEXT", now_ms=lambda: 1_000)


def scram_steps(server: SaslServer, user: str, password: str) -> object:
    client = ScramClient("SCRAM-SHA-256", user, password, nonce="nonce")
    challenge = server.step(client.first())
    assert isinstance(challenge, Challenge)
    return server.step(client.final(challenge.token))


def test_users_of_plain_change_with_the_settings(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        offered = mechanisms(config("PLAIN", plain_sasl_jaas_config=USERS.format("one")))
    assert "without encryption" in caplog.text
    offered.reconfigure(config("PLAIN", plain_sasl_jaas_config=USERS.format("two")))
    server = offered.offered(NOBODY)["PLAIN"]()
    assert isinstance(server.step(plain_message("al", "two")), Authenticated)
    with pytest.raises(SaslRefused):
        server.step(plain_message("al", "one"))
    offered.reconfigure(config("PLAIN"))
    assert "keeps its mechanisms" in caplog.text
    assert isinstance(server.step(plain_message("al", "two")), Authenticated)


def test_users_of_scram_are_those_of_the_image(caplog: pytest.LogCaptureFixture) -> None:
    offered = mechanisms(config("SCRAM-SHA-256"))
    credential = ScramCredential.from_password(
        "SCRAM-SHA-256", "pw", salt=b"salt", iterations=4096
    ).text()
    configs = {
        ("users", "al%20ice"): {"SCRAM-SHA-256": credential},
        ("users", "broken"): {"SCRAM-SHA-256": "nonsense"},
        ("users", "other"): {"SCRAM-SHA-512": credential},
    }
    known = NOBODY._replace(image=ClusterImage(cluster_id="c", configs=configs))
    outcome = scram_steps(offered.offered(known)["SCRAM-SHA-256"](), "al ice", "pw")
    assert isinstance(outcome, Authenticated)
    assert str(outcome.principal) == "User:al ice"
    for user, password in (("al ice", "no"), ("broken", "pw"), ("other", "pw"), ("none", "pw")):
        with pytest.raises(SaslRefused):
            scram_steps(offered.offered(known)["SCRAM-SHA-256"](), user, password)
    assert "nonsense" not in caplog.text and "cannot be used" in caplog.text


def test_who_does_not_exist_is_shown_what_users_are_shown() -> None:
    """In our own form and in that of Kafka's tool: neither salts nor rounds give users away."""
    offered = mechanisms(config("SCRAM-SHA-256"))
    salts = {"al": b"s" * 32, "bo": b"1k0f3vbqz9y2x8w7u6t5s4r3q"}
    configs = {
        ("users", name): {
            "SCRAM-SHA-256": ScramCredential.from_password(
                "SCRAM-SHA-256", "pw", salt=salt, iterations=8192
            ).text()
        }
        for name, salt in salts.items()
    }
    known = NOBODY._replace(image=ClusterImage(cluster_id="c", configs=configs))
    users = {_shown(offered, known, name)[1:] for name in salts}
    strangers = {_shown(offered, known, f"nobody-{number}")[1:] for number in range(40)}
    assert users == strangers == {(8192, 32), (8192, 25)}
    assert _shown(offered, known, "nobody") == _shown(
        mechanisms(config("SCRAM-SHA-256")), known, "nobody"
    )
    elsewhere = known._replace(decoy_key=b"of another cluster")
    assert _shown(offered, known, "nobody") != _shown(offered, elsewhere, "nobody")


def _shown(offered: SaslMechanisms, known: KnownUsers, name: str) -> tuple[bytes, int, int]:
    """A salt, the rounds, and the form of the salt: all that a first answer gives away."""
    client = ScramClient("SCRAM-SHA-256", name, "pw", nonce="nonce")
    challenge = offered.offered(known)["SCRAM-SHA-256"]().step(client.first())
    assert isinstance(challenge, Challenge)
    found = attributes(challenge.token.decode())
    salt = decode_base64(found["s"])
    is_text = len(salt) in (24, 25, 26) and salt.isalnum()
    return salt, int(found["i"]), 25 if is_text else len(salt)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (config("DIGEST-MD5"), "DIGEST-MD5 .* is not served"),
        (config("GSSAPI"), "takes GSSAPI but has no keys"),
        (
            config("GSSAPI", gssapi_sasl_jaas_config="a.Krb5LoginModule required useKeyTab=true;"),
            "needs keyTab",
        ),
        (config(""), "needs sasl.enabled.mechanisms"),
        (config("PLAIN"), "no users"),
        (
            config("SCRAM-SHA-256", scram_sha_x="1", sasl_server_callback_handler_class="a.B"),
            "Java classes",
        ),
    ],
)
def test_a_mechanism_that_cannot_be_served_stops_the_start(given: BrokerConfig, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        mechanisms(given)
