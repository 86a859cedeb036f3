"""A random walk over the rules: three replicas of one partition, crashes, fences, unknown outcomes.

Everything the store's state goes through is the production `transition`; logs, fetches, fences and
the leader's high watermark are modelled around it. Replicas are also moved to a fourth broker and
back, and where a setting allows it a leader is elected uncleanly, after which only what it has
counts as committed. No run may lose a committed record. To show that the walk would notice, each
guard is taken away in turn, and each time it must.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from penstock.cluster import transition as rules
from penstock.cluster.image.image import NO_LEADER, PartitionState
from penstock.cluster.transition import (
    Elected,
    Event,
    Expanded,
    MinIsrChanged,
    Reassigned,
    Removed,
    Shrunk,
    TransitionFacts,
    UncleanlyElected,
)

REPLICAS = (0, 1, 2)
SPARE = 3  # A broker without a replica, until a reassignment gives it one.
VALUES_MAX = 8

Record = tuple[int, int]  # (leader epoch, value)


class Violation(Exception):
    """A committed record was lost, or an electable replica does not have all of them."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    min_isr: int
    lossy_crashes: int = 0
    min_isr_changes: bool = False
    reassignments: bool = False
    unclean_elections: bool = False

    @property
    def brokers(self) -> tuple[int, ...]:
        return (*REPLICAS, SPARE) if self.reassignments else REPLICAS


@dataclass(kw_only=True)
class Fetch:
    """A follower's request, and the leader's answer to it."""

    follower: int
    leader: int
    epoch: int
    incarnation: int
    offset: int
    last_epoch: int
    number: int
    records: list[Record] | None = None
    high_watermark: int = 0
    diverging: tuple[int, int] | None = None

    @property
    def is_answer(self) -> bool:
        return self.records is not None or self.diverging is not None


@dataclass(kw_only=True)
class Proposal:
    """A change of the in-sync set on its way to the store."""

    event: Event
    isr: frozenset[int]
    version: int
    added: tuple[int, int] | None  # The follower and its incarnation.
    arrived: bool = False


class View(NamedTuple):
    """What a broker was told last: the partition's state, and who has its replicas."""

    state: PartitionState
    replicas: tuple[int, ...]


