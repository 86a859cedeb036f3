"""Adding up: the operations that mean the same without windows and in windows of every kind.

An Aggregation says what is added up. What the windows make of it (the step, the kind of store, the
key the results lie under) is decided here, once for grouped and for cogrouped streams.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar, overload

from penstock.streams.columns.aggregates import (
    PARTS,
    AggregateColumn,
    AnyTally,
    ColumnTally,
    CountTally,
    tally_of,
)
from penstock.streams.columns.resolve import RecordType
from penstock.streams.dsl.arguments import function
from penstock.streams.dsl.table import KTable
from penstock.streams.plan.graph import Graph, TopologyError
from penstock.streams.plan.nodes import StoreKind
from penstock.streams.steps.aggregates import (
    AggregateStream,
    AggregateWindows,
    Aggregator,
    Initializer,
)
from penstock.streams.steps.contract import RecordStep
from penstock.streams.steps.sessions import AggregateSessions, Merger
from penstock.streams.steps.sliding import AggregateSliding
from penstock.streams.values.column_types import ColumnTypeError
from penstock.streams.values.json_fields import json_serde, json_serde_keeping
from penstock.streams.values.serdes import LONG, Serde, session_windowed, time_windowed
from penstock.streams.values.windows import SessionWindows, SlidingWindows, TimeWindows
from penstock.streams.words.kafka_words import KafkaWords

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")
W = TypeVar("W")  # The key of the results: the group's own, or Windowed.
AnyWindows = TimeWindows | SlidingWindows
MaybeWindows = AnyWindows | SessionWindows | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """What is added up, and how its results are written."""

    kind: Literal["AGGREGATE", "REDUCE"] = "AGGREGATE"  # Kafka Streams' name for the node.
    initializer: Initializer
    aggregator: Aggregator
    merger: Merger | None = None  # For sessions that meet.
    value_serde: Serde[Any] | None = None
    row_serde: Serde[Any] | None = None  # Of the store; None: as the results are written.
    tally: AnyTally | None = None  # What is added up, where it was declared.

    @classmethod
    def declared(cls, tally: ColumnTally, value_serde: Serde[Any] | None) -> "Aggregation":
        """Columns that were declared."""
        return cls(
            initializer=tally.start,
            aggregator=tally.add,
            merger=tally.merge,
            value_serde=value_serde or json_serde(tally.type),
            row_serde=json_serde_keeping(tally.type, PARTS),
            tally=tally,
        )

    @classmethod
    def reducing(cls, reducer: Callable[[Any, Any], Any]) -> "Aggregation":
        """The values as one of their own type: the first is the total to begin with."""

        def add(key: Any, value: Any, total: Any) -> Any:
            return value if total is None else reducer(total, value)

        return cls(
            kind="REDUCE",
            initializer=lambda: None,
            aggregator=add,
            merger=lambda key, one, two: add(key, two, one),
        )

    def step(self, windows: MaybeWindows, *, part: int = 0, sends_old: bool) -> RecordStep:
        """The step that adds up in such windows."""
        same: dict[str, Any] = {
            "initializer": self.initializer,
            "aggregator": self.aggregator,
            "sends_old": sends_old,
        }
        match windows:
            case None:
                return AggregateStream(**same, tally=self.tally)
            case TimeWindows():
                return AggregateWindows(**same, windows=windows, part=part, tally=self.tally)
            case SlidingWindows():
                return AggregateSliding(**same, windows=windows, part=part)
            case SessionWindows():
                assert self.merger is not None, "sessions that meet need a merger"
                return AggregateSessions(**same, windows=windows, part=part, merger=self.merger)


_COUNT = CountTally()
COUNT = Aggregation(
    initializer=_COUNT.start,
    aggregator=_COUNT.add,
    merger=_COUNT.merge,
    value_serde=LONG,
    tally=_COUNT,
)


def tallied(columns: Mapping[str, Any], record: RecordType) -> ColumnTally:
    """Declared columns with their types; TopologyError tells what does not fit."""
    for name, one in columns.items():
        if not isinstance(one, AggregateColumn):
            raise TopologyError(f"{name} is {one!r}, and no Count(), Sum(...) or the like")
    try:
        return tally_of(dict(columns), replace(record, has_timestamp=False))
    except ColumnTypeError as error:
        raise TopologyError(f"aggregate: {error}") from None


def store_kind(windows: MaybeWindows) -> StoreKind:
    """The kind of store the results lie in."""
    if windows is None:
        return "rows"
    return "sessions" if isinstance(windows, SessionWindows) else "windows"


def result_table(
    graph: Graph,
    node: str,
    windows: MaybeWindows,
    key_serde: Serde[Any] | None,
    value_serde: Serde[Any] | None,
) -> KTable[Any, Any]:
    """The results of a node as a table; its keys are windowed where there are windows."""
    inner = key_serde or graph.default_key
    match windows:
        case None:
            return KTable(graph, node, key_serde, value_serde)
        case SessionWindows():
            serde, grace_ms = session_windowed(inner), windows.gap_ms + windows.grace_ms
        case SlidingWindows():
            serde, grace_ms = time_windowed(inner, size_ms=windows.difference_ms), windows.grace_ms
        case TimeWindows():
            serde, grace_ms = time_windowed(inner, size_ms=windows.size_ms), windows.grace_ms
    return KTable(graph, node, serde, value_serde, grace_ms)


class Reducible(KafkaWords, Generic[V, W]):
    """What can be counted and reduced: a group, or each of its windows or sessions."""

    __slots__ = ()

    def count(self, *, store: str | None = None, name: str | None = None) -> KTable[W, int]:
        """How many records there are; without windows, how many with a value."""
        return self._add_up(COUNT, store, name)

    def reduce(
        self, reducer: Callable[[V, V], V], *, store: str | None = None, name: str | None = None
    ) -> KTable[W, V]:
        """The values as one: `reducer(total, value)`."""
        function(reducer, 2, "the reducer")
        return self._add_up(Aggregation.reducing(reducer), store, name)

    def _add_up(
        self, aggregation: Aggregation, store: str | None, name: str | None
    ) -> KTable[W, Any]:
        raise NotImplementedError


class Aggregable(Reducible[V, W], Generic[K, V, W]):
    """The same, and what can be aggregated without a merger."""

    __slots__ = ()

    @overload
    def aggregate(
        self,
        initializer: Callable[[], R],
        aggregator: Callable[[K, V, R], R],
        *,
        value: Serde[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[W, R]: ...

    @overload
    def aggregate(
        self,
        *,
        value: Serde[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
        **columns: AggregateColumn,
    ) -> KTable[W, Any]: ...

    def aggregate(
        self,
        initializer: Any = None,
        aggregator: Any = None,
        *,
        value: Serde[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
        **columns: AggregateColumn,
    ) -> KTable[W, Any]:
        """The values as an aggregate of its own type, or as declared columns."""
        if columns:
            refuse_both(initializer, aggregator)
            made = Aggregation.declared(tallied(columns, self.record_type()), value)
        else:
            check_aggregate(initializer, aggregator)
            made = Aggregation(initializer=initializer, aggregator=aggregator, value_serde=value)
        return self._add_up(made, store, name)

    def record_type(self) -> RecordType:
        """What is known of the records that are added up."""
        raise NotImplementedError


def check_aggregate(initializer: Any, *aggregators: Any) -> None:
    """Functions that make an aggregate and add to it."""
    function(initializer, 0, "the initializer of aggregate", "it returns what to begin with")
    for one in aggregators:
        check_aggregator(one)


def check_aggregator(aggregator: Any) -> None:
    """A function that adds to an aggregate."""
    function(aggregator, 3, "the aggregator", "it gets key, value and aggregate")


def check_merger(merger: Any) -> None:
    """Sessions that meet become one."""
    function(merger, 3, "the merger of sessions", "it gets key and two aggregates")


def refuse_both(*functions: Any) -> None:
    """Functions and declared columns do not go together."""
    if any(one is not None for one in functions):
        raise TopologyError("aggregate takes functions, or declared columns, but not both")
