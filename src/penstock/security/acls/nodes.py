"""Access rules in the metadata store, in the paths and the JSON Apache Kafka used with ZooKeeper.

Rules about one pattern share a node, so a change of them is one compare-and-set. Rules about
prefixes stand apart (KIP-290), because readers before Kafka 2.0 would take the prefix for a name.
Whoever writes a node also leaves a notice for readers that follow those.
"""

import json
from collections.abc import Iterable
from typing import Any

from penstock.errors import ConfigError
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    ResourcePattern,
    word_of,
)

LITERAL_ROOT = "/kafka-acl"
PREFIXED_ROOT = "/kafka-acl-extended/prefixed"  # In lower case, unlike the type in notices.
LITERAL_CHANGES = "/kafka-acl-changes"
EXTENDED_CHANGES = "/kafka-acl-extended-changes"
CHANGE_PREFIX = "acl_changes_"
_VERSION = 1

_TYPES = {word_of(kind): kind for kind in AclResourceType if kind > AclResourceType.ANY}
_OPERATIONS = {word_of(one): one for one in AclOperation if one > AclOperation.ANY}
_PERMISSIONS = {word_of(one): one for one in AclPermission if one > AclPermission.ANY}
_ROOTS = {PatternType.LITERAL: LITERAL_ROOT, PatternType.PREFIXED: PREFIXED_ROOT}

# Below these are the nodes of patterns.
RESOURCE_PARENTS = tuple(f"{root}/{word}" for root in _ROOTS.values() for word in _TYPES)

# Parents before children; Kafka makes them all when an authorizer first starts.
PERSISTENT_PATHS = (
    LITERAL_ROOT,
    *(f"{LITERAL_ROOT}/{word}" for word in _TYPES),
    PREFIXED_ROOT.rpartition("/")[0],
    PREFIXED_ROOT,
    *(f"{PREFIXED_ROOT}/{word}" for word in _TYPES),
    LITERAL_CHANGES,
    EXTENDED_CHANGES,
)


class AclNodeUnreadable(ConfigError):
    """A node below the paths of access rules holds something else.

    It is no rule to be skipped: it may be the one that denies.
    """

    def __init__(self, reason: object) -> None:
        super().__init__(f"A node of access rules cannot be read: {reason}")


def resource_path(resource: ResourcePattern) -> str:
    """Where the rules about a pattern are kept."""
    return f"{_ROOTS[resource.pattern]}/{word_of(resource.type)}/{resource.name}"


def resource_of_path(path: str) -> ResourcePattern:
    """The pattern whose rules are kept there."""
    for pattern, root in _ROOTS.items():
        word, slash, name = path.removeprefix(f"{root}/").partition("/")
        if path.startswith(f"{root}/") and slash and name and word in _TYPES:
            return ResourcePattern(_TYPES[word], name, pattern)
    raise AclNodeUnreadable(f"{path} is no path of a resource")


def encode_entries(entries: Iterable[AccessControlEntry]) -> bytes:
    """The content of a node; the same entries always give the same bytes."""
    ordered = sorted(
        entries, key=lambda one: (one.principal, one.host, one.operation, one.permission)
    )
    written = [
        {
            "principal": entry.principal,
            "permissionType": word_of(entry.permission),
            "operation": word_of(entry.operation),
            "host": entry.host,
        }
        for entry in ordered
    ]
    return _json({"version": _VERSION, "acls": written})


def decode_entries(content: bytes) -> frozenset[AccessControlEntry]:
    """Read a node; an empty one has no entries, as in Kafka."""
    if not content:
        return frozenset()
    read = _parse(content)
    try:
        if read["version"] != _VERSION:
            raise AclNodeUnreadable(f"version {read['version']!r} is not known")
        return frozenset(_entry(one) for one in read["acls"])
    except (KeyError, TypeError, AttributeError) as error:
        raise AclNodeUnreadable(f"{type(error).__name__} {error}") from None


def encode_notice(resource: ResourcePattern) -> tuple[str, bytes]:
    """The parent of the sequential node that tells readers of a change, and its content."""
    if resource.pattern is PatternType.LITERAL:
        return LITERAL_CHANGES, f"{resource.type.name}:{resource.name}".encode()
    notice = {
        "version": _VERSION,
        "resourceType": resource.type.name,
        "name": resource.name,
        "patternType": resource.pattern.name,
    }
    return EXTENDED_CHANGES, _json(notice)


def decode_notice(parent: str, content: bytes) -> ResourcePattern:
    """Which pattern's rules changed."""
    if parent == LITERAL_CHANGES:
        word, colon, name = content.decode(errors="replace").partition(":")
        if not colon:
            raise AclNodeUnreadable(f"{content!r} names no resource")
        return ResourcePattern(_type_in_notice(word), name)
    read = _parse(content)
    try:
        kind = _type_in_notice(read["resourceType"])
        return ResourcePattern(kind, str(read["name"]), PatternType[read["patternType"]])
    except (KeyError, TypeError) as error:
        raise AclNodeUnreadable(f"{type(error).__name__} {error}") from None


def _type_in_notice(word: str) -> AclResourceType:
    """In capitals as Kafka 2.0 and newer write it, or as paths do."""
    kind = AclResourceType.__members__.get(word) or _TYPES.get(word)
    if kind is None:
        raise AclNodeUnreadable(f"{word!r} is no type of resource")
    return kind


def _entry(read: dict[str, str]) -> AccessControlEntry:
    return AccessControlEntry(
        str(read["principal"]),
        str(read["host"]),
        _OPERATIONS[read["operation"]],
        _PERMISSIONS[read["permissionType"]],
    )


def _parse(content: bytes) -> dict[str, Any]:
    try:
        read = json.loads(content)
    except ValueError as error:
        raise AclNodeUnreadable(error) from None
    if not isinstance(read, dict):
        raise AclNodeUnreadable("it is no JSON object")
    return read


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