class Cluster:
    """The store's state of the partition, its brokers, the network between them."""

    def __init__(self, rng: random.Random, setting: Setting, removed_guard: str | None) -> None:
        self.rng = rng
        self.without = removed_guard
        self.calm = (0.0, 0.5, 0.8)[rng.randrange(3)]
        self.lossy_left = setting.lossy_crashes
        self.config_changes = setting.min_isr_changes
        self.config = setting.min_isr
        self.setting = setting
        self.state = PartitionState(leader=0, leader_epoch=1, isr=REPLICAS, min_isr=setting.min_isr)
        self.replicas = REPLICAS
        self.original: tuple[int, ...] | None = None  # Of a reassignment that is under way.
        self.target: tuple[int, ...] = REPLICAS
        self.unclean_epoch = -1  # Leaders of earlier epochs commit nothing that counts.
        self.unclean_count = self.reassigned_count = 0
        brokers = setting.brokers
        self.fence_version = dict.fromkeys(brokers, 1)
        self.fence = dict.fromkeys(brokers, "active")
        self.is_lossy = dict.fromkeys(brokers, False)
        self.alive = dict.fromkeys(brokers, True)
        self.incarnation = dict.fromkeys(brokers, 1)
        self.log: dict[int, list[Record]] = {b: [] for b in brokers}
        self.high_watermark = dict.fromkeys(brokers, 0)
        self.view: dict[int, View | None] = dict.fromkeys(brokers, View(self.state, REPLICAS))
        self.remote: dict[int, dict[int, tuple[int, int]]] = {b: {} for b in brokers}
        self.epoch_start = dict.fromkeys(brokers, 0)
        self.proposal: dict[int, Proposal | None] = dict.fromkeys(brokers, None)
        self.fetch_number = dict.fromkeys(brokers, 0)
        self.last_served: dict[tuple[int, int], int] = {}
        self.network: list[Fetch] = []
        self.committed: list[Record] = []
        self.value_count = 0

    # What holds at every moment.

    def check(self) -> None:
        count = len(self.committed)
        candidates = {*self.state.isr, *self.state.elr, self.state.leader} - {NO_LEADER}
        for broker in candidates:
            serves = (
                self.alive[broker]
                and self.fence[broker] == "active"
                and self.incarnation[broker] == self.fence_version[broker]
            )
            if serves and self.log[broker][:count] != self.committed:
                raise Violation(f"broker {broker} may lead and lacks committed records")
        if self.state.leader != NO_LEADER and self.state.leader not in self.state.isr:
            raise Violation("the leader is not in sync with itself")
        if not candidates | {*self.state.lke} <= {*self.replicas}:
            raise Violation("somebody counts who has no replica")

    # One random step.

    def step(self) -> None:
        dice, broker = self.rng.random(), self.rng.choice(self.setting.brokers)
        if self.calm and dice >= 0.55 and self.rng.random() < self.calm:
            dice = self.rng.random() * 0.55
            if self.rng.random() >= 0.6:
                dice = 0.72 + self.rng.random() * 0.08
        action = next(action for limit, action in STEPS if dice < limit)
        action(self, broker)

    def leads(self, broker: int) -> PartitionState | None:
        """The state the broker believes in, if by it this broker leads."""
        view = self.view[broker]
        is_leader = self.alive[broker] and view and view.state.leader == broker
        return view.state if view and is_leader else None

    def produce(self, broker: int) -> None:
        view = self.leads(broker)
        if view and self.value_count < VALUES_MAX:
            self.log[broker].append((view.leader_epoch, self.value_count))
            self.value_count += 1
            self.advance(broker)

    def advance(self, leader: int) -> None:
        """Move the high watermark as far as every replica that may count has come."""
        told = self.view[leader]
        assert told is not None
        view = told.state
        needed = self.config if self.without == "min ISR from the state" else view.min_isr
        if len(view.isr) < needed and self.without != "high watermark waits for min ISR":
            return
        maximal = set(view.isr)
        if (proposal := self.proposal[leader]) and self.without != "maximal ISR":
            maximal |= proposal.isr
        ends = [self.remote[leader].get(f, (-1, 0))[0] for f in maximal if f != leader]
        end = min([len(self.log[leader]), *ends])
        if end > self.high_watermark[leader]:
            self.high_watermark[leader] = end
            if view.leader_epoch >= self.unclean_epoch:
                self.commit(self.log[leader][:end])

    def commit(self, records: list[Record]) -> None:
        known = len(self.committed)
        if records[:known] != self.committed[: len(records)]:
            raise Violation("a committed record changed")
        self.committed += records[known:]

    def send_fetch(self, broker: int) -> None:
        told = self.view[broker]
        if not (self.alive[broker] and told) or len(self.network) >= 6:
            return
        view = told.state
        if view.leader in (NO_LEADER, broker) or broker not in told.replicas:
            return
        self.fetch_number[broker] += 1
        self.network.append(
            Fetch(
                follower=broker,
                leader=view.leader,
                epoch=view.leader_epoch,
                incarnation=self.incarnation[broker],
                offset=len(self.log[broker]),
                last_epoch=self.log[broker][-1][0] if self.log[broker] else -1,
                number=self.fetch_number[broker],
            )
        )

    def deliver(self, _: int) -> None:
        """In any order, and not always."""
        if not self.network:
            return
        fetch = self.network.pop(self.rng.randrange(len(self.network)))
        if self.rng.random() < 0.1:
            return
        if fetch.is_answer:
            self.take_answer(fetch)
        else:
            self.serve(fetch)

    def serve(self, fetch: Fetch) -> None:
        leader, view = fetch.leader, self.leads(fetch.leader)
        if not view:
            return
        if self.without != "fetches in order":
            if fetch.number <= self.last_served.get((leader, fetch.follower), 0):
                return
            self.last_served[leader, fetch.follower] = fetch.number
        if view.leader_epoch != fetch.epoch and self.without != "leader epoch fence":
            return
        if fetch.follower not in self.replicas_seen_by(leader):
            return
        epoch, end = self.end_of(leader, fetch.last_epoch)
        if fetch.offset > 0 and (epoch < fetch.last_epoch or end < fetch.offset):
            fetch.diverging = (epoch, end)
            self.network.append(fetch)
            return
        if fetch.offset > len(self.log[leader]):
            return
        self.remote[leader][fetch.follower] = (fetch.offset, fetch.incarnation)
        self.advance(leader)
        fetch.records = self.log[leader][fetch.offset : fetch.offset + 1]
        fetch.high_watermark = self.high_watermark[leader]
        self.network.append(fetch)

    def take_answer(self, fetch: Fetch) -> None:
        broker = fetch.follower
        if self.without != "fetches in order" and fetch.number != self.fetch_number[broker]:
            return
        told = self.view[broker]
        if not (self.alive[broker] and self.incarnation[broker] == fetch.incarnation and told):
            return
        view = told.state
        if view.leader_epoch != fetch.epoch and self.without != "leader epoch fence":
            return
        if view.leader != fetch.leader or len(self.log[broker]) != fetch.offset:
            return
        if fetch.diverging:
            epoch, end = fetch.diverging
            del self.log[broker][min(end, self.end_of(broker, epoch)[1]) :]
            limit = self.high_watermark[broker]
        else:
            self.log[broker] += fetch.records or []
            limit = fetch.high_watermark
        self.high_watermark[broker] = min(limit, len(self.log[broker]))

    def replicas_seen_by(self, broker: int) -> tuple[int, ...]:
        view = self.view[broker]
        return view.replicas if view else ()

    def end_of(self, broker: int, epoch: int) -> tuple[int, int]:
        """The largest epoch up to this one in the broker's log, and where it ends."""
        covered = [record for record in self.log[broker] if record[0] <= epoch]
        return (covered[-1][0], len(covered)) if covered else (-1, 0)

    def propose(self, broker: int) -> None:
        view = self.leads(broker)
        if not view or self.proposal[broker]:
            return
        follower = self.rng.choice([b for b in self.replicas_seen_by(broker) if b != broker])
        if follower in view.isr:
            if self.rng.random() < 0.3:
                self.proposal[broker] = Proposal(
                    event=Shrunk(broker, frozenset((follower,))),
                    isr=frozenset(view.isr) - {follower},
                    version=view.partition_epoch,
                    added=None,
                )
            return
        offset, incarnation = self.remote[broker].get(follower, (-1, 0))
        is_past_epoch_start = (
            offset >= self.epoch_start[broker] or self.without == "epoch start offset"
        )
        if offset >= max(0, self.high_watermark[broker]) and is_past_epoch_start:
            self.proposal[broker] = Proposal(
                event=Expanded(broker, frozenset((follower,))),
                isr=frozenset(view.isr) | {follower},
                version=view.partition_epoch,
                added=(follower, incarnation),
            )

    def write_proposal(self, broker: int) -> None:
        """The compare-and-set reaches the store; its answer does not always reach the leader."""
        proposal = self.proposal[broker]
        if not proposal or proposal.arrived:
            return
        proposal.arrived = True
        accepted = self.state.partition_epoch == proposal.version and self.state.leader == broker
        if proposal.added and self.without != "fence check":
            follower, incarnation = proposal.added
            is_open = self.fence[follower] == "active"
            accepted = accepted and is_open and self.fence_version[follower] == incarnation
        if accepted:
            # The store's check of the fence stands for the `active` fact.
            self.write(proposal.event, active=frozenset(self.setting.brokers))
            if self.rng.random() < 0.7:
                self.view[broker] = View(self.state, self.replicas)
                self.proposal[broker] = None
                self.advance(broker)
        elif self.state.leader == broker and self.rng.random() < 0.7:
            self.take_image(broker)

    def write(self, event: Event, *, active: frozenset[int]) -> bool:
        return self.write_with(event, TransitionFacts(replicas=self.replicas, active=active))

    def write_with(self, event: Event, facts: TransitionFacts) -> bool:
        after = rules.transition(self.state, event, facts)
        if after is self.state:
            return False
        if after.leader_epoch < self.state.leader_epoch:
            raise Violation("the leader epoch went back")
        self.state = after._replace(partition_epoch=self.state.partition_epoch + 1)
        return True

    def take_image(self, broker: int) -> None:
        if not self.alive[broker] or self.incarnation[broker] != self.fence_version[broker]:
            return
        told = self.view[broker]
        before = told.state if told else None
        if before and self.state.partition_epoch <= before.partition_epoch:
            return
        self.view[broker] = View(self.state, self.replicas)
        self.proposal[broker] = None
        if broker not in self.replicas:
            self.log[broker] = []
            self.high_watermark[broker] = 0
        if not before or before.leader_epoch != self.state.leader_epoch:
            self.remote[broker] = {}
            self.epoch_start[broker] = len(self.log[broker])
        if self.leads(broker):
            self.advance(broker)

    def lose_session(self, broker: int) -> None:
        is_noticed = not self.alive[broker] or self.rng.random() < 0.3
        if self.fence[broker] == "active" and is_noticed:
            self.fence[broker] = "fenced"
            self.fence_version[broker] += 1

    def crash(self, broker: int) -> None:
        if not self.alive[broker] or self.rng.random() >= 0.5:
            return
        self.alive[broker] = False
        if self.without == "lossy is sticky":
            self.is_lossy[broker] = False
        if self.lossy_left and self.log[broker]:
            self.lossy_left -= 1
            self.is_lossy[broker] = True
            del self.log[broker][self.rng.randrange(len(self.log[broker]) + 1) :]

    def register(self, broker: int) -> None:
        if self.alive[broker] and self.fence[broker] != "fenced":
            return
        self.alive[broker] = True
        self.fence[broker] = "starting"
        self.fence_version[broker] += 1
        self.incarnation[broker] = -1
        self.view[broker] = None
        self.proposal[broker] = None
        self.remote[broker] = {}
        self.high_watermark[broker] = min(self.high_watermark[broker], len(self.log[broker]))

    def change_config(self, _: int) -> None:
        if self.config_changes:
            self.config = self.rng.choice((1, 2))

    def control(self, _: int) -> None:
        """The controller does one thing at a time, in the order membership.py does them."""
        active = frozenset(b for b in self.setting.brokers if self.fence[b] == "active")
        if self.config != self.state.min_isr:
            self.write(MinIsrChanged(self.config), active=active)
            return
        for broker in self.setting.brokers:
            if self.fence[broker] != "active" and self.take_out_or_admit(broker, active):
                return
        if self.setting.reassignments and self.rng.random() < 0.3 and self.reassign(active):
            return
        if self.state.leader == NO_LEADER:
            if not self.write(Elected(), active=active) and self.setting.unclean_elections:
                self.elect_uncleanly(active)
        elif self.rng.random() < 0.15:
            self.move_leader(active)

    def reassign(self, active: frozenset[int]) -> bool:
        """Begin to move the replicas, finish when the new ones are in sync, or take it back."""
        if self.original is None:
            spare = self.rng.choice([b for b in self.setting.brokers if b not in self.replicas])
            keep = self.rng.sample(self.replicas, self.rng.choice((1, 2)))
            self.original, self.target = self.replicas, (spare, *keep)
            both = (*self.target, *(b for b in self.original if b not in self.target))
            return self.place(both, active)
        if {*self.target} <= {*self.state.isr}:
            wanted = self.target
        elif self.rng.random() < 0.2:
            wanted = self.original
        else:
            return False
        done = self.place(wanted, active)
        if done:
            self.original = None
        return done

    def place(self, replicas: tuple[int, ...], active: frozenset[int]) -> bool:
        done = self.write_with(
            Reassigned(self.config), TransitionFacts(replicas=replicas, active=active)
        )
        if done:
            self.replicas = replicas
            self.reassigned_count += 1
        return done

    def elect_uncleanly(self, active: frozenset[int]) -> None:
        """Whoever leads now is the truth: what it lacks is lost, and was announced to be."""
        candidates = [b for b in self.replicas if b in active]
        if not candidates:
            return
        chosen = self.rng.choice(candidates)
        if self.write(UncleanlyElected(chosen), active=active):
            self.unclean_count += 1
            self.unclean_epoch = self.state.leader_epoch
            same = 0
            for ours, known in zip(self.log[chosen], self.committed, strict=False):
                if ours != known:
                    break
                same += 1
            del self.committed[same:]

    def take_out_or_admit(self, broker: int, active: frozenset[int]) -> bool:
        is_starting = self.fence[broker] == "starting"
        lossy = self.is_lossy[broker] and is_starting and self.without != "lossy leaves the ELR"
        concerned = broker in self.state.isr or broker == self.state.leader
        if concerned or (lossy and broker in self.state.elr):
            return self.write(Removed(broker, lossy), active=active)
        if is_starting:
            self.fence[broker] = "active"
            self.fence_version[broker] += 1
            self.incarnation[broker] = self.fence_version[broker]
            self.is_lossy[broker] = False
        return is_starting

    def move_leader(self, active: frozenset[int]) -> None:
        """A preferred election, with chance as the preference."""
        wanted = [b for b in self.state.isr if b in active and b != self.state.leader]
        if wanted:
            first = self.rng.choice(wanted)
            order = (first, *(b for b in self.replicas if b != first))
            facts = TransitionFacts(replicas=order, active=active)
            after = rules.transition(self.state, rules.Preferred(), facts)
            self.state = after._replace(partition_epoch=self.state.partition_epoch + 1)


