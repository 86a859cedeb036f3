"""The decision: may this principal, from this host, do that to this resource?

One function stands behind both names Kafka has for its authorizer, AclAuthorizer and
StandardAuthorizer. The order is Kafka's: a super user may do everything; where no rule is about the
resource, `allow.everyone.if.no.acl.found` decides; a rule that denies beats all that allow; what
nothing allows is denied.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.security.acls.index import ALL_OPERATIONS, AclIndex, named_bits
from penstock.security.acls.rules import (
    AclBinding,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    ResourcePattern,
)
from penstock.security.addresses import java_address
from penstock.security.principals import EVERYBODY, WILDCARD, Principal

_MEMO_SIZE_MAX = 10_000  # Names one principal uses; more is a scan, which needs no memory.
# Kafka tries this name to find out whether somebody may write anywhere at all.
_ANY_NAME = "hardcode"

# What can be done to a resource: the bits Metadata, DescribeGroups and DescribeCluster show.
SUPPORTED: dict[AclResourceType, tuple[AclOperation, ...]] = {
    AclResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    AclResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    AclResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
    ),
    AclResourceType.TRANSACTIONAL_ID: (
        AclOperation.DESCRIBE,
        AclOperation.WRITE,
        AclOperation.TWO_PHASE_COMMIT,
    ),
    AclResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    AclResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}
_SUPPORTED_BITS = {
    kind: sum(1 << operation for operation in operations) for kind, operations in SUPPORTED.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorizer:
    """The rules of a moment with the settings that stand beside them."""

    index: AclIndex
    super_users: frozenset[Principal] = frozenset()
    allow_everyone_if_no_acl_found: bool = False

    def permits(self, principal: Principal, host: str) -> "PrincipalRights":
        """What somebody may do from somewhere; connections of one principal and host share it."""
        return PrincipalRights(self, principal, host)

    def allowed_bits(
        self, principal: Principal, host: str, kind: AclResourceType, name: str
    ) -> int:
        """A bit for each operation that is allowed on the resource."""
        if principal in self.super_users:
            return ALL_OPERATIONS
        bits = self.index.bits(str(principal), host, kind, name)
        if bits is None:
            return ALL_OPERATIONS if self.allow_everyone_if_no_acl_found else 0
        return bits.allowed & ~bits.denied

    def may_somewhere(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType
    ) -> bool:
        """Whether there can be a resource of the type on which the operation is allowed.

        That is Kafka's authorizeByResourceType, with its one oddity: what is allowed on the name
        it tries first is allowed, whatever else is denied.
        """
        if self.allowed_bits(principal, host, kind, _ANY_NAME) >> operation & 1:
            return True
        wanted = 1 << operation
        rules = [
            rule
            for rule in self.index.of_principal(kind, str(principal))
            if java_address(rule.entry.host) in (host, WILDCARD)
            and named_bits(rule.entry.operation) & wanted
        ]
        return _some_is_left(
            {rule.resource for rule in rules if rule.entry.permission is AclPermission.ALLOW},
            {rule.resource for rule in rules if rule.entry.permission is AclPermission.DENY},
        )

    def deciding_rule(
        self, principal: Principal, host: str, operation: AclOperation, resource: ResourcePattern
    ) -> "DecidingRule":
        """The same decision with its reason, for the audit log; slower."""
        if principal in self.super_users:
            return DecidingRule(is_allowed=True, is_super_user=True)
        about = [
            rule
            for rule in self.index
            if rule.resource.type is resource.type and rule.resource.covers(resource.name)
        ]
        if not about:
            return DecidingRule(is_allowed=self.allow_everyone_if_no_acl_found)
        applying = [rule for rule in about if _applies(rule, principal, host, operation)]
        applying.sort(key=_in_order_of_kafka)
        for rule in applying:
            if rule.entry.permission is AclPermission.DENY:
                return DecidingRule(is_allowed=False, rule=rule)
        if applying:
            return DecidingRule(is_allowed=True, rule=applying[-1])
        return DecidingRule(is_allowed=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingRule:
    """Why something is allowed or denied; without a rule it is the default or a super user."""

    is_allowed: bool
    rule: AclBinding | None = None
    is_super_user: bool = False


class PrincipalRights:
    """What one principal may do from one host, remembered as far as it was asked.

    It belongs to the rules of one moment: when they change, a new one takes its place.
    """

    __slots__ = ("_allowed", "authorizer", "host", "principal")

    def __init__(self, authorizer: Authorizer, principal: Principal, host: str) -> None:
        self.authorizer = authorizer
        self.principal = principal
        self.host = host
        self._allowed: dict[tuple[AclResourceType, str], int] = {}

    def may(self, operation: AclOperation, kind: AclResourceType, name: str) -> bool:
        """The one question of every handler."""
        bits = self._allowed.get((kind, name))
        if bits is None:
            bits = self._decide(kind, name)
        return bits >> operation & 1 == 1

    def may_somewhere(self, operation: AclOperation, kind: AclResourceType) -> bool:
        return self.authorizer.may_somewhere(self.principal, self.host, operation, kind)

    def authorized_operations(self, kind: AclResourceType, name: str) -> int:
        """The bit field that Metadata, DescribeGroups and DescribeCluster show."""
        bits = self._allowed.get((kind, name))
        if bits is None:
            bits = self._decide(kind, name)
        return bits & _SUPPORTED_BITS[kind]

    def split(
        self, operation: AclOperation, kind: AclResourceType, names: Iterable[str]
    ) -> tuple[list[str], list[str]]:
        """The names that are allowed and those that are refused, each in the order given."""
        allowed: list[str] = []
        refused: list[str] = []
        for name in names:
            (allowed if self.may(operation, kind, name) else refused).append(name)
        return allowed, refused

    def _decide(self, kind: AclResourceType, name: str) -> int:
        bits = self.authorizer.allowed_bits(self.principal, self.host, kind, name)
        if len(self._allowed) >= _MEMO_SIZE_MAX:
            self._allowed.clear()
        self._allowed[kind, name] = bits
        return bits


class Unrestricted:
    """Stands where Permits would, on a cluster without an authorizer: everything is allowed."""

    __slots__ = ()

    def may(self, operation: AclOperation, kind: AclResourceType, name: str) -> bool:
        return True

    def may_somewhere(self, operation: AclOperation, kind: AclResourceType) -> bool:
        return True

    def authorized_operations(self, kind: AclResourceType, name: str) -> int:
        return _SUPPORTED_BITS[kind]

    def split(
        self, operation: AclOperation, kind: AclResourceType, names: Iterable[str]
    ) -> tuple[list[str], list[str]]:
        return list(names), []


EVERYTHING_ALLOWED = Unrestricted()


def _some_is_left(allowed: set[ResourcePattern], denied: set[ResourcePattern]) -> bool:
    """Whether the denials leave anything of what is allowed."""
    if any(_is_for_all_names(resource) for resource in denied):
        return False
    if any(_is_for_all_names(resource) for resource in allowed):
        return True
    prefixes = {one.name for one in denied if one.pattern is PatternType.PREFIXED}
    literals = {one.name for one in denied if one.pattern is PatternType.LITERAL}
    return any(
        not _has_prefix_in(one.name, prefixes)
        and not (one.pattern is PatternType.LITERAL and one.name in literals)
        for one in allowed
    )


def _is_for_all_names(resource: ResourcePattern) -> bool:
    return resource.pattern is PatternType.LITERAL and resource.name == WILDCARD


def _has_prefix_in(name: str, prefixes: set[str]) -> bool:
    return any(name[:length] in prefixes for length in range(1, len(name) + 1))


def _applies(rule: AclBinding, principal: Principal, host: str, operation: AclOperation) -> bool:
    entry = rule.entry
    if entry.principal not in (str(principal), str(EVERYBODY)):
        return False
    bits = AclIndex.of([rule]).bits(entry.principal, host, rule.resource.type, rule.resource.name)
    return bits is not None and (bits.allowed | bits.denied) >> operation & 1 == 1


def _in_order_of_kafka(rule: AclBinding) -> tuple[object, ...]:
    """The longest name first and `*` last, so that the same rule is named as Kafka names."""
    resource, entry = rule.resource, rule.entry
    specific = -1 if _is_for_all_names(resource) else len(resource.name)
    written = (entry.principal, entry.host, entry.operation, entry.permission)
    return (-specific, resource.pattern, *written)
