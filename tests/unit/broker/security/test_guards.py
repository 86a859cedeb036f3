"""Every API has a guard, and the guards refuse what the table of rights says they need."""

import pytest

from penstock.broker.dispatch import HANDLERS, PEER_HANDLERS, REFUSED
from penstock.broker.security.guard_parts import refusal
from penstock.broker.security.guards import GUARDS
from penstock.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.security.acls.required import REQUIRED
from penstock.security.acls.rules import AclResourceType


def test_no_api_is_served_without_a_guard() -> None:
    assert set(GUARDS) == {*HANDLERS, *PEER_HANDLERS, *REFUSED}


def test_whoever_has_a_guard_has_a_line_in_the_table_of_rights() -> None:
    assert set(GUARDS) <= set(REQUIRED)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (AclResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (AclResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (AclResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (
            AclResourceType.TRANSACTIONAL_ID,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
    ],
)
def test_a_refusal_has_the_code_of_its_resource(kind: AclResourceType, code: ErrorCode) -> None:
    assert refusal(kind).code is code


OPEN = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


def test_only_what_everybody_may_ask_needs_no_right() -> None:
    served = {*HANDLERS, *PEER_HANDLERS}
    free = {key for key in served if not any(line.checks for line in REQUIRED[key])}
    assert free == OPEN