STEPS: tuple[tuple[float, Callable[[Cluster, int], None]], ...] = (
    (0.10, Cluster.produce),
    (0.30, Cluster.send_fetch),
    (0.55, Cluster.deliver),
    (0.64, Cluster.propose),
    (0.72, Cluster.write_proposal),
    (0.80, Cluster.take_image),
    (0.84, Cluster.lose_session),
    (0.92, Cluster.control),
    (0.95, Cluster.crash),
    (0.99, Cluster.register),
    (1.00, Cluster.change_config),
)


def walk(setting: Setting, seed: int, steps: int, removed_guard: str | None = None) -> Cluster:
    cluster = Cluster(random.Random(seed), setting, removed_guard)
    for _ in range(steps):
        cluster.step()
        cluster.check()
    return cluster


LOSSY = Setting(min_isr=2, lossy_crashes=1)
PLAIN = Setting(min_isr=2)
SINGLE = Setting(min_isr=1)
CHANGING = Setting(min_isr=2, min_isr_changes=True)
MOVING = Setting(min_isr=2, reassignments=True)
MOVING_LOSSY = Setting(min_isr=2, reassignments=True, lossy_crashes=1)
UNCLEAN = Setting(min_isr=2, unclean_elections=True, lossy_crashes=1)
UNCLEAN_SINGLE = Setting(min_isr=1, unclean_elections=True)
SETTINGS = [LOSSY, PLAIN, SINGLE, CHANGING, MOVING, MOVING_LOSSY, UNCLEAN, UNCLEAN_SINGLE]


