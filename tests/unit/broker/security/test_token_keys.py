"""Bearer tokens at a listener: from settings to rules, and keys that are fetched in time."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.support.token_issuer import Issuer, encoded

from penstock.broker.security.token_keys import bearer_tokens_of
from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError
from penstock.security.sasl.token_keys import BearerTokens
from penstock.security.sasl.web_tokens import UnknownKey, WebTokenRefused

UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
    "OAuthBearerUnsecuredValidatorCallbackHandler"
)
NOW_S = 1_000_000


def tokens_of(**settings: str) -> BearerTokens:
    lead = "listener.name.sasl_ssl.oauthbearer.sasl"
    given = {f"{lead}.{name.replace('_', '.')}": value for name, value in settings.items()}
    listeners = {"listeners": "SASL_SSL://127.0.0.1:0"}
    config = BrokerConfig({**listeners, **given})
    return bearer_tokens_of(config, "SASL_SSL", now_ms=lambda: NOW_S * 1000)


async def fetched(tokens: BearerTokens, token: str) -> str:
    """Who the token is of, once the keys are there."""
    keeping = asyncio.create_task(tokens.keep_fresh())
    try:
        while True:
            try:
                return tokens.validate(token).name
            except UnknownKey:
                await asyncio.sleep(0.001)
    finally:
        keeping.cancel()


def test_keys_come_from_a_file_and_rules_from_the_settings(tmp_path: Path) -> None:
    issuer = Issuer("one", NOW_S)
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [issuer.public()]}))
    tokens = tokens_of(
        oauthbearer_jwks_endpoint_url=file.as_uri(), oauthbearer_expected_audience="us"
    )
    assert asyncio.run(fetched(tokens, issuer.token(aud="us"))) == "alice"
    for bad in (issuer.token(), issuer.token(aud="them"), issuer.token(aud="us", exp=NOW_S - 99)):
        with pytest.raises(WebTokenRefused):
            tokens.validate(bad)


def test_a_key_nobody_knows_is_fetched_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.security.sasl.token_keys._FETCH_AGAIN_S", 0.01)
    old, new = Issuer("old", NOW_S), Issuer("new", NOW_S)
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [old.public()]}))
    tokens = tokens_of(oauthbearer_jwks_endpoint_url=file.as_uri())

    async def scenario() -> None:
        assert await fetched(tokens, old.token()) == "alice"
        file.write_text(json.dumps({"keys": [old.public(), new.public()]}))
        assert await fetched(tokens, new.token()) == "alice"

    asyncio.run(scenario())


def test_tokens_that_nobody_signed_are_believed_only_where_asked_for() -> None:
    parts = ({"alg": "none"}, {"user": "bob", "exp": NOW_S + 5, "scope": "a b"})
    unsigned = ".".join([*(encoded(json.dumps(part).encode()) for part in parts), ""])
    jaas = (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredValidatorPrincipalClaimName="user" unsecuredValidatorRequiredScope="a";'
    )
    tokens = tokens_of(server_callback_handler_class=UNSECURED, jaas_config=jaas)
    assert tokens.validate(unsigned).name == "bob"
    signed = tokens_of(oauthbearer_jwks_endpoint_url="file:/nowhere")
    with pytest.raises(WebTokenRefused):
        signed.validate(unsigned)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "knows no keys"),
        ({"server_callback_handler_class": "com.acme.Handler"}, "Java classes cannot be loaded"),
        ({"oauthbearer_jwks_endpoint_url": "ftp://x"}, "write https"),
    ],
)
def test_a_listener_that_leaves_open_whom_to_believe_does_not_start(
    settings: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        tokens_of(**settings)
