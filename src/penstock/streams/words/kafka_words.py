"""The words of Kafka Streams' DSL that are none here: how the same is said, or why it cannot be.

Whoever asks for one is told so, instead of that there is no such attribute. The words of Java's
options (`Materialized`, `Consumed`) are arguments of the operations here.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.streams.words.kafka_classes import CLASSES, HOSTS

_STORE_NAME = "a store has the name it was given as store=..., and KafkaStreams.store asks it."
_FINAL = "call suppress_until_window_closes() on the table for final results."
_BY_KEY = "a record goes to the partition of its key, as every other client would send it."
_STORES = "state lies in Spark's checkpoint and in a changelog, whatever it is of."
_LOGGED = "the changelog is what a table is followed and restored from, so every store has one."
_CACHED = "statestore.cache.max.bytes of the application says whether a batch gives one result."
_VERSIONED = "tables keep the newest row of a key; there are no versioned stores."
_KEY, _VALUE = "give the operation key=...", "give the operation value=..."
_NAME = "give the operation name=..."
_WITH_KEY = "Python does not choose a function by its parameters, so it gets no key here; "

OPERATIONS: Mapping[str, Mapping[str, str]] = {
    "StreamsBuilder": {
        "addGlobalStore": "global_table(topic, store=...) keeps a topic whole in every task; a "
        "processor of its own would have to be the same in all of them.",
    },
    "KTable": {
        "queryableStoreName": _STORE_NAME,
        "suppress": "call suppress_until_window_closes() or suppress_until_time_limit(ms).",
        "transformValues": "use map_values, or to_stream().process_values(...) with a store.",
    },
    "GlobalKTable": {"queryableStoreName": _STORE_NAME},
    "WindowedStream": {"emitStrategy": _FINAL},
    "SessionStream": {"emitStrategy": _FINAL},
}

OPTIONS: Mapping[str, Mapping[str, str]] = {
    "Branched": {
        "as": "branch(predicate, name=...).",
        "withName": "branch(predicate, name=...).",
        "withConsumer": "take the branch out of the dict that default_branch() returns.",
        "withFunction": "take the branch out of the dict that default_branch() returns.",
    },
    "Suppressed": {
        "untilTimeLimit": "table.suppress_until_time_limit(ms, records_max=...).",
        "untilWindowCloses": "table.suppress_until_window_closes().",
        "withName": _NAME,
    },
    "Materialized": {
        "as": "give the operation store=...",
        "with": "give the operation key=... or value=...",
        "withKeySerde": _KEY,
        "withValueSerde": _VALUE,
        "withCachingEnabled": _CACHED,
        "withCachingDisabled": _CACHED,
        "withLoggingEnabled": _LOGGED,
        "withLoggingDisabled": _LOGGED,
        "withRetention": "a window is kept for its size and grace, and its changelog for "
        "windowstore.changelog.additional.retention.ms longer.",
        "withStoreType": _STORES,
    },
    "Named": {"as": _NAME, "withName": _NAME, "validate": _NAME},
    "Consumed": {
        "as": _NAME,
        "with": "give the source key=... and value=...",
        "withKeySerde": _KEY,
        "withValueSerde": _VALUE,
        "withName": _NAME,
        "withOffsetResetPolicy": "auto.offset.reset of the application says where inputs begin.",
        "withTimestampExtractor": "give stream() an intake=..., or call restamp on it.",
    },
    "Produced": {
        "as": _NAME,
        "with": "give to() key=... and value=...",
        "keySerde": _KEY,
        "valueSerde": _VALUE,
        "withKeySerde": _KEY,
        "withValueSerde": _VALUE,
        "withName": _NAME,
        "streamPartitioner": _BY_KEY,
        "withStreamPartitioner": _BY_KEY,
    },
    "Grouped": {
        "as": _NAME,
        "with": "give group_by key=... and value=...",
        "keySerde": _KEY,
        "valueSerde": _VALUE,
        "withKeySerde": _KEY,
        "withValueSerde": _VALUE,
        "withName": _NAME,
    },
    "Joined": {
        "as": _NAME,
        "with": "serdes are those of the stream and the table.",
        "keySerde": "serdes are those of the stream and the table.",
        "valueSerde": "serdes are those of the stream and the table.",
        "otherValueSerde": "serdes are those of the stream and the table.",
        "withKeySerde": "serdes are those of the stream and the table.",
        "withValueSerde": "serdes are those of the stream and the table.",
        "withOtherValueSerde": "serdes are those of the stream and the table.",
        "withName": _NAME,
        "gracePeriod": _VERSIONED,
        "withGracePeriod": _VERSIONED,
    },
    "StreamJoined": {
        "as": _NAME,
        "with": "serdes are those of the two streams.",
        "withKeySerde": "serdes are those of the two streams.",
        "withValueSerde": "serdes are those of the two streams.",
        "withOtherValueSerde": "serdes are those of the two streams.",
        "withName": _NAME,
        "withStoreName": "give the operation store=...",
        "withThisStoreSupplier": _STORES,
        "withOtherStoreSupplier": _STORES,
        "withDslStoreSuppliers": _STORES,
        "withLoggingEnabled": _LOGGED,
        "withLoggingDisabled": _LOGGED,
    },
    "TableJoined": {
        "as": _NAME,
        "withName": _NAME,
        "with": _BY_KEY,
        "withPartitioner": _BY_KEY,
        "withOtherPartitioner": _BY_KEY,
    },
    "Repartitioned": {
        "as": _NAME,
        "with": "give repartition() key=... and value=...",
        "withKeySerde": _KEY,
        "withValueSerde": _VALUE,
        "withName": _NAME,
        "numberOfPartitions": "a repartition topic has as many partitions as what it comes from.",
        "withNumberOfPartitions": "a repartition topic has as many partitions as what it comes "
        "from.",
        "streamPartitioner": _BY_KEY,
        "withStreamPartitioner": _BY_KEY,
    },
    "Printed": {
        "toSysOut": "stream.print(label).",
        "withLabel": "stream.print(label).",
        "withName": "stream.print(label, name=...).",
        "toFile": "workers have no file in common: use foreach, or to().",
        "withKeyValueMapper": "call map_values before print.",
    },
    "EmitStrategy": {"onWindowClose": _FINAL, "onWindowUpdate": "that is what windows do."},
    "UnlimitedWindows": {
        "of": "aggregate without windows; filter by time before it.",
        "startOn": "aggregate without windows; filter by time before it.",
    },
    "ValueMapperWithKey": {"apply": f"{_WITH_KEY}process_values gives key and value."},
    "ValueJoinerWithKey": {"apply": f"{_WITH_KEY}put it into a value before the join."},
}


class NotOffered(AttributeError):
    """A word of Kafka Streams' DSL that is none here, with the reason."""


