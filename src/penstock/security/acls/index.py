"""All access rules of a cluster, laid out so that a decision looks at few of them.

A resource comes under the rules of its own name, of `*`, and of each of its prefixes. So rules lie
in tables by name, and prefixes are tried by the lengths that occur. For each pattern the entries
are folded into two bit fields per principal and host, one of what is allowed and one of what is
denied: one look gives the answer for all operations at once. An index never changes; a change of
one resource's rules gives a new one that shares the rest.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Self

from penstock.security.acls.rules import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    ResourcePattern,
)
from penstock.security.addresses import java_address
from penstock.security.principals import EVERYBODY, WILDCARD

Entries = frozenset[AccessControlEntry]
_EVERYBODY = str(EVERYBODY)

_FIRST_OPERATION = AclOperation.READ
ALL_OPERATIONS = sum(1 << operation for operation in AclOperation if operation >= _FIRST_OPERATION)
_DESCRIBE = 1 << AclOperation.DESCRIBE
# What is given along, by rules that allow; rules that deny take exactly what they name.
_IMPLIED = {
    AclOperation.READ: _DESCRIBE,
    AclOperation.WRITE: _DESCRIBE,
    AclOperation.DELETE: _DESCRIBE,
    AclOperation.ALTER: _DESCRIBE,
    AclOperation.ALTER_CONFIGS: 1 << AclOperation.DESCRIBE_CONFIGS,
}


class Bits(NamedTuple):
    """What rules say of one principal: a bit for each operation."""

    allowed: int
    denied: int


Grants = Mapping[tuple[str, str], Bits]  # By principal as written, and host as Java prints it.


class _Layout(NamedTuple):
    """The rules about one type of resource."""

    literal: Mapping[str, Grants]
    prefixed: Mapping[str, Grants]
    lengths: tuple[int, ...]  # Of the prefixes, each once.


_EMPTY = _Layout({}, {}, ())


class AclIndex:
    """The rules of a cluster at one moment."""

    __slots__ = ("_by_principal", "_layouts", "entries")

    def __init__(self, entries: Mapping[ResourcePattern, Entries]) -> None:
        self.entries = {resource: found for resource, found in entries.items() if found}
        self._layouts = {kind: _layout(kind, self.entries) for kind in _kinds(self.entries)}
        self._by_principal: dict[tuple[AclResourceType, str], tuple[AclBinding, ...]] = {}

    @classmethod
    def of(cls, bindings: Iterable[AclBinding]) -> Self:
        """From rules in any order; a rule given twice counts once."""
        gathered: dict[ResourcePattern, set[AccessControlEntry]] = {}
        for binding in bindings:
            gathered.setdefault(binding.resource, set()).add(binding.entry)
        return cls({resource: frozenset(found) for resource, found in gathered.items()})

    def replaced(self, resource: ResourcePattern, entries: Entries) -> "AclIndex":
        """With other rules about one pattern; an empty set removes it."""
        changed = AclIndex.__new__(AclIndex)
        kept = {**self.entries, resource: entries}
        if not entries:
            del kept[resource]
        changed.entries = kept
        layout = self._layouts.get(resource.type, _EMPTY)
        changed._layouts = {**self._layouts, resource.type: _relaid(layout, resource, entries)}
        changed._by_principal = {}
        return changed

    def __len__(self) -> int:
        return sum(map(len, self.entries.values()))

    def __iter__(self) -> Iterator[AclBinding]:
        for resource, entries in self.entries.items():
            for entry in entries:
                yield AclBinding(resource, entry)

    def matching(self, wanted: AclBindingFilter) -> list[AclBinding]:
        """The rules a filter means; the resource is judged once for all of its entries."""
        return [
            AclBinding(resource, entry)
            for resource, entries in self.entries.items()
            if wanted.resource.matches(resource)
            for entry in entries
            if wanted.entry.matches(entry)
        ]

    def bits(self, principal: str, host: str, kind: AclResourceType, name: str) -> Bits | None:
        """What the rules about the resource say of somebody; None: there are no rules about it."""
        layout = self._layouts.get(kind)
        if layout is None:
            return None
        found = [
            grants
            for grants in (layout.literal.get(name), layout.literal.get(WILDCARD))
            if grants is not None
        ]
        prefixed = layout.prefixed
        for length in layout.lengths:
            grants = prefixed.get(name[:length]) if length <= len(name) else None
            if grants is not None:
                found.append(grants)
        return _folded(found, principal, host) if found else None

    def of_principal(self, kind: AclResourceType, principal: str) -> tuple[AclBinding, ...]:
        """Every rule about resources of a type that names the principal or everybody."""
        known = self._by_principal.get((kind, principal))
        if known is None:
            names = (principal, _EVERYBODY)
            known = tuple(
                AclBinding(resource, entry)
                for resource, entries in self.entries.items()
                if resource.type is kind
                for entry in entries
                if entry.principal in names
            )
            self._by_principal[kind, principal] = known
        return known


def _folded(found: Iterable[Grants], principal: str, host: str) -> Bits:
    allowed = denied = 0
    keys = (
        (principal, WILDCARD),
        (_EVERYBODY, WILDCARD),
        (principal, host),
        (_EVERYBODY, host),
    )
    for grants in found:
        for key in keys:
            bits = grants.get(key)
            if bits is not None:
                allowed |= bits.allowed
                denied |= bits.denied
    return Bits(allowed, denied)


def _kinds(resources: Iterable[ResourcePattern]) -> set[AclResourceType]:
    return {resource.type for resource in resources}


def _layout(kind: AclResourceType, rules: Mapping[ResourcePattern, Entries]) -> _Layout:
    literal: dict[str, Grants] = {}
    prefixed: dict[str, Grants] = {}
    for resource, entries in rules.items():
        if resource.type is kind:
            table = prefixed if resource.pattern is PatternType.PREFIXED else literal
            table[resource.name] = _grants(entries)
    return _Layout(literal, prefixed, _lengths(prefixed))


def _relaid(layout: _Layout, resource: ResourcePattern, entries: Entries) -> _Layout:
    is_prefixed = resource.pattern is PatternType.PREFIXED
    table = {**(layout.prefixed if is_prefixed else layout.literal)}
    table.pop(resource.name, None)
    if entries:
        table[resource.name] = _grants(entries)
    if is_prefixed:
        return _Layout(layout.literal, table, _lengths(table))
    return layout._replace(literal=table)


def _lengths(prefixes: Iterable[str]) -> tuple[int, ...]:
    return tuple(sorted({len(prefix) for prefix in prefixes}))


def _grants(entries: Entries) -> Grants:
    found: dict[tuple[str, str], Bits] = {}
    for entry in entries:
        key = (entry.principal, java_address(entry.host))
        allowed, denied = found.get(key, (0, 0))
        if entry.permission is AclPermission.ALLOW:
            found[key] = Bits(allowed | _given(entry.operation), denied)
        else:
            found[key] = Bits(allowed, denied | named_bits(entry.operation))
    return found


def _given(operation: AclOperation) -> int:
    return named_bits(operation) | _IMPLIED.get(operation, 0)


def named_bits(operation: AclOperation) -> int:
    """The operation itself, or each of them for ALL."""
    return ALL_OPERATIONS if operation is AclOperation.ALL else 1 << operation
