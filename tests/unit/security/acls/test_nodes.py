"""Access rules as nodes: Kafka's own bytes are read, what is damaged is never skipped."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.security.acls import worlds

from penstock.security.acls.nodes import (
    EXTENDED_CHANGES,
    LITERAL_CHANGES,
    PERSISTENT_PATHS,
    AclNodeUnreadable,
    decode_entries,
    decode_notice,
    encode_entries,
    encode_notice,
    resource_of_path,
    resource_path,
)
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    ResourcePattern,
)

OF_KAFKA = (
    b'{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow",'
    b'"operation":"DescribeConfigs","host":"*"},{"principal":"User:CN=b,O=x",'
    b'"permissionType":"Deny","operation":"All","host":"10.1.2.3"}]}'
)


def test_a_node_of_kafka_is_read_and_written_to_the_letter() -> None:
    entries = decode_entries(OF_KAFKA)
    allow, deny = AclPermission.ALLOW, AclPermission.DENY
    assert entries == {
        AccessControlEntry("User:alice", "*", AclOperation.DESCRIBE_CONFIGS, allow),
        AccessControlEntry("User:CN=b,O=x", "10.1.2.3", AclOperation.ALL, deny),
    }
    assert json.loads(encode_entries(entries))["version"] == 1
    assert decode_entries(encode_entries(entries)) == entries


@pytest.mark.parametrize(
    ("resource", "path"),
    [
        (ResourcePattern(AclResourceType.TOPIC, "orders"), "/kafka-acl/Topic/orders"),
        (
            ResourcePattern(AclResourceType.TRANSACTIONAL_ID, "t-", PatternType.PREFIXED),
            "/kafka-acl-extended/prefixed/TransactionalId/t-",
        ),
        (
            ResourcePattern(AclResourceType.CLUSTER, "kafka-cluster"),
            "/kafka-acl/Cluster/kafka-cluster",
        ),
        (ResourcePattern(AclResourceType.DELEGATION_TOKEN, "*"), "/kafka-acl/DelegationToken/*"),
    ],
)
def test_the_rules_about_a_resource_are_where_kafka_keeps_them(
    resource: ResourcePattern, path: str
) -> None:
    assert resource_path(resource) == path
    assert resource_of_path(path) == resource
    assert path.rpartition("/")[0] in PERSISTENT_PATHS


def test_parents_stand_before_their_children() -> None:
    for position, path in enumerate(PERSISTENT_PATHS):
        parent = path.rpartition("/")[0]
        assert parent == "" or parent in PERSISTENT_PATHS[:position]


def test_notices_are_those_kafka_follows() -> None:
    literal = ResourcePattern(AclResourceType.TOPIC, "or:ders")
    assert encode_notice(literal) == (LITERAL_CHANGES, b"TOPIC:or:ders")
    prefixed = ResourcePattern(AclResourceType.GROUP, "g", PatternType.PREFIXED)
    parent, content = encode_notice(prefixed)
    assert parent == EXTENDED_CHANGES
    assert json.loads(content) == {
        "version": 1,
        "resourceType": "GROUP",
        "name": "g",
        "patternType": "PREFIXED",
    }
    for resource in (literal, prefixed):
        assert decode_notice(*encode_notice(resource)) == resource
    assert decode_notice(LITERAL_CHANGES, b"Topic:or:ders") == literal  # Before Kafka 2.0.


@given(st.lists(worlds.BINDINGS))
def test_what_was_written_is_read_again(bindings: list[AclBinding]) -> None:
    entries = frozenset(binding.entry for binding in bindings)
    assert decode_entries(encode_entries(entries)) == entries
    for binding in bindings:
        assert resource_of_path(resource_path(binding.resource)) == binding.resource


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b"nonsense",
        b"{}",
        b'{"version":2,"acls":[]}',
        b'{"version":1,"acls":[{}]}',
        b'{"version":1,"acls":[1]}',
        OF_KAFKA.replace(b"Deny", b"Perhaps"),
        OF_KAFKA.replace(b"DescribeConfigs", b"Fly"),
        b"\xff",
    ],
)
def test_a_damaged_node_is_an_error_because_it_may_be_the_denial(content: bytes) -> None:
    with pytest.raises(AclNodeUnreadable):
        decode_entries(content)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    for parent in (LITERAL_CHANGES, EXTENDED_CHANGES):
        try:
            decode_notice(parent, content)
        except AclNodeUnreadable:
            continue


@pytest.mark.parametrize("path", ["/kafka-acl/Topic", "/kafka-acl/Planet/x", "/brokers/ids/1"])
def test_other_paths_name_no_resource(path: str) -> None:
    with pytest.raises(AclNodeUnreadable):
        resource_of_path(path)
