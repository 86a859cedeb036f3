"""Elections asked for: of preferred leaders, and unclean ones; and the balance between brokers."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cluster.control import leader_elections
from penstock.cluster.control.controller import (
    Controller,
    ControlSettings,
    ElectionKind,
    EntityOverrides,
    ReplicaEnd,
)
from penstock.cluster.control.leader_elections import MOVES_PER_ROUND_MAX, displaced, furthest
from penstock.cluster.image.image import (
    NO_LEADER,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    PartitionKey,
    PartitionState,
    TopicImage,
)
from penstock.cluster.transition import RECOVERING, Expanded, Shrunk
from penstock.cluster.znodes import PreviousShutdown
from penstock.errors import (
    BrokerNotAvailable,
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)

PREFERRED, UNCLEAN = ElectionKind.PREFERRED, ElectionKind.UNCLEAN


def state(controller: Controller, topic: str = "t", number: int = 0) -> PartitionState:
    found = controller.image.partition(topic, number)
    assert found is not None
    return found.state


class Ends:
    """What brokers answer when they are asked how far their logs reach."""

    def __init__(self, **ends: tuple[int, int]) -> None:
        self.ends = {int(name[1:]): ReplicaEnd(*end) for name, end in ends.items()}
        self.asked: list[int] = []

    async def __call__(
        self, broker: int, keys: Sequence[PartitionKey]
    ) -> Mapping[PartitionKey, ReplicaEnd]:
        self.asked.append(broker)
        if broker not in self.ends:
            raise BrokerNotAvailable(f"{broker} is not there")
        return dict.fromkeys(keys, self.ends[broker])


async def three(cluster: Any, topic: str = "t", **configs: str) -> Controller:
    controller: Controller = await cluster.start(0, 1, 2)
    await cluster.place(controller, topic, (1, 2, 0), **configs)
    return controller


async def vacant(cluster: Any, topic: str = "t", **configs: str) -> Controller:
    """Brokers 0 and 2 are there and behind; broker 1 has all and is gone."""
    await three(cluster, topic, **configs)
    await cluster.leader_writes(Shrunk(1, frozenset((0, 2))), topic)
    await cluster.stop_all()
    for back in (0, 2):
        await cluster.register(back)
    controller: Controller = await cluster.elect(0)
    assert (state(controller, topic).leader, state(controller, topic).elr) == (NO_LEADER, (1,))
    return controller


# Preferred


async def test_the_preferred_leader_takes_over_when_it_is_asked_for(cluster: Any) -> None:
    controller = await three(cluster)
    await cluster.stop(1)
    await controller.reconcile_brokers()
    assert state(controller).leader == 2
    outcomes = await controller.elect_leaders(PREFERRED, [("t", 0)])
    assert isinstance(outcomes["t", 0], PreferredLeaderNotAvailable)
    await cluster.register(1)
    await controller.reconcile_brokers()
    outcomes = await controller.elect_leaders(PREFERRED, [("t", 0)])
    assert isinstance(outcomes["t", 0], PreferredLeaderNotAvailable)  # It is not in sync.
    await cluster.leader_writes(Expanded(2, frozenset((1,))), "t")
    # The controller has not heard of that: it loses the race, looks, and decides anew.
    await controller.refresh_partitions([("t", 0)])
    assert await controller.elect_leaders(PREFERRED, [("t", 0)]) == {("t", 0): None}
    assert (state(controller).leader, state(controller).leader_epoch) == (1, 2)


async def test_what_needs_no_election_or_does_not_exist_is_told(cluster: Any) -> None:
    controller = await three(cluster)
    for kind in (PREFERRED, UNCLEAN):
        outcomes = await controller.elect_leaders(kind, [("t", 0), ("t", 9), ("x", 0)])
        assert [type(error) for error in outcomes.values()] == [
            ElectionNotNeeded,
            UnknownTopicOrPartition,
            UnknownTopicOrPartition,
        ]
        assert await controller.elect_leaders(kind, None) == {}
    assert state(controller).leader_epoch == 0


# Unclean


async def test_without_leave_a_partition_waits_for_who_has_all(cluster: Any) -> None:
    cluster.ask_ends = Ends(b0=(0, 5), b2=(0, 9))
    controller = await vacant(cluster)
    await controller.fill_vacancies()
    await controller.sweep()
    assert state(controller).leader == NO_LEADER
    assert cluster.ask_ends.asked == []
    assert controller.unclean_elections == 0


async def test_the_furthest_replica_leads_where_the_topic_allows_it_and_loudly(
    cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.ask_ends = Ends(b0=(0, 5), b2=(0, 9))
    controller = await vacant(cluster, unclean_leader_election_enable="true")
    await controller.fill_vacancies()
    elected = state(controller)
    assert (elected.leader, elected.isr, elected.elr) == (2, (2,), ())
    assert elected.leader_recovery_state == RECOVERING
    assert sorted(cluster.ask_ends.asked) == [0, 2]
    assert controller.unclean_elections == 1
    assert "UNCLEAN ELECTION: 1 partition(s) of topic t are led by broker 2" in caplog.text


async def test_the_brokers_default_holds_for_topics_that_do_not_say(cluster: Any) -> None:
    cluster.settings = ControlSettings(allows_unclean_election=True)
    cluster.ask_ends = Ends(b0=(1, 5), b2=(0, 9))
    controller = await vacant(cluster)
    await controller.reconcile_brokers()
    assert state(controller).leader == 0  # The later epoch counts before the longer log.


async def test_a_leader_is_found_when_the_topic_begins_to_allow_it(cluster: Any) -> None:
    cluster.ask_ends = Ends(b0=(0, 5), b2=(0, 9))
    controller = await vacant(cluster)
    config = {"unclean.leader.election.enable": "true"}
    await controller.set_configs([EntityOverrides(kind="topics", name="t", config=config)])
    assert state(controller).leader == 2


async def test_a_topic_can_refuse_what_the_broker_allows(cluster: Any) -> None:
    cluster.settings = ControlSettings(allows_unclean_election=True)
    cluster.ask_ends = Ends(b0=(0, 5), b2=(0, 9))
    controller = await vacant(cluster, unclean_leader_election_enable="false")
    await controller.sweep()
    assert state(controller).leader == NO_LEADER


async def test_internal_topics_always_wait(cluster: Any) -> None:
    cluster.settings = ControlSettings(allows_unclean_election=True)
    cluster.ask_ends = Ends(b0=(0, 5), b2=(0, 9))
    name = "__consumer_offsets"
    controller = await vacant(cluster, name, unclean_leader_election_enable="true")
    await controller.sweep()
    assert state(controller, name).leader == NO_LEADER


async def test_who_asks_for_an_unclean_election_gets_one_whatever_the_settings(
    cluster: Any,
) -> None:
    cluster.ask_ends = Ends(b0=(0, 5))  # Broker 2 does not answer.
    controller = await vacant(cluster)
    outcomes = await controller.elect_leaders(UNCLEAN, None)
    assert outcomes == {("t", 0): None}
    assert state(controller).leader == 0


async def all_lost_power(cluster: Any, topic: str = "t") -> Controller:
    """Two of three must be in sync; all three come back with less than they had."""
    await three(cluster, topic, min_insync_replicas="2")
    await cluster.stop_all()
    controller: Controller | None = None
    for back in (0, 1, 2):
        await cluster.register(back, prev_shutdown=PreviousShutdown.LOSSY)
        if controller is None:
            controller = await cluster.elect(back)
        else:
            await controller.reconcile_brokers()
    assert controller is not None
    return controller


@pytest.mark.parametrize("topic", ["t", "__transaction_state"])
async def test_when_all_lost_records_and_all_are_back_the_furthest_leads(
    cluster: Any, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.ask_ends = Ends(b0=(3, 7), b1=(3, 9), b2=(2, 11))
    controller = await all_lost_power(cluster, topic)
    elected = state(controller, topic)
    assert (elected.leader, elected.isr, elected.leader_recovery_state) == (1, (1,), RECOVERING)
    assert f"UNCLEAN ELECTION: 1 partition(s) of topic {topic}" in caplog.text


async def test_after_a_power_cut_nobody_is_elected_before_all_have_told(cluster: Any) -> None:
    cluster.ask_ends = Ends(b0=(3, 7), b2=(2, 11))  # Broker 1 opens its logs still.
    controller = await all_lost_power(cluster)
    assert state(controller).lke and state(controller).leader == NO_LEADER
    cluster.ask_ends.ends[1] = ReplicaEnd(3, 9)
    await controller.recover_from_power_cuts()
    assert state(controller).leader == 1


async def test_after_a_power_cut_of_some_the_one_that_lost_nothing_is_waited_for(
    cluster: Any,
) -> None:
    cluster.ask_ends = Ends(b0=(3, 7), b2=(3, 9))
    await three(cluster, min_insync_replicas="2")
    await cluster.stop_all()
    await cluster.register(0, prev_shutdown=PreviousShutdown.LOSSY)
    controller = await cluster.elect(0)
    await cluster.register(2, prev_shutdown=PreviousShutdown.LOSSY)
    await controller.reconcile_brokers()
    await controller.recover_from_power_cuts()
    assert state(controller).leader == NO_LEADER
    cluster.ask_ends.ends[1] = ReplicaEnd(3, 12)
    await cluster.register(1)
    await controller.reconcile_brokers()
    assert state(controller).leader == 1


async def test_nobody_answers_and_so_nobody_is_elected(cluster: Any) -> None:
    cluster.ask_ends = Ends()
    controller = await vacant(cluster)
    outcomes = await controller.elect_leaders(UNCLEAN, [("t", 0)])
    assert isinstance(outcomes["t", 0], EligibleLeadersNotAvailable)


async def test_who_has_all_and_returns_while_the_others_are_asked_leads_instead(
    cluster: Any,
) -> None:
    controller: Controller

    async def ask(_: int, keys: Sequence[PartitionKey]) -> Mapping[PartitionKey, ReplicaEnd]:
        if 1 not in controller.image.brokers:
            await cluster.register(1)
            await controller.reconcile_brokers()
        return dict.fromkeys(keys, ReplicaEnd(9, 9))

    cluster.ask_ends = ask
    controller = await vacant(cluster)
    assert await controller.elect_leaders(UNCLEAN, [("t", 0)]) == {("t", 0): None}
    assert state(controller).leader == 1
    assert state(controller).leader_recovery_state != RECOVERING
    assert controller.unclean_elections == 0


ends = st.builds(ReplicaEnd, st.integers(-1, 3), st.integers(0, 4), st.just(0))


@given(
    st.permutations(range(4)),
    st.frozensets(st.integers(0, 3)),
    st.dictionaries(st.integers(0, 3), ends),
)
def test_nobody_who_answered_reaches_further_than_the_one_chosen(
    order: list[int], lke: frozenset[int], answered: dict[int, ReplicaEnd]
) -> None:
    vacancy = PartitionState(
        leader=NO_LEADER, leader_epoch=1, isr=(), min_isr=1, lke=tuple(sorted(lke))
    )
    chosen = furthest(PartitionImage(replicas=tuple(order), state=vacancy), answered)
    if chosen is None:
        assert not answered
        return
    best = max(end[:2] for end in answered.values())
    assert answered[chosen][:2] == best
    equals = [r for r in order if r in answered and answered[r][:2] == best]
    assert chosen in lke or not lke.intersection(equals)


# Balance


def image_with(*partitions: tuple[tuple[int, ...], int, tuple[int, ...]]) -> ClusterImage:
    """Partitions as replicas, leader and in-sync set, on four brokers of which 3 is fenced."""
    brokers = {
        n: BrokerImage(broker_id=n, epoch=1, endpoints=(), is_active=n != 3) for n in range(4)
    }
    found = {
        number: PartitionImage(
            replicas=replicas,
            state=PartitionState(leader=leader, leader_epoch=0, isr=isr, min_isr=1),
        )
        for number, (replicas, leader, isr) in enumerate(partitions)
    }
    topic = TopicImage(name="t", topic_id=b"t" * 16, partitions=found)
    return ClusterImage(cluster_id="c", brokers=brokers, topics={"t": topic})


HOME, AWAY = ((0, 1), 0, (0, 1)), ((0, 1), 1, (0, 1))


def test_a_broker_that_misses_no_more_than_it_may_is_left_alone() -> None:
    assert displaced(image_with(*[HOME] * 9, AWAY), percent_max=10) == []
    assert displaced(image_with(*[HOME] * 8, AWAY, AWAY), percent_max=10) == [("t", 8), ("t", 9)]
    assert displaced(image_with(AWAY), percent_max=0) == [("t", 0)]


@pytest.mark.parametrize(
    "case",
    [
        ((0, 1), 1, (1,)),  # The preferred one is not in sync.
        ((3, 1), 1, (3, 1)),  # It is fenced.
        ((0, 1), NO_LEADER, ()),
    ],
)
def test_leadership_is_given_back_only_where_that_is_safe(
    case: tuple[tuple[int, ...], int, tuple[int, ...]],
) -> None:
    assert displaced(image_with(case), percent_max=0) == []


def test_what_is_on_the_move_is_left_alone() -> None:
    image = image_with(AWAY)
    moving = image.topics["t"].partitions[0]._replace(adding=(0,))
    topic = TopicImage(name="t", topic_id=b"t" * 16, partitions={0: moving})
    changed = ClusterImage(cluster_id="c", brokers=image.brokers, topics={"t": topic})
    assert displaced(changed, percent_max=0) == []


async def test_a_round_gives_leaderships_back_and_not_too_many(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOVES_PER_ROUND_MAX == 500
    monkeypatch.setattr(leader_elections, "MOVES_PER_ROUND_MAX", 2)
    controller = await cluster.start(0, 1)
    await cluster.place(controller, "t", (1, 0), (1, 0), (1, 0))
    assert await controller.balance_leaders() == 0
    await cluster.stop(1)
    await controller.reconcile_brokers()
    await cluster.register(1)
    await controller.reconcile_brokers()
    for number in range(3):
        await cluster.leader_writes(Expanded(0, frozenset((1,))), "t", number)
    await controller.sweep()
    leaders = [state(controller, "t", number).leader for number in range(3)]
    assert leaders == [0, 0, 0]
    assert [await controller.balance_leaders() for _ in range(3)] == [2, 1, 0]
    assert [state(controller, "t", number).leader for number in range(3)] == [1, 1, 1]
