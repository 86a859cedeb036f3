"""Settings of topics, brokers, users and clients, written with a note that they changed.

The notes are Kafka's: sequential nodes that say which entity to read again. Only the latest are
kept. Whether a value makes sense was checked before.
"""

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from penstock.cluster import znodes
from penstock.cluster.control.fenced_writes import FencedWrites
from penstock.cluster.control.ledger import ImageLedger
from penstock.cluster.image.image import ConfigKey, ImageDelta
from penstock.cluster.image.load import read_nodes
from penstock.cluster.znodes import NodeUnreadable
from penstock.errors import InvalidUpdateVersion, UnknownTopicOrPartition
from penstock.meta.store import (
    Create,
    Delete,
    MetaError,
    MultiFailed,
    NodeExists,
    Op,
    Result,
    Set,
    check_path,
)

NOTES_KEPT = 100

_log = logging.getLogger("penstock.cluster.controller")


class EntityOverrides(NamedTuple):
    """All overrides an entity has from now on; an empty mapping takes them all away."""

    kind: str
    name: str
    config: Mapping[str, str]
    expected_version: int | None = None  # Refuse if somebody else wrote since; None: overwrite.


class ConfigChanges:
    def __init__(self, writes: FencedWrites, ledger: ImageLedger) -> None:
        self._writes = writes
        self._store = writes.store
        self._ledger = ledger
        self._notes: deque[str] | None = None  # None: not read yet.
        self._heard: frozenset[str] = frozenset()  # Names of notes that were acted upon.

    async def apply(self, changes: Sequence[EntityOverrides]) -> None:
        for change in changes:
            await self._make_room(change)
        try:
            results = await self._commit(changes)
        except MultiFailed:
            # Somebody wrote to the store without the controller.
            await self.look_again([(change.kind, change.name) for change in changes])
            results = await self._commit(changes)
        versions = self._ledger.config_versions
        for change in changes:
            key = (change.kind, change.name)
            versions[key] = versions.get(key, -1) + 1
        self._ledger.publish(
            ImageDelta(configs={(c.kind, c.name): dict(c.config) or None for c in changes})
        )
        await self._drop_old_notes([str(path) for path in results[1::2] if path])

    async def _make_room(self, change: EntityOverrides) -> None:
        """Create the user's own node first: nodes of its clients lie below it."""
        user = znodes.user_of(change.kind, change.name)
        versions = self._ledger.config_versions
        if user is None or (change.kind, change.name) in versions:
            return
        nothing = znodes.encode_config({})
        if await self._create_missing(znodes.config_path("users", user), nothing):
            versions["users", user] = 0
        await self._create_missing(znodes.user_clients_path(user), b"")

    async def _create_missing(self, path: str, data: bytes) -> bool:
        try:
            await self._writes.commit([Create(path, data)])
        except MultiFailed as failure:
            if not isinstance(failure.reason, NodeExists):
                raise
            return False
        return True

    async def _commit(self, changes: Sequence[EntityOverrides]) -> list[Result]:
        for change in changes:
            self._refuse(change)
        return await self._writes.commit([op for change in changes for op in self._ops(change)])

    async def look_again(self, keys: Sequence[ConfigKey]) -> set[ConfigKey]:
        """Read these settings, and publish those that are not as known; returns which are not."""
        paths = [znodes.config_path(*key) for key in keys]
        versions = self._ledger.config_versions
        found: dict[ConfigKey, Mapping[str, str] | None] = {}
        for key, path, node in zip(keys, paths, await read_nodes(self._store, paths), strict=True):
            if (node[1].version if node else None) == versions.get(key):
                continue
            versions.pop(key, None)
            found[key] = None
            if node is not None:
                versions[key] = node[1].version
                found[key] = znodes.decode_config(path, node[0]) or None
        self._ledger.publish(ImageDelta(configs=found))
        return set(found)

    async def hear(self) -> set[ConfigKey]:
        """Act on notes that somebody has left; returns the entities whose settings are others."""
        names = await self._store.children(znodes.CONFIG_CHANGES)
        paths = [f"{znodes.CONFIG_CHANGES}/{name}" for name in names if name not in self._heard]
        keys: list[ConfigKey] = []
        for path, node in zip(paths, await read_nodes(self._store, paths), strict=True):
            if node is not None:
                keys += _decode_note(path, node[0])
        changed = await self.look_again(list(dict.fromkeys(keys)))
        self._heard = frozenset(names)
        return changed

    def _refuse(self, change: EntityOverrides) -> None:
        if change.kind == "topics" and change.name not in self._ledger.image.topics:
            raise UnknownTopicOrPartition(f"The topic '{change.name}' does not exist.")
        version = self._ledger.config_versions.get((change.kind, change.name), -1)
        if change.expected_version not in (None, version):
            raise InvalidUpdateVersion(
                f"The settings of {change.kind} {change.name} were changed by somebody else."
            )

    def _ops(self, change: EntityOverrides) -> tuple[Op, Op]:
        path, data = (
            znodes.config_path(change.kind, change.name),
            znodes.encode_config(change.config),
        )
        version = self._ledger.config_versions.get((change.kind, change.name))
        note = znodes.encode_config_change(change.kind, change.name)
        return (
            Create(path, data) if version is None else Set(path, data, version),
            Create(znodes.CONFIG_CHANGE_PREFIX, note, sequential=True),
        )

    async def _drop_old_notes(self, new: Sequence[str]) -> None:
        if self._notes is None:
            names = await self._store.children(znodes.CONFIG_CHANGES)
            self._notes = deque(f"{znodes.CONFIG_CHANGES}/{name}" for name in names)
        else:
            self._notes.extend(new)
        old = [self._notes.popleft() for _ in range(len(self._notes) - NOTES_KEPT)]
        if old:
            with suppress(MetaError):  # Another process removed them as well, which is fine.
                await self._writes.commit([Delete(path) for path in old])


def _decode_note(path: str, data: bytes) -> list[ConfigKey]:
    """The entity that a note names; an unreadable note is logged and skipped."""
    try:
        key = znodes.decode_config_change(path, data)
        check_path(znodes.config_path(*key))
    except (NodeUnreadable, ValueError) as error:
        _log.warning("A note of changed settings is passed over: %s", error)
        return []
    return [key]
