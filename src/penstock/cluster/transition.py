"""How a partition's state may change: one pure function, used by controller and leader alike.

Two rules carry the safety of acknowledged records, and every branch below keeps them:

R1  Within one leader epoch only the leader adds to the in-sync set, for only it knows who has all.
R2  The controller adds to the in-sync set only by an election, which raises the leader epoch.

The eligible leader replicas (ELR, KIP-966) are brokers that left the in-sync set while it was
below `min_isr`. The high watermark stands still from then on, so they hold every committed record
and may be elected when the in-sync set is empty. A broker that lost data leaves the ELR for the
last known ones (LKE), which are chosen only when nobody better is left, and never silently.

The function proposes a state; making it true is a compare-and-set on `partition_epoch`, which is
the store's to count and therefore left as it is here.
"""

from collections.abc import Iterable
from typing import NamedTuple

from penstock.cluster.image.image import NO_LEADER, PartitionState

RECOVERED = 0
RECOVERING = 1


class Removed(NamedTuple):
    """The controller: this broker is fenced, or a new incarnation of it has registered."""

    broker: int
    lossy: bool = False  # It may have lost records it had.


class Elected(NamedTuple):
    """The controller: give the partition a leader if it has none and one may be had."""


class Preferred(NamedTuple):
    """The controller: hand leadership to the first replica, if that is safe."""


class UncleanlyElected(NamedTuple):
    """The controller, where the topic allows it: this broker leads, whatever is missing."""

    leader: int


class Shrunk(NamedTuple):
    """The leader: these followers fell behind."""

    leader: int
    removed: frozenset[int]


class Expanded(NamedTuple):
    """The leader: these followers have caught up in this leader epoch."""

    leader: int
    added: frozenset[int]


class MinIsrChanged(NamedTuple):
    """The controller: min.insync.replicas of the topic is another now."""

    min_isr: int


class Reassigned(NamedTuple):
    """The controller: the replicas are those of the facts now, maybe others than before.

    Written in one step with the assignment. This begins a reassignment (more replicas), finishes
    one (those that go leave), or takes it back (those that came leave).
    """

    min_isr: int  # What min.insync.replicas comes to with so many replicas.


Event = (
    Removed
    | Elected
    | Preferred
    | UncleanlyElected
    | Shrunk
    | Expanded
    | MinIsrChanged
    | Reassigned
)


class TransitionFacts(NamedTuple):
    """What the decision rests on besides the state itself."""

    replicas: tuple[int, ...]  # In order of preference; when reassigned: those from now on.
    active: frozenset[int]  # Brokers that are registered, not fenced, starting or leaving.


def transition(state: PartitionState, event: Event, facts: TransitionFacts) -> PartitionState:
    """The state after the event; the same object when the event changes nothing."""
    match event:
        case Removed(broker, lossy):
            return _removed(state, broker, lossy, facts)
        case Elected():
            return _elected(state, facts) if state.leader == NO_LEADER else state
        case Preferred():
            return _preferred(state, facts)
        case UncleanlyElected(leader):
            return _uncleanly_elected(state, leader, facts)
        case Shrunk(leader, removed):
            return _shrunk(state, leader, removed)
        case Expanded(leader, added):
            return _expanded(state, leader, added, facts)
        case MinIsrChanged(min_isr):
            return _min_isr_changed(state, min_isr, facts)
        case Reassigned(min_isr):
            return _reassigned(state, min_isr, facts)


def initial_state(
    replicas: tuple[int, ...], *, active: frozenset[int], min_isr: int, controller_epoch: int
) -> PartitionState:
    """A partition without records: every live replica has all of them, whoever is away has none."""
    isr = tuple(replica for replica in replicas if replica in active)
    return PartitionState(
        leader=isr[0] if isr else NO_LEADER,
        leader_epoch=0,
        isr=isr or replicas[:1],  # Nobody is there: let the first begin when it comes.
        min_isr=min(min_isr, len(replicas)),
        controller_epoch=controller_epoch,
    )


def _removed(
    state: PartitionState, broker: int, lossy: bool, facts: TransitionFacts
) -> PartitionState:
    others = TransitionFacts(replicas=facts.replicas, active=facts.active - {broker})
    after = _without(state, frozenset((broker,)))
    if lossy and broker in after.elr:
        after = after._replace(elr=_minus(after.elr, broker), lke=_plus(after.lke, broker))
    if state.leader == broker:
        # Whoever is elected, or nobody: the old leader's epoch is over.
        vacant = after._replace(leader=NO_LEADER, leader_epoch=state.leader_epoch + 1)
        elected = _elected(vacant, others)
        after = elected._replace(leader_epoch=vacant.leader_epoch)
    elif after.leader == NO_LEADER:
        after = _elected(after, others)
    return _or_same(state, after)


def _without(state: PartitionState, gone: frozenset[int]) -> PartitionState:
    """Out of the in-sync set, and into the ELR while that set is below the minimum."""
    isr = tuple(member for member in state.isr if member not in gone)
    if len(isr) >= state.min_isr:
        return state._replace(isr=isr, elr=(), lke=())
    left = [member for member in state.isr if member in gone]
    return state._replace(isr=isr, elr=_plus(state.elr, *left), lke=_minus(state.lke, *left))


