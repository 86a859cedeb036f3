"""DeleteAcls of a broker without authorizer."""

from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest

DISABLED = ErrorCode.SECURITY_DISABLED


@pytest.mark.parametrize("version", range(4))
def test_rules_cannot_be_removed(served: Any, version: int) -> None:
    removal = DeleteAclsFilter(resource_type_filter=2)
    removed = served.ask(DeleteAclsRequest(filters=[removal, removal]), version).filter_results
    assert [(result.error_code, result.matching_acls) for result in removed] == [(DISABLED, [])] * 2
    assert {result.error_message for result in removed} == {"No Authorizer is configured."}
