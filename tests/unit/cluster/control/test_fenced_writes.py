"""A controller's pen: it writes for one epoch only, and finds out what became of a lost answer."""

from typing import Any

import pytest

from penstock.cluster import znodes
from penstock.cluster.control.fenced_writes import FencedWrites
from penstock.cluster.registration import prepare_tree
from penstock.errors import NotController
from penstock.meta.store import (
    BadVersion,
    Create,
    Delete,
    MetaStore,
    MultiFailed,
    NodeExists,
    Op,
    OutcomeUnknown,
    Result,
    Set,
    Stat,
    StoreUnavailable,
)


class LostAnswer:
    """The next multi arrives or not; its answer does not in either case."""

    def __init__(self, store: MetaStore, *, arrives: bool, then: list[Op] | None = None) -> None:
        self._store = store
        self._arrives = arrives
        self._then = then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def multi(self, ops: list[Op]) -> list[Result]:
        if self._arrives:
            await self._store.multi(ops)
        if self._then:
            await self._store.multi(self._then)
        raise OutcomeUnknown("the link broke")


async def prepared(cluster: Any) -> MetaStore:
    store: MetaStore = await cluster.session(0)
    await prepare_tree(store, cluster_id="c")
    await store.multi([Create("/a", b"old"), Create("/gone")])
    return store


OPS: list[Op] = [Set("/a", b"new", 0), Create("/b", b"made"), Delete("/gone")]


async def test_the_controller_of_the_epoch_writes(cluster: Any) -> None:
    store = await prepared(cluster)
    stat, path, nothing = await FencedWrites(store, 0).commit(OPS)
    assert isinstance(stat, Stat) and stat.version == 1
    assert (path, nothing) == ("/b", None)


async def test_a_controller_of_the_past_writes_nothing(cluster: Any) -> None:
    store = await prepared(cluster)
    old = FencedWrites(store, 0)
    await store.multi([Set(znodes.CONTROLLER_EPOCH, b"1", 0)])
    with pytest.raises(NotController):
        await old.commit(OPS)
    assert old.is_over
    assert (await store.get("/a"))[0] == b"old"


async def test_a_refusal_names_the_operation_as_the_caller_counts(cluster: Any) -> None:
    store = await prepared(cluster)
    writes = FencedWrites(store, 0)
    with pytest.raises(MultiFailed) as caught:
        await writes.commit([Set("/a", b"", 0), Create("/gone")])
    assert caught.value.index == 1
    assert isinstance(caught.value.reason, NodeExists)
    with pytest.raises(MultiFailed) as caught:
        await writes.commit([Set("/a", b"", 5)])
    assert (caught.value.index, type(caught.value.reason)) == (0, BadVersion)
    assert not writes.is_over


async def test_whoever_loses_its_session_is_not_the_controller_any_more(cluster: Any) -> None:
    store = await prepared(cluster)
    writes = FencedWrites(store, 0)
    await store.close()
    with pytest.raises(NotController):
        await writes.commit(OPS)
    assert writes.is_over


async def test_a_write_whose_answer_was_lost_is_adopted_if_it_happened(cluster: Any) -> None:
    store = await prepared(cluster)
    writes = FencedWrites(LostAnswer(store, arrives=True), 0)  # type: ignore[arg-type]
    note = Create(znodes.CONFIG_CHANGE_PREFIX, b"", sequential=True)
    stat, path, nothing, _ = await writes.commit([*OPS, note])
    assert stat == (await store.get("/a"))[1]
    assert (path, nothing) == ("/b", None)
    assert len(await store.children(znodes.CONFIG_CHANGES)) == 1


async def test_a_write_that_was_lost_is_certainly_not_done(cluster: Any) -> None:
    store = await prepared(cluster)
    writes = FencedWrites(LostAnswer(store, arrives=False), 0)  # type: ignore[arg-type]
    with pytest.raises(StoreUnavailable):
        await writes.commit(OPS)
    assert not writes.is_over


@pytest.mark.parametrize("op", OPS)
async def test_each_kind_of_write_is_recognised_as_missing(cluster: Any, op: Op) -> None:
    store = await prepared(cluster)
    writes = FencedWrites(LostAnswer(store, arrives=False), 0)  # type: ignore[arg-type]
    with pytest.raises(StoreUnavailable):
        await writes.commit([op])


async def test_the_same_bytes_at_another_version_are_somebody_elses(cluster: Any) -> None:
    store = await prepared(cluster)
    meddling = LostAnswer(store, arrives=False, then=[Set("/a", b"x"), Set("/a", b"new")])
    with pytest.raises(StoreUnavailable):
        await FencedWrites(meddling, 0).commit([Set("/a", b"new", 0)])  # type: ignore[arg-type]


async def test_a_new_controller_in_between_ends_the_old_one(cluster: Any) -> None:
    store = await prepared(cluster)
    taken_over = LostAnswer(store, arrives=True, then=[Set(znodes.CONTROLLER_EPOCH, b"1")])
    writes = FencedWrites(taken_over, 0)  # type: ignore[arg-type]
    with pytest.raises(NotController):
        await writes.commit(OPS)
    assert writes.is_over
