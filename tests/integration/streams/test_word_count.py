"""Word count on Spark: two stages, exactly once, on from where it was after a restart."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.integration.spark.crashing import consumed, left_open
from tests.support.broker import BrokerProcess
from tests.support.streams_spark import Feed, application, create, long_of
from tests.support.waiting import eventually

from penstock.streams import LONG, STRING, StreamsBuilder, StreamsState, StreamsTopology

pytestmark = pytest.mark.timeout(600)
WAIT_S = 180


def word_count() -> StreamsTopology:
    builder = StreamsBuilder(value=STRING)
    words = builder.stream("lines").flat_map_values(str.split).group_by(lambda key, word: word)
    words.count(store="counts").to_stream().to("word-counts", value=LONG)
    return builder.build()


@pytest.fixture(scope="module")
def broker(shared_broker: BrokerProcess) -> Iterator[BrokerProcess]:
    create(shared_broker.address, "lines", "word-counts", partitions=2)
    yield shared_broker


def counts(address: str, topic: str) -> dict[str, int]:
    """The newest count of each word, as a reader of committed records has it."""
    return {r.key().decode(): long_of(r.value()) for r in consumed(address, topic)}


def run_until(
    spark: SparkSession, address: str, state: Path, total: int, seen: list[StreamsState]
) -> None:
    """Run the application until it has counted so many lines, and stop it."""
    app = application(spark, word_count(), address, state, "words", (__name__,))
    app.on_state_change(lambda new, old: seen.append(new))
    with app:
        eventually(
            lambda: app.failure or counts(address, "word-counts").get("streams") == total,
            timeout_s=WAIT_S,
            every_s=0.3,
            what="all words are counted",
        )
        assert app.failure is None
        eventually(lambda: app.state is StreamsState.RUNNING, timeout_s=WAIT_S, what="RUNNING")
    assert app.state is StreamsState.NOT_RUNNING


def test_words_are_counted_once_through_a_restart(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    address, feed = broker.address, Feed(broker.address)
    seen: list[StreamsState] = []
    for total in (300, 600):
        for number in range(300):
            feed.put("lines", None, f"all streams lead to all {number % 7}", total + number)
        feed.flush()
        run_until(spark, address, tmp_path, total, seen)
        found = counts(address, "word-counts")
        assert found["all"] == 2 * total and found["lead"] == total
        assert found == counts(address, "words-counts-changelog")
    told = [long_of(r.value()) for r in consumed(address, "word-counts") if r.key() == b"streams"]
    assert told == sorted(set(told)) and told[-1] == 600  # One result a batch, none twice.
    assert not left_open(address)
    assert seen.count(StreamsState.RUNNING) >= 2
