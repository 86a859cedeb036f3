"""How a broker comes to others: by the protocol of their listener."""

import pytest

from penstock.broker.security.outgoing_login import outgoing_login, outgoing_wrap, own_principal
from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError
from penstock.protocol.messages.sasl_handshake import SaslHandshakeRequest

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
LOGIN = f'{PLAIN} required username="broker" password="secret" user_broker="secret";'


def config(protocol: str, **more: str) -> BrokerConfig:
    given = {f"listener.name.in.{name.replace('_', '.')}": value for name, value in more.items()}
    listeners = {
        "listeners": "IN://127.0.0.1:9000",
        "listener.security.protocol.map": f"IN:{protocol}",
        "inter.broker.listener.name": "IN",
    }
    return BrokerConfig({**listeners, **given})


def test_a_plain_listener_asks_for_nothing() -> None:
    plain = config("PLAINTEXT")
    assert (outgoing_wrap(plain), outgoing_login(plain)) == (None, None)
    assert own_principal(plain) == "User:ANONYMOUS"


def test_a_login_begins_with_the_mechanism_of_brokers() -> None:
    given = config(
        "SASL_PLAINTEXT",
        plain_sasl_jaas_config=LOGIN,
        sasl_mechanism_inter_broker_protocol="PLAIN",
    )
    login = outgoing_login(given)
    assert login is not None and outgoing_wrap(given) is None
    question = next(login("localhost"))
    assert question.request == SaslHandshakeRequest(mechanism="PLAIN")
    assert own_principal(given) == "User:broker"


def test_the_name_of_a_certificate_is_known_to_others_alone() -> None:
    assert own_principal(config("SSL")) is None


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "write listener.name.in.gssapi.sasl.jaas.config with useKeyTab=true"),
        ({"sasl_mechanism_inter_broker_protocol": "OAUTHBEARER"}, "by which brokers cannot come"),
        ({"sasl_mechanism_inter_broker_protocol": "PLAIN"}, "write listener.name.in.plain"),
        (
            {
                "sasl_mechanism_inter_broker_protocol": "PLAIN",
                "plain_sasl_jaas_config": f'{PLAIN} required user_a="b";',
            },
            "username",
        ),
    ],
)
def test_a_login_that_cannot_be_made_stops_the_start(more: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        outgoing_login(config("SASL_PLAINTEXT", **more))