def _elected(state: PartitionState, facts: TransitionFacts) -> PartitionState:
    """Of the in-sync set, else of the ELR, else the one broker that was last known to have all."""
    if (leader := _first_active(state.isr, facts)) is not None:
        return _led_by(state, leader)
    if (leader := _first_active(state.elr, facts)) is not None:
        return _led_by(state, leader)
    nobody_else = not state.isr and not state.elr and len(state.lke) == 1
    if nobody_else and (leader := _first_active(state.lke, facts)) is not None:
        return _led_by(state, leader)._replace(leader_recovery_state=RECOVERING)
    return state


def _led_by(state: PartitionState, leader: int) -> PartitionState:
    isr = state.isr if leader in state.isr else (*state.isr, leader)
    is_enough = len(isr) >= state.min_isr
    return state._replace(
        leader=leader,
        leader_epoch=state.leader_epoch + 1,
        isr=isr,
        elr=() if is_enough else _minus(state.elr, leader),
        lke=() if is_enough else _minus(state.lke, leader),
        leader_recovery_state=RECOVERED,
    )


def _preferred(state: PartitionState, facts: TransitionFacts) -> PartitionState:
    first = facts.replicas[0]
    is_safe = first in state.isr and first in facts.active
    if not is_safe or state.leader in (first, NO_LEADER):
        return state
    return state._replace(leader=first, leader_epoch=state.leader_epoch + 1)


def _uncleanly_elected(
    state: PartitionState, leader: int, facts: TransitionFacts
) -> PartitionState:
    """Only when no safe choice is left; the new leader's log becomes the truth."""
    if state.leader != NO_LEADER or leader not in facts.active or leader not in facts.replicas:
        return state
    if _first_active((*state.isr, *state.elr), facts) is not None:
        return _elected(state, facts)
    return state._replace(
        leader=leader,
        leader_epoch=state.leader_epoch + 1,
        isr=(leader,),
        elr=(),
        lke=(),
        leader_recovery_state=RECOVERING,
    )


def _shrunk(state: PartitionState, leader: int, removed: frozenset[int]) -> PartitionState:
    gone = removed & frozenset(state.isr)
    if state.leader != leader or leader in removed or not gone:
        return state
    return _without(state, gone)


def _expanded(
    state: PartitionState, leader: int, added: frozenset[int], facts: TransitionFacts
) -> PartitionState:
    welcome = [r for r in facts.replicas if r in added & facts.active and r not in state.isr]
    if state.leader != leader or not welcome:
        return state
    isr = (*state.isr, *welcome)
    is_enough = len(isr) >= state.min_isr
    return state._replace(
        isr=isr,
        elr=() if is_enough else _minus(state.elr, *welcome),
        lke=() if is_enough else _minus(state.lke, *welcome),
        leader_recovery_state=RECOVERED,
    )


def _min_isr_changed(state: PartitionState, min_isr: int, facts: TransitionFacts) -> PartitionState:
    needed = max(1, min(min_isr, len(facts.replicas)))
    if needed == state.min_isr:
        return state
    if len(state.isr) >= needed:
        return state._replace(min_isr=needed, elr=(), lke=())
    return state._replace(min_isr=needed)


def _reassigned(state: PartitionState, min_isr: int, facts: TransitionFacts) -> PartitionState:
    """Only replicas stay in any of the sets; the last that may have all committed records do.

    The leader epoch grows in any case: a leader forgets what it knew of its followers, and
    whoever reads the state under the old assignment cannot write it any more.
    """
    isr, elr, lke = (_among(facts.replicas, s) for s in (state.isr, state.elr, state.lke))
    was_certain, is_certain = bool(state.isr or state.elr), bool(isr or elr)
    if not is_certain and (was_certain or (state.lke and not lke)):
        return state  # Whoever is left would have to be elected uncleanly.
    needed = max(1, min(min_isr, len(facts.replicas)))
    is_enough = len(isr) >= needed
    after = state._replace(
        leader_epoch=state.leader_epoch + 1,
        isr=isr,
        min_isr=needed,
        elr=() if is_enough else elr,
        lke=() if is_enough else lke,
    )
    if state.leader in facts.replicas:
        return after
    elected = _elected(after._replace(leader=NO_LEADER), facts)
    return elected._replace(leader_epoch=after.leader_epoch)


def _among(replicas: tuple[int, ...], members: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(member for member in members if member in replicas)


def _first_active(candidates: Iterable[int], facts: TransitionFacts) -> int | None:
    wanted = facts.active.intersection(candidates)
    return next((replica for replica in facts.replicas if replica in wanted), None)


def _plus(members: tuple[int, ...], *more: int) -> tuple[int, ...]:
    return tuple(sorted({*members, *more}))


def _minus(members: tuple[int, ...], *less: int) -> tuple[int, ...]:
    return tuple(member for member in members if member not in less)


def _or_same(before: PartitionState, after: PartitionState) -> PartitionState:
    return before if after == before else after
