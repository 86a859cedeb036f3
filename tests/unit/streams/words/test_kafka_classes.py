"""What Kafka Streams' hosts, stores, contexts and windows can is there, or refused in a sentence.

The lists are their public methods in Kafka Streams 4.3, but for those of every object.
"""

from typing import Any

import pytest

import penstock.streams
from penstock.streams import (
    JoinWindows,
    KafkaStreams,
    Processor,
    SessionWindows,
    SlidingWindows,
    StoreFollower,
    StreamsBuilder,
    TestDriver,
    TimeWindows,
)
from penstock.streams.following.follower import StoreView
from penstock.streams.words.kafka_classes import CLASSES, HOSTS
from penstock.streams.words.kafka_words import NotOffered, snake_case

OF_STORES = """all approximateNumEntries backwardAll backwardFetch backwardFetchAll
    backwardFindSessions fetch fetchAll fetchSession findSessions get prefixScan range reverseAll
    reverseRange"""
KAFKA_METHODS = {
    "TestDriver": """advanceWallClockTime close createInputTopic createOutputTopic getAllStateStores
        getKeyValueStore getSessionStore getSessionStoreWithHeaders getStateStore
        getTimestampedKeyValueStore getTimestampedKeyValueStoreWithHeaders getTimestampedWindowStore
        getTimestampedWindowStoreWithHeaders getVersionedKeyValueStore getWindowStore metrics
        producedTopicNames""",
    "KafkaStreams": """addStreamThread allLocalStorePartitionLags cleanUp clientInstanceIds close
        isPaused metadataForAllStreamsClients metadataForLocalThreads metrics pause query
        queryMetadataForKey removeStreamThread resume setGlobalStateRestoreListener
        setStandbyUpdateListener setStateListener setUncaughtExceptionHandler start state store
        streamsMetadataForStore""",
    "StoreReader": OF_STORES,
    "StoreFollower": OF_STORES,
    "StoreView": OF_STORES,
    "TaskContext": """appConfigs appConfigsWithPrefix applicationId commit currentStreamTimeMs
        currentSystemTimeMs forward getStateStore keySerde metrics recordMetadata schedule stateDir
        taskId valueSerde""",
    "MemoryStore": """all approximateNumEntries delete get prefixScan put putAll putIfAbsent range
        reverseAll reverseRange""",
    "TimeWindows": "advanceBy ofSizeAndGrace ofSizeWithNoGrace windowsFor",
    "SlidingWindows": "ofTimeDifferenceAndGrace ofTimeDifferenceWithNoGrace",
    "SessionWindows": "ofInactivityGapAndGrace ofInactivityGapWithNoGrace",
    "JoinWindows": "after before grace of ofTimeDifferenceAndGrace ofTimeDifferenceWithNoGrace",
}


class Looking(Processor):
    """Shows the context it was given."""

    context: Any = None

    def init(self, context: Any) -> None:
        Looking.context = context


def objects() -> dict[str, Any]:
    """One of each class, or the class where a host would be needed for one."""
    builder = StreamsBuilder().add_state_store("mine")
    builder.stream("in").process(Looking, "mine").to("out")
    driver = TestDriver(builder.build())
    found = [driver, driver.store("mine"), Looking.context, Looking.context.store("mine")]
    found += [TimeWindows.of(5), SlidingWindows.of(5), SessionWindows.of(5), JoinWindows.of(5)]
    bare = [kind.__new__(kind) for kind in (KafkaStreams, StoreFollower, StoreView)]
    return {type(one).__name__: one for one in (*found, *bare)}


@pytest.mark.parametrize("kind", KAFKA_METHODS)
def test_a_method_is_there_or_refused_with_a_sentence(kind: str) -> None:
    one, refused = objects()[kind], HOSTS.get(kind, {})
    for word in KAFKA_METHODS[kind].split():
        if word not in refused:
            assert hasattr(type(one), snake_case(word)), word
            continue
        for name in (word, snake_case(word)):
            with pytest.raises(NotOffered, match=rf"^{kind} has no {name}: .+\.$"):
                getattr(one, name)
    assert set(refused) <= set(KAFKA_METHODS[kind].split())


@pytest.mark.parametrize("kind", [TimeWindows, SlidingWindows, SessionWindows, JoinWindows])
def test_the_ways_to_make_a_window_are_told_by_its_class(kind: type) -> None:
    for word in HOSTS[kind.__name__]:
        with pytest.raises(NotOffered, match=rf"{kind.__name__} has no {word}: {kind.__name__}.of"):
            getattr(kind, word)
    with pytest.raises(NotOffered, match=r"type object .* has no attribute 'from_days'"):
        kind.from_days  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("word", CLASSES)
def test_a_class_of_kafkas_is_said_in_another_way(word: str) -> None:
    with pytest.raises(ImportError, match=rf"^penstock.streams has no {word}: .+\.$"):
        getattr(penstock.streams, word)
