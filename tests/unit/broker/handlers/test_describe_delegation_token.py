"""DescribeDelegationToken: whoever asks sees what is theirs."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.handlers.token_client import SETTINGS, STRANGERS, create, session

from penstock.errors import ErrorCode
from penstock.net.session import Session
from penstock.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)


def describe(served: Any, *owners: str, version: int = 3, who: Session | None = None) -> Any:
    wanted = [DescribeDelegationTokenOwner(principal_type="User", principal_name=n) for n in owners]
    request = DescribeDelegationTokenRequest(owners=wanted or None)
    return served.ask(request, version, session=who or session())


@pytest.mark.parametrize("version", range(4))
def test_a_token_is_shown_with_its_secret(serve: Callable[..., Any], version: int) -> None:
    served = serve(SETTINGS)
    made = create(served, renewers=[("User", "carol")])
    (shown,) = describe(served, version=version).tokens
    assert (shown.token_id, bytes(shown.hmac)) == (made.token_id, bytes(made.hmac))
    assert [one.principal_name for one in shown.renewers] == ["carol"]
    assert shown.expiry_timestamp == made.expiry_timestamp_ms


def test_owners_are_looked_for(serve: Callable[..., Any]) -> None:
    served = serve(SETTINGS)
    create(served)
    create(served, who=session("bob"))
    assert [one.principal_name for one in describe(served, "bob").tokens] == ["bob"]
    assert len(describe(served).tokens) == 2  # Without an authorizer everybody sees all.
    assert describe(served, "eve").tokens == []


@pytest.mark.parametrize("who", STRANGERS)
def test_strangers_see_none(serve: Callable[..., Any], who: Session) -> None:
    answer = describe(serve(SETTINGS), who=who)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_without_a_key_there_are_no_tokens(served: Any) -> None:
    assert describe(served).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
