"""Which topics are copied, and what settings and rules become on the other side."""

import pytest

from penstock.client.operations.configs import ConfigChange, Operation
from penstock.mirror.config import MirrorConfig
from penstock.mirror.topics import config_changes, copied_rules, is_copied
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    ResourcePattern,
)

SETTINGS = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:1",
    "B.bootstrap.servers": "b:1",
    "A->B.enabled": "true",
}


@pytest.mark.parametrize(
    ("topic", "copied"),
    [
        ("orders", True),
        ("B.orders", False),
        ("C.orders", True),
        ("__consumer_offsets", False),
        ("B.checkpoints.internal", False),
        ("heartbeats", True),
        ("B.heartbeats", False),
    ],
)
def test_topics_of_others_are_copied_and_own_ones_are_not(topic: str, copied: bool) -> None:
    (flow,) = MirrorConfig.of(SETTINGS).flows
    assert is_copied(flow, topic) is copied


def test_heartbeats_are_copied_whatever_topics_says() -> None:
    (flow,) = MirrorConfig.of({**SETTINGS, "topics": "orders"}).flows
    assert is_copied(flow, "heartbeats") and not is_copied(flow, "others")


def test_settings_follow_and_what_is_gone_goes() -> None:
    changes = config_changes({"a": "1", "b": "2"}, {"b": "2", "c": "3"})
    gone = ConfigChange(name="c", operation=Operation.DELETE)
    assert changes == [ConfigChange(name="a", value="1"), gone]


def rule(
    operation: AclOperation,
    permission: AclPermission = AclPermission.ALLOW,
    name: str = "orders",
    pattern: PatternType = PatternType.LITERAL,
) -> AclBinding:
    return AclBinding(
        ResourcePattern(AclResourceType.TOPIC, name, pattern),
        AccessControlEntry("User:u", "*", operation, permission),
    )


def test_nobody_gets_the_right_to_write_what_the_mirror_writes() -> None:
    deny = AclPermission.DENY
    rules = [
        rule(AclOperation.READ),
        rule(AclOperation.WRITE),
        rule(AclOperation.WRITE, deny),
        rule(AclOperation.READ, name="other"),
        rule(AclOperation.READ, pattern=PatternType.PREFIXED),
    ]
    found = copied_rules(rules, {"orders": "A.orders"})
    assert found == [
        rule(AclOperation.READ, name="A.orders"),
        rule(AclOperation.WRITE, deny, name="A.orders"),
    ]
    everything = copied_rules([rule(AclOperation.ALL)], {"orders": "A.orders"})
    assert everything == [rule(AclOperation.READ, name="A.orders")]
