"""Delegation tokens: how long they live, who may prolong them, and that they open the door."""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import (
    DelegationTokenExpired,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    InvalidPrincipalType,
)
from penstock.security.delegation import TokenBook, TokenInformation, TokenPolicy
from penstock.security.principals import Principal
from penstock.security.sasl.outcome import Authenticated, Challenge
from penstock.security.sasl.scram_client import ScramClient
from penstock.security.sasl.scram_server import ScramServer, ScramUsers

ALICE, BOB, EVE = (Principal("User", name) for name in ("alice", "bob", "eve"))
POLICY = TokenPolicy(secret_key="key of the cluster", max_lifetime_ms=1000, expiry_time_ms=100)


def token(
    token_id: str = "t", owner: Principal | None = None, max_lifetime_ms: int = -1
) -> TokenInformation:
    return POLICY.create(
        token_id,
        requester=ALICE,
        owner=owner,
        renewers=[BOB],
        max_lifetime_ms=max_lifetime_ms,
        now_ms=0,
    )


def test_the_secret_is_the_hmac_of_the_id_and_is_never_shown() -> None:
    expected = hmac.new(b"key of the cluster", b"t", hashlib.sha512).digest()
    assert POLICY.secret_of("t") == expected
    assert "key of" not in repr(POLICY)
    assert repr(expected) not in repr(TokenBook(POLICY, [token()]))


@pytest.mark.parametrize(
    ("wanted_ms", "max_ms", "expires_ms"),
    [(-1, 1000, 100), (0, 1000, 100), (50, 50, 50), (5000, 1000, 100)],
)
def test_a_token_lives_as_long_as_asked_within_the_limits(
    wanted_ms: int, max_ms: int, expires_ms: int
) -> None:
    made = token(max_lifetime_ms=wanted_ms)
    assert (made.issued_ms, made.max_ms, made.expires_ms) == (0, max_ms, expires_ms)


def test_a_token_may_be_made_for_another() -> None:
    assert (token().owner, token().requester) == (ALICE, ALICE)
    assert (token(owner=EVE).owner, token(owner=EVE).requester) == (EVE, ALICE)
    with pytest.raises(InvalidPrincipalType):
        POLICY.create(
            "t",
            requester=ALICE,
            owner=None,
            renewers=[Principal("Group", "g")],
            max_lifetime_ms=-1,
            now_ms=0,
        )


@pytest.mark.parametrize(("period_ms", "expires_ms"), [(-1, 190), (0, 190), (30, 120), (900, 190)])
def test_a_renewal_counts_from_now(period_ms: int, expires_ms: int) -> None:
    renewed = POLICY.renew(token(), by=BOB, period_ms=period_ms, now_ms=90)
    assert renewed.expires_ms == expires_ms


@given(st.lists(st.integers(0, 99), max_size=40))
def test_no_renewal_goes_beyond_the_end_set_at_first(waits_ms: list[int]) -> None:
    now_ms, held = 0, token()
    for wait_ms in waits_ms:
        now_ms += wait_ms
        if held.is_expired(now_ms):
            with pytest.raises(DelegationTokenExpired):
                POLICY.renew(held, by=ALICE, period_ms=-1, now_ms=now_ms)
            return
        held = POLICY.renew(held, by=ALICE, period_ms=-1, now_ms=now_ms)
        assert held.expires_ms <= held.max_ms == 1000


def test_only_owner_and_renewers_may_renew_or_end_it() -> None:
    foreign = token(owner=EVE)
    for act in (POLICY.renew, POLICY.expire):
        with pytest.raises(DelegationTokenOwnerMismatch):
            act(foreign, by=ALICE, period_ms=-1, now_ms=0)  # She asked for it; it is not hers.
        act(foreign, by=EVE, period_ms=-1, now_ms=0)
        act(foreign, by=BOB, period_ms=-1, now_ms=0)


def test_a_token_is_ended_at_once_or_later() -> None:
    assert POLICY.expire(token(), by=ALICE, period_ms=-1, now_ms=500) is None
    ended = POLICY.expire(token(), by=ALICE, period_ms=7, now_ms=10)
    assert ended is not None and ended.expires_ms == 17
    capped = POLICY.expire(token(), by=ALICE, period_ms=2**63 - 1, now_ms=10)
    assert capped is not None and capped.expires_ms == 1000
    with pytest.raises(DelegationTokenExpired):
        POLICY.expire(token(), by=ALICE, period_ms=7, now_ms=101)


def test_a_token_is_found_by_its_secret_alone() -> None:
    book = TokenBook(POLICY, [token("t"), token("u", EVE)])
    assert book.find(POLICY.secret_of("u")).owner == EVE
    for secret in (b"", b"u", POLICY.secret_of("x")):
        with pytest.raises(DelegationTokenNotFound):
            book.find(secret)


def test_the_sweep_takes_what_has_expired() -> None:
    book = TokenBook(POLICY, [token("t"), token("u", max_lifetime_ms=5)])
    assert [one.token_id for one in book.expired(6)] == ["u"]
    assert book.expired(5) == []  # The last moment still counts.


def test_everybody_sees_their_own_and_what_they_may() -> None:
    book = TokenBook(POLICY, [token("t"), token("u", EVE)])

    def seen(asker: Principal, owners: list[Principal] | None = None, extra: str = "") -> list[str]:
        found = book.described(asker, owners=owners, may_describe=lambda one: one.token_id == extra)
        return [one.token_id for one in found]

    assert seen(ALICE) == ["t", "u"]  # She asked for both.
    assert seen(EVE) == ["u"]
    assert seen(Principal("User", "carol")) == []
    assert seen(BOB) == ["t", "u"]
    assert seen(BOB, [EVE]) == ["u"]
    assert seen(EVE, extra="t") == ["t", "u"]
    assert seen(ALICE, []) == []


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_bearer_of_the_secret_comes_in_as_the_owner(mechanism: str) -> None:
    login = POLICY.login(token(owner=EVE), mechanism, salt=b"salt")
    users = ScramUsers(credential=lambda _: None, token={"t": login}.get, decoy_key=b"k")
    side = ScramServer(mechanism, users, nonce="s")
    password = base64.b64encode(POLICY.secret_of("t")).decode()
    client = ScramClient(mechanism, "t", password, nonce="c", is_token=True)
    challenge = side.step(client.first())
    assert isinstance(challenge, Challenge)
    outcome = side.step(client.final(challenge.token))
    assert isinstance(outcome, Authenticated)
    assert (outcome.principal, outcome.expires_ms, outcome.is_by_token) == (EVE, 100, True)
