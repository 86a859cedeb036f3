"""ExpireDelegationToken: another end for a token, by those who may."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.handlers.token_client import SETTINGS, STRANGERS, create, session

from penstock.errors import ErrorCode
from penstock.net.session import Session
from penstock.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest


def expire(served: Any, hmac: bytes, period_ms: int, who: Session | None = None) -> tuple[int, int]:
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    answer = served.ask(request, 2, session=who or session())
    return answer.error_code, answer.expiry_timestamp_ms


def test_the_end_counts_from_now_and_owner_and_renewers_may(serve: Callable[..., Any]) -> None:
    served = serve(SETTINGS)
    made = create(served, renewers=[("User", "carol")])
    served.broker.now_ms = lambda: made.issue_timestamp_ms + 10
    for who in ("alice", "carol"):
        found = expire(served, bytes(made.hmac), 500, session(who))
        assert found == (0, made.issue_timestamp_ms + 510)
    assert served.broker.image.tokens[made.token_id].expires_ms == found[1]


def test_others_and_unknown_tokens_are_refused(serve: Callable[..., Any]) -> None:
    served = serve(SETTINGS)
    secret = bytes(create(served).hmac)
    mismatch = expire(served, secret, 500, session("eve"))
    assert mismatch == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    assert expire(served, b"x", 500) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)


def test_what_has_expired_is_not_brought_back(serve: Callable[..., Any]) -> None:
    served = serve(SETTINGS)
    made = create(served)
    served.broker.now_ms = lambda: made.expiry_timestamp_ms + 1
    found = expire(served, bytes(made.hmac), 500)
    assert found == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)


@pytest.mark.parametrize("who", STRANGERS)
def test_strangers_are_refused(serve: Callable[..., Any], who: Session) -> None:
    refused = (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)
    assert expire(serve(SETTINGS), b"x", 500, who) == refused


def test_without_a_key_there_are_no_tokens(served: Any) -> None:
    assert expire(served, b"x", 500) == (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, 0)


def test_a_negative_period_ends_it_at_once(serve: Callable[..., Any]) -> None:
    served = serve(SETTINGS)
    made = create(served)
    served.broker.now_ms = lambda: made.issue_timestamp_ms + 7
    assert expire(served, bytes(made.hmac), -1) == (0, made.issue_timestamp_ms + 7)
    assert served.broker.image.tokens == {}
