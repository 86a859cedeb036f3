"""CreateAcls of a broker without authorizer."""

from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.create_acls import AclCreation, CreateAclsRequest

DISABLED = ErrorCode.SECURITY_DISABLED


@pytest.mark.parametrize("version", range(4))
def test_rules_cannot_be_made(served: Any, version: int) -> None:
    rule = AclCreation(resource_type=2, resource_name="t", principal="User:a", host="*")
    made = served.ask(CreateAclsRequest(creations=[rule, rule]), version).results
    assert [(result.error_code, result.error_message) for result in made] == [
        (DISABLED, "No Authorizer is configured.")
    ] * 2
