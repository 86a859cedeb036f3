"""The rules of the in-sync set: each invariant by example, and all of them on random walks."""

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.cluster.image.image import BrokerImage, PartitionState
from penstock.replica.in_sync import NEVER_MS, Follower, InSync, Proposal, Seen

LEADER, A, B = 1, 2, 3
LAG_MS = 1_000
EPOCH = 50


def brokers(*inactive: int, epochs: Mapping[int, int] | None = None) -> dict[int, BrokerImage]:
    return {
        broker: BrokerImage(
            broker_id=broker,
            epoch=(epochs or {}).get(broker, EPOCH),
            endpoints=(),
            is_active=broker not in inactive,
            fence_version=7,
        )
        for broker in (LEADER, A, B)
    }


ALL = brokers()


def led(*isr: int, min_isr: int = 1, end: int = 10, now_ms: int = 0) -> InSync:
    state = PartitionState(
        leader=LEADER, leader_epoch=4, isr=(LEADER, *isr), min_isr=min_isr, partition_epoch=8
    )
    return InSync(
        broker_id=LEADER, state=state, replicas=(LEADER, A, B), log_end_offset=end, now_ms=now_ms
    )


def fetch(
    it: InSync, broker: int, offset: int, *, end: int = 10, now_ms: int = 0, epoch: int = EPOCH
) -> None:
    it.note_fetch(
        broker,
        broker_epoch=epoch,
        fetch_offset=offset,
        log_start_offset=0,
        log_end_offset=end,
        now_ms=now_ms,
    )


def committed(it: InSync, known: int = 0, *, end: int = 10, now_ms: int = 0) -> int:
    return it.high_watermark(known, end, brokers=ALL, now_ms=now_ms, lag_ms_max=LAG_MS)


def propose(
    it: InSync,
    *,
    high_watermark: int = 10,
    end: int = 10,
    seen: Mapping[int, BrokerImage] = ALL,
    now_ms: int = 0,
) -> Proposal | None:
    return it.propose(
        high_watermark=high_watermark,
        log_end_offset=end,
        brokers=seen,
        now_ms=now_ms,
        lag_ms_max=LAG_MS,
    )


def test_who_was_taken_out_joins_again_only_by_a_later_fetch() -> None:
    """Its disk may have failed: what it had fetched before says nothing any more."""
    it = led(A, B)
    fetch(it, A, 10)
    it.adopt(it.state._replace(isr=(LEADER, B), partition_epoch=9), now_ms=0)
    assert propose(it) is None
    fetch(it, A, 10, now_ms=1)
    joining = propose(it, now_ms=1)
    assert joining is not None
    assert joining.joining == (A,)


def test_who_was_taken_out_joins_again_in_a_session_that_has_nothing_new_to_say() -> None:
    it = led(A, B)
    fetch(it, A, 10)
    it.followers[A].seen = session = Seen(1)
    it.adopt(it.state._replace(isr=(LEADER, B), partition_epoch=9), now_ms=1)
    assert propose(it, now_ms=1) is None
    session.at_ms = 2  # A request that names nothing: it has everything still.
    joining = propose(it, now_ms=2)
    assert joining is not None
    assert joining.joining == (A,)


def test_a_session_that_goes_on_without_the_partition_says_nothing_of_it() -> None:
    it = led(A, B)
    fetch(it, A, 10)
    it.followers[A].seen = session = Seen(1)
    it.adopt(it.state._replace(isr=(LEADER, B), partition_epoch=9), now_ms=1)
    session.at_ms = 2
    it.left_session(session)
    assert propose(it, now_ms=2) is None


def test_nobody_waits_for_who_was_taken_out_and_is_not_back() -> None:
    it = led(A, B)
    fetch(it, A, 9)
    fetch(it, B, 10)
    assert committed(it) == 9
    it.adopt(it.state._replace(isr=(LEADER, B), partition_epoch=9), now_ms=0)
    assert committed(it, 9) == 10


# The high watermark


