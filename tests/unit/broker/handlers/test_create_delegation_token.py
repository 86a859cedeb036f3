"""CreateDelegationToken: whose token, how long it lives, and who gets none."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.handlers.token_client import SETTINGS, STRANGERS, create, session

from penstock.errors import ErrorCode
from penstock.net.session import Session

BOB = {"owner_principal_type": "User", "owner_principal_name": "bob"}


@pytest.mark.parametrize("version", range(4))
def test_a_token_is_made_and_its_secret_told(serve: Callable[..., Any], version: int) -> None:
    served = serve(SETTINGS)
    made = create(served, version, renewers=[("User", "carol")])
    assert (made.error_code, made.principal_name) == (0, "alice")
    assert made.expiry_timestamp_ms - made.issue_timestamp_ms == 1000
    assert made.max_timestamp_ms - made.issue_timestamp_ms == 100_000
    kept = served.broker.image.tokens[made.token_id]
    assert [str(one) for one in kept.renewers] == ["User:carol"]
    assert bytes(made.hmac) == served.broker.tokens.policy.secret_of(made.token_id)


def test_a_token_may_be_for_another_owner(serve: Callable[..., Any]) -> None:
    made = create(serve(SETTINGS), **BOB)
    assert (made.principal_name, made.token_requester_principal_name) == ("bob", "alice")


@pytest.mark.parametrize("who", STRANGERS)
def test_strangers_get_none(serve: Callable[..., Any], who: Session) -> None:
    served = serve(SETTINGS)
    refused = create(served, who=who)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (refused.issue_timestamp_ms, refused.token_id, bytes(refused.hmac)) == (-1, "", b"")
    assert served.broker.image.tokens == {}


def test_a_renewer_must_be_a_user(serve: Callable[..., Any]) -> None:
    refused = create(serve(SETTINGS), renewers=[("Group", "g")])
    assert refused.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_without_a_key_there_are_no_tokens(served: Any) -> None:
    refused = create(served, who=session())
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
