"""Grouped streams: by key, by key and window, and several of them into one aggregate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from penstock.streams.columns.aggregates import AggregateColumn, ColumnTally
from penstock.streams.columns.resolve import RecordType
from penstock.streams.dsl.aggregation import (
    Aggregable,
    Aggregation,
    AnyWindows,
    MaybeWindows,
    Reducible,
    check_aggregate,
    check_aggregator,
    check_merger,
    refuse_both,
    result_table,
    store_kind,
    tallied,
)
from penstock.streams.dsl.arguments import kind_of, member
from penstock.streams.dsl.table import KTable
from penstock.streams.dsl.typed import record_type
from penstock.streams.plan.graph import Graph, NodeDraft, TopologyError
from penstock.streams.steps.aggregates import Aggregator
from penstock.streams.steps.contract import RecordStep
from penstock.streams.steps.stateless import PassOn
from penstock.streams.values.records import Windowed
from penstock.streams.values.serdes import Serde
from penstock.streams.values.windows import SessionWindows, SlidingWindows, TimeWindows
from penstock.streams.words.kafka_words import KafkaWords

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


def time_windows(given: Any) -> AnyWindows:
    """The same; TopologyError for what is no window of time."""
    if isinstance(given, SlidingWindows):
        return given
    told = "windowed_by_session takes SessionWindows"
    if not isinstance(given, SessionWindows):
        told = "TimeWindows.of(size_ms), or SlidingWindows.of(difference_ms)"
    return kind_of(given, TimeWindows, "the windows of windowed_by", told)


def session_windows(given: Any) -> SessionWindows:
    """The same; TopologyError for what is no session window."""
    told = "SessionWindows.of(gap_ms); windowed_by takes windows of time"
    return kind_of(given, SessionWindows, "the windows of windowed_by_session", told)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedStream(Aggregable[K, V, K]):
    """A stream by key, before it is added up."""

    graph: Graph
    node: str
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    repartitioned: Callable[[str], str] | None = None  # None: the records lie by key already.
    name: str | None = None  # Of the repartition topic; None: it is named after the store.

    def windowed_by(self, windows: AnyWindows) -> "WindowedStream[K, V]":
        """Each key in windows of time."""
        return WindowedStream(self, time_windows(windows))

    def windowed_by_session(self, windows: SessionWindows) -> "SessionStream[K, V]":
        """Each key in sessions."""
        return SessionStream(self, session_windows(windows))

    def cogroup(self, aggregator: Callable[[K, V, R], R]) -> "CogroupedStream[K, R]":
        """The first of several streams that feed one aggregate."""
        check_aggregator(aggregator)
        return CogroupedStream(((self, aggregator),))

    def _add_up(
        self, aggregation: Aggregation, store: str | None, name: str | None
    ) -> KTable[K, Any]:
        return self.add_up(aggregation, None, store, name)

    def add_up(
        self,
        aggregation: Aggregation,
        windows: MaybeWindows,
        store: str | None,
        name: str | None,
    ) -> KTable[Any, Any]:
        """Add a node with a store, behind a repartition topic where one is needed."""
        graph, kind = self.graph, aggregation.kind
        value_serde = self.value_serde if kind == "REDUCE" else aggregation.value_serde
        store_name = store or graph.new_store_name(f"KSTREAM-{kind}-")
        draft = NodeDraft(
            name=graph.named(name, "", f"KSTREAM-{kind}-"),
            parents=[self.source(store_name)],
            make=lambda d: aggregation.step(windows, sends_old=d.sends_old),
            key_serde=self.key_serde,
            value_serde=aggregation.row_serde or value_serde,
        )
        graph.add_store(graph.add(draft), store_name, store_kind(windows))
        return result_table(graph, draft.name, windows, self.key_serde, value_serde)

    def record_type(self) -> RecordType:
        """What the group's serdes say."""
        return record_type(self.key_serde, self.value_serde)

    def source(self, prefix: str) -> str:
        """The node the group's records come from."""
        return self.repartitioned(self.name or prefix) if self.repartitioned else self.node


@dataclass(frozen=True, slots=True)
class WindowedStream(Aggregable[K, V, Windowed]):
    """A stream by key and window of time."""

    grouped: GroupedStream[K, V]
    windows: AnyWindows

    def record_type(self) -> RecordType:
        """What the group's serdes say."""
        return self.grouped.record_type()

    def _add_up(
        self, aggregation: Aggregation, store: str | None, name: str | None
    ) -> KTable[Windowed, Any]:
        return self.grouped.add_up(aggregation, self.windows, store, name)


