"""Access rules as values: what a rule says, about which resource, and which rules a filter means.

The numbers are those of the wire, the words those of Kafka's nodes and tools. Whether a rule
applies to a request is for `decision` to say.
"""

from dataclasses import dataclass
from enum import IntEnum

from penstock.errors import InvalidRequest
from penstock.security.principals import WILDCARD

CLUSTER_NAME = "kafka-cluster"


class AclOperation(IntEnum):
    """What is done to a resource; also the bit in a field of authorized operations."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclResourceType(IntEnum):
    """What a rule is about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How the name of a rule's resource is meant; rules have the last two alone."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclPermission(IntEnum):
    """Whether a rule gives or takes."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


AclWord = AclOperation | AclResourceType | AclPermission


def word_of(value: AclWord) -> str:
    """TRANSACTIONAL_ID is TransactionalId in nodes, paths and audit lines."""
    return "".join(part.capitalize() for part in value.name.split("_"))


@dataclass(frozen=True, slots=True)
class ResourcePattern:
    """The resources a rule is about: one name, all names (`*`), or all with a prefix."""

    type: AclResourceType
    name: str
    pattern: PatternType = PatternType.LITERAL

    def covers(self, name: str) -> bool:
        """Whether a resource of this type with that name is meant."""
        if self.pattern is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)


@dataclass(frozen=True, slots=True)
class AccessControlEntry:
    """Who may or must not do what, from where."""

    principal: str  # As written: `User:alice`, or `User:*` for everybody.
    host: str  # An address as text, or `*`.
    operation: AclOperation
    permission: AclPermission


@dataclass(frozen=True, slots=True)
class AclBinding:
    """One rule."""

    resource: ResourcePattern
    entry: AccessControlEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFilter:
    """Which resources DescribeAcls or DeleteAcls mean; None: any name."""

    type: AclResourceType = AclResourceType.ANY
    name: str | None = None
    pattern: PatternType = PatternType.ANY

    def matches(self, resource: ResourcePattern) -> bool:
        """MATCH finds every rule that a resource of that name would come under."""
        if self.type not in (AclResourceType.ANY, resource.type):
            return False
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, resource.pattern):
            return False
        if self.name is None:
            return True
        if self.pattern is PatternType.MATCH:
            return resource.covers(self.name)
        return self.name == resource.name


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter:
    """Which entries are meant; None: any."""

    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY

    def matches(self, entry: AccessControlEntry) -> bool:
        """Texts are compared as they are written: `User:*` finds `User:*` alone."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission in (AclPermission.ANY, entry.permission)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AclBindingFilter:
    """Which rules DescribeAcls shows and DeleteAcls removes."""

    resource: ResourceFilter = ResourceFilter()
    entry: EntryFilter = EntryFilter()

    def matches(self, binding: AclBinding) -> bool:
        return self.resource.matches(binding.resource) and self.entry.matches(binding.entry)

    def check(self) -> None:
        """InvalidRequest when it asks for something this version of the rules does not know."""
        if AclResourceType.UNKNOWN is self.resource.type or (
            self.resource.pattern is PatternType.UNKNOWN
        ):
            raise InvalidRequest("Unknown patternFilter.")
        if self.entry.operation is AclOperation.UNKNOWN or (
            self.entry.permission is AclPermission.UNKNOWN
        ):
            raise InvalidRequest("Unknown entryFilter.")


def check_new_rule(binding: AclBinding) -> None:
    """InvalidRequest when CreateAcls must not take it."""
    resource, entry = binding.resource, binding.entry
    if resource.type <= AclResourceType.ANY:
        raise InvalidRequest(f"Invalid resourceType {resource.type.name}")
    if resource.pattern not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise InvalidRequest(f"Invalid patternType {resource.pattern.name}")
    if entry.operation <= AclOperation.ANY:
        raise InvalidRequest(f"Invalid operation {entry.operation.name}")
    if entry.permission <= AclPermission.ANY:
        raise InvalidRequest(f"Invalid permissionType {entry.permission.name}")
    _check_name(resource)
    if ":" not in entry.principal:
        raise InvalidRequest(
            f"Could not parse principal from `{entry.principal}` (no colon is present "
            "separating the principal type from the principal name)"
        )


def _check_name(resource: ResourcePattern) -> None:
    if resource.type is AclResourceType.CLUSTER and resource.name != CLUSTER_NAME:
        raise InvalidRequest(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not resource.name:
        raise InvalidRequest("Invalid empty resource name")
    if "/" in resource.name:  # The name is the last part of a node's path.
        raise InvalidRequest(f"ACL binding contains invalid resource name: {resource.name}")
