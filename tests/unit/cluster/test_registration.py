"""How a broker joins, what it may have lost, and who else may have its id."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cluster import znodes
from penstock.cluster.registration import (
    BrokerRegistration,
    Newcomer,
    judge_previous_shutdown,
    load_fence,
    prepare_tree,
    register,
    withdraw,
)
from penstock.cluster.znodes import BrokerNode, FenceNode, FenceState, PreviousShutdown
from penstock.errors import DuplicateBrokerRegistration
from penstock.meta.store import MetaStore, Op, OutcomeUnknown, Result, Set

CLEAN, CRASH, LOSSY = PreviousShutdown


def fence(
    *,
    prev: PreviousShutdown = CLEAN,
    state: FenceState = FenceState.ACTIVE,
    epoch: int = 7,
) -> FenceNode:
    return FenceNode(
        state=state,
        incarnation="i",
        directory_ids=("disk-0",),
        prev_shutdown=prev,
        epoch=epoch,
    )


# What the disk may have missed


@pytest.mark.parametrize(
    ("clean_epoch", "last_boot_id", "boot_id", "known", "verdict"),
    [
        (None, None, "b", None, CLEAN),  # A new broker: nothing is expected of its disk.
        (7, "b", "b", fence(), CLEAN),
        (7, "a", "b", fence(), CLEAN),  # Stopped in order; the machine may do what it likes.
        (-1, "a", "b", fence(), CLEAN),  # A marker as Kafka wrote it before epochs.
        (6, "a", "b", fence(), LOSSY),  # The marker of an earlier life: an old copy of the disk.
        (6, "b", "b", fence(), CRASH),
        (None, "b", "b", fence(), CRASH),  # kill -9: the page cache survived.
        (None, "a", "b", fence(), LOSSY),  # Power cut.
        (None, None, "b", fence(), LOSSY),  # An empty disk.
        (None, None, None, fence(), LOSSY),  # A system that does not say.
        (7, "b", "b", fence(prev=LOSSY, state=FenceState.STARTING), LOSSY),
        (7, "b", "b", fence(prev=LOSSY, state=FenceState.FENCED), LOSSY),
    ],
)
def test_what_a_start_finds_tells_what_may_be_lost(
    clean_epoch: int | None,
    last_boot_id: str | None,
    boot_id: str | None,
    known: FenceNode | None,
    verdict: PreviousShutdown,
) -> None:
    judged = judge_previous_shutdown(
        clean_epoch=clean_epoch, last_boot_id=last_boot_id, boot_id=boot_id, fence=known
    )
    assert judged is verdict


@given(st.none() | st.integers(-1, 9), st.booleans(), st.sampled_from(FenceState))
def test_a_loss_is_remembered_until_the_controller_acted(
    clean_epoch: int | None, same_boot: bool, state: FenceState
) -> None:
    judged = judge_previous_shutdown(
        clean_epoch=clean_epoch,
        last_boot_id="b" if same_boot else "a",
        boot_id="b",
        fence=fence(prev=LOSSY, state=state),
    )
    assert judged is LOSSY


# The tree


async def test_the_first_broker_prepares_the_tree_and_names_the_cluster(cluster: Any) -> None:
    store = await cluster.session(0)
    assert await prepare_tree(store, cluster_id="first") == "first"
    assert await prepare_tree(store, cluster_id="second") == "first"
    assert "config" in await store.children("/")
    assert await store.children("/brokers") == ["ids", "seqid", "topics"]


async def test_brokers_that_prepare_the_tree_together_agree(cluster: Any) -> None:
    stores = [await cluster.session(n) for n in range(4)]
    names = await asyncio.gather(
        *(prepare_tree(store, cluster_id=f"c{n}") for n, store in enumerate(stores))
    )
    assert len(set(names)) == 1


# Registering


async def test_a_registration_is_one_step_with_the_broker_epoch(cluster: Any) -> None:
    registration = await cluster.register(3)
    store = await cluster.session(3)
    node, fence_node = await store.multi_get([znodes.broker_path(3), znodes.fence_path(3)])
    assert node[1].czxid == fence_node[1].czxid == registration.epoch
    assert node[1].owner == store.session_id
    assert BrokerNode.decode("/x", node[0]).endpoints[0].port == 9095
    kept = FenceNode.decode("/x", fence_node[0])
    assert (kept.state, kept.prev_shutdown) == (FenceState.STARTING, CLEAN)
    assert fence_node[1].version == registration.fence_version
    assert await load_fence(store, 3) == kept


async def test_every_start_gets_a_higher_epoch_and_fence_version(cluster: Any) -> None:
    seen: list[BrokerRegistration] = []
    for _ in range(3):
        seen.append(await cluster.register(0))
        await cluster.stop(0)
    assert [r.epoch for r in seen] == sorted({r.epoch for r in seen})
    assert [r.fence_version for r in seen] == [0, 1, 2]


async def test_a_broker_that_lost_records_stays_so_until_it_was_active(cluster: Any) -> None:
    await cluster.register(0)
    await cluster.stop(0)
    await cluster.register(0, prev_shutdown=LOSSY)
    await cluster.stop(0)
    # Down again before any controller saw it, now by a mere crash.
    await cluster.register(0, prev_shutdown=CRASH)
    kept = await load_fence(await cluster.session(0), 0)
    assert kept is not None and kept.prev_shutdown is LOSSY
    await cluster.elect(0)
    kept = await load_fence(await cluster.session(0), 0)
    assert kept is not None and kept.prev_shutdown is CLEAN
    assert kept.state is FenceState.ACTIVE


async def test_the_epoch_that_was_active_is_kept_for_the_next_start(cluster: Any) -> None:
    registration = await cluster.register(0)
    await cluster.elect(0)
    await cluster.stop(0)
    await cluster.register(0)
    kept = await load_fence(await cluster.session(0), 0)
    assert kept is not None and kept.epoch == registration.epoch


async def test_a_broker_withdraws_its_own_registration(cluster: Any) -> None:
    registration = await cluster.register(0)
    store = await cluster.session(0)
    await withdraw(store, registration)
    await withdraw(store, registration)
    assert await store.children(znodes.BROKER_IDS) == []
    successor = await cluster.register(0)
    await withdraw(store, registration)
    assert await store.children(znodes.BROKER_IDS) == ["0"]
    assert successor.epoch > registration.epoch


# One id, two brokers


async def try_register(store: MetaStore, who: Newcomer, wait_s: float = 0) -> BrokerRegistration:
    return await register(store, who, now_ms=1, wait_s=wait_s)


async def test_an_id_in_use_elsewhere_is_refused_with_a_sentence(cluster: Any) -> None:
    await cluster.register(0)
    other = await cluster.session(1)
    with pytest.raises(DuplicateBrokerRegistration) as caught:
        await try_register(other, cluster.newcomer(0, directory_id="another-disk"))
    assert str(caught.value) == (
        "Another broker is registered with broker.id 0 at /brokers/ids/0. "
        "Stop it, or give this broker another broker.id."
    )


async def test_a_broker_waits_for_the_session_of_its_predecessor_to_end(cluster: Any) -> None:
    first = await cluster.register(0)
    other = await cluster.session(1)
    waiting = asyncio.create_task(
        try_register(other, cluster.newcomer(0, directory_id="another-disk"), wait_s=20)
    )
    for _ in range(50):  # Long enough for it to be waiting.
        await other.get("/")
    assert not waiting.done()
    await cluster.stop(0)
    registration = await waiting
    assert registration.epoch > first.epoch


async def test_who_holds_the_disk_takes_over_at_once(cluster: Any) -> None:
    """The lock of the log directory is ours, so the process that had it is dead."""
    first = await cluster.register(0)
    other = await cluster.session(1)
    again = await try_register(other, cluster.newcomer(0, incarnation="second"))
    assert again.epoch > first.epoch
    _, stat = await other.get(znodes.broker_path(0))
    assert stat.owner == other.session_id


class UnknownOutcomes:
    """A link that breaks at a multi, before it arrives or before its answer does."""

    def __init__(self, store: MetaStore, *, arrives: bool, failures: int = 1) -> None:
        self._store = store
        self._arrives = arrives
        self._failures = failures

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def multi(self, ops: list[Op]) -> list[Result]:
        if self._failures == 0:
            return await self._store.multi(ops)
        self._failures -= 1
        if self._arrives:
            await self._store.multi(ops)
        raise OutcomeUnknown("the link broke")


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_registration_without_an_answer_is_found_or_repeated(
    cluster: Any, arrives: bool
) -> None:
    store = await cluster.session(0)
    await prepare_tree(store, cluster_id="c")
    broken = UnknownOutcomes(store, arrives=arrives)
    registration = await try_register(broken, cluster.newcomer(0))  # type: ignore[arg-type]
    _, stat = await store.get(znodes.broker_path(0))
    assert stat.czxid == registration.epoch
    _, fence_stat = await store.get(znodes.fence_path(0))
    assert fence_stat.version == registration.fence_version


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_tree_prepared_without_an_answer_is_there(cluster: Any, arrives: bool) -> None:
    store = await cluster.session(0)
    broken = UnknownOutcomes(store, arrives=arrives)
    assert await prepare_tree(broken, cluster_id="c") == "c"  # type: ignore[arg-type]


async def test_a_fence_written_meanwhile_is_read_again(cluster: Any) -> None:
    """Between our look at the fence and our write, the controller closes it."""
    first = await cluster.register(0)
    store = await cluster.session(0)
    await withdraw(store, first)

    class Meddled(UnknownOutcomes):
        async def multi(self, ops: list[Op]) -> list[Result]:
            if self._failures:
                self._failures -= 1
                closed = fence(state=FenceState.FENCED, prev=LOSSY).encode()
                await self._store.multi([Set(znodes.fence_path(0), closed)])
            return await self._store.multi(ops)

    meddled = Meddled(store, arrives=True)
    registration = await try_register(meddled, cluster.newcomer(0))  # type: ignore[arg-type]
    assert registration.fence_version == first.fence_version + 2
    kept = await load_fence(store, 0)
    assert kept is not None and kept.prev_shutdown is LOSSY
