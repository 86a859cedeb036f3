"""Stages are cut at topics, and repartition topics get the partitions that joins need."""

import pytest

from penstock.streams import STRING, StreamsBuilder, StreamsTopology, TopologyError
from penstock.streams.plan.outline import differences, outline_of
from penstock.streams.plan.stages import cut, own_format_topics, partition_counts, task_count


def joined(*, repartitioned: bool) -> StreamsTopology:
    builder = StreamsBuilder(value=STRING)
    stream = builder.stream("clicks")
    stream = stream.repartition(name="by-page") if repartitioned else stream
    stream.join_table(builder.table("pages"), lambda mine, row: mine + row).to("out")
    return builder.build()


def foreign() -> StreamsTopology:
    builder = StreamsBuilder()
    orders, customers = builder.table("orders"), builder.table("customers")
    orders.join_foreign_key(customers, lambda k, v: v["c"], lambda o, c: [o, c], store="shown")
    return builder.build()


def test_a_repartition_topic_is_as_wide_as_what_it_meets() -> None:
    topology = joined(repartitioned=True)
    first, second = stages = cut(topology)
    counts = partition_counts(topology, stages, {"clicks": 2, "pages": 5})
    assert counts["by-page-repartition"] == 5
    assert {tuple(first.topics), tuple(second.topics)} == {
        ("clicks",),
        ("by-page-repartition", "pages"),
    }
    assert sorted(task_count(stage, counts) for stage in stages) == [2, 5]
    assert sorted(stage.has_state for stage in stages) == [False, True]


def test_topics_that_meet_must_be_as_wide_as_each_other() -> None:
    topology = joined(repartitioned=False)
    stages = cut(topology)
    assert partition_counts(topology, stages, {"clicks": 3, "pages": 3})["pages"] == 3
    with pytest.raises(TopologyError, match=r"Topics not co-partitioned: \[clicks,pages\]"):
        partition_counts(topology, stages, {"clicks": 2, "pages": 3})


def test_a_merge_need_not_be_of_equal_topics() -> None:
    builder = StreamsBuilder()
    builder.stream("a").merge(builder.stream("b")).group_by_key().count()
    topology = builder.build()
    stages = cut(topology)
    assert task_count(stages[0], partition_counts(topology, stages, {"a": 2, "b": 7})) == 7


def test_a_foreign_key_join_goes_to_the_other_table_and_back() -> None:
    topology = foreign()
    stages = cut(topology)
    counts = partition_counts(topology, stages, {"orders": 4, "customers": 3})
    asked, answered = sorted(topology.internal_topics)
    assert own_format_topics(topology) == topology.internal_topics
    assert sorted(counts[topic] for topic in (asked, answered)) == [3, 4]


def test_a_missing_input_is_told() -> None:
    topology = joined(repartitioned=True)
    with pytest.raises(TopologyError, match="make sure all user input topics are created"):
        partition_counts(topology, cut(topology), {"other": 1})


def test_an_outline_tells_what_changed() -> None:
    topology = foreign()
    stages, known = cut(topology), {"orders": 4, "customers": 3}
    counts = partition_counts(topology, stages, known)
    outline = outline_of(stages, counts, 2)
    assert not differences(outline, outline)
    wider = outline_of(stages, {**counts, "orders": 8}, 4)
    assert differences(outline, wider) == [
        "shuffle.partitions was 2, and is 4",
        "stage 0 had 4 partitions, and has 8",
    ]
    other = cut(joined(repartitioned=False))
    found = differences(outline, outline_of(other, {"clicks": 4, "pages": 4}, 2))
    assert "stage 1 is gone" in found
    assert any("reads clicks is new" in line for line in found)