@pytest.mark.parametrize("setting", SETTINGS, ids=repr)
def test_no_walk_loses_a_committed_record(setting: Setting) -> None:
    walks = [walk(setting, seed, 200) for seed in range(1200)]
    # Otherwise the walks would prove nothing.
    assert sum(len(cluster.committed) for cluster in walks) > 1000
    assert not setting.reassignments or sum(c.reassigned_count for c in walks) > 600
    assert not setting.unclean_elections or sum(c.unclean_count for c in walks) > 20


@pytest.mark.long
@pytest.mark.parametrize("setting", SETTINGS, ids=repr)
def test_no_long_walk_loses_a_committed_record(setting: Setting) -> None:
    for seed in range(20_000):
        walk(setting, seed, 400)


# Guards that live in the data plane and the store. Each comes with a walk known to need it, which
# is only where the search begins: a change of the rules may move it.
GUARDS = [
    ("fence check", LOSSY, 184),
    ("lossy leaves the ELR", LOSSY, 63),
    ("lossy is sticky", LOSSY, 624),
    ("min ISR from the state", CHANGING, 11),
    ("high watermark waits for min ISR", PLAIN, 1),
    ("maximal ISR", PLAIN, 1183),
    ("epoch start offset", PLAIN, 1111),
    ("leader epoch fence", PLAIN, 6077),
    ("fetches in order", PLAIN, 307),
]


