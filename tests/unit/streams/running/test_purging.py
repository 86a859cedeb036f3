"""Repartition topics are purged up to what was committed, and nothing else is."""

from penstock.client.values import OffsetAndMetadata, TopicPartition
from penstock.errors import PenstockError
from penstock.streams.running.purging import RepartitionPurge, to_purge


def test_only_repartition_topics_are_purged_and_only_for_news() -> None:
    committed = {
        TopicPartition("app-r-repartition", 0): OffsetAndMetadata(7),
        TopicPartition("app-r-repartition", 1): OffsetAndMetadata(5),
        TopicPartition("app-r-repartition", 2): OffsetAndMetadata(0),
        TopicPartition("input", 0): OffsetAndMetadata(9),
    }
    done = {TopicPartition("app-r-repartition", 1): 5}
    found = to_purge(committed, {"app-r-repartition"}, done)
    assert found == {TopicPartition("app-r-repartition", 0): 7}


def test_a_cluster_that_is_away_is_asked_again_later() -> None:
    asked = []

    def away() -> None:
        asked.append(True)
        raise PenstockError("nobody answers")

    purge = RepartitionPurge(
        application_id="app",
        topics=frozenset({"r"}),
        connect=away,
        every_s=30.0,  # type: ignore[arg-type]
    )
    for now_s in (100.0, 110.0, 131.0):
        purge.look(now_s)
    assert len(asked) == 2
    purge.topics = frozenset()
    purge.look(500.0)
    assert len(asked) == 2
