"""Access rules in Kafka's nodes: added, removed, heard of, and there after a restart."""

from typing import Any

import pytest

from penstock.cluster.control.settings import ControlSettings
from penstock.meta.store import Create, Set
from penstock.security.acls.nodes import (
    CHANGE_PREFIX,
    EXTENDED_CHANGES,
    LITERAL_CHANGES,
    decode_entries,
    encode_entries,
    encode_notice,
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

T = ResourcePattern(AclResourceType.TOPIC, "t")
PREFIXED = ResourcePattern(AclResourceType.GROUP, "g", PatternType.PREFIXED)


@pytest.fixture(autouse=True)
def authorizer(cluster: Any) -> None:
    cluster.settings = ControlSettings(with_acls=True)


def entry(name: str) -> AccessControlEntry:
    return AccessControlEntry(f"User:{name}", "*", AclOperation.READ, AclPermission.ALLOW)


def rules(resource: ResourcePattern, *names: str) -> list[AclBinding]:
    return [AclBinding(resource, entry(name)) for name in names]


async def test_rules_are_added_and_outlive_a_restart(cluster: Any) -> None:
    controller = await cluster.start(0)
    await controller.add_acls([*rules(T, "a", "b"), *rules(PREFIXED, "c")])
    await controller.add_acls(rules(T, "b", "d"))
    expected = {
        T: {entry("a"), entry("b"), entry("d")},
        PREFIXED: {entry("c")},
    }
    for image in (controller.image, (await cluster.restart(0)).image):
        assert image.acls == expected


async def test_the_last_rule_of_a_pattern_takes_its_node_with_it(cluster: Any) -> None:
    controller = await cluster.start(0)
    await controller.add_acls(rules(T, "a", "b"))
    await controller.remove_acls(rules(T, "a", "nobody"))
    assert controller.image.acls == {T: {entry("b")}}
    await controller.remove_acls(rules(T, "b"))
    assert controller.image.acls == {}
    assert await (await cluster.session(0)).multi_get([resource_path(T)]) == [None]
    await controller.add_acls(rules(T, "a"))
    (node,) = await (await cluster.session(0)).multi_get([resource_path(T)])
    assert decode_entries(node[0]) == {entry("a")}


async def test_each_change_leaves_a_notice_and_old_ones_go(cluster: Any) -> None:
    controller = await cluster.start(0)
    for _ in range(60):
        await controller.add_acls(rules(T, "a"))
        await controller.remove_acls(rules(T, "a"))
    await controller.add_acls(rules(PREFIXED, "a"))
    assert len(await (await cluster.session(0)).children(LITERAL_CHANGES)) == 100
    assert len(await (await cluster.session(0)).children(EXTENDED_CHANGES)) == 1


async def test_what_somebody_else_writes_is_heard_of(cluster: Any) -> None:
    controller = await cluster.start(0)
    await controller.add_acls(rules(T, "a"))
    parent, notice = encode_notice(T)
    await (await cluster.session(0)).multi(
        [
            Set(resource_path(T), encode_entries([entry("z")])),
            Create(f"{parent}/{CHANGE_PREFIX}", notice, sequential=True),
            Create(f"{parent}/{CHANGE_PREFIX}", b"nonsense", sequential=True),
        ]
    )
    await controller.hear_of_acls()
    assert controller.image.acls == {T: {entry("z")}}


async def test_a_write_past_the_controller_is_not_lost(cluster: Any) -> None:
    controller = await cluster.start(0)
    await controller.add_acls(rules(T, "a"))
    await (await cluster.session(0)).multi([Set(resource_path(T), encode_entries([entry("z")]))])
    await controller.add_acls(rules(T, "b"))
    assert controller.image.acls == {T: {entry("z"), entry("b")}}


async def test_many_rules_are_written_together_and_none_is_lost(cluster: Any) -> None:
    controller = await cluster.start(0)
    patterns = [ResourcePattern(AclResourceType.TOPIC, f"t{number}") for number in range(250)]
    store = await cluster.session(0)
    await controller.add_acls(rules(patterns[120], "a"))
    # Past the controller, so that one of the three commits cannot be made as it is.
    await store.multi([Set(resource_path(patterns[120]), encode_entries([entry("z")]))])
    await controller.add_acls([rule for one in patterns for rule in rules(one, "b")])
    expected = {one: {entry("b")} for one in patterns}
    expected[patterns[120]] = {entry("b"), entry("z")}
    assert controller.image.acls == expected
    nodes = await store.multi_get([resource_path(one) for one in patterns])
    assert {
        one: decode_entries(node[0]) for one, node in zip(patterns, nodes, strict=True)
    } == expected
    assert len(await store.children(LITERAL_CHANGES)) == 100
    await controller.remove_acls([rule for one in patterns for rule in rules(one, "b")])
    assert controller.image.acls == {patterns[120]: {entry("z")}}


async def test_without_an_authorizer_rules_are_left_where_they_are(cluster: Any) -> None:
    controller = await cluster.start(0)
    await controller.add_acls(rules(T, "a"))
    cluster.settings = ControlSettings()
    assert (await cluster.restart(0)).image.acls == {}
    cluster.settings = ControlSettings(with_acls=True)
    assert (await cluster.restart(0)).image.acls == {T: {entry("a")}}