def finds_a_violation(setting: Setting, hint: int, removed_guard: str | None) -> bool:
    for seed in (hint, *range(20_000)):
        try:
            walk(setting, seed, 400, removed_guard)
        except Violation:
            return True
    return False


@pytest.mark.parametrize(("guard", "setting", "hint"), GUARDS)
def test_without_one_of_the_guards_records_are_lost(
    guard: str, setting: Setting, hint: int
) -> None:
    walk(setting, hint, 400)  # With the guard nothing happens on the same walk.
    assert finds_a_violation(setting, hint, guard)


def keep_elr_of_a_full_isr(state: PartitionState, gone: frozenset[int]) -> PartitionState:
    isr = tuple(member for member in state.isr if member not in gone)
    left = [member for member in state.isr if member in gone]
    return state._replace(isr=isr, elr=tuple(sorted({*state.elr, *left})))


def elect_anybody(state: PartitionState, facts: TransitionFacts) -> PartitionState:
    active = [replica for replica in facts.replicas if replica in facts.active]
    return rules._led_by(state, active[0]) if active else state


_REMOVED = rules._removed


def replace_the_leader_within_its_epoch(
    state: PartitionState, broker: int, lossy: bool, facts: TransitionFacts
) -> PartitionState:
    return _REMOVED(state, broker, lossy, facts)._replace(leader_epoch=state.leader_epoch)


