"""What a leader knows of its followers in one leader epoch, and the rules that rest on it.

Everything that keeps an acknowledged record alive is decided here, without a clock, a socket or a
store, so that tests and the simulator can turn it in every direction:

-   The high watermark is what every member of the maximal in-sync set has: of the set that the
    store holds together with every set we proposed and were not refused. It stands still while
    the committed set is smaller than `min_isr`, because the eligible leaders count on that.
-   A follower joins only by a fetch in this leader epoch, from the broker epoch that the image
    shows, of an active broker, at or above the high watermark and the start of our epoch. The
    fence version seen with all this goes into the write, which fails if the fence moved.
-   A follower leaves when it has not been at our end for too long, and is not there now.
-   Whatever we knew is void with a new leader epoch or another assignment: the owner makes a new
    `InSync` then.

When a proposal is written, and what became of it, is `isr_writer.py`'s.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from penstock.cluster.image.image import BrokerImage, PartitionState
from penstock.cluster.transition import Expanded, Shrunk, TransitionFacts, transition

UNKNOWN: Final = -1
NEVER_MS: Final = -(1 << 62)


class Seen:
    """When a follower's fetch session last asked; shared by all partitions of the session."""

    __slots__ = ("at_ms",)

    def __init__(self, at_ms: int) -> None:
        self.at_ms = at_ms


