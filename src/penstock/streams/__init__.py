"""Streams: the DSL of Kafka Streams in Python.

A topology is a pure plan of steps. The steps take a record and a key's state and return both anew,
so a host decides where state lies and when time passes. TestDriver is the host in memory,
KafkaStreams the one on Spark.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from penstock.streams.columns.aggregates import (
    AggregateColumn,
    Avg,
    Collect,
    Count,
    First,
    Last,
    Max,
    Min,
    Sum,
)
from penstock.streams.columns.expression import Column, coalesce, col, concat, lit, struct, when
from penstock.streams.driver.driver import TestDriver
from penstock.streams.dsl.builder import StreamsBuilder
from penstock.streams.dsl.global_table import GlobalKTable
from penstock.streams.dsl.stream import KStream
from penstock.streams.dsl.table import KTable
from penstock.streams.plan.graph import TopologyError
from penstock.streams.plan.nodes import StreamsTopology
from penstock.streams.steps.user import Processor, ProcessorContext
from penstock.streams.values.column_types import ColumnTypeError
from penstock.streams.values.json_fields import json_of
from penstock.streams.values.records import Stamped, StreamRecord, TimeWindow, Windowed
from penstock.streams.values.serdes import (
    BYTES,
    DOUBLE,
    INTEGER,
    JSON,
    LONG,
    STRING,
    Serde,
    SerdeError,
    session_windowed,
    time_windowed,
)
from penstock.streams.values.windows import (
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    WindowError,
)
from penstock.streams.words.kafka_words import option_sentence

if TYPE_CHECKING:
    from penstock.streams.following.follower import StoreFollower
    from penstock.streams.running.application import KafkaStreams, StreamsState

__all__ = [
    "BYTES",
    "DOUBLE",
    "INTEGER",
    "JSON",
    "LONG",
    "STRING",
    "AggregateColumn",
    "Avg",
    "Collect",
    "Column",
    "ColumnTypeError",
    "Count",
    "First",
    "GlobalKTable",
    "JoinWindows",
    "KStream",
    "KTable",
    "KafkaStreams",
    "Last",
    "Max",
    "Min",
    "Processor",
    "ProcessorContext",
    "Serde",
    "SerdeError",
    "SessionWindows",
    "SlidingWindows",
    "Stamped",
    "StoreFollower",
    "StreamRecord",
    "StreamsBuilder",
    "StreamsState",
    "StreamsTopology",
    "Sum",
    "TestDriver",
    "TimeWindow",
    "TimeWindows",
    "TopologyError",
    "WindowError",
    "Windowed",
    "coalesce",
    "col",
    "concat",
    "json_of",
    "lit",
    "session_windowed",
    "struct",
    "time_windowed",
    "when",
]


def __getattr__(name: str) -> Any:
    """The host on Spark, imported when it is asked for: who tests needs neither it nor a client."""
    if name in ("KafkaStreams", "StreamsState", "StoreFollower"):
        return getattr(import_module("penstock.streams.running.application"), name)
    told = option_sentence(name)
    if told is not None:
        raise ImportError(told)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