def test_a_record_is_committed_when_every_in_sync_replica_has_it() -> None:
    it = led(A, B)
    assert committed(it, 3) == 3  # Nothing is known of anybody in this epoch.
    fetch(it, A, 10)
    assert committed(it, 3) == 3
    fetch(it, B, 6)
    assert committed(it, 3) == 6
    assert committed(it, 7) == 7  # It never goes back.


def test_nothing_is_committed_while_too_few_are_in_sync() -> None:  # I9
    it = led(min_isr=2)
    assert committed(it, 3) == 3
    it = led(A, min_isr=2)
    fetch(it, A, 10)
    assert committed(it, 3) == 10


def test_who_is_proposed_counts_already_and_who_is_taken_out_still_does() -> None:  # I4
    it = led(A)
    fetch(it, A, 10, now_ms=0)
    fetch(it, B, 10, now_ms=0)
    joining = propose(it)
    assert joining is not None
    assert it.maximal == {LEADER, A, B}
    assert committed(it, end=20, now_ms=9 * LAG_MS) == 10
    it.unknown(joining)
    assert it.maximal == {LEADER, A, B}
    it.adopt(joining.base._replace(partition_epoch=9), now_ms=0)  # Somebody else was first.
    assert it.maximal == {LEADER, A}
    leaving = propose(it, end=20, now_ms=9 * LAG_MS)
    assert leaving is not None
    assert leaving.state.isr == (LEADER,)
    assert it.maximal == {LEADER, A}
    assert committed(it, end=20, now_ms=9 * LAG_MS) == 10


def test_one_that_is_about_to_join_is_waited_for_and_one_that_cannot_is_not() -> None:
    it = led()
    fetch(it, A, 8, end=8)
    assert committed(it, now_ms=LAG_MS) == 8
    assert committed(it, now_ms=LAG_MS + 1) == 10
    assert it.high_watermark(0, 10, brokers=brokers(A), now_ms=0, lag_ms_max=LAG_MS) == 10


# Joining


@pytest.mark.parametrize("offset", [9, 10])
def test_nobody_joins_below_the_start_of_the_leaders_epoch(offset: int) -> None:  # I5
    it = led(end=10)
    fetch(it, A, offset)
    assert (propose(it, high_watermark=5) is not None) == (offset == 10)


def test_nobody_joins_below_the_high_watermark() -> None:  # I5
    it = led(end=10)
    fetch(it, A, 11, end=12)
    assert propose(it, high_watermark=12, end=12) is None
    fetch(it, A, 12, end=12)
    assert propose(it, high_watermark=12, end=12) is not None


def test_only_a_fetch_in_this_epoch_counts() -> None:  # I6
    assert propose(led()) is None


def test_only_the_broker_that_the_image_shows_may_join() -> None:  # I6
    it = led()
    fetch(it, A, 10, epoch=EPOCH - 1)
    assert propose(it) is None
    fetch(it, A, 10, epoch=EPOCH + 1)
    assert propose(it) is None
    assert propose(it, seen=brokers(epochs={A: EPOCH + 1})) is not None


def test_a_broker_that_is_not_active_may_not_join() -> None:  # I7
    it = led()
    fetch(it, A, 10)
    assert propose(it, seen=brokers(A)) is None
    assert propose(it, seen={}) is None


def test_a_proposal_carries_the_fence_and_the_version_it_was_made_with() -> None:
    it = led()
    fetch(it, A, 10)
    made = propose(it)
    assert made is not None
    assert made.fences == ((A, 7),)
    assert (made.base.partition_epoch, made.state.partition_epoch) == (8, 9)
    assert (made.base.leader_epoch, made.state.leader_epoch) == (4, 4)


def test_there_is_never_a_second_write_under_way() -> None:
    it = led()
    fetch(it, A, 10)
    first = propose(it)
    assert first is not None
    fetch(it, B, 10)
    assert propose(it) is None
    it.withdraw(first)
    assert it.maximal == {LEADER}
    second = propose(it)
    assert second is not None
    assert second.joining == (A, B)