class Follower:
    """A replica as its fetches show it."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "fetch_end",
        "fetch_ms",
        "fetch_offset",
        "log_start_offset",
        "seen",
        "taken_out_ms",
    )

    def __init__(self, broker_id: int, *, caught_up_ms: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = UNKNOWN
        self.fetch_offset = UNKNOWN  # Where it fetches from, so where its log ends.
        self.log_start_offset = UNKNOWN
        self.caught_up_ms = caught_up_ms  # When it last had everything.
        self.fetch_ms = NEVER_MS
        self.fetch_end = UNKNOWN  # Our end at its last fetch.
        self.seen: Seen | None = None  # None: it is in no session.
        self.taken_out_ms = NEVER_MS - 1  # When it had last fetched before it left the set.

    def __repr__(self) -> str:
        return f"Follower({self.broker_id}, epoch {self.broker_epoch}, at {self.fetch_offset})"

    def note_fetch(
        self,
        *,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        log_end_offset: int,
        now_ms: int,
    ) -> None:
        """One that reaches the end we had at its last fetch was caught up at that time."""
        if fetch_offset >= log_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif fetch_offset >= self.fetch_end:
            self.caught_up_ms = max(self.caught_up_ms, self.fetch_ms)
        self.broker_epoch = broker_epoch
        self.fetch_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.fetch_ms = now_ms
        self.fetch_end = log_end_offset

    @property
    def heard_ms(self) -> int:
        """When it last asked for anything."""
        return self.fetch_ms if self.seen is None else max(self.fetch_ms, self.seen.at_ms)

    @property
    def is_back(self) -> bool:
        """Whether it asked since it was taken out: what it had before then says nothing.

        Whoever took it out had a reason; its disk may have failed.
        """
        return self.heard_ms > self.taken_out_ms

    def is_caught_up(self, log_end_offset: int, *, now_ms: int, lag_ms_max: int) -> bool:
        return self.fetch_offset == log_end_offset or now_ms - self.caught_up_ms <= lag_ms_max


class Proposal(NamedTuple):
    """A state to be written in the place of `base`, if no fence has moved since."""

    base: PartitionState
    state: PartitionState  # With the version that its node will have.
    fences: tuple[tuple[int, int], ...] = ()  # Each broker that joins, and its fence version.

    @property
    def joining(self) -> tuple[int, ...]:
        return tuple(broker for broker, _ in self.fences)

    @property
    def leaving(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.base.isr if broker not in self.state.isr)


class InSync:
    """The leader's side of one partition, for as long as one leader epoch lasts."""

    __slots__ = (
        "_broker_id",
        "_flying",
        "_unsettled",
        "epoch_start_offset",
        "followers",
        "maximal",
        "replicas",
        "state",
    )

    def __init__(
        self,
        *,
        broker_id: int,
        state: PartitionState,
        replicas: tuple[int, ...],
        log_end_offset: int,
        now_ms: int,
        unsettled: frozenset[int] = frozenset(),
    ) -> None:
        self._broker_id = broker_id
        self.state = state
        self.replicas = replicas
        self.epoch_start_offset = log_end_offset
        self.followers = {
            broker: Follower(broker, caught_up_ms=now_ms if broker in state.isr else NEVER_MS)
            for broker in {*replicas, *state.isr}
            if broker != broker_id
        }
        self._flying: Proposal | None = None  # None: no write is under way.
        self._unsettled = unsettled  # Members of sets that may have been written.
        self.maximal: frozenset[int] = frozenset(state.isr) | unsettled

    # What followers tell

    def note_fetch(
        self,
        broker_id: int,
        *,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        log_end_offset: int,
        now_ms: int,
    ) -> Follower:
        """A follower has everything below its fetch offset; KeyError: it is no replica."""
        follower = self.followers[broker_id]
        follower.note_fetch(
            broker_epoch=broker_epoch,
            fetch_offset=fetch_offset,
            log_start_offset=log_start_offset,
            log_end_offset=log_end_offset,
            now_ms=now_ms,
        )
        return follower

    def is_unheard(self, broker_id: int) -> bool:
        return self.followers[broker_id].fetch_offset == UNKNOWN

    def left_session(self, seen: Seen) -> None:
        """A follower no longer asks for this partition in its session, and goes on in others."""
        for follower in self.followers.values():
            if follower.seen is seen:
                follower.seen = None

    def note_growth(self, old_end_offset: int) -> None:
        """Before the log grows: a follower at its end was caught up when its session last asked."""
        for follower in self.followers.values():
            if follower.fetch_offset == old_end_offset and follower.seen is not None:
                follower.caught_up_ms = max(follower.caught_up_ms, follower.seen.at_ms)

    # What the store holds

    def adopt(self, state: PartitionState, *, now_ms: int) -> None:
        """A newer state of this leader epoch; whatever was proposed before it is settled."""
        joined = set(state.isr) - set(self.state.isr)
        for broker in set(self.state.isr) - set(state.isr) - {self._broker_id}:
            self.followers[broker].taken_out_ms = self.followers[broker].heard_ms
        self.state = state
        for broker in joined - {self._broker_id}:
            follower = self.followers.get(broker)
            if follower is None:
                self.followers[broker] = Follower(broker, caught_up_ms=now_ms)
        self._flying = None
        self._unsettled = frozenset()
        self._recount()

    def _recount(self) -> None:
        maximal = frozenset(self.state.isr) | self._unsettled
        if self._flying is not None:
            maximal |= frozenset(self._flying.state.isr)
        self.maximal = maximal

    # The high watermark

    def high_watermark(
        self,
        known: int,
        log_end_offset: int,
        *,
        brokers: Mapping[int, BrokerImage],
        now_ms: int,
        lag_ms_max: int,
    ) -> int:
        """What is committed: `known`, or more. Also waits for one that is about to join."""
        if len(self.state.isr) < self.state.min_isr:
            return known
        end = log_end_offset
        for broker, follower in self.followers.items():
            if follower.fetch_offset < end and (
                broker in self.maximal
                or (
                    follower.is_back
                    and follower.is_caught_up(log_end_offset, now_ms=now_ms, lag_ms_max=lag_ms_max)
                    and is_eligible(follower, brokers)
                )
            ):
                end = follower.fetch_offset
        return max(known, end)

    # Proposing

    @property
    def is_busy(self) -> bool:
        """Whether a write is under way; there is never a second one."""
        return self._flying is not None

    def is_flying(self, proposal: Proposal) -> bool:
        return self._flying is proposal

    @property
    def is_unsettled(self) -> bool:
        """Whether there is a proposal of which nobody knows whether it was written."""
        return bool(self._unsettled)

    def may_join(
        self, follower: Follower, high_watermark: int, brokers: Mapping[int, BrokerImage]
    ) -> bool:
        return (
            follower.fetch_offset >= max(high_watermark, self.epoch_start_offset)
            and follower.broker_id not in self.state.isr
            and follower.broker_id in self.replicas
            and follower.is_back
            and is_eligible(follower, brokers)
        )

    def propose(
        self,
        *,
        high_watermark: int,
        log_end_offset: int,
        brokers: Mapping[int, BrokerImage],
        now_ms: int,
        lag_ms_max: int,
    ) -> Proposal | None:
        """The next state to be written; it counts as possible from now on. None: nothing is due.

        After an unknown outcome anything that is written settles it, be it what was there before.
        """
        if self._flying is not None:
            return None
        proposal = self._expansion(high_watermark, brokers, now_ms - lag_ms_max)
        if proposal is None:
            proposal = self._shrinking(log_end_offset, now_ms, lag_ms_max)
        if proposal is None and self._unsettled:
            proposal = Proposal(self.state, _next(self.state))
        if proposal is not None:
            self._flying = proposal
            self._recount()
        return proposal

    def _expansion(
        self, high_watermark: int, brokers: Mapping[int, BrokerImage], heard_since_ms: int
    ) -> Proposal | None:
        """One that fell silent may not join, or it would be taken out again at once."""
        joining = [
            broker
            for broker, follower in self.followers.items()
            if self.may_join(follower, high_watermark, brokers)
            and follower.heard_ms >= heard_since_ms
        ]
        if not joining:
            return None
        facts = TransitionFacts(replicas=self.replicas, active=frozenset(joining))
        after = transition(self.state, Expanded(self._broker_id, frozenset(joining)), facts)
        if after is self.state:
            return None
        fences = tuple((broker, brokers[broker].fence_version) for broker in sorted(joining))
        return Proposal(self.state, _next(after), fences)

    def _shrinking(self, log_end_offset: int, now_ms: int, lag_ms_max: int) -> Proposal | None:
        lagging = frozenset(
            broker
            for broker, follower in self.followers.items()
            if broker in self.state.isr
            and not follower.is_caught_up(log_end_offset, now_ms=now_ms, lag_ms_max=lag_ms_max)
        )
        if not lagging:
            return None
        facts = TransitionFacts(replicas=self.replicas, active=frozenset())
        after = transition(self.state, Shrunk(self._broker_id, lagging), facts)
        return Proposal(self.state, _next(after)) if after is not self.state else None

    # What became of it

    def withdraw(self, proposal: Proposal) -> None:
        """Forget the proposal: it was certainly not written."""
        if self._flying is proposal:
            self._flying = None
            self._recount()

    def unknown(self, proposal: Proposal) -> None:
        """It may have been written, now or later: whoever is in it counts until we know."""
        if self._flying is proposal:
            self._flying = None
            self._unsettled |= frozenset(proposal.state.isr)
            self._recount()

    @property
    def unsettled(self) -> frozenset[int]:
        """Members of sets that may have been written, for who takes this epoch up again."""
        flying = frozenset(self._flying.state.isr) if self._flying else frozenset()
        return self._unsettled | flying

    # Deleting records

    def low_watermark(self, log_start_offset: int, brokers: Mapping[int, BrokerImage]) -> int:
        """Where the logs of all live replicas begin, at the latest."""
        starts = [
            follower.log_start_offset
            for broker, follower in self.followers.items()
            if broker in brokers and broker in self.replicas
        ]
        return min([log_start_offset, *starts])


def is_eligible(follower: Follower, brokers: Mapping[int, BrokerImage]) -> bool:
    """Whether the follower fetched with the broker epoch of the image, and is active."""
    broker = brokers.get(follower.broker_id)
    return broker is not None and broker.is_active and broker.epoch == follower.broker_epoch


def _next(state: PartitionState) -> PartitionState:
    return state._replace(partition_epoch=state.partition_epoch + 1)
