"""Who runs what: the leader's decision, round by round (incremental rebalances, KIP-415). Pure.

Whoever runs something keeps it. What nobody runs goes to whoever has least, and what is too much
at one place is revoked there first: only when its owner tells that it holds it no more does another
round give it away, so that nothing ever runs twice. What a worker held that vanished waits for it a
while; a worker that comes back at the same address gets its work back, and what was given up in
good order goes on at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.connect.group.told import Held, order_of
from penstock.connect.store.status_records import TaskId

_NOTHING: Held = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWorker:
    """A member of the group, with what it holds."""

    member: str
    url: str
    held: Held = _NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderMemory:
    """What a leader knows of the round before."""

    given: Mapping[str, Held] = field(default_factory=dict)  # By URL, those that are gone, too.
    due_ms: int | None = None  # Until then work of vanished workers waits; None: there is none.


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What a worker gets in addition, and what it must give up."""

    assigned: Held = _NOTHING
    revoked: Held = _NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """The decision."""

    by_member: Mapping[str, Share]
    delay_ms: int  # When the group must come together again; 0: it need not.
    memory: LeaderMemory


def share_out(
    configured: Held,
    workers: Sequence[GroupWorker],
    memory: LeaderMemory,
    *,
    given_up: Held,
    now_ms: int,
    delay_ms_max: int,
) -> Shares:
    """One round; `given_up` is what a worker that left said it runs no more."""
    kept = _kept(configured, workers, memory)
    free = configured.difference(*kept.values())
    lost = _lost(free - given_up, workers, memory)
    due_ms = _due(lost, memory, now_ms, delay_ms_max)
    waiting = lost if due_ms is not None else {}
    added = _placed(free.difference(*waiting.values()), workers, kept, memory)
    surplus = {} if waiting else _surplus(workers, kept, added)
    shares = {
        one.member: Share(
            assigned=added[one.member],
            revoked=(one.held - kept[one.member]) | surplus.get(one.member, _NOTHING),
        )
        for one in workers
    }
    after = _remembered(workers, kept, shares, waiting)
    delay_ms = 0 if due_ms is None else max(1, due_ms - now_ms)
    return Shares(
        by_member=shares, delay_ms=delay_ms, memory=LeaderMemory(given=after, due_ms=due_ms)
    )


def _kept(
    configured: Held, workers: Sequence[GroupWorker], memory: LeaderMemory
) -> dict[str, Held]:
    """What each goes on with; of what two hold, the one to whom it was given last keeps it."""
    owners: dict[TaskId, GroupWorker] = {}
    for one in workers:
        for of in one.held & configured:
            if of not in owners or of in memory.given.get(one.url, _NOTHING):
                owners[of] = one
    return {
        one.member: frozenset(of for of, owner in owners.items() if owner is one)
        for one in workers
    }  # fmt: skip


def _lost(free: Held, workers: Sequence[GroupWorker], memory: LeaderMemory) -> dict[str, Held]:
    """What is free because a worker has vanished, by its URL."""
    here = {one.url for one in workers}
    gone = {url: given & free for url, given in memory.given.items() if url not in here}
    return {url: items for url, items in gone.items() if items}


def _due(
    lost: Mapping[str, Held], memory: LeaderMemory, now_ms: int, delay_ms_max: int
) -> int | None:
    """Until when what is lost waits; None: it does not."""
    if not lost or delay_ms_max <= 0:
        return None
    due_ms = now_ms + delay_ms_max if memory.due_ms is None else memory.due_ms
    return due_ms if now_ms < due_ms else None


def _placed(
    free: Held,
    workers: Sequence[GroupWorker],
    kept: Mapping[str, Held],
    memory: LeaderMemory,
) -> dict[str, Held]:
    """Who gets what: its own back, or whoever has least."""
    added: dict[str, set[TaskId]] = {one.member: set() for one in workers}
    if not workers:
        return {}
    owners = {of: one for one in workers for of in memory.given.get(one.url, _NOTHING) & free}
    for of, owner in owners.items():
        added[owner.member].add(of)
    counts = {
        one.member: _counted((*kept[one.member], *added[one.member])) for one in workers
    }  # fmt: skip
    for of in sorted(free - owners.keys(), key=order_of):
        least = min(counts, key=lambda member: (counts[member][_kind(of)], sum(counts[member])))
        added[least].add(of)
        counts[least][_kind(of)] += 1
    return {member: frozenset(items) for member, items in added.items()}


def _surplus(
    workers: Sequence[GroupWorker], kept: Mapping[str, Held], added: Mapping[str, Held]
) -> dict[str, Held]:
    """What must go, so that no worker has two more than another, connectors and tasks apart."""
    surplus: dict[str, Held] = {}
    for kind in (0, 1):
        mine = {one.member: [of for of in kept[one.member] if _kind(of) == kind] for one in workers}
        loads = {
            member: len(items) + sum(_kind(of) == kind for of in added[member])
            for member, items in mine.items()
        }
        for member, room in _rooms(loads).items():
            excess = max(0, loads[member] - room)
            last = (
                sorted(mine[member], key=order_of)[len(mine[member]) - excess :] if excess else []
            )
            surplus[member] = surplus.get(member, _NOTHING) | frozenset(last)
    return surplus


def _rooms(loads: Mapping[str, int]) -> dict[str, int]:
    """How much each may have; the most loaded may have the one that does not divide evenly."""
    if not loads:
        return {}
    each, rest = divmod(sum(loads.values()), len(loads))
    ranked = sorted(loads, key=lambda member: -loads[member])
    return {member: each + (rank < rest) for rank, member in enumerate(ranked)}


def _remembered(
    workers: Sequence[GroupWorker],
    kept: Mapping[str, Held],
    shares: Mapping[str, Share],
    waiting: Mapping[str, Held],
) -> dict[str, Held]:
    after = dict(waiting)
    for one in workers:
        share = shares[one.member]
        mine = (kept[one.member] | share.assigned) - share.revoked
        after[one.url] = after.get(one.url, _NOTHING) | mine
    return after


def _counted(items: Iterable[TaskId]) -> list[int]:
    counts = [0, 0]
    for of in items:
        counts[_kind(of)] += 1
    return counts


def _kind(of: TaskId) -> int:
    """0 a connector, 1 a task: they weigh differently, so each kind is shared out by itself."""
    return 0 if of.task is None else 1
