"""An image never changes; the next one shares with it whatever stayed the same."""

import time
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from penstock.cluster.image.image import (
    BrokerImage,
    ClusterImage,
    ImageDelta,
    PartitionImage,
    PartitionState,
    TopicImage,
    sharing,
)

STATE = PartitionState(leader=0, leader_epoch=0, isr=(0,), min_isr=1)
PARTITION = PartitionImage(replicas=(0,), state=STATE)


def topic(name: str, topic_id: int = 1, partitions: int = 1) -> TopicImage:
    return TopicImage(
        name=name,
        topic_id=topic_id.to_bytes(16, "big"),
        partitions=dict.fromkeys(range(partitions), PARTITION),
    )


def broker(broker_id: int, *, is_active: bool = True) -> BrokerImage:
    return BrokerImage(broker_id=broker_id, epoch=1, endpoints=(), is_active=is_active)


EMPTY = ClusterImage(cluster_id="c", controller_id=0, controller_epoch=3)


def test_a_change_leaves_the_image_before_it_alone() -> None:
    first = EMPTY.apply(ImageDelta(topics={"t": topic("t")}))
    second = first.apply(ImageDelta(topics={"t": None}, brokers={0: broker(0)}))
    assert (EMPTY.topics, list(first.topics), second.topics) == ({}, ["t"], {})
    assert (first.brokers, list(second.brokers)) == ({}, [0])
    assert [image.seq for image in (EMPTY, first, second)] == [0, 1, 2]


def test_what_a_change_does_not_touch_is_the_same_object() -> None:
    before = EMPTY.apply(
        ImageDelta(topics={"a": topic("a"), "b": topic("b", 2)}, brokers={0: broker(0)})
    )
    after = before.apply(ImageDelta(configs={("topics", "a"): {"k": "v"}}))
    assert after.topics is before.topics
    assert after.brokers is before.brokers
    moved = after.apply(ImageDelta(partitions={("a", 0): PARTITION._replace(adding=(1,))}))
    assert moved.topics["b"] is before.topics["b"]
    assert moved.configs is after.configs


def test_topics_are_found_by_their_ids_and_an_old_id_is_forgotten() -> None:
    first = EMPTY.apply(ImageDelta(topics={"t": topic("t", 1), "u": topic("u", 2)}))
    again = first.apply(ImageDelta(topics={"t": topic("t", 3)}))
    gone = again.apply(ImageDelta(topics={"t": None}))
    ids = [
        {int.from_bytes(key, "big"): name for key, name in image.topic_names_by_id.items()}
        for image in (first, again, gone)
    ]
    assert ids == [{1: "t", 2: "u"}, {3: "t", 2: "u"}, {2: "u"}]


def test_one_partition_of_many_changes() -> None:
    before = EMPTY.apply(ImageDelta(topics={"t": topic("t", partitions=3)}))
    moved = PARTITION._replace(state=STATE._replace(leader=7))
    after = before.apply(ImageDelta(partitions={("t", 1): moved}))
    assert [after.topics["t"].partitions[n].state.leader for n in range(3)] == [0, 7, 0]
    assert [before.topics["t"].partitions[n].state.leader for n in range(3)] == [0, 0, 0]
    assert after.topics["t"].topic_id == before.topics["t"].topic_id


def fresh(name: str, partitions: int, topic_id: int = 1) -> TopicImage:
    """A topic whose partitions are equal to others, and none of them the same."""
    made = topic(name, topic_id)
    return replace(made, partitions={n: PARTITION._replace(adding=()) for n in range(partitions)})


def test_an_image_of_another_controller_shares_what_is_known_already() -> None:
    known = EMPTY.apply(
        ImageDelta(topics={"t": fresh("t", 3), "u": fresh("u", 2, 2)}, brokers={0: broker(0)})
    )
    other = replace(
        known,
        controller_epoch=9,
        brokers={0: broker(0)},
        topics={"t": fresh("t", 3), "u": fresh("u", 4, 2)},
    )
    shared = sharing(known, other)
    assert shared == other
    assert shared.topics["t"] is known.topics["t"]
    assert shared.brokers is known.brokers
    old, new = known.topics["u"].partitions, shared.topics["u"].partitions
    assert [new[number] is old.get(number) for number in range(4)] == [True, True, False, False]


def test_a_topic_made_anew_or_shortened_is_not_taken_for_the_old_one() -> None:
    known = EMPTY.apply(ImageDelta(topics={"t": fresh("t", 3)}))
    for other in (fresh("t", 3, topic_id=7), fresh("t", 2)):
        image = replace(known, topics={"t": other})
        assert sharing(known, image) == image


def test_partitions_and_settings_are_looked_up_gently() -> None:
    image = EMPTY.apply(ImageDelta(topics={"t": topic("t")}, configs={("topics", "t"): {"a": "b"}}))
    assert image.partition("t", 0) == PARTITION
    assert image.partition("t", 1) is None
    assert image.partition("none", 0) is None
    assert image.config("topics", "t") == {"a": "b"}
    assert image.config("topics", "none") == {}


def test_only_active_brokers_count_as_active() -> None:
    image = EMPTY.apply(ImageDelta(brokers={0: broker(0), 1: broker(1, is_active=False)}))
    assert image.active_brokers() == {0}


def test_a_delta_that_says_nothing_is_false() -> None:
    assert not ImageDelta()
    assert ImageDelta(brokers={0: None})


def test_one_change_among_ten_thousand_topics_costs_less_than_a_millisecond() -> None:
    many = {f"t{n}": topic(f"t{n}", n) for n in range(10_000)}
    image = EMPTY.apply(ImageDelta(topics=many))
    changes = (
        ImageDelta(topics={"t5": topic("t5", 20_000)}),
        ImageDelta(partitions={("t6", 0): PARTITION}),
        ImageDelta(topics={"t7": None}, configs={("topics", "t7"): None}),
    )
    for change in changes:
        spent_s = []
        for _ in range(15):
            begun_s = time.process_time()
            image.apply(change)
            spent_s.append(time.process_time() - begun_s)
        assert min(spent_s) < 0.001


names = st.sampled_from(("a", "b", "c"))
deltas = st.lists(
    st.dictionaries(names, st.none() | st.integers(1, 5)).map(
        lambda topics: {name: n and topic(name, ord(name) * 10 + n) for name, n in topics.items()}
    ),
    max_size=8,
)


@given(deltas)
def test_ids_and_names_always_agree(changes: list[dict[str, TopicImage | None]]) -> None:
    image = EMPTY
    for topics in changes:
        image = image.apply(ImageDelta(topics=topics))
        assert image.topic_names_by_id == {t.topic_id: t.name for t in image.topics.values()}