def test_who_is_no_replica_is_not_noted() -> None:
    with pytest.raises(KeyError):
        fetch(led(), 9, 10)


# Leaving


def test_a_follower_is_late_when_it_had_everything_too_long_ago() -> None:
    it = led(A)
    fetch(it, A, 10, end=10, now_ms=100)
    assert propose(it, end=11, now_ms=100 + LAG_MS) is None
    made = propose(it, end=11, now_ms=101 + LAG_MS)
    assert made is not None
    assert made.state.isr == (LEADER,)


def test_a_follower_at_the_end_is_never_late() -> None:  # KAFKA-7152
    it = led(A)
    fetch(it, A, 10, now_ms=0)
    assert propose(it, now_ms=99 * LAG_MS) is None


def test_a_follower_that_reaches_the_last_end_was_caught_up_then() -> None:
    it = led(A)
    fetch(it, A, 9, end=10, now_ms=500)
    fetch(it, A, 10, end=20, now_ms=900)  # Has what there was at 500.
    assert it.followers[A].caught_up_ms == 500
    fetch(it, A, 15, end=30, now_ms=1_000)  # Lacks something of what there was at 900.
    assert it.followers[A].caught_up_ms == 500


def test_growth_after_a_quiet_time_makes_nobody_late() -> None:
    it = led(A)
    fetch(it, A, 10, now_ms=0)
    it.followers[A].seen = Seen(50_000)  # Its session goes on asking, of this partition nothing.
    it.note_growth(10)
    assert propose(it, end=11, now_ms=50_000 + LAG_MS) is None
    assert propose(it, end=11, now_ms=50_001 + LAG_MS) is not None


def test_who_was_in_sync_at_the_start_of_an_epoch_gets_the_whole_time() -> None:
    it = led(A, now_ms=300)
    assert it.followers[B].caught_up_ms == NEVER_MS
    assert propose(it, now_ms=300 + LAG_MS) is None
    assert propose(it, now_ms=301 + LAG_MS) is not None


# Settling


def test_after_an_unknown_outcome_even_the_old_set_is_written_again() -> None:
    it = led()
    fetch(it, A, 10)
    made = propose(it)
    assert made is not None
    it.unknown(made)
    again = propose(it, seen={})
    assert again is not None
    assert again.state.isr == (LEADER,)
    assert it.maximal == {LEADER, A}
    it.adopt(again.state, now_ms=0)
    assert it.maximal == {LEADER}
    assert propose(it, seen={}) is None


def test_the_low_watermark_is_that_of_the_replicas_that_live() -> None:
    it = led(A, B)
    fetch(it, A, 10)
    it.followers[A].log_start_offset = 4
    it.followers[B].log_start_offset = 2
    assert it.low_watermark(6, ALL) == 2
    assert it.low_watermark(6, {LEADER: ALL[LEADER], A: ALL[A]}) == 4


@given(
    offsets=st.lists(st.integers(0, 20), min_size=1, max_size=8),
    grows=st.lists(st.integers(0, 3), min_size=8, max_size=8),
)
def test_caught_up_is_never_later_than_the_truth(offsets: list[int], grows: list[int]) -> None:
    """The time noted is one at which the follower had everything there was."""
    follower = Follower(A, caught_up_ms=NEVER_MS)
    ends: list[int] = []  # At each millisecond.
    end, at = 0, 0
    for now_ms, (offset, more) in enumerate(zip(offsets, grows, strict=False)):
        end += more
        at = min(max(at, offset), end)  # A follower's log only grows, up to the leader's.
        ends.append(end)
        follower.note_fetch(
            broker_epoch=1,
            fetch_offset=at,
            log_start_offset=0,
            log_end_offset=end,
            now_ms=now_ms,
        )
        if follower.caught_up_ms != NEVER_MS:
            assert at >= ends[follower.caught_up_ms]


# Everything at once


