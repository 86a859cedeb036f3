"""ZooKeeper's tree in memory: what an ensemble agrees on, one transaction after the other."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from penstock.meta.store import (
    ANY_VERSION,
    PERSISTENT,
    BadVersion,
    Change,
    Check,
    Create,
    Delete,
    MultiFailed,
    NoChildrenForEphemerals,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    OpFailed,
    Result,
    Set,
    Stat,
    parent_and_name,
)

Changed = tuple[str, Change]


@dataclass(frozen=True)
class _Kept:
    """A node as it stands; replaced, never changed, so that a refused multi is easily undone."""

    data: bytes
    stat: Stat
    children: frozenset[str] = field(default=frozenset())
    next_sequence: int = 0


class Tree:
    def __init__(self) -> None:
        self.zxid = 0
        self._nodes = {"": _Kept(b"", Stat(0, 0, 0, PERSISTENT))}

    def get(self, path: str) -> Node:
        kept = self._at(path)
        return kept.data, kept.stat

    def multi_get(self, paths: Sequence[str]) -> list[Node | None]:
        found = [self._nodes.get(path.rstrip("/")) for path in paths]
        return [kept and (kept.data, kept.stat) for kept in found]

    def children(self, path: str) -> list[str]:
        return sorted(self._at(path).children)

    def exists(self, path: str) -> bool:
        return path.rstrip("/") in self._nodes

    def owned_by(self, session_id: int) -> list[str]:
        return [path for path, kept in self._nodes.items() if kept.stat.owner == session_id]

    def multi(self, ops: Sequence[Op], session_id: int) -> tuple[list[Result], list[Changed]]:
        """All or nothing; what happened, for watchers."""
        before = dict(self._nodes)
        self.zxid += 1
        changed: list[Changed] = []
        results: list[Result] = []
        for index, op in enumerate(ops):
            try:
                results.append(self._apply(op, session_id, changed))
            except OpFailed as reason:
                self._nodes = before
                raise MultiFailed(index, op, reason) from reason
        return results, changed

    def _apply(self, op: Op, session_id: int, changed: list[Changed]) -> Result:
        match op:
            case Set():
                kept = self._checked(op.path, op.version)
                stat = kept.stat._replace(version=kept.stat.version + 1, mzxid=self.zxid)
                self._nodes[op.path.rstrip("/")] = replace(kept, data=op.data, stat=stat)
                changed.append((op.path, Change.WRITTEN))
                return stat
            case Create():
                path = self._create(op, session_id)
                changed.append((path, Change.CREATED))
                return path
            case Delete():
                self._delete(op)
                changed.append((op.path, Change.DELETED))
            case Check():
                self._checked(op.path, op.version)
        return None

    def _create(self, op: Create, session_id: int) -> str:
        parent, name = parent_and_name(op.path)
        above = self._nodes.get(parent)
        if above is None:
            raise NoNode(parent)
        if above.stat.owner != PERSISTENT:
            raise NoChildrenForEphemerals(op.path)
        if op.sequential:
            name = f"{name}{above.next_sequence:010d}"
            above = replace(above, next_sequence=above.next_sequence + 1)
        path = f"{parent}/{name}"
        if path in self._nodes:
            raise NodeExists(path)
        self._nodes[parent] = replace(above, children=above.children | {name})
        owner = session_id if op.ephemeral else PERSISTENT
        self._nodes[path] = _Kept(op.data, Stat(0, self.zxid, self.zxid, owner))
        return path

    def _delete(self, op: Delete) -> None:
        if self._checked(op.path, op.version).children:
            raise NotEmpty(op.path)
        parent, name = parent_and_name(op.path)
        above = self._nodes[parent]
        self._nodes[parent] = replace(above, children=above.children - {name})
        del self._nodes[op.path]

    def _checked(self, path: str, version: int) -> _Kept:
        kept = self._at(path)
        if version not in (ANY_VERSION, kept.stat.version):
            raise BadVersion(path)
        return kept

    def _at(self, path: str) -> _Kept:
        kept = self._nodes.get(path.rstrip("/"))
        if kept is None:
            raise NoNode(path)
        return kept