def snake_case(word: str) -> str:
    """Java's name as Python has it."""
    return re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", word)


def sentence(kind: type, word: str) -> str | None:
    """What is said to who asks a class for a word; None: it is no word of Kafka's."""
    told = {**OPERATIONS.get(kind.__name__, {}), **HOSTS.get(kind.__name__, {})}
    found = {**told, **{snake_case(one): reason for one, reason in told.items()}}.get(word)
    if found is not None:
        return f"{kind.__name__} has no {word}: {found}"
    if word != snake_case(word) and hasattr(kind, snake_case(word)):
        return f"{kind.__name__} has no {word}: it is called {snake_case(word)}."
    return None


def option_sentence(word: str) -> str | None:
    """The same for a class of Kafka's, of options or others; None: it has none of that name."""
    if word in CLASSES:
        return f"penstock.streams has no {word}: {CLASSES[word]}"
    if word not in OPTIONS:
        return None
    ways = "; ".join(f"{one}: {how.rstrip('.')}" for one, how in OPTIONS[word].items())
    return f"penstock.streams has no {word}, for its words are arguments here. {ways}."


class KafkaWords:
    """A class of the DSL: what it has not is told in a sentence, if Kafka Streams has it."""

    __slots__ = ()

    if not TYPE_CHECKING:  # Or every word would be an attribute to a type checker.

        def __getattr__(self, word: str) -> Any:
            told = sentence(type(self), word)
            raise NotOffered(told or f"{type(self).__name__!r} object has no attribute {word!r}")


class KafkaSpelling(type):
    """The same for words that Kafka Streams asks a class for."""

    if not TYPE_CHECKING:

        def __getattr__(cls, word: str) -> Any:
            told = sentence(cls, word)
            raise NotOffered(told or f"type object {cls.__name__!r} has no attribute {word!r}")


class KafkaWindows(KafkaWords, metaclass=KafkaSpelling):
    """Windows, whose class and whose values may be asked."""

    __slots__ = ()
