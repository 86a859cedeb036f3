"""Random histories of a consumer group: joins, losses, deaths, crashes and changes of protocol.

Whatever happens, no two members have a partition at once, a group that was loaded is the one that
was there before, and when everybody just beats its heart for a while, all partitions are shared.
"""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.groups.consumer_rig import ClassicConsumer, Consumer, ConsumerRig, Held

from penstock.groups.consumer.state import GroupState

TOPICS = ["t", "u", "v"]
Step = tuple[object, ...]  # The name of a method of History, and its arguments.

who = st.sampled_from([0, 1, 2, 3])
which = st.sampled_from([0, 1])
flag = st.booleans()
rarely = st.sampled_from([False, False, False, True])
wishes = st.lists(st.sampled_from(TOPICS), unique=True, min_size=1)


def step(name: str, *arguments: st.SearchStrategy[object]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), *arguments)


# How frequent each is in life.
FREQUENCIES = {
    step("live", who, flag, rarely, rarely): 12,
    step("live_classic", which): 6,
    step("wait", st.sampled_from([100, 1000, 1000, 3000, 11_000, 46_000])): 3,
    step("crash"): 2,
    step("say_everything", who, flag): 1,
    step("subscribe", who, wishes): 1,
    step("subscribe_classic", which, wishes): 1,
    step("leave", who, flag): 1,
    step("die", who): 1,
    step("leave_classic", which): 1,
    step("die_classic", which): 1,
    step("grow", st.sampled_from(TOPICS)): 1,
    step("delete", st.sampled_from(TOPICS)): 1,
    step("fail_to_write", who): 1,
}
STEPS = st.sampled_from(
    [each for each, times in FREQUENCIES.items() for _ in range(times)]
).flatmap(lambda each: each)