@dataclass(frozen=True, slots=True)
class SessionStream(Reducible[V, Windowed], Generic[K, V]):
    """A stream by key and session."""

    grouped: GroupedStream[K, V]
    windows: SessionWindows

    @overload
    def aggregate(
        self,
        initializer: Callable[[], R],
        aggregator: Callable[[K, V, R], R],
        merger: Callable[[K, R, R], R],
        *,
        value: Serde[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[Windowed, R]: ...

    @overload
    def aggregate(
        self,
        *,
        value: Serde[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
        **columns: AggregateColumn,
    ) -> KTable[Windowed, Any]: ...

    def aggregate(
        self,
        initializer: Any = None,
        aggregator: Any = None,
        merger: Any = None,
        *,
        value: Serde[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
        **columns: AggregateColumn,
    ) -> KTable[Windowed, Any]:
        """The values of a session as an aggregate; sessions that meet are merged."""
        if columns:
            refuse_both(initializer, aggregator, merger)
            made = Aggregation.declared(self._tally(columns), value)
        else:
            check_aggregate(initializer, aggregator)
            check_merger(merger)
            made = Aggregation(
                initializer=initializer, aggregator=aggregator, merger=merger, value_serde=value
            )
        return self._add_up(made, store, name)

    def _tally(self, columns: dict[str, AggregateColumn]) -> ColumnTally:
        tally = tallied(columns, self.grouped.record_type())
        if tally.is_ordered:
            raise TopologyError(
                "First, Last and Collect are not for sessions: sessions that meet are merged, and "
                "nothing says then which record came first"
            )
        return tally

    def _add_up(
        self, aggregation: Aggregation, store: str | None, name: str | None
    ) -> KTable[Windowed, Any]:
        return self.grouped.add_up(aggregation, self.windows, store, name)


@dataclass(frozen=True, slots=True)
class CogroupedStream(KafkaWords, Generic[K, R]):
    """Several grouped streams, each with its own way into one aggregate."""

    parts: tuple[tuple[GroupedStream[K, Any], Aggregator], ...]

    def cogroup(
        self, grouped: GroupedStream[K, V], aggregator: Callable[[K, V, R], R]
    ) -> "CogroupedStream[K, R]":
        """One more stream."""
        told = "call group_by or group_by_key"
        member(grouped, GroupedStream, self.parts[0][0].graph, "one more stream", told)
        check_aggregator(aggregator)
        return CogroupedStream((*self.parts, (grouped, aggregator)))

    def windowed_by(self, windows: AnyWindows) -> "WindowedCogroup[K, R]":
        """Each key in windows of time, over all streams."""
        return WindowedCogroup(self, time_windows(windows))

    def windowed_by_session(self, windows: SessionWindows) -> "SessionCogroup[K, R]":
        """Each key in sessions, over all streams."""
        return SessionCogroup(self, session_windows(windows))

    def aggregate(
        self,
        initializer: Callable[[], R],
        *,
        value: Serde[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, R]:
        """All streams' values of a key as one aggregate."""
        return self.add_up(self.aggregations(initializer, value), None, store, name)

    def aggregations(
        self,
        initializer: Callable[[], R],
        value: Serde[Any] | None,
        merger: Callable[[K, R, R], R] | None = None,
    ) -> list[Aggregation]:
        """What each of the streams adds to the one aggregate."""
        check_aggregate(initializer)
        return [
            Aggregation(
                initializer=initializer, aggregator=aggregator, merger=merger, value_serde=value
            )
            for _, aggregator in self.parts
        ]

    def add_up(
        self,
        aggregations: list[Aggregation],
        windows: MaybeWindows,
        store: str | None,
        name: str | None,
    ) -> KTable[Any, Any]:
        """Add a node for each stream, all on one store, and a node where their results meet."""
        first, value_serde = self.parts[0][0], aggregations[0].value_serde
        graph, key_serde = first.graph, first.key_serde
        store_name = store or graph.new_store_name("COGROUPKSTREAM-AGGREGATE-")
        sources = self._sources(store_name)
        drafts = [
            NodeDraft(
                name=graph.named(name, f"-cogroup-agg-{number}", "COGROUPKSTREAM-AGGREGATE-"),
                parents=[source],
                make=_cogroup_part(aggregation, windows, number),
            )
            for number, (source, aggregation) in enumerate(zip(sources, aggregations, strict=True))
        ]
        for draft in drafts:
            draft.key_serde, draft.value_serde = key_serde, value_serde
            draft.stores, draft.state = [store_name], store_name
            graph.add(draft)
        drafts[0].stores = []
        graph.add_store(drafts[0], store_name, store_kind(windows))
        names = tuple(draft.name for draft in drafts)
        merge = NodeDraft(
            name=graph.named(name, "-cogroup-merge", "COGROUPKSTREAM-MERGE-"),
            parents=list(names),
            make=lambda d: PassOn(),
            key_serde=key_serde,
            rows_of=names[:1],
            old_from=names,
        )
        graph.add(merge)
        return result_table(graph, merge.name, windows, key_serde, value_serde)

    def _sources(self, store_name: str) -> list[str]:
        """The streams' nodes; the first repartition topic has the store's name, others a number."""
        prefixes: dict[int, str] = {}
        for number, (grouped, _) in enumerate(self.parts):
            if grouped.repartitioned:
                prefixes[number] = f"{store_name}-{number}" if prefixes else store_name
        return [
            grouped.source(prefixes.get(number, store_name))
            for number, (grouped, _) in enumerate(self.parts)
        ]


def _cogroup_part(
    aggregation: Aggregation, windows: MaybeWindows, number: int
) -> Callable[[NodeDraft], RecordStep]:
    return lambda d: aggregation.step(windows, part=number, sends_old=d.sends_old)


@dataclass(frozen=True, slots=True)
class WindowedCogroup(KafkaWords, Generic[K, R]):
    """Several grouped streams by key and window of time."""

    cogrouped: CogroupedStream[K, R]
    windows: AnyWindows

    def aggregate(
        self,
        initializer: Callable[[], R],
        *,
        value: Serde[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[Windowed, R]:
        """All streams' values of a window as one aggregate."""
        made = self.cogrouped.aggregations(initializer, value)
        return self.cogrouped.add_up(made, self.windows, store, name)


@dataclass(frozen=True, slots=True)
class SessionCogroup(KafkaWords, Generic[K, R]):
    """Several grouped streams by key and session."""

    cogrouped: CogroupedStream[K, R]
    windows: SessionWindows

    def aggregate(
        self,
        initializer: Callable[[], R],
        merger: Callable[[K, R, R], R],
        *,
        value: Serde[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[Windowed, R]:
        """All streams' values of a session as one aggregate; sessions that meet are merged."""
        check_merger(merger)
        made = self.cogrouped.aggregations(initializer, value, merger)
        return self.cogrouped.add_up(made, self.windows, store, name)
