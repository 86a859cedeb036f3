"""The tokens of a broker as logins: made once for each, gone with their tokens."""

from dataclasses import replace

from penstock.broker.security.delegation_tokens import DelegationTokens, tokens_of
from penstock.cluster.image.image import ClusterImage
from penstock.config.broker import BrokerConfig
from penstock.security.delegation import TokenInformation
from penstock.security.principals import Principal

ALICE = Principal("User", "alice")
MECHANISM = "SCRAM-SHA-256"
TOKEN = TokenInformation(
    token_id="t",
    owner=ALICE,
    requester=ALICE,
    renewers=(),
    issued_ms=0,
    max_ms=100,
    expires_ms=10,
)


def image(*tokens: TokenInformation) -> ClusterImage:
    return ClusterImage(cluster_id="c", tokens={token.token_id: token for token in tokens})


def tokens(name: str = "delegation.token.secret.key") -> DelegationTokens:
    made = tokens_of(BrokerConfig({name: "key"}))
    assert made is not None
    return made


def test_the_key_has_an_older_name_and_is_not_shown() -> None:
    assert tokens_of(BrokerConfig({})) is None
    old = tokens("delegation.token.master.key")
    assert old.policy.secret_of("t") == tokens().policy.secret_of("t")
    assert "key" not in repr(old)


def test_a_login_is_worked_out_once_and_follows_its_token() -> None:
    kept = tokens()
    first = kept.login(image(TOKEN), MECHANISM, "t", now_ms=0)
    renewed = kept.login(image(replace(TOKEN, expires_ms=50)), MECHANISM, "t", now_ms=20)
    assert first is not None and renewed is not None
    assert renewed.credential is first.credential
    assert (first.expires_ms, renewed.expires_ms, renewed.owner) == (10, 50, ALICE)


def test_what_is_gone_or_has_expired_opens_no_door() -> None:
    kept = tokens()
    assert kept.login(image(TOKEN), MECHANISM, "t", now_ms=11) is None
    assert kept.login(image(), MECHANISM, "t", now_ms=0) is None
    assert kept.login(image(TOKEN), MECHANISM, "u", now_ms=0) is None
