"""Each operation of Kafka Streams 4.3's DSL is there, or refused with a sentence.

The lists are the public methods of its interfaces, but for those of every object and the windows'
getters.
"""

from typing import Any

import pytest

import penstock.streams
from penstock.streams import SessionWindows, StreamsBuilder, TimeWindows
from penstock.streams.words.kafka_words import (
    OPERATIONS,
    OPTIONS,
    NotOffered,
    option_sentence,
    snake_case,
)

OF_STREAMS = """
    filter filterNot flatMap flatMapValues foreach groupBy groupByKey join leftJoin map mapValues
    merge outerJoin peek print process processValues repartition selectKey split to toTable
"""
KAFKA_OPERATIONS = {
    "StreamsBuilder": "addGlobalStore addStateStore build globalTable stream table",
    "KStream": OF_STREAMS,
    "KTable": """filter filterNot groupBy join leftJoin mapValues outerJoin queryableStoreName
        suppress toStream transformValues""",
    "GlobalKTable": "queryableStoreName",
    "GroupedStream": "aggregate cogroup count reduce windowedBy",
    "GroupedTable": "aggregate count reduce",
    "WindowedStream": "aggregate count emitStrategy reduce",
    "SessionStream": "aggregate count emitStrategy reduce",
    "CogroupedStream": "aggregate cogroup windowedBy",
    "WindowedCogroup": "aggregate",
    "SessionCogroup": "aggregate",
    "BranchedKStream": "branch defaultBranch noDefaultBranch",
}
WITH_SERDES = "as with withKeySerde withValueSerde withName"
KAFKA_OPTIONS = {
    "Branched": "as withConsumer withFunction withName",
    "Suppressed": "untilTimeLimit untilWindowCloses withName",
    "Materialized": """as with withCachingDisabled withCachingEnabled withKeySerde withValueSerde
        withLoggingDisabled withLoggingEnabled withRetention withStoreType""",
    "Named": "as validate withName",
    "Consumed": f"{WITH_SERDES} withOffsetResetPolicy withTimestampExtractor",
    "Produced": f"{WITH_SERDES} keySerde valueSerde streamPartitioner withStreamPartitioner",
    "Grouped": f"{WITH_SERDES} keySerde valueSerde",
    "Joined": f"""{WITH_SERDES} keySerde valueSerde otherValueSerde gracePeriod withGracePeriod
        withOtherValueSerde""",
    "StreamJoined": f"""{WITH_SERDES} withDslStoreSuppliers withLoggingDisabled withStoreName
        withLoggingEnabled withOtherStoreSupplier withOtherValueSerde withThisStoreSupplier""",
    "TableJoined": "as with withName withOtherPartitioner withPartitioner",
    "Repartitioned": f"""{WITH_SERDES} numberOfPartitions streamPartitioner withNumberOfPartitions
        withStreamPartitioner""",
    "Printed": "toFile toSysOut withKeyValueMapper withLabel withName",
    "EmitStrategy": "onWindowClose onWindowUpdate",
    "UnlimitedWindows": "of startOn",
    "ValueMapperWithKey": "apply",
    "ValueJoinerWithKey": "apply",
}


def objects() -> dict[str, Any]:
    """One of each class of the DSL."""
    builder = StreamsBuilder()
    stream, windows, gap = builder.stream("a"), TimeWindows.of(10), SessionWindows.of(5)
    grouped = stream.group_by_key()
    both = grouped.cogroup(lambda key, value, total: total)
    table = builder.table("b")
    found = [builder, stream, table, builder.global_table("c"), grouped, both, stream.split()]
    found += [table.group_by(lambda key, value: (key, value)), grouped.windowed_by(windows)]
    found += [grouped.windowed_by_session(gap), both.windowed_by(windows)]
    found += [both.windowed_by_session(gap)]
    return {type(one).__name__: one for one in found}


@pytest.mark.parametrize("kind", KAFKA_OPERATIONS)
def test_an_operation_is_there_or_refused_with_a_sentence(kind: str) -> None:
    one = objects()[kind]
    refused = OPERATIONS.get(kind, {})
    for word in KAFKA_OPERATIONS[kind].split():
        if word not in refused:
            assert callable(getattr(one, snake_case(word)))
            continue
        for name in (word, snake_case(word)):
            with pytest.raises(NotOffered, match=rf"{kind} has no {name}: .+\."):
                getattr(one, name)
    assert set(refused) <= set(KAFKA_OPERATIONS[kind].split())


def test_all_classes_of_the_dsl_are_looked_at() -> None:
    assert set(objects()) == set(KAFKA_OPERATIONS)


@pytest.mark.parametrize("kind", KAFKA_OPTIONS)
def test_an_option_is_said_in_another_way_or_refused_with_a_sentence(kind: str) -> None:
    assert set(OPTIONS[kind]) == set(KAFKA_OPTIONS[kind].split())
    with pytest.raises(ImportError, match=f"penstock.streams has no {kind}, for its words are"):
        getattr(penstock.streams, kind)
    told = option_sentence(kind)
    assert told is not None and all(word in told for word in OPTIONS[kind])


def test_a_java_name_is_told_its_name_here() -> None:
    with pytest.raises(NotOffered, match="KStream has no mapValues: it is called map_values"):
        StreamsBuilder().stream("a").mapValues  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(NotOffered, match="'KStream' object has no attribute 'mapp'"):
        StreamsBuilder().stream("a").mapp  # type: ignore[attr-defined]  # noqa: B018
