"""The decision, against the rules written out one by one, and rule by rule in plain cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.security.acls import worlds

from penstock.security.acls.decision import EVERYTHING_ALLOWED, SUPPORTED, Authorizer
from penstock.security.acls.index import AclIndex
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    ResourcePattern,
)
from penstock.security.principals import Principal

ALICE = Principal("User", "alice")
TOPIC = AclResourceType.TOPIC
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY


def rule(
    name: str,
    operation: AclOperation,
    permission: AclPermission = ALLOW,
    *,
    prefixed: bool = False,
    principal: str = "User:alice",
    host: str = "*",
) -> AclBinding:
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    entry = AccessControlEntry(principal, host, operation, permission)
    return AclBinding(ResourcePattern(TOPIC, name, pattern), entry)


def may(
    rules: list[AclBinding], operation: AclOperation, name: str = "orders", host: str = "10.0.0.1"
) -> bool:
    permits = Authorizer(index=AclIndex.of(rules)).permits(ALICE, host)
    return permits.may(operation, TOPIC, name)


def test_what_nothing_allows_is_denied() -> None:
    assert not may([], READ)
    assert not may([rule("payments", READ)], READ)
    assert not may([rule("orders", READ, principal="User:bob")], READ)


@pytest.mark.parametrize("name", ["orders", "*"])
def test_a_rule_for_the_name_or_for_all_names_allows(name: str) -> None:
    assert may([rule(name, READ)], READ)


def test_a_prefix_allows_what_begins_with_it_and_the_name_itself() -> None:
    rules = [rule("ord", READ, prefixed=True)]
    assert may(rules, READ, "ord") and may(rules, READ, "orders")
    assert not may(rules, READ, "or") and not may(rules, READ, "reorder")


def test_a_prefix_of_an_asterisk_is_no_wildcard() -> None:
    assert not may([rule("*", READ, prefixed=True)], READ)
    assert may([rule("*", READ, prefixed=True)], READ, "*x")


def test_one_denial_beats_all_that_allow() -> None:
    allowed = [rule("orders", READ), rule("*", AclOperation.ALL)]
    assert not may([*allowed, rule("o", READ, DENY, prefixed=True)], READ)
    assert not may([*allowed, rule("*", READ, DENY, principal="User:*")], READ)
    assert not may([*allowed, rule("orders", AclOperation.ALL, DENY)], READ)


def test_to_read_is_to_see_but_to_be_kept_from_reading_is_not_to_be_blind() -> None:
    assert may([rule("orders", READ)], DESCRIBE)
    assert may([rule("orders", AclOperation.ALTER_CONFIGS)], AclOperation.DESCRIBE_CONFIGS)
    assert not may([rule("orders", AclOperation.ALTER_CONFIGS)], DESCRIBE)
    assert may([rule("orders", DESCRIBE), rule("orders", READ, DENY)], DESCRIBE)


def test_a_rule_for_a_host_holds_on_that_host_alone() -> None:
    rules = [rule("orders", READ, host="10.0.0.1")]
    assert may(rules, READ, host="10.0.0.1")
    assert not may(rules, READ, host="10.0.0.2")


def test_a_super_user_may_do_what_is_denied() -> None:
    index = AclIndex.of([rule("*", AclOperation.ALL, DENY, principal="User:*")])
    authorizer = Authorizer(index=index, super_users=frozenset({ALICE}))
    assert authorizer.permits(ALICE, "h").may(WRITE, TOPIC, "orders")
    assert not authorizer.permits(Principal("Group", "alice"), "h").may(WRITE, TOPIC, "orders")


def test_where_there_is_a_rule_for_anybody_everyone_else_loses_access() -> None:
    index = AclIndex.of([rule("orders", READ, principal="User:bob")])
    open_house = Authorizer(index=index, allow_everyone_if_no_acl_found=True)
    permits = open_house.permits(ALICE, "h")
    assert permits.may(READ, TOPIC, "payments")
    assert not permits.may(READ, TOPIC, "orders")


def test_bits_show_what_is_allowed_of_what_can_be_done() -> None:
    index = AclIndex.of([rule("orders", READ), rule("orders", AclOperation.DELETE)])
    permits = Authorizer(index=index).permits(ALICE, "h")
    bits = permits.authorized_operations(TOPIC, "orders")
    assert bits == 1 << READ | 1 << AclOperation.DELETE | 1 << DESCRIBE
    assert EVERYTHING_ALLOWED.authorized_operations(TOPIC, "orders") == 0b1101_1111_1000
    group = EVERYTHING_ALLOWED.authorized_operations(AclResourceType.GROUP, "g")
    assert group == sum(1 << operation for operation in SUPPORTED[AclResourceType.GROUP])


def test_names_are_split_in_their_order() -> None:
    permits = Authorizer(index=AclIndex.of([rule("a", READ, prefixed=True)])).permits(ALICE, "h")
    assert permits.split(READ, TOPIC, ["b", "a2", "c", "a1"]) == (["a2", "a1"], ["b", "c"])


def test_a_memo_of_many_names_stays_within_bounds() -> None:
    permits = Authorizer(index=AclIndex.of([rule("a", READ, prefixed=True)])).permits(ALICE, "h")
    for number in range(25_000):
        assert permits.may(READ, TOPIC, f"a{number}")
    assert len(permits._allowed) <= 10_000


def test_somewhere_means_what_denials_leave() -> None:
    def somewhere(*rules: AclBinding) -> bool:
        return Authorizer(index=AclIndex.of(rules)).permits(ALICE, "h").may_somewhere(WRITE, TOPIC)

    assert not somewhere()
    assert somewhere(rule("orders", WRITE))
    assert not somewhere(rule("orders", WRITE), rule("orders", WRITE, DENY))
    assert not somewhere(rule("orders", WRITE), rule("ord", WRITE, DENY, prefixed=True))
    assert somewhere(rule("ord", WRITE, prefixed=True), rule("orders", WRITE, DENY, prefixed=True))
    assert not somewhere(rule("orders", WRITE), rule("*", WRITE, DENY))
    assert not somewhere(rule("orders", READ))


@given(worlds.WORLDS, worlds.QUESTIONS)
def test_the_decision_follows_the_rules_as_written(
    world: worlds.World, question: worlds.Question
) -> None:
    permits = world.authorizer().permits(question.principal, question.host)
    allowed = permits.may(question.operation, question.type, question.name)
    assert allowed == worlds.decided_by_hand(world, question)
    assert allowed == permits.may(question.operation, question.type, question.name)


@given(worlds.WORLDS, worlds.QUESTIONS)
def test_the_reason_in_the_log_leads_to_the_same_decision(
    world: worlds.World, question: worlds.Question
) -> None:
    authorizer = world.authorizer()
    resource = ResourcePattern(question.type, question.name)
    reason = authorizer.deciding_rule(
        question.principal, question.host, question.operation, resource
    )
    assert reason.is_allowed == worlds.decided_by_hand(world, question)


@given(worlds.WORLDS, st.lists(worlds.BINDINGS, max_size=5), worlds.QUESTIONS)
def test_rules_replaced_one_resource_at_a_time_are_as_if_laid_out_anew(
    world: worlds.World, others: list[AclBinding], question: worlds.Question
) -> None:
    stepwise = world.authorizer().index
    everything = set(stepwise) | set(others)
    emptied = {binding.resource for binding in everything} if len(others) % 2 else set()
    for binding in others:
        known = stepwise.entries.get(binding.resource, frozenset())
        stepwise = stepwise.replaced(binding.resource, known | {binding.entry})
    for resource in emptied:
        stepwise = stepwise.replaced(resource, frozenset())
    anew = AclIndex.of(one for one in everything if one.resource not in emptied)
    assert stepwise.entries == anew.entries
    who = (str(question.principal), question.host, question.type, question.name)
    assert stepwise.bits(*who) == anew.bits(*who)
