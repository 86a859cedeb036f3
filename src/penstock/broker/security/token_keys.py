"""OAUTHBEARER at a listener: which tokens are believed, as the settings have it."""

import logging
from collections.abc import Callable
from typing import Final

from penstock.config.broker import BrokerConfig
from penstock.config.settings import Value
from penstock.errors import ConfigError
from penstock.security.sasl.bearer import OAUTHBEARER
from penstock.security.sasl.jaas import parse
from penstock.security.sasl.token_keys import BearerTokens, check_keys_url
from penstock.security.sasl.web_tokens import TokenRules

log = logging.getLogger("kafka.server.KafkaServer")

_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
_SIGNED: Final = (
    f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler",
)
_UNSECURED: Final = (
    f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler",
)
_HANDLER: Final = "sasl.server.callback.handler.class"
_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"


def bearer_tokens_of(
    config: BrokerConfig, listener: str, *, now_ms: Callable[[], int]
) -> BearerTokens:
    """As the settings of a listener have it; ConfigError where they leave open whom to believe."""

    def setting(name: str) -> Value:
        return config.for_mechanism(listener, OAUTHBEARER, name)

    handler = setting(_HANDLER)
    url = setting(_URL)
    if handler in _UNSECURED:
        log.warning(
            "The listener %s believes OAUTHBEARER tokens that nobody signed: for tests alone",
            listener,
        )
        return BearerTokens(_unsecured_rules(str(setting("sasl.jaas.config") or "")), now_ms=now_ms)
    if handler is not None and handler not in _SIGNED:
        raise ConfigError(f"{_HANDLER}={handler}: Java classes cannot be loaded here")
    if not url:
        raise ConfigError(
            f"the listener {listener} takes OAUTHBEARER but knows no keys: write {_URL}, or set "
            f"{_HANDLER} to {_UNSECURED[0]} to believe every token"
        )
    check_keys_url(_URL, str(url))
    return BearerTokens(
        _rules(setting),
        now_ms=now_ms,
        url=str(url),
        refresh_s=_number(setting("sasl.oauthbearer.jwks.endpoint.refresh.ms")) / 1000,
        retry_s=(
            _number(setting("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms")) / 1000,
            _number(setting("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms")) / 1000,
        ),
    )


def _rules(setting: Callable[[str], Value]) -> TokenRules:
    audiences = setting("sasl.oauthbearer.expected.audience")
    return TokenRules(
        audiences=frozenset(audiences if isinstance(audiences, tuple) else ()),
        issuer=str(setting("sasl.oauthbearer.expected.issuer") or ""),
        clock_skew_s=int(_number(setting("sasl.oauthbearer.clock.skew.seconds"))),
        subject_claim=str(setting("sasl.oauthbearer.sub.claim.name")),
        scope_claim=str(setting("sasl.oauthbearer.scope.claim.name")),
    )


def _unsecured_rules(jaas: str) -> TokenRules:
    options = parse(jaas)
    skew_ms = options.get("unsecuredValidatorAllowableClockSkewMs", "0")
    if not skew_ms.isdigit():
        raise ConfigError("unsecuredValidatorAllowableClockSkewMs is no number")
    return TokenRules(
        clock_skew_s=int(skew_ms) // 1000,
        subject_claim=options.get("unsecuredValidatorPrincipalClaimName", "sub"),
        scope_claim=options.get("unsecuredValidatorScopeClaimName", "scope"),
        required_scopes=frozenset(options.get("unsecuredValidatorRequiredScope", "").split()),
    )


def _number(value: Value) -> float:
    assert isinstance(value, int | float)
    return value