class Walk:
    """A leader, the store, and writes that may arrive late, twice as far as anybody knows."""

    def __init__(self, random: Random, min_isr: int) -> None:
        self.random = random
        self.end = random.randint(0, 3)
        self.it = led(A, B, min_isr=min_isr, end=self.end)
        self.stored = self.it.state
        self.fence = {A: 7, B: 7}
        self.active = {A, B}
        self.ghosts: list[Proposal] = []
        self.committed = 0
        self.now_ms = 0

    @property
    def brokers(self) -> dict[int, BrokerImage]:
        return {
            broker: BrokerImage(
                broker_id=broker,
                epoch=EPOCH + self.fence.get(broker, 0),
                endpoints=(),
                is_active=broker == LEADER or broker in self.active,
                fence_version=self.fence.get(broker, 0),
            )
            for broker in (LEADER, A, B)
        }

    def write(self, made: Proposal) -> bool:
        fences_hold = all(
            self.fence[broker] == version and broker in self.active
            for broker, version in made.fences
        )
        if made.base.partition_epoch != self.stored.partition_epoch or not fences_hold:
            return False
        self.stored = made.state
        return True

    def step(self) -> None:
        random, it = self.random, self.it
        follower = random.choice((A, B))
        match random.randrange(8):
            case 0:
                self.end += random.randint(1, 3)
            case 1 | 2:
                known = max(it.followers[follower].fetch_offset, 0)
                fetch(
                    it,
                    follower,
                    random.randint(known, self.end),
                    end=self.end,
                    now_ms=self.now_ms,
                    epoch=EPOCH + self.fence[follower],
                )
            case 3:
                self.now_ms += random.choice((1, LAG_MS))
            case 4:
                self._propose()
            case 5 if self.ghosts:  # A write whose answer was lost arrives only now.
                self.write(self.ghosts.pop())
            case 6:
                self._controller(follower)
            case 7 if self.stored.partition_epoch > it.state.partition_epoch:
                it.adopt(self.stored, now_ms=self.now_ms)
        self._advance()

    def _propose(self) -> None:
        made = self.it.propose(
            high_watermark=self.committed,
            log_end_offset=self.end,
            brokers=self.brokers,
            now_ms=self.now_ms,
            lag_ms_max=LAG_MS,
        )
        if made is None:
            return
        match self.random.randrange(4):
            case 0:
                self.it.withdraw(made)
            case 1:
                self.it.unknown(made)
                self.ghosts.append(made)
            case 2:
                self.write(made)
                self.it.unknown(made)
            case 3 if self.write(made):
                self.it.adopt(self.stored, now_ms=self.now_ms)
            case _:
                self.it.withdraw(made)

    def _controller(self, broker: int) -> None:
        """Fences a broker and takes it out, or lets it back."""
        from penstock.cluster.transition import Removed, TransitionFacts, transition

        self.fence[broker] += 1
        if broker not in self.active:
            self.active.add(broker)
            return
        self.active.discard(broker)
        facts = TransitionFacts(replicas=(LEADER, A, B), active=frozenset({LEADER, *self.active}))
        after = transition(self.stored, Removed(broker), facts)
        if after is not self.stored:
            self.stored = after._replace(partition_epoch=self.stored.partition_epoch + 1)

    def _advance(self) -> None:
        before = self.committed
        self.committed = self.it.high_watermark(
            before, self.end, brokers=self.brokers, now_ms=self.now_ms, lag_ms_max=LAG_MS
        )
        assert self.committed >= before
        candidates = {*self.stored.isr, *self.stored.elr} - {LEADER}
        if len(self.it.state.isr) < self.it.state.min_isr:
            assert self.committed == before  # I9
        elif self.committed > before:
            assert candidates <= self.it.maximal  # I4
        for broker in candidates:  # I5: whoever may be elected has all that is committed.
            known = self.it.followers[broker].fetch_offset
            assert known >= self.committed or self.committed == before


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from((1, 2, 3)))
def test_whoever_may_be_elected_has_all_that_is_committed(seed: int, min_isr: int) -> None:
    walk = Walk(Random(seed), min_isr)
    for _ in range(60):
        walk.step()
