"""Thousands of random operations on a store and on a dict of the same rules: never a difference."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pytest

from penstock.meta.store import (
    ANY_VERSION,
    PERSISTENT,
    BadVersion,
    Change,
    Check,
    Create,
    Delete,
    MetaStore,
    MultiFailed,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    OpFailed,
    Result,
    Set,
    WatchKind,
    parent_and_name,
)

OPERATIONS = 10_000
NAMES = ("a", "b", "c")


class Stores(Protocol):
    async def open(self) -> MetaStore: ...


@dataclass
class ModelNode:
    data: bytes
    owner: int
    version: int = 0
    last_sequence: int = -1


@dataclass
class Model:
    """The rules again, as plainly as they can be written."""

    nodes: dict[str, ModelNode] = field(default_factory=lambda: {"": ModelNode(b"", PERSISTENT)})

    def children(self, path: str) -> list[str]:
        return sorted(
            name
            for parent, name in map(parent_and_name, self.nodes)
            if name and parent == path.rstrip("/")
        )

    def multi(
        self, ops: list[Op], session_id: int, results: Sequence[Result] = ()
    ) -> list[tuple[str, Change]] | MultiFailed:
        """`results` tell which sequence numbers a store chose, for that is its own business."""
        before = {path: ModelNode(**vars(node)) for path, node in self.nodes.items()}
        changes: list[tuple[str, Change]] = []
        for index, op in enumerate(ops):
            try:
                changes += self.apply(op, session_id, results[index] if results else None)
            except OpFailed as reason:
                self.nodes = before
                return MultiFailed(index, op, reason)
        return changes

    def apply(self, op: Op, session_id: int, result: Result) -> list[tuple[str, Change]]:
        if isinstance(op, Create):
            return [(self.create(op, session_id, result), Change.CREATED)]
        node = self.nodes.get(op.path)
        if node is None:
            raise NoNode(op.path)
        if op.version not in (ANY_VERSION, node.version):
            raise BadVersion(op.path)
        if isinstance(op, Set):
            node.data, node.version = op.data, node.version + 1
            return [(op.path, Change.WRITTEN)]
        if isinstance(op, Delete):
            if self.children(op.path):
                raise NotEmpty(op.path)
            del self.nodes[op.path]
            return [(op.path, Change.DELETED)]
        return []

    def create(self, op: Create, session_id: int, result: Result) -> str:
        parent_path, _ = parent_and_name(op.path)
        parent = self.nodes.get(parent_path)
        if parent is None:
            raise NoNode(op.path)
        if parent.owner != PERSISTENT:
            raise NoChildrenForEphemerals(op.path)
        path = op.path
        if op.sequential:
            number = int(str(result)[-10:]) if result else parent.last_sequence + 1
            assert number > parent.last_sequence
            parent.last_sequence = number
            path += f"{number:010d}"
        if path in self.nodes:
            raise NodeExists(path)
        assert result in (None, path)
        self.nodes[path] = ModelNode(op.data, session_id if op.ephemeral else PERSISTENT)
        return path

    def end_session(self, session_id: int) -> list[tuple[str, Change]]:
        ended = [path for path, node in self.nodes.items() if node.owner == session_id]
        for path in ended:
            del self.nodes[path]
        return [(path, Change.DELETED) for path in ended]


def random_path(rng: random.Random) -> str:
    return "".join(f"/{rng.choice(NAMES)}" for _ in range(rng.choice((1, 1, 2, 2, 3))))


def random_op(rng: random.Random, model: Model) -> Op:
    known = [path for path in model.nodes if path]
    path = rng.choice(known) if known and rng.random() < 0.6 else random_path(rng)
    node = model.nodes.get(path)
    current = node.version if node else 0
    version = rng.choice((ANY_VERSION, current, current, current + 1))
    data = b"%d" % rng.randrange(1000)
    kind = rng.random()
    if kind < 0.40:
        is_sequential = rng.random() < 0.1
        return Create(random_path(rng), data, rng.random() < 0.2, is_sequential)
    if kind < 0.65:
        return Set(path, data, version)
    if kind < 0.85:
        return Delete(path, version)
    return Check(path, max(0, version))


def fired(watched: str, kind: WatchKind, changes: list[tuple[str, Change]]) -> bool:
    for path, change in changes:
        parent = parent_and_name(path)[0] or "/"
        if kind is WatchKind.DATA and path == watched:
            return True
        comes_or_goes = change is not Change.WRITTEN
        if kind is WatchKind.CHILDREN and comes_or_goes and watched in (path, parent):
            return change is Change.DELETED or watched == parent
    return False


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_store_agrees_with_a_dict(stores: Stores, seed: int) -> None:
    rng = random.Random(seed)
    model = Model()
    sessions = [await stores.open(), await stores.open()]
    done = 0
    while done < OPERATIONS // 2:
        session = rng.choice(sessions)
        ops = [random_op(rng, model) for _ in range(rng.choice((1, 1, 1, 2, 4)))]
        done += len(ops)
        watched, kind = random_path(rng), rng.choice(list(WatchKind))
        try:
            watch = await session.watch_once(watched, kind)
        except NoNode:
            assert watched not in model.nodes and kind is WatchKind.CHILDREN
            watch = None
        try:
            results = await session.multi(ops)
        except MultiFailed as failure:
            expected = model.multi(ops, session.session_id)
            assert isinstance(expected, MultiFailed), failure
            assert failure.index == expected.index
            assert type(failure.reason) is type(expected.reason)
            changes = []
        else:
            expected = model.multi(ops, session.session_id, results)
            assert not isinstance(expected, MultiFailed), expected
            assert len(results) == len(ops)
            changes = expected
        if watch is not None:
            assert watch.done() == fired(watched, kind, changes), (watched, kind, changes)
            watch.cancel()
        if rng.random() < 0.01:
            index = rng.randrange(2)
            model.end_session(sessions[index].session_id)
            await sessions[index].close()
            sessions[index] = await stores.open()
        if rng.random() < 0.1:
            await compare(sessions[0], model, rng)
    await compare(sessions[1], model, rng)


async def compare(store: MetaStore, model: Model, rng: random.Random) -> None:
    paths = [path for path in model.nodes if path] + [random_path(rng)]
    for path, node in zip(paths, await store.multi_get(paths), strict=True):
        expected = model.nodes.get(path)
        if expected is None:
            assert node is None
            continue
        assert node is not None, path
        data, stat = node
        assert (data, stat.version, stat.owner) == (
            expected.data,
            expected.version,
            expected.owner,
        )
        assert stat.czxid <= stat.mzxid
    parent = rng.choice(paths[:-1] or ["/"])
    if parent in model.nodes:
        assert await store.children(parent) == model.children(parent)
    assert await store.children("/") == model.children("/")
