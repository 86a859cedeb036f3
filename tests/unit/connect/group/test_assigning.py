"""Who gets what, in rounds: everything once, evenly, with few moves."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.group.assigning import GroupWorker, LeaderMemory, Shares, share_out
from penstock.connect.group.told import Held
from penstock.connect.store.status_records import TaskId

ROUNDS_MAX = 4


def worker(name: str, *held: TaskId) -> GroupWorker:
    return GroupWorker(member=name, url=f"http://{name}/", held=frozenset(held))


def tasks(count: int, connector: str = "a") -> list[TaskId]:
    return [TaskId(connector, number) for number in range(count)]


def round_of(
    configured: Held,
    workers: list[GroupWorker],
    memory: LeaderMemory | None = None,
    *,
    given_up: Held = frozenset(),
    now_ms: int = 0,
    delay_ms_max: int = 0,
) -> tuple[list[GroupWorker], Shares]:
    """The workers after they have done what they were told, and the decision."""
    shares = share_out(
        configured,
        workers,
        memory or LeaderMemory(),
        given_up=given_up,
        now_ms=now_ms,
        delay_ms_max=delay_ms_max,
    )
    after = [
        replace(one, held=(one.held - share.revoked) | share.assigned)
        for one in workers
        for share in [shares.by_member[one.member]]
    ]
    return after, shares


def settled(
    configured: Held, workers: list[GroupWorker], memory: LeaderMemory | None = None
) -> tuple[list[GroupWorker], LeaderMemory]:
    """Rounds as long as something is revoked, each checked to start nothing that still runs."""
    for _ in range(ROUNDS_MAX):
        before = workers
        workers, shares = round_of(configured, before, memory)
        memory = shares.memory
        held_before = frozenset[TaskId]().union(*(one.held for one in before))
        for share in shares.by_member.values():
            assert not share.assigned & held_before  # It ends there before it starts here.
        if not any(share.revoked for share in shares.by_member.values()):
            return workers, shares.memory
    raise AssertionError("it does not come to rest")


def are_even(workers: list[GroupWorker]) -> bool:
    for is_task in (False, True):
        counts = [sum((of.task is not None) == is_task for of in one.held) for one in workers]
        if max(counts) - min(counts) > 1:
            return False
    return True


items = st.frozensets(
    st.builds(TaskId, st.sampled_from("abcd"), st.none() | st.integers(0, 6)), max_size=24
)
crowds = st.lists(items, min_size=1, max_size=5).map(
    lambda held: [worker(f"w{number}", *mine) for number, mine in enumerate(held)]
)


@given(configured=items, workers=crowds)
def test_whatever_they_hold_in_the_end_everything_runs_once_and_evenly(
    configured: Held, workers: list[GroupWorker]
) -> None:
    after, _ = settled(configured, workers)
    held = [of for one in after for of in one.held]
    assert sorted(held, key=str) == sorted(configured, key=str)
    assert are_even(after)


@given(configured=items, workers=st.integers(1, 4))
def test_a_group_at_rest_stays_at_rest(configured: Held, workers: int) -> None:
    first, memory = settled(configured, [worker(f"w{n}") for n in range(workers)])
    again, shares = round_of(configured, first, memory)
    assert again == first
    assert not any(share.assigned or share.revoked for share in shares.by_member.values())


@given(configured=items, workers=st.integers(1, 4))
def test_a_newcomer_gets_its_share_and_nobody_else_is_disturbed(
    configured: Held, workers: int
) -> None:
    first, memory = settled(configured, [worker(f"w{n}") for n in range(workers)])
    after, _ = settled(configured, [*first, worker("new")], memory)
    for before, now in zip(first, after[:-1], strict=True):
        assert now.held <= before.held
    assert are_even(after)


@given(configured=items, workers=st.integers(2, 4))
def test_what_a_dead_worker_held_waits_and_then_goes_to_the_others(
    configured: Held, workers: int
) -> None:
    first, memory = settled(configured, [worker(f"w{n}") for n in range(workers)])
    dead, left = first[0], first[1:]
    waiting, shares = round_of(configured, left, memory, now_ms=5, delay_ms_max=100)
    assert waiting == left
    assert shares.delay_ms == (100 if dead.held else 0)
    still, shares = round_of(configured, left, shares.memory, now_ms=60, delay_ms_max=100)
    assert still == left
    assert shares.delay_ms == (45 if dead.held else 0)
    after, shares = round_of(configured, left, shares.memory, now_ms=105, delay_ms_max=100)
    assert frozenset[TaskId]().union(*(one.held for one in after)) == configured
    assert shares.delay_ms == 0


def test_a_worker_that_comes_back_gets_its_own_without_waiting() -> None:
    configured = frozenset(tasks(4))
    first, memory = settled(configured, [worker("w0"), worker("w1")])
    _, shares = round_of(configured, first[1:], memory, delay_ms_max=100)
    back = replace(first[0], member="w0-again", held=frozenset())
    after, shares = round_of(configured, [back, first[1]], shares.memory, delay_ms_max=100)
    assert [one.held for one in after] == [one.held for one in first]
    assert shares.delay_ms == 0


def test_what_was_given_up_in_good_order_goes_on_at_once() -> None:
    configured = frozenset(tasks(4))
    first, memory = settled(configured, [worker("w0"), worker("w1")])
    after, shares = round_of(
        configured, first[1:], memory, given_up=first[0].held, delay_ms_max=100
    )
    assert after[0].held == configured
    assert shares.delay_ms == 0


def test_what_two_workers_hold_stays_with_the_one_it_was_given_to() -> None:
    (task,) = tasks(1)
    memory = LeaderMemory(given={"http://w1/": frozenset({task})})
    _, shares = round_of(frozenset({task}), [worker("w0", task), worker("w1", task)], memory)
    assert shares.by_member["w0"].revoked == {task}
    assert not shares.by_member["w1"].revoked


def test_what_was_deleted_is_revoked() -> None:
    _, shares = round_of(frozenset(), [worker("w0", *tasks(2))])
    assert shares.by_member["w0"].revoked == set(tasks(2))


def test_nothing_is_moved_while_a_vanished_worker_is_waited_for() -> None:
    configured = frozenset(tasks(6))
    first, memory = settled(configured, [worker("w0"), worker("w1")])
    here = [first[1], worker("new")]
    _, shares = round_of(configured, here, memory, delay_ms_max=100)
    assert not any(share.revoked for share in shares.by_member.values())
