"""KStream: records that each stand on their own."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from penstock.streams.columns.expression import Column
from penstock.streams.columns.resolve import RecordType, TypedColumn
from penstock.streams.dsl.arguments import function as check_function
from penstock.streams.dsl.arguments import kind_of, member, of_value, processor, topic_names
from penstock.streams.dsl.branched import BranchedKStream
from penstock.streams.dsl.global_table import GlobalKTable
from penstock.streams.dsl.grouped import GroupedStream
from penstock.streams.dsl.join_names import join_names
from penstock.streams.dsl.table import KTable
from penstock.streams.dsl.typed import condition, natural_serde, record_type, topic_name, typed
from penstock.streams.plan.graph import Graph, NodeDraft, TopologyError
from penstock.streams.steps.columns import FilterColumns, MapColumns, TopicColumn
from penstock.streams.steps.contract import RecordStep
from penstock.streams.steps.stateless import (
    BranchRecords,
    FilterRecords,
    KeepKeyed,
    MapRecords,
    PassOn,
    PeekRecords,
    RestampRecords,
)
from penstock.streams.steps.stream_join import LEFT, RIGHT, JoinStreams
from penstock.streams.steps.tables import JoinKind, KeepRows, LookUp
from penstock.streams.steps.user import Processor, UserStep
from penstock.streams.values.records import Intake, StreamRecord
from penstock.streams.values.serdes import Serde
from penstock.streams.values.windows import JoinWindows
from penstock.streams.words.kafka_words import KafkaWords

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
R = TypeVar("R")
GENERATED = re.compile(r"KSTREAM.*-[0-9]{10}")


@dataclass(frozen=True, slots=True)
class KStream(KafkaWords, Generic[K, V]):
    """A stream of records, at one node of the graph."""

    graph: Graph
    node: str
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    is_rekeyed: bool = False  # Its partitions are not by key any more.

    def filter(
        self, predicate: Callable[[K, V], bool] | Column, *, name: str | None = None
    ) -> "KStream[K, V]":
        """The records the predicate takes."""
        return self._filtered(predicate, name, inverted=False)

    def filter_not(
        self, predicate: Callable[[K, V], bool] | Column, *, name: str | None = None
    ) -> "KStream[K, V]":
        """The records the predicate does not take; an expression that is null takes nothing."""
        return self._filtered(predicate, name, inverted=True)

    def map(
        self,
        mapper: Callable[[K, V], tuple[K2, V2]] | tuple[Column, Column],
        *,
        name: str | None = None,
    ) -> "KStream[K2, V2]":
        """Each record under another key, with another value; or an expression for each."""
        if isinstance(mapper, tuple):
            if len(mapper) != 2:
                raise TopologyError(f"map takes a pair of columns, and got {len(mapper)}")
            key, value = (self._typed(one, "map") for one in mapper)
            return self._computed("MAP", key, value, name)
        function = mapper
        check_function(function, 2, "the mapper of map")
        return self._rekey("MAP", lambda k, v: (function(k, v),), name)

    def flat_map(
        self, mapper: Callable[[K, V], Iterable[tuple[K2, V2]]], *, name: str | None = None
    ) -> "KStream[K2, V2]":
        """Each record as any number of others."""
        check_function(mapper, 2, "the mapper of flat_map")
        return self._rekey("FLATMAP", mapper, name)

    def select_key(
        self, selector: Callable[[K, V], K2] | Column, *, name: str | None = None
    ) -> "KStream[K2, V]":
        """Each record under another key."""
        if isinstance(selector, Column):
            return self._computed("KEY-SELECT", self._typed(selector, "select_key"), None, name)
        function = selector
        check_function(function, 2, "the selector of a key")
        stream = self._rekey("KEY-SELECT", lambda k, v: ((function(k, v), v),), name)
        return KStream(self.graph, stream.node, None, self.value_serde, True)

    def map_values(
        self, mapper: Callable[[V], V2] | Column, *, name: str | None = None
    ) -> "KStream[K, V2]":
        """Each record with another value, under its key."""
        if isinstance(mapper, Column):
            return self._computed("MAPVALUES", None, self._typed(mapper, "map_values"), name)
        function = mapper
        of_value(function, "the mapper of map_values")
        return self._revalue("MAPVALUES", lambda k, v: ((k, function(v)),), name)

    def flat_map_values(
        self, mapper: Callable[[V], Iterable[V2]], *, name: str | None = None
    ) -> "KStream[K, V2]":
        """Each record as any number of others under its key."""
        of_value(mapper, "the mapper of flat_map_values")
        return self._revalue("FLATMAPVALUES", lambda k, v: [(k, one) for one in mapper(v)], name)

    def restamp(
        self, time_of: Callable[[K, V], int | None], *, name: str | None = None
    ) -> "KStream[K, V]":
        """Each record at a time made from it; None leaves its time."""
        check_function(time_of, 2, "the time of restamp")
        return self._next("RESTAMP", lambda: RestampRecords(time_of), name)

    def peek(self, action: Callable[[K, V], object], *, name: str | None = None) -> "KStream[K, V]":
        """Show each record to a function on its way."""
        check_function(action, 2, "the action of peek")
        return self._next("PEEK", lambda: PeekRecords(action), name)

    def foreach(self, action: Callable[[K, V], object], *, name: str | None = None) -> None:
        """Give each record to a function, and end there."""
        check_function(action, 2, "the action of foreach")
        self._next("FOREACH", lambda: PeekRecords(action, True), name)

    def print(self, label: str = "", *, name: str | None = None) -> None:
        """Print each record on standard output."""
        show = f"[{label or self.node}]: "
        self._next(
            "PRINTER", lambda: PeekRecords(lambda k, v: print(f"{show}{k}, {v}"), True), name
        )

    def merge(self, other: "KStream[K, V]", *, name: str | None = None) -> "KStream[K, V]":
        """The records of both streams."""
        member(other, KStream, self.graph, "what is merged", "call to_stream() on a table")
        node_name = self.graph.named(name, "", "KSTREAM-MERGE-")
        draft = NodeDraft(name=node_name, parents=[self.node, other.node], make=lambda d: PassOn())
        self.graph.add(draft)
        rekeyed = self.is_rekeyed or other.is_rekeyed
        return KStream(self.graph, draft.name, None, None, rekeyed)

    def split(self, *, name: str | None = None) -> "BranchedKStream[K, V]":
        """Send each record to the first branch that takes it."""
        node_name = self.graph.named(name, "", "KSTREAM-BRANCH-")
        draft = NodeDraft(name=node_name, parents=[self.node])
        predicates: list[Callable[[Any, Any], bool]] = []
        draft.make = lambda d: BranchRecords(tuple(predicates))
        self.graph.add(draft)
        return BranchedKStream(self, draft, predicates)

    def to(
        self,
        topic: str | Callable[[StreamRecord], str] | Column,
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        name: str | None = None,
    ) -> None:
        """Write to a topic, or to the one a function or an expression names for each record."""
        if isinstance(topic, Column):
            topic = TopicColumn.of(topic_name(topic, self._record_type))
        elif callable(topic):
            check_function(topic, 1, "the function that names a topic", "it gets the record")
        else:
            topic_names((topic,))
        self.graph.add(
            NodeDraft(
                name=self.graph.named(name, "", "KSTREAM-SINK-"),
                kind="sink",
                parents=[self.node],
                topics=[topic] if isinstance(topic, str) else [],
                topic_of=None if isinstance(topic, str) else topic,
                key_serde=key or self.key_serde,
                value_serde=value or self.value_serde,
            )
        )

    def through(
        self,
        topic: str,
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "KStream[K, V]":
        """Write to a topic of the user's and go on from there, by key.

        Kafka Streams 4 has the word no more, for it is `to` and then `stream` of the same topic.
        """
        key, value = key or self.key_serde, value or self.value_serde
        self.to(topic, key=key, value=value, name=name)
        return read_topics(self.graph, (topic,), key, value)

    def repartition(
        self,
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "KStream[K, V]":
        """Write to a repartition topic and go on from there, by key."""
        serdes = (key or self.key_serde, value or self.value_serde)
        typed: KStream[K, V] = KStream(self.graph, self.node, *serdes)
        prefix = name or self.graph.new_name("KSTREAM-REPARTITION-")
        return typed._repartitioned(prefix)

    def to_table(
        self,
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Read the stream as a table."""
        graph = self.graph
        node_name = graph.named(name, "", "KSTREAM-TOTABLE-")
        store_name = store or graph.new_store_name("KSTREAM-TOTABLE-")
        stream = self._repartitioned(node_name) if self.is_rekeyed else self
        draft = NodeDraft(
            name=node_name,
            parents=[stream.node],
            make=lambda d: KeepRows(has_state=d.has_store, sends_old=d.sends_old),
            key_serde=key or self.key_serde,
            value_serde=value or self.value_serde,
            store_when_needed=store_name,
        )
        graph.add(draft)
        if store is not None:
            graph.materialize(draft.name)
        return KTable(graph, draft.name, draft.key_serde, draft.value_serde)

    def group_by_key(
        self,
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        name: str | None = None,
    ) -> GroupedStream[K, V]:
        """Group by the key the records have; the name is that of a repartition topic."""
        return GroupedStream(
            graph=self.graph,
            node=self.node,
            key_serde=key or self.key_serde,
            value_serde=value or self.value_serde,
            repartitioned=self._repartitioned_node if self.is_rekeyed else None,
            name=name,
        )

    def group_by(
        self,
        selector: Callable[[K, V], K2] | Column,
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        name: str | None = None,
    ) -> GroupedStream[K2, V]:
        """Group by a key the selector makes; the name is also that of a repartition topic."""
        return self.select_key(selector, name=name).group_by_key(key=key, value=value, name=name)

    def join(
        self,
        other: "KStream[K, V2]",
        joiner: Callable[[V, V2], R],
        windows: JoinWindows | None = None,  # Needed; None is told what is.
        *,
        store: str | None = None,
        name: str | None = None,
    ) -> "KStream[K, R]":
        """Pairs of records of one key that lie near each other in time."""
        return self._join_stream(other, joiner, windows, "inner", store, name)

    def left_join(
        self,
        other: "KStream[K, V2]",
        joiner: Callable[[V, V2 | None], R],
        windows: JoinWindows | None = None,  # Needed; None is told what is.
        *,
        store: str | None = None,
        name: str | None = None,
    ) -> "KStream[K, R]":
        """The same; a left record that meets nobody is joined with None once its window is over."""
        return self._join_stream(other, joiner, windows, "left", store, name)

    def outer_join(
        self,
        other: "KStream[K, V2]",
        joiner: Callable[[V | None, V2 | None], R],
        windows: JoinWindows | None = None,  # Needed; None is told what is.
        *,
        store: str | None = None,
        name: str | None = None,
    ) -> "KStream[K, R]":
        """The same, for lonely records of either side."""
        return self._join_stream(other, joiner, windows, "outer", store, name)

    def join_table(
        self, table: KTable[K, V2], joiner: Callable[[V, V2], R], *, name: str | None = None
    ) -> "KStream[K, R]":
        """Each record with the row its key has now; records without a row are dropped."""
        return self._join_table(table, joiner, name, left=False)

    def left_join_table(
        self, table: KTable[K, V2], joiner: Callable[[V, V2 | None], R], *, name: str | None = None
    ) -> "KStream[K, R]":
        """Each record with the row its key has now, or None."""
        return self._join_table(table, joiner, name, left=True)

    def join_global(
        self,
        table: GlobalKTable,
        key_of: Callable[[K, V], Any],
        joiner: Callable[[V, Any], R],
        *,
        name: str | None = None,
    ) -> "KStream[K, R]":
        """Each record with the row of a key that is made from it."""
        return self._join_global(table, key_of, joiner, name, left=False)

    def left_join_global(
        self,
        table: GlobalKTable,
        key_of: Callable[[K, V], Any],
        joiner: Callable[[V, Any], R],
        *,
        name: str | None = None,
    ) -> "KStream[K, R]":
        """The same; None where there is no such row."""
        return self._join_global(table, key_of, joiner, name, left=True)

    def process(
        self, supplier: Callable[[], Processor], *stores: str, name: str | None = None
    ) -> "KStream[Any, Any]":
        """Give each record to a processor of the user's, with the named stores of the builder."""
        node = self._processed(supplier, stores, name, keeps_key=False)
        return KStream(self.graph, node, None, None, True)

    def process_values(
        self, supplier: Callable[[], Processor], *stores: str, name: str | None = None
    ) -> "KStream[K, Any]":
        """The same, but what the processor sends has the key of the record it works on.

        So the stream stays partitioned by it. A record that goes out under another key fails.
        """
        node = self._processed(supplier, stores, name, keeps_key=True)
        return KStream(self.graph, node, self.key_serde, None, self.is_rekeyed)

    def _processed(
        self,
        supplier: Callable[[], Processor],
        stores: tuple[str, ...],
        name: str | None,
        *,
        keeps_key: bool,
    ) -> str:
        processor(supplier)
        for store in stores:
            self._check_user_store(store)
        kind = "PROCESSVALUES" if keeps_key else "PROCESSOR"
        # Here, and where topics and buffers are named, Kafka Streams draws no number for a name.
        draft = NodeDraft(
            name=name or self.graph.new_name(f"KSTREAM-{kind}-"),
            parents=[self.node],
            stores=list(stores),
            make=lambda d: UserStep(supplier, stores, keeps_key),
        )
        return self.graph.add(draft).name

    def _check_user_store(self, name: Any) -> None:
        if not isinstance(name, str):
            raise TopologyError(f"a store is given by its name, and not as {name!r}")
        if name not in self.graph.stores:
            raise TopologyError(f"StateStore {name} is not added yet.")
        if self.graph.stores[name].kind != "user":
            raise TopologyError(
                f"the store {name} is a table's, and no processor may have it: join the table, or "
                "keep what is needed in a store of add_state_store"
            )

    @property
    def _record_type(self) -> RecordType:
        return record_type(self.key_serde, self.value_serde)

    def _typed(self, column: Any, what: str) -> TypedColumn:
        return typed(column, self._record_type, what)

    def _filtered(
        self, predicate: Callable[[Any, Any], bool] | Column, name: str | None, *, inverted: bool
    ) -> "KStream[K, V]":
        if isinstance(predicate, Column):
            column = condition(predicate, self._record_type, "a filter")
            return self._next("FILTER", lambda: FilterColumns.of(column, inverted=inverted), name)
        function = predicate
        check_function(function, 2, "the predicate of a filter")
        return self._next("FILTER", lambda: FilterRecords(function, inverted), name)

    def _computed(
        self, kind: str, key: TypedColumn | None, value: TypedColumn | None, name: str | None
    ) -> "KStream[Any, Any]":
        """A new key, a new value or both, with serdes that fit their types."""
        stream = self._next(kind, lambda: MapColumns.of(key, value), name)
        return KStream(
            self.graph,
            stream.node,
            natural_serde(key.type) if key else self.key_serde,
            natural_serde(value.type) if value else self.value_serde,
            self.is_rekeyed or key is not None,
        )

    def _next(self, kind: str, make: Callable[[], RecordStep], name: str | None) -> "KStream[K, V]":
        draft = NodeDraft(
            name=self.graph.named(name, "", f"KSTREAM-{kind}-"),
            parents=[self.node],
            make=lambda d: make(),
        )
        self.graph.add(draft)
        return KStream(self.graph, draft.name, self.key_serde, self.value_serde, self.is_rekeyed)

    def _rekey(
        self, kind: str, mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]], name: str | None
    ) -> "KStream[Any, Any]":
        stream = self._next(kind, lambda: MapRecords(mapper), name)
        return KStream(self.graph, stream.node, None, None, True)

    def _revalue(
        self, kind: str, mapper: Callable[[Any, Any], Iterable[tuple[Any, Any]]], name: str | None
    ) -> "KStream[K, Any]":
        stream = self._next(kind, lambda: MapRecords(mapper), name)
        return KStream(self.graph, stream.node, self.key_serde, None, self.is_rekeyed)

    def _repartitioned(self, prefix: str) -> "KStream[K, V]":
        """Through a repartition topic; only left and outer joins want records without a key."""
        graph = self.graph
        topic = prefix if prefix.endswith("-repartition") else f"{prefix}-repartition"
        names = [graph.new_name(f"KSTREAM-{kind}-") for kind in ("SINK", "FILTER", "SOURCE")]
        if not GENERATED.fullmatch(prefix):
            names = [f"{topic}-{suffix}" for suffix in ("sink", "filter", "source")]
        sink, keyed, source = names
        graph.add(NodeDraft(name=keyed, parents=[self.node], make=self._null_key_filter))
        serdes: dict[str, Any] = {"key_serde": self.key_serde, "value_serde": self.value_serde}
        graph.add(NodeDraft(name=sink, kind="sink", parents=[keyed], topics=[topic], **serdes))
        graph.add(NodeDraft(name=source, kind="source", topics=[topic], **serdes))
        graph.internal_topics.add(topic)
        return KStream(graph, source, self.key_serde, self.value_serde)

    def _null_key_filter(self, draft: NodeDraft) -> RecordStep:
        takes_null = self.graph.leads_to_null_keys(draft.name)
        return PassOn() if takes_null else KeepKeyed()

    def _repartitioned_node(self, prefix: str) -> str:
        """The source of the repartition topic; a group with a name has one for all that it does."""
        same = self.graph.drafts.get(f"{prefix}-repartition-filter")
        if same is not None and same.parents == [self.node]:
            self.graph.number += 3  # Drawn for sink, filter and source, and not used.
            return f"{prefix}-repartition-source"
        return self._repartitioned(prefix).node

    def _join_stream(
        self,
        other: "KStream[K, Any]",
        joiner: Callable[..., Any],
        windows: JoinWindows | None,
        kind: JoinKind,
        store: str | None,
        name: str | None,
    ) -> "KStream[K, Any]":
        graph = self.graph
        member(other, KStream, graph, "the other side", "join_table and join_global meet tables")
        check_function(joiner, 2, "a joiner")
        near = kind_of(windows, JoinWindows, "the windows of a join", "JoinWindows.of(ms)")
        left = (
            self._repartitioned(f"{name}-left" if name else self.node) if self.is_rekeyed else self
        )
        if other.is_rekeyed:
            other = other._repartitioned(f"{name}-right" if name else other.node)
        names, stores, shared = join_names(graph, kind, store, name)
        outer = {"inner": (), "left": (LEFT,), "outer": (RIGHT, LEFT)}[kind]
        for side, parent in enumerate((left.node, other.node)):
            windowed = NodeDraft(name=names[side], parents=[parent], make=lambda d: PassOn())
            windowed.key_serde = self.key_serde
            graph.add_store(graph.add(windowed), stores[side], "inner")
            windowed.state = None
        for part, side in ((2, LEFT), (3, RIGHT)):
            step = JoinStreams(
                windows=near,
                side=side,
                joiner=lambda key, mine, others: joiner(mine, others),
                outer_sides=outer,
            )
            draft = NodeDraft(
                name=names[part],
                parents=[names[part - 2]],
                stores=[stores[3 - part]],
                make=lambda d, step=step: step,  # type: ignore[misc]
                state=stores[0],
                key_serde=self.key_serde,
                takes_null_keys=kind != "inner",
            )
            graph.add(draft)
            if outer and part == 2:
                graph.add_store(draft, shared, "inner")
                draft.state = stores[0]
            elif outer:
                draft.stores.append(shared)
        graph.add(NodeDraft(name=names[4], parents=[names[2], names[3]], make=lambda d: PassOn()))
        return KStream(graph, names[4], self.key_serde, None)

    def _join_table(
        self,
        table: KTable[K, Any],
        joiner: Callable[[Any, Any], Any],
        name: str | None,
        *,
        left: bool,
    ) -> "KStream[K, Any]":
        told = "join meets streams, and join_global global tables"
        member(table, KTable, self.graph, "the table of join_table", told)
        stream = self._repartitioned(name or self.node) if self.is_rekeyed else self
        stores = self.graph.materialize(table.node)
        return stream._look_up(table.node, stores, lambda k, v: k, joiner, name, left=left)

    def _join_global(
        self,
        table: GlobalKTable,
        key_of: Callable[[Any, Any], Any],
        joiner: Callable[[Any, Any], Any],
        name: str | None,
        *,
        left: bool,
    ) -> "KStream[K, Any]":
        told = "join_table meets the rows of a table"
        member(table, GlobalKTable, self.graph, "the table of join_global", told)
        check_function(key_of, 2, "the key to look up")
        return self._look_up(table.node, [], key_of, joiner, name, left=left)

    def _look_up(
        self,
        table: str,
        stores: list[str],
        key_of: Callable[[Any, Any], Any],
        joiner: Callable[[Any, Any], Any],
        name: str | None,
        *,
        left: bool,
    ) -> "KStream[K, Any]":
        check_function(joiner, 2, "a joiner")
        step = LookUp(key_of=key_of, joiner=lambda k, mine, row: joiner(mine, row), left=left)
        # Kafka Streams names every join with a global table a left one.
        kind = "LEFTJOIN" if left or not stores else "JOIN"
        stream = self._next(kind, lambda: step, name)
        draft = self.graph.drafts[stream.node]
        draft.table = table
        draft.takes_null_keys = left
        draft.stores = stores
        return KStream(self.graph, stream.node, self.key_serde, None, self.is_rekeyed)


def read_topics(
    graph: Graph,
    topics: tuple[str, ...],
    key: Serde[Any] | None,
    value: Serde[Any] | None,
    name: str | None = None,
    intake: Intake | None = None,
) -> KStream[Any, Any]:
    """The records of the topics; a source that reads just these is taken again."""
    node_name = graph.named(name, "", "KSTREAM-SOURCE-")
    same = graph.source_of(topics)
    if same is not None:
        return KStream(graph, same, key, value)
    source = NodeDraft(
        name=node_name,
        kind="source",
        topics=list(topics),
        key_serde=key,
        value_serde=value,
        intake=intake,
    )
    return KStream(graph, graph.add(source).name, key, value)
