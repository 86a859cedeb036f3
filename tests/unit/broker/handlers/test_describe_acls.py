"""DescribeAcls of a broker without authorizer."""

from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.describe_acls import DescribeAclsRequest

DISABLED = ErrorCode.SECURITY_DISABLED


@pytest.mark.parametrize("version", range(4))
def test_rules_cannot_be_listed(served: Any, version: int) -> None:
    listed = served.ask(DescribeAclsRequest(resource_type_filter=2, operation=1), version)
    assert (listed.error_code, listed.resources) == (DISABLED, [])
    assert listed.error_message == "No Authorizer is configured on the broker"
