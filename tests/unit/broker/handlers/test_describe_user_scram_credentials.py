"""DescribeUserScramCredentials of a broker where nobody has a password."""

from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)


@pytest.mark.parametrize("users", [None, []])
def test_nobody_has_a_password(served: Any, users: list[UserName] | None) -> None:
    answer = served.ask(DescribeUserScramCredentialsRequest(users=users), 0)
    assert (answer.error_code, answer.error_message, answer.results) == (0, "", [])


def test_users_asked_for_by_name_are_not_found(served: Any) -> None:
    users = [UserName(name=name) for name in ("a", "b", "a")]
    answer = served.ask(DescribeUserScramCredentialsRequest(users=users), 0)
    assert {result.user: result.error_code for result in answer.results} == {
        "a": ErrorCode.DUPLICATE_RESOURCE,
        "b": ErrorCode.RESOURCE_NOT_FOUND,
    }
