"""The plan knows the topics Kafka Streams would make for it, and its sub-topologies."""

from penstock.streams import StreamsBuilder
from penstock.streams.plan.describe import subtopologies


def test_internal_topics_are_named_as_kafka_streams_names_them() -> None:
    builder = StreamsBuilder()
    groups = builder.stream("in").group_by(lambda k, v: v)
    groups.count(store="counts").to_stream().to("out")
    assert builder.build().internal_topic_names("shop") == [
        "shop-counts-changelog",
        "shop-counts-repartition",
    ]


def test_a_store_that_nobody_needs_is_not_made() -> None:
    builder = StreamsBuilder()
    builder.table("in").to_stream().to("out")
    assert builder.build().stores == ()
    builder.table("other", store="kept")
    assert [store.name for store in builder.build().stores] == ["kept"]


def test_streams_of_one_topic_share_its_source() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("one")
    builder.stream("in").to("two")
    assert [node.name for node in builder.build().sources] == ["KSTREAM-SOURCE-0000000000"]


def test_a_repartition_topic_cuts_the_topology_and_a_store_holds_it_together() -> None:
    builder = StreamsBuilder()
    table = builder.table("rows")
    builder.stream("in").join_table(table, lambda one, two: one).to("out")
    assert len(subtopologies(builder.build())) == 1
    builder.stream("in").group_by(lambda k, v: v).count()
    assert len(subtopologies(builder.build())) == 2
