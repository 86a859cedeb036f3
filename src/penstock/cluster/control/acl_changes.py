"""Access rules, written where Apache Kafka's authorizer kept them, with a notice for its readers.

The rules about one pattern share a node, and change by compare-and-set. What somebody else writes
there is heard of by the same notices. Whether a rule makes sense was checked before.
"""

import logging
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from penstock.cluster.control.fenced_writes import FencedWrites
from penstock.cluster.control.ledger import ImageLedger
from penstock.cluster.image.image import ImageDelta
from penstock.cluster.image.load import read_nodes
from penstock.meta.store import Create, Delete, MetaError, MultiFailed, Op, Set
from penstock.security.acls.index import Entries
from penstock.security.acls.nodes import (
    CHANGE_PREFIX,
    EXTENDED_CHANGES,
    LITERAL_CHANGES,
    AclNodeUnreadable,
    decode_entries,
    decode_notice,
    encode_entries,
    encode_notice,
    resource_path,
)
from penstock.security.acls.rules import AclBinding, ResourcePattern

_NOTICES_KEPT = 100
_AT_ONCE = 100  # Patterns in one commit.
_TRIES_MAX = 10

_log = logging.getLogger("penstock.cluster.controller")

_NOTHING: Entries = frozenset()
_Alter = Callable[[Entries], Entries]
_Combine = Callable[[Entries, Entries], Entries]  # What there is, and what changes.


class AclChanges:
    """The controller's hand in the access rules."""

    def __init__(self, writes: FencedWrites, ledger: ImageLedger) -> None:
        self._writes = writes
        self._store = writes.store
        self._ledger = ledger
        self._heard: dict[str, frozenset[str]] = {}  # Names of notices by parent.

    async def add(self, bindings: Iterable[AclBinding]) -> None:
        """A rule that is there already stays."""
        await self._alter_all(_by_resource(bindings), operator.or_)

    async def remove(self, bindings: Iterable[AclBinding]) -> None:
        await self._alter_all(_by_resource(bindings), operator.sub)

    async def _alter_all(self, changes: Mapping[ResourcePattern, Entries], alter: _Combine) -> None:
        """Many at a time: each commit waits for a disk, or for several."""
        resources = list(changes)
        for at in range(0, len(resources), _AT_ONCE):
            some = resources[at : at + _AT_ONCE]
            if len(some) > 1 and await self._alter_at_once(some, changes, alter):
                continue
            for resource in some:
                await self._alter(resource, lambda now, own=changes[resource]: alter(now, own))  # type: ignore[misc]

    async def _alter_at_once(
        self,
        resources: Sequence[ResourcePattern],
        changes: Mapping[ResourcePattern, Entries],
        alter: _Combine,
    ) -> bool:
        """Whether it could be done; not if somebody wrote without the controller."""
        known = self._ledger.image.acls
        after = {one: alter(known.get(one, _NOTHING), changes[one]) for one in resources}
        after = {one: made for one, made in after.items() if made != known.get(one, _NOTHING)}
        if not after:
            return True
        ops = [op for one, entries in after.items() for op in self._ops(one, entries)]
        try:
            await self._writes.commit(ops)
        except MultiFailed:
            return False
        self._note(after)
        for parent in {encode_notice(one)[0] for one in after}:
            await self._drop_old_notices(parent)
        return True

    async def _alter(self, resource: ResourcePattern, alter: _Alter) -> None:
        for _ in range(_TRIES_MAX):
            before = self._ledger.image.acls.get(resource, _NOTHING)
            after = alter(before)
            if after == before:
                return
            try:
                await self._writes.commit(self._ops(resource, after))
            except MultiFailed:
                await self.look_again([resource])  # Somebody wrote without the controller.
                continue
            self._note({resource: after})
            await self._drop_old_notices(encode_notice(resource)[0])
            return
        raise MetaError(
            f"the rules of {resource_path(resource)} are written by others all the time"
        )

    def _ops(self, resource: ResourcePattern, entries: Entries) -> list[Op]:
        path, version = resource_path(resource), self._ledger.acl_versions.get(resource)
        parent, notice = encode_notice(resource)
        write: Op
        if version is None:
            write = Create(path, encode_entries(entries))
        elif entries:
            write = Set(path, encode_entries(entries), version)
        else:
            write = Delete(path, version)
        return [write, Create(f"{parent}/{CHANGE_PREFIX}", notice, sequential=True)]

    def _note(self, changed: Mapping[ResourcePattern, Entries]) -> None:
        versions = self._ledger.acl_versions
        for resource, entries in changed.items():
            if entries:
                versions[resource] = versions.get(resource, -1) + 1
            else:
                versions.pop(resource, None)
        told = {resource: entries or None for resource, entries in changed.items()}
        self._ledger.publish(ImageDelta(acls=told))

    async def look_again(self, resources: Sequence[ResourcePattern]) -> None:
        """Read the rules of these, and publish those that are not as known."""
        versions = self._ledger.acl_versions
        found: dict[ResourcePattern, Entries | None] = {}
        nodes = await read_nodes(self._store, [resource_path(one) for one in resources])
        for resource, node in zip(resources, nodes, strict=True):
            if (node[1].version if node else None) == versions.get(resource):
                continue
            versions.pop(resource, None)
            found[resource] = None
            if node is not None:
                versions[resource] = node[1].version
                found[resource] = decode_entries(node[0]) or None
        self._ledger.publish(ImageDelta(acls=found))

    async def hear(self) -> None:
        """Act on notices that somebody has left."""
        for parent in (LITERAL_CHANGES, EXTENDED_CHANGES):
            names = await self._store.children(parent)
            heard = self._heard.get(parent, frozenset())
            paths = [f"{parent}/{name}" for name in names if name not in heard]
            told: dict[ResourcePattern, None] = {}
            for node in await read_nodes(self._store, paths):
                if node is not None and (resource := _told_of(parent, node[0])) is not None:
                    told[resource] = None
            await self.look_again(list(told))
            self._heard[parent] = frozenset(names)

    async def _drop_old_notices(self, parent: str) -> None:
        names = sorted(await self._store.children(parent))[:-_NOTICES_KEPT]
        if names:
            with suppress(MetaError):  # Another process removed them as well, which is fine.
                await self._writes.commit([Delete(f"{parent}/{name}") for name in names])


def _by_resource(bindings: Iterable[AclBinding]) -> Mapping[ResourcePattern, Entries]:
    gathered: dict[ResourcePattern, Entries] = {}
    for binding in bindings:
        known = gathered.get(binding.resource, _NOTHING)
        gathered[binding.resource] = known | {binding.entry}
    return gathered


def _told_of(parent: str, data: bytes) -> ResourcePattern | None:
    """The pattern that a notice names; an unreadable one is logged and skipped."""
    try:
        resource = decode_notice(parent, data)
    except AclNodeUnreadable as error:
        _log.warning("A notice of changed access rules is passed over: %s", error)
        return None
    return None if "/" in resource.name or not resource.name else resource
