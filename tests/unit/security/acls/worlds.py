"""Small worlds of access rules: few names, so that rules and questions meet often."""

import random
from dataclasses import dataclass

from hypothesis import strategies as st

from penstock.security.acls.decision import Authorizer
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

PRINCIPALS = ["User:a", "User:b", "Group:a", "User:*"]
HOSTS = ["10.0.0.1", "10.0.0.2", "*"]
NAMES = ["a", "ab", "abc", "abd", "b", "ba", "h", "hardcode", "hardcoded", "*"]
TYPES = [AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.TRANSACTIONAL_ID]
OPERATIONS = [one for one in AclOperation if one >= AclOperation.READ]
PATTERNS = [PatternType.LITERAL, PatternType.PREFIXED]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    rules: tuple[AclBinding, ...]
    super_users: frozenset[Principal]
    allow_everyone: bool

    def authorizer(self) -> Authorizer:
        return Authorizer(
            index=AclIndex.of(self.rules),
            super_users=self.super_users,
            allow_everyone_if_no_acl_found=self.allow_everyone,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    principal: Principal
    host: str
    operation: AclOperation
    type: AclResourceType
    name: str


BINDINGS = st.builds(
    AclBinding,
    st.builds(
        ResourcePattern,
        st.sampled_from(TYPES),
        st.sampled_from(NAMES),
        st.sampled_from(PATTERNS),
    ),
    st.builds(
        AccessControlEntry,
        st.sampled_from(PRINCIPALS),
        st.sampled_from(HOSTS),
        st.sampled_from([AclOperation.ALL, *OPERATIONS]),
        st.sampled_from([AclPermission.ALLOW, AclPermission.DENY]),
    ),
)
_CALLERS = st.sampled_from(PRINCIPALS[:-1]).map(Principal.parse)
WORLDS = st.builds(
    World,
    rules=st.lists(BINDINGS, max_size=12).map(tuple),
    super_users=st.frozensets(_CALLERS, max_size=1),
    allow_everyone=st.booleans(),
)
QUESTIONS = st.builds(
    Question,
    principal=_CALLERS,
    host=st.sampled_from(HOSTS[:-1]),
    operation=st.sampled_from(OPERATIONS),
    type=st.sampled_from(TYPES),
    name=st.sampled_from([*NAMES, "abcde", "z"]),
)


def random_binding(dice: random.Random) -> AclBinding:
    """Three operations in most rules, so that they meet the questions."""
    operations = OPERATIONS if dice.random() < 0.3 else [AclOperation.READ, AclOperation.WRITE]
    return AclBinding(
        ResourcePattern(dice.choice(TYPES), dice.choice(NAMES), dice.choice(PATTERNS)),
        AccessControlEntry(
            dice.choice(PRINCIPALS),
            dice.choice(HOSTS),
            dice.choice([AclOperation.ALL, *operations]),
            AclPermission.DENY if dice.random() < 0.3 else AclPermission.ALLOW,
        ),
    )


def random_question(dice: random.Random) -> Question:
    operations = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE]
    return Question(
        principal=Principal.parse(dice.choice(PRINCIPALS[:-1])),
        host=dice.choice(HOSTS[:-1]),
        operation=dice.choice(OPERATIONS if dice.random() < 0.3 else operations),
        type=dice.choice(TYPES),
        name=dice.choice([*NAMES, "abcde", "z"]),
    )


def decided_by_hand(world: World, question: Question) -> bool:
    """Kafka's documented rules, one rule after the other, without any index."""
    if question.principal in world.super_users:
        return True
    about = [
        rule
        for rule in world.rules
        if rule.resource.type is question.type and _covers(rule.resource, question.name)
    ]
    if not about:
        return world.allow_everyone
    mine = [
        rule.entry
        for rule in about
        if rule.entry.principal in (str(question.principal), "User:*")
        and rule.entry.host in (question.host, "*")
    ]
    denied = {one.operation for one in mine if one.permission is AclPermission.DENY}
    allowed = {one.operation for one in mine if one.permission is AclPermission.ALLOW}
    if denied & {question.operation, AclOperation.ALL}:
        return False
    return bool(allowed & _sufficient(question.operation))


def _covers(resource: ResourcePattern, name: str) -> bool:
    if resource.pattern is PatternType.LITERAL and resource.name == "*":
        return True
    if resource.pattern is PatternType.LITERAL:
        return resource.name == name
    return name.startswith(resource.name)


def _sufficient(operation: AclOperation) -> set[AclOperation]:
    enough = {operation, AclOperation.ALL}
    if operation is AclOperation.DESCRIBE:
        enough |= {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    if operation is AclOperation.DESCRIBE_CONFIGS:
        enough.add(AclOperation.ALTER_CONFIGS)
    return enough
