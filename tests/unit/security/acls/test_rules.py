"""What CreateAcls takes, and which rules a filter means."""

from dataclasses import replace

import pytest

from penstock.errors import InvalidRequest
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    EntryFilter,
    PatternType,
    ResourceFilter,
    ResourcePattern,
    check_new_rule,
)

TOPIC = AclResourceType.TOPIC

ENTRY = AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermission.ALLOW)

GOOD = AclBinding(ResourcePattern(TOPIC, "orders"), ENTRY)


def test_a_whole_rule_is_taken() -> None:
    check_new_rule(GOOD)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (replace(GOOD, resource=ResourcePattern(AclResourceType.ANY, "o")), "resourceType ANY"),
        (replace(GOOD, resource=ResourcePattern(TOPIC, "")), "Invalid empty resource name"),
        (replace(GOOD, resource=ResourcePattern(TOPIC, "a/b")), "invalid resource name: a/b"),
        (
            replace(GOOD, resource=ResourcePattern(TOPIC, "o", PatternType.MATCH)),
            "patternType MATCH",
        ),
        (
            replace(GOOD, resource=ResourcePattern(AclResourceType.CLUSTER, "mine")),
            "kafka-cluster",
        ),
        (replace(GOOD, resource=ResourcePattern(AclResourceType.CLUSTER, "")), "kafka-cluster"),
        (replace(GOOD, entry=replace(ENTRY, operation=AclOperation.ANY)), "operation ANY"),
        (
            replace(GOOD, entry=replace(ENTRY, permission=AclPermission.UNKNOWN)),
            "permissionType UNKNOWN",
        ),
        (replace(GOOD, entry=replace(ENTRY, principal="alice")), "no colon"),
    ],
)
def test_a_rule_that_could_not_be_kept_or_obeyed_is_refused(bad: AclBinding, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        check_new_rule(bad)


def test_match_finds_all_rules_a_name_comes_under_and_any_only_those_of_the_name() -> None:
    names = [
        ResourcePattern(TOPIC, "orders"),
        ResourcePattern(TOPIC, "*"),
        ResourcePattern(TOPIC, "ord", PatternType.PREFIXED),
        ResourcePattern(TOPIC, "orders", PatternType.PREFIXED),
        ResourcePattern(TOPIC, "orders2"),
    ]

    def found(pattern: PatternType, name: str | None = "orders") -> list[int]:
        wanted = ResourceFilter(type=TOPIC, name=name, pattern=pattern)
        return [number for number, resource in enumerate(names) if wanted.matches(resource)]

    assert found(PatternType.MATCH) == [0, 1, 2, 3]
    assert found(PatternType.ANY) == [0, 3]
    assert found(PatternType.LITERAL) == [0]
    assert found(PatternType.PREFIXED) == [3]
    assert found(PatternType.MATCH, None) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "wanted",
    [
        AclBindingFilter(resource=ResourceFilter(type=AclResourceType.UNKNOWN)),
        AclBindingFilter(resource=ResourceFilter(pattern=PatternType.UNKNOWN)),
        AclBindingFilter(entry=EntryFilter(operation=AclOperation.UNKNOWN)),
        AclBindingFilter(entry=EntryFilter(permission=AclPermission.UNKNOWN)),
    ],
)
def test_a_filter_of_a_later_kafka_is_refused(wanted: AclBindingFilter) -> None:
    with pytest.raises(InvalidRequest, match="Unknown"):
        wanted.check()
    AclBindingFilter().check()
