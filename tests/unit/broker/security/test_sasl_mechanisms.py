"""The mechanisms of a listener: what it offers, and what keeps it from starting."""

import logging
from dataclasses import replace

import pytest

from penstock.broker.security.sasl_mechanisms import SaslMechanisms
from penstock.cluster.image.image import ClusterImage
from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError
from penstock.security.sasl.outcome import Authenticated, Challenge, SaslRefused, SaslServer
from penstock.security.sasl.plain import plain_message
from penstock.security.sasl.scram import ScramCredential
from penstock.security.sasl.scram_client import ScramClient

EMPTY = ClusterImage(cluster_id="c")
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
    server = offered.offered(EMPTY)["PLAIN"]()
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
    image = replace(EMPTY, configs=configs)
    outcome = scram_steps(offered.offered(image)["SCRAM-SHA-256"](), "al ice", "pw")
    assert isinstance(outcome, Authenticated)
    assert str(outcome.principal) == "User:al ice"
    for user, password in (("al ice", "no"), ("broken", "pw"), ("other", "pw"), ("none", "pw")):
        with pytest.raises(SaslRefused):
            scram_steps(offered.offered(image)["SCRAM-SHA-256"](), user, password)
    assert "nonsense" not in caplog.text and "cannot be used" in caplog.text


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