def move_the_leader_within_its_epoch(
    state: PartitionState, facts: TransitionFacts
) -> PartitionState:
    return state._replace(leader=facts.replicas[0])


def keep_elr_at_a_lower_minimum(
    state: PartitionState, min_isr: int, facts: TransitionFacts
) -> PartitionState:
    return state._replace(min_isr=min_isr)


def keep_the_elr_on_expansion(
    state: PartitionState, leader: int, added: frozenset[int], facts: TransitionFacts
) -> PartitionState:
    return state._replace(isr=(*state.isr, *(added - set(state.isr))))


def keep_the_elr_when_reassigned(
    state: PartitionState, min_isr: int, facts: TransitionFacts
) -> PartitionState:
    after = _REASSIGNED(state, min_isr, facts)
    gone = {*state.isr} - {*after.isr}
    kept = [b for b in facts.replicas if b in {*state.elr, *gone, *facts.replicas} - {*after.isr}]
    return after if after is state else after._replace(elr=tuple(kept))


def keep_the_elr_of_an_unclean_election(
    state: PartitionState, leader: int, facts: TransitionFacts
) -> PartitionState:
    after = _UNCLEAN(state, leader, facts)
    is_unclean = after.leader_recovery_state == rules.RECOVERING
    return after._replace(elr=state.elr) if is_unclean else after


_REASSIGNED = rules._reassigned
_UNCLEAN = rules._uncleanly_elected

RULES: list[tuple[str, Callable[..., PartitionState], Setting, int]] = [
    ("_without", keep_elr_of_a_full_isr, PLAIN, 3),
    ("_elected", elect_anybody, PLAIN, 4),
    ("_removed", replace_the_leader_within_its_epoch, PLAIN, 4),
    ("_preferred", move_the_leader_within_its_epoch, PLAIN, 4),
    ("_min_isr_changed", keep_elr_at_a_lower_minimum, CHANGING, 3),
    ("_expanded", keep_the_elr_on_expansion, PLAIN, 12),
    ("_reassigned", keep_the_elr_when_reassigned, MOVING, 0),
    ("_uncleanly_elected", keep_the_elr_of_an_unclean_election, UNCLEAN_SINGLE, 13),
]


@pytest.mark.parametrize(("name", "mutant", "setting", "hint"), RULES)
def test_with_one_of_the_rules_broken_records_are_lost(
    name: str,
    mutant: Callable[..., PartitionState],
    setting: Setting,
    hint: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walk(setting, hint, 400)
    monkeypatch.setattr(rules, name, mutant)
    assert finds_a_violation(setting, hint, None)
