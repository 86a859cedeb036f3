"""What an application refuses, what it sets aside, and what its stores answer."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.integration.spark.crashing import consumed
from tests.support.broker import BrokerProcess
from tests.support.streams_spark import Feed, application, create

from penstock.client.operations.group_offsets import group_offsets
from penstock.client.operations.topics import delete_topics
from penstock.client.values import TopicPartition
from penstock.client.wire.raw_cluster import cluster_for
from penstock.errors import CommandError
from penstock.schemas.dead_letters import cause_of
from penstock.streams import (
    JSON,
    STRING,
    StoreFollower,
    StreamsBuilder,
    StreamsTopology,
    TimeWindow,
    TimeWindows,
    TopologyError,
)

pytestmark = pytest.mark.timeout(600)


def visits(store: str = "visits") -> StreamsTopology:
    builder = StreamsBuilder(value=JSON)
    clicks = builder.stream("clicks").group_by_key()
    clicks.count(store=store)
    clicks.windowed_by(TimeWindows.of(1_000)).count(store="by-second")
    return builder.build()


def joined() -> StreamsTopology:
    builder = StreamsBuilder(value=STRING)
    table = builder.table("wide")
    builder.stream("narrow").join_table(table, lambda mine, row: mine + row).to("out")
    return builder.build()


def test_topics_that_do_not_fit_are_refused_in_kafka_streams_words(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    create(broker.address, "narrow", partitions=1)
    app = application(spark, joined(), broker.address, tmp_path, "joined")
    with pytest.raises(CommandError, match="Missing source topics: wide"):
        app.start()
    create(broker.address, "wide", partitions=3)
    app = application(spark, joined(), broker.address, tmp_path, "joined")
    with pytest.raises(TopologyError, match=r"Topics not co-partitioned: \[narrow,wide\]"):
        app.start()
    create(broker.address, "clicks")
    create(broker.address, "app-visits-changelog", partitions=4)
    app = application(spark, visits(), broker.address, tmp_path, "app")
    with pytest.raises(CommandError, match="has invalid partitions: expected: 1; actual: 4"):
        app.start()


def test_bad_records_are_set_aside_stores_answer_and_a_changed_plan_is_refused(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    address, feed = broker.address, Feed(broker.address)
    create(address, "clicks", "bad")
    for number in range(20):
        feed.put("clicks", f"k{number % 3}", '"x"', 1_000 + 100 * number)
    feed.put("clicks", "k0", "no JSON", 5_000)
    feed.flush()
    # The records are of 1970, and a changelog of windows forgets by time.
    old: dict[str, Any] = {"windowstore_changelog_additional_retention_ms": 10**14}
    app = application(spark, visits(), address, tmp_path, "app", (__name__,), **old)
    app.run_once()
    assert app.failure is not None and "clicks-0@20 cannot be read" in app.failure
    letters = {**old, "errors_dead_letter_queue_topic_name": "bad"}
    app = application(spark, visits(), address, tmp_path, "app", (__name__,), **letters)
    app.run_once()
    assert app.failure is None
    (letter,) = consumed(address, "bad")
    assert letter.value() == b"no JSON" and letter.timestamp()[1] == 5_000
    assert cause_of(letter.headers()).origin == "clicks-0@20"
    client = {"bootstrap.servers": address}
    with cluster_for(client) as cluster:
        assert TopicPartition("clicks", 0) in group_offsets(cluster, "app")
    with StoreFollower(visits(), "app", "visits", client) as follower:
        follower.wait_until_current()
        assert follower.range("k0", "k1") == [("k0", 7), ("k1", 7)]
        assert follower.get("k2") == 6 and follower.get("k9") is None
        with follower.view() as view:
            assert view.offsets.keys() == {0} and dict(view.all())["k1"] == 7
        follower.wait_for(follower.offsets)
    with StoreFollower(visits(), "app", "by-second", client) as follower:
        follower.wait_until_current()
        assert follower.fetch("k0", 1_000, 2_000) == [
            (TimeWindow(1_000, 2_000), 4),
            (TimeWindow(2_000, 3_000), 3),
        ]
    app = application(spark, visits("other"), address, tmp_path, "app", (__name__,))
    with pytest.raises(CommandError, match=r"stage 0: .* with visits is gone.*streams reset app"):
        app.start()
    with cluster_for(client) as cluster:
        delete_topics(cluster, ["app-by-second-changelog"], timeout_ms=30_000)
    for place, said in (
        (tmp_path, "its topic app-by-second-changelog is gone"),
        (tmp_path / "elsewhere", "has run before"),
    ):
        app = application(spark, visits(), address, place, "app", (__name__,))
        with pytest.raises(CommandError, match=said):
            app.start()
