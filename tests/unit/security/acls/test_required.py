"""Every API has a line that says which right it needs, in each of its versions."""

import pytest

from penstock.broker.dispatch import HANDLERS, PEER_HANDLERS, REFUSED
from penstock.errors import ErrorCode
from penstock.protocol.apis import ApiKey, supported_versions
from penstock.security.acls.decision import SUPPORTED
from penstock.security.acls.required import REQUIRED, Refusal, RequiredRight, required
from penstock.security.acls.rules import AclOperation, AclResourceType

# Everybody may ask for these; what else is open must be added here on purpose.
OPEN = {
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}


@pytest.mark.parametrize("api", sorted({*HANDLERS, *PEER_HANDLERS, *REFUSED, *ApiKey}))
def test_every_version_of_what_is_served_has_exactly_one_line(api: ApiKey) -> None:
    for version in supported_versions(api):
        lines = [
            line for line in REQUIRED[api] if line.first_version <= version <= line.last_version
        ]
        assert len(lines) == 1, f"{api.name} v{version}"
        assert bool(required(api, version)) == (api not in OPEN)


@pytest.mark.parametrize("api", sorted(REQUIRED))
def test_an_operation_is_one_that_its_resource_knows(api: ApiKey) -> None:
    for line in REQUIRED[api]:
        for check in line.checks:
            found: RequiredRight | None = check
            while found is not None:
                known = SUPPORTED[found.resource]
                # Kafka asks DeleteTopics for DELETE on the cluster, which no bit field shows.
                assert found.operation in known or (
                    found.resource is AclResourceType.CLUSTER
                    and found.operation is AclOperation.DELETE
                )
                assert found.code.name.endswith("AUTHORIZATION_FAILED")
                found = found.instead


def test_what_brokers_ask_each_other_is_for_the_cluster_alone() -> None:
    for api in PEER_HANDLERS:
        (check,) = required(api, 0)
        assert check.operation is AclOperation.CLUSTER_ACTION
        assert check.refusal is Refusal.CLOSE


def test_a_version_may_need_another_right_than_the_one_before() -> None:
    old = required(ApiKey.ADD_PARTITIONS_TO_TXN, 3)
    assert [check.operation for check in old] == [AclOperation.WRITE, AclOperation.WRITE]
    (new,) = required(ApiKey.ADD_PARTITIONS_TO_TXN, 4)
    assert new.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