class History:
    """Four consumers of the new protocol, the last of them static, and two classic ones."""

    def __init__(self, interval_ms: str) -> None:
        self.rig = ConsumerRig({"group.consumer.assignment.interval.ms": interval_ms}, t=3, u=2)
        self.new = [Consumer(self.rig, f"n{i}", ["t"]) for i in range(3)]
        self.new.append(Consumer(self.rig, "s", ["t", "u"], instance_id="static"))
        self.classic = [
            ClassicConsumer(self.rig, "c0", ["t"]),
            ClassicConsumer(self.rig, "c1", ["t", "u"], is_eager=True),
        ]
        self.era = 0  # How often the group changed its kind.
        self.kind = ""
        self.synced_in: dict[str, int] = {}  # The era in which a classic member synced first.
        self.deaths = 0

    def play(self, steps: list[Step]) -> None:
        for name, *arguments in steps:
            method: Callable[..., None] = getattr(self, str(name))
            method(*arguments)
            self.check()

    # The new protocol

    def live(self, who: int, settles: bool, is_silent: bool, is_lost: bool) -> None:
        """Join, or beat; what a member owns it says only when it has done as it was told.

        After an answer was lost it says everything, and is told everything in return.
        """
        consumer = self.new[who]
        if consumer.epoch < 0:
            consumer.join(is_lost=is_lost)
        elif consumer.epoch == 0 or consumer.has_lost_an_answer:
            self.say_everything(who, is_lost)
        else:
            if settles:
                consumer.settle()
            is_silent |= consumer.owned != consumer.told
            consumer.beat(is_silent=is_silent, is_lost=is_lost)

    def say_everything(self, who: int, is_lost: bool) -> None:
        if self.new[who].epoch >= 0:
            self.new[who].settle()
            self.new[who].full_beat(is_lost=is_lost)

    def subscribe(self, who: int, topics: list[str]) -> None:
        self.new[who].topics = topics
        self.say_everything(who, is_lost=False)

    def leave(self, who: int, for_a_while: bool) -> None:
        consumer = self.new[who]
        if consumer.epoch > 0:
            consumer.leave(epoch=-2 if for_a_while and consumer.instance_id else -1)

    def die(self, who: int) -> None:
        """Without a word; the next process makes up another id."""
        self.deaths += 1
        self.new[who].drop_all()
        self.new[who].member_id = f"{self.new[who].name}-{self.deaths}"

    # The classic protocol

    def live_classic(self, which: int) -> None:
        consumer = self.classic[which]
        consumer.step()
        self.note_kind()
        if consumer.phase == "in":
            self.synced_in.setdefault(consumer.member_id, self.era)

    def subscribe_classic(self, which: int, topics: list[str]) -> None:
        """It joins again, unless it is just about to be told what it has by its old wishes."""
        consumer = self.classic[which]
        if consumer.phase in ("in", "out"):
            consumer.topics = topics
            consumer.phase = "out"

    def leave_classic(self, which: int) -> None:
        self.classic[which].leave()

    def die_classic(self, which: int) -> None:
        self.classic[which].die()

    # Everything else

    def wait(self, elapsed_ms: int) -> None:
        self.rig.wait(elapsed_ms)

    def grow(self, name: str) -> None:
        topic = self.rig.image.topics.get(name)
        before = 0 if topic is None else len(topic.partitions)
        if before < 5:
            self.rig.make_topics(**{name: before + 2})

    def delete(self, name: str) -> None:
        """Consumers see in the metadata that it is gone."""
        topic = self.rig.image.topics.get(name)
        if topic is not None:
            self.rig.delete_topic(name)
            for consumer in (*self.new, *self.classic):
                consumer.forget_topic(topic.topic_id)

    def fail_to_write(self, who: int) -> None:
        before = snapshot(self.rig)
        self.rig.break_journal()
        self.say_everything(who, is_lost=False)
        self.rig.mend_journal()
        assert snapshot(self.rig) == before, "nothing was written, yet something is believed"

    def crash(self) -> None:
        if not self.rig.is_consumer_group:
            return  # Half a rebalance of a classic group is lost, and that is no fault of ours.
        before = snapshot(self.rig)
        self.rig.reload()
        assert snapshot(self.rig) == before, "a loaded group is another one"
        for consumer in self.classic:
            consumer.disconnect()

    # What always holds

    def note_kind(self) -> None:
        if self.rig.kind != self.kind:
            self.kind = self.rig.kind
            self.era += 1
            self.synced_in.clear()

    def check(self) -> None:
        self.note_kind()
        if self.rig.is_consumer_group:
            self.check_owners()
            self.check_members()

    def check_owners(self) -> None:
        """No two members have a partition."""
        seen: dict[tuple[bytes, int], str] = {}
        for member_id in self.rig.known.members:
            for each in self.rig.held(member_id):
                assert each not in seen, f"{member_id} has what {seen[each]} has"
                seen[each] = member_id
        assert self.rig.known.owners == seen

    def check_members(self) -> None:
        """Members use only what the group believes they have.

        A classic member may not have heard of the last rebalance before the group changed its
        protocol; from its first assignment in the new one on it is held to it.
        """
        for consumer in self.new:
            if consumer.epoch >= 0 and consumer.member_id in self.rig.known.members:
                assert consumer.owned <= self.rig.held(consumer.member_id), consumer.name
        for member in self.classic:
            is_known = member.member_id in self.rig.known.members
            if is_known and self.synced_in.get(member.member_id) == self.era:
                assert member.owned <= self.rig.held(member.member_id), member.name

    # And in the end

    def settle(self) -> None:
        """Heartbeats only, for long enough that the dead are noticed: all is shared, by all."""
        living = [self.new[0], *(consumer for consumer in self.new[1:] if consumer.epoch >= 0)]
        classic = [which for which in (0, 1) if self.classic[which].member_id]
        for _ in range(45):
            self.rig.wait(2500)
            for consumer in living:
                self.live(self.new.index(consumer), True, False, False)
                consumer.settle()
            for which in classic:
                self.live_classic(which)
            self.check()
        assert self.rig.known.phase == "Stable"
        self.check_shares(living, [self.classic[which] for which in classic])

    def check_shares(self, living: list[Consumer], classic: list[ClassicConsumer]) -> None:
        ids = {consumer.member_id for consumer in (*living, *classic)}
        assert self.rig.known.members.keys() == ids
        wanted = {topic for consumer in (*living, *classic) for topic in consumer.topics}
        shared: list[tuple[bytes, int]] = []
        for consumer in (*living, *classic):
            owned: Held = consumer.owned
            assert owned <= self.rig.all_of(consumer.topics), f"{consumer.name} wants no such topic"
            shared += owned
        assert sorted(shared) == sorted(self.rig.all_of(wanted))


def snapshot(rig: ConsumerRig) -> dict[str, object] | None:
    """All that the group's log says; None while it is no consumer group."""
    if not rig.is_consumer_group:
        return None
    known = rig.known
    return {name: getattr(known, name) for name in GroupState.__slots__}


@settings(max_examples=60, deadline=None)
@given(
    interval_ms=st.sampled_from(["0", "1000"]),
    steps=st.lists(STEPS, min_size=20, max_size=80),
)
def test_whatever_happens_partitions_are_shared_and_never_twice(
    interval_ms: str, steps: list[Step]
) -> None:
    history = History(interval_ms)
    history.play(steps)
    history.settle()
