"""Settings of topics, brokers, users and clients, written with a note that they changed.

The notes are Kafka's: sequential nodes that say which entity to read again. Only the latest are
kept. Whether a value makes sense was checked before.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from penstock.cluster import znodes
from penstock.cluster.fenced_writes import FencedWrites
from penstock.cluster.image import ImageDelta
from penstock.cluster.ledger import Ledger
from penstock.errors import InvalidUpdateVersion, UnknownTopicOrPartition
from penstock.meta.store import Create, Delete, MetaError, Op, Set

NOTES_KEPT = 100


class ConfigChange(NamedTuple):
    """All overrides an entity has from now on; an empty mapping takes them all away."""

    kind: str
    name: str
    config: Mapping[str, str]
    expected_version: int | None = None  # Refuse if somebody else wrote since; None: overwrite.


class ConfigChanges:
    def __init__(self, writes: FencedWrites, ledger: Ledger) -> None:
        self._writes = writes
        self._ledger = ledger
        self._notes: deque[str] | None = None  # None: not read yet.

    async def apply(self, changes: Sequence[ConfigChange]) -> None:
        for change in changes:
            self._refuse(change)
        ops = [op for change in changes for op in self._ops(change)]
        results = await self._writes.commit(ops)
        versions = self._ledger.config_versions
        for change in changes:
            key = (change.kind, change.name)
            versions[key] = versions.get(key, -1) + 1
        self._ledger.publish(
            ImageDelta(configs={(c.kind, c.name): dict(c.config) or None for c in changes})
        )
        await self._drop_old_notes([str(path) for path in results[1::2] if path])

    def _refuse(self, change: ConfigChange) -> None:
        if change.kind == "topics" and change.name not in self._ledger.image.topics:
            raise UnknownTopicOrPartition(f"The topic '{change.name}' does not exist.")
        version = self._ledger.config_versions.get((change.kind, change.name), -1)
        if change.expected_version not in (None, version):
            raise InvalidUpdateVersion(
                f"The settings of {change.kind} {change.name} were changed by somebody else."
            )

    def _ops(self, change: ConfigChange) -> tuple[Op, Op]:
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
            names = await self._writes.store.children(znodes.CONFIG_CHANGES)
            self._notes = deque(f"{znodes.CONFIG_CHANGES}/{name}" for name in names)
        else:
            self._notes.extend(new)
        old = [self._notes.popleft() for _ in range(len(self._notes) - NOTES_KEPT)]
        if old:
            with suppress(MetaError):  # Somebody else tidies too; nothing depends on it.
                await self._writes.commit([Delete(path) for path in old])
