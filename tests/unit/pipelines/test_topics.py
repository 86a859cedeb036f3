"""Which topics pipelines bring along."""

from typing import Any

from penstock.pipelines import Pipeline, Table, Topic, pipeline
from penstock.pipelines.topics import declared_topics


def declared(name: str, source: Topic, target: Topic | Table) -> Pipeline:
    def same(rows: Any) -> Any:
        return rows

    return pipeline(name=name, inputs={"rows": source}, output=target)(same)


def test_the_declaration_that_can_create_a_topic_wins() -> None:
    writer = declared("writer", Topic("a"), Topic("b", partitions=3))
    reader = declared("reader", Topic("b"), Table("t"))
    for order in ([writer, reader], [reader, writer]):
        assert declared_topics(order)["b"].partitions == 3


def test_a_topic_for_dead_letters_is_created_with_the_pipeline() -> None:
    one = declared("one", Topic("a", value="id LONG", dead_letter="a.dead"), Topic("b"))
    assert declared_topics([one])["a.dead"].partitions == 1
    assert list(one.queries) == ["one", "one.a.dead"]
    assert one.group_of("one.a.dead") == "one.a.dead"
