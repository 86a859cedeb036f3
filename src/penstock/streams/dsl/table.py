"""KTable: the newest row of each key."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from penstock.streams.columns.aggregates import PARTS, RETRACTABLE, AggregateColumn, ColumnTally
from penstock.streams.columns.expression import Column
from penstock.streams.columns.resolve import RecordType
from penstock.streams.dsl.arguments import check_number, member, of_value
from penstock.streams.dsl.arguments import function as check_function
from penstock.streams.dsl.typed import condition, natural_serde, record_type, row_function, typed
from penstock.streams.plan.graph import Graph, NodeDraft, TopologyError
from penstock.streams.steps.aggregates import AggregateRows
from penstock.streams.steps.foreign_key import (
    AnswerSubscribers,
    AnswerSubscription,
    KeepSubscriptions,
    ResolveAnswer,
    SubscribeRows,
)
from penstock.streams.steps.stateless import RegroupRows, ToStream
from penstock.streams.steps.suppress import HoldBack
from penstock.streams.steps.tables import JoinKind, KeepRows, MapRows, MergeRows, PairRows
from penstock.streams.values.json_fields import json_serde, json_serde_keeping
from penstock.streams.values.records import Windowed
from penstock.streams.values.serdes import LONG, Serde
from penstock.streams.words.kafka_words import KafkaWords

if TYPE_CHECKING:
    from penstock.streams.dsl.stream import KStream

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class KTable(KafkaWords, Generic[K, V]):
    """A table, at one node of the graph."""

    graph: Graph
    node: str
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    grace_ms: int | None = None  # Of the windows its keys are in; None: keys without windows.

    def filter(
        self,
        predicate: Callable[[K, V], bool] | Column,
        *,
        store: str | None = None,
        name: str | None = None,
    ) -> "KTable[K, V]":
        """The rows the predicate takes; a row it no longer takes is deleted."""
        return self._filtered(predicate, True, store, name)

    def filter_not(
        self,
        predicate: Callable[[K, V], bool] | Column,
        *,
        store: str | None = None,
        name: str | None = None,
    ) -> "KTable[K, V]":
        """The rows the predicate does not take."""
        return self._filtered(predicate, False, store, name)

    def map_values(
        self,
        mapper: Callable[[V], V2] | Column,
        *,
        store: str | None = None,
        name: str | None = None,
    ) -> "KTable[K, V2]":
        """Each row with another value."""
        if isinstance(mapper, Column):
            column = typed(mapper, self._record_type, "map_values")
            serde, of_row = natural_serde(column.type), row_function(column)
            return self._mapped("MAPVALUES", of_row, store, name, filters=False, serde=serde)
        function = mapper
        of_value(function, "the mapper of map_values", "to_stream().process_values")
        return self._mapped("MAPVALUES", lambda k, v: function(v), store, name, filters=False)

    def to_stream(
        self, selector: Callable[[K, V], Any] | Column | None = None, *, name: str | None = None
    ) -> "KStream[Any, V]":
        """The changes as a stream: new values, None for a deleted row; maybe under other keys."""
        from penstock.streams.dsl.stream import KStream

        node_name = self.graph.named(name, "", "KTABLE-TOSTREAM-")
        self.graph.add(NodeDraft(name=node_name, parents=[self.node], make=lambda d: ToStream()))
        stream: KStream[Any, V] = KStream(self.graph, node_name, self.key_serde, self.value_serde)
        return stream if selector is None else stream.select_key(selector)

    def suppress_until_window_closes(self, *, name: str | None = None) -> "KTable[K, V]":
        """One change for each window, when no record can change it any more."""
        if self.grace_ms is None:
            raise TopologyError("suppress until the window closes needs a table of windows")
        wait_ms = self.grace_ms
        return self._suppress(HoldBack(time_of=_window_end, wait_ms=wait_ms, is_final=True), name)

    def suppress_until_time_limit(
        self,
        wait_ms: int,
        *,
        records_max: int | None = None,
        emits_when_full: bool = True,
        name: str | None = None,
    ) -> "KTable[K, V]":
        """The latest change of a key, `wait_ms` of stream time after its first one."""
        check_number(wait_ms, 0, "the time limit in milliseconds")
        if records_max is not None:
            check_number(records_max, 1, "records_max")
        step = HoldBack(
            time_of=lambda record: record.timestamp_ms,
            wait_ms=wait_ms,
            is_final=False,
            records_max=records_max,
            emits_when_full=emits_when_full,
        )
        return self._suppress(step, name)

    def group_by(
        self,
        mapper: Callable[[K, V], tuple[K2, V2]],
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        name: str | None = None,
    ) -> "GroupedTable[K2, V2]":
        """The rows under other keys, to be added up; a changed row is taken out first."""
        check_function(mapper, 2, "the mapper of group_by", "it returns a key and a value")
        draft = NodeDraft(
            name=self.graph.named(name, "", "KTABLE-SELECT-"),
            parents=[self.node],
            make=lambda d: RegroupRows(mapper),
        )
        self.graph.add(draft)
        self.graph.send_old(self.node)
        return GroupedTable(self.graph, draft.name, key, value, name)

    def join(
        self,
        other: "KTable[K, V2]",
        joiner: Callable[[V, V2], R],
        *,
        store: str | None = None,
        name: str | None = None,
    ) -> "KTable[K, R]":
        """Rows that both tables have."""
        return self._join(other, joiner, "inner", store, name)

    def left_join(
        self,
        other: "KTable[K, V2]",
        joiner: Callable[[V, V2 | None], R],
        *,
        store: str | None = None,
        name: str | None = None,
    ) -> "KTable[K, R]":
        """All rows of this table, with the other's or None."""
        return self._join(other, joiner, "left", store, name)

    def outer_join(
        self,
        other: "KTable[K, V2]",
        joiner: Callable[[V | None, V2 | None], R],
        *,
        store: str | None = None,
        name: str | None = None,
    ) -> "KTable[K, R]":
        """All rows of both tables."""
        return self._join(other, joiner, "outer", store, name)

    def join_foreign_key(
        self,
        other: "KTable[Any, V2]",
        foreign_key: Callable[[K, V], Any],
        joiner: Callable[[V, V2], R],
        *,
        store: str | None = None,
        name: str | None = None,
    ) -> "KTable[K, R]":
        """Each row with the row of the other table that it points to."""
        return self._join_foreign(other, foreign_key, joiner, store, name, left=False)

    def left_join_foreign_key(
        self,
        other: "KTable[Any, V2]",
        foreign_key: Callable[[K, V], Any],
        joiner: Callable[[V, V2 | None], R],
        *,
        store: str | None = None,
        name: str | None = None,
    ) -> "KTable[K, R]":
        """The same; None where it points nowhere."""
        return self._join_foreign(other, foreign_key, joiner, store, name, left=True)

    @property
    def _record_type(self) -> RecordType:
        return replace(record_type(self.key_serde, self.value_serde), has_timestamp=False)

    def _filtered(
        self,
        predicate: Callable[[Any, Any], bool] | Column,
        wanted: bool,
        store: str | None,
        name: str | None,
    ) -> "KTable[K, Any]":
        """The rows of which the predicate says so; an expression that is null takes no row."""
        if isinstance(predicate, Column):
            test = row_function(condition(predicate, self._record_type, "a filter"))

            def taken(key: Any, value: Any) -> Any:
                return value if test(key, value) is wanted else None

        else:
            function = predicate
            check_function(function, 2, "the predicate of a filter")

            def taken(key: Any, value: Any) -> Any:
                return value if bool(function(key, value)) is wanted else None

        return self._mapped("FILTER", taken, store, name, filters=True, serde=self.value_serde)

    def _mapped(
        self,
        kind: str,
        function: Callable[[Any, Any], Any],
        store: str | None,
        name: str | None,
        *,
        filters: bool,
        serde: Serde[Any] | None = None,
    ) -> "KTable[K, Any]":
        draft = NodeDraft(
            name=self.graph.named(name, "", f"KTABLE-{kind}-"),
            parents=[self.node],
            make=lambda d: MapRows(
                function=function, has_state=d.has_store, sends_old=d.sends_old, filters=filters
            ),
            rows_of=(self.node,),
            key_serde=self.key_serde,
            old_from=() if store else (self.node,),
        )
        self.graph.add(draft)
        if store is not None:
            self.graph.add_store(draft, store, "rows")
            if not filters:
                draft.old_from = ()
        draft.value_serde = serde
        return KTable(self.graph, draft.name, self.key_serde, serde, self.grace_ms)

    def _suppress(self, step: HoldBack, name: str | None) -> "KTable[K, V]":
        node_name = name or self.graph.new_name("KTABLE-SUPPRESS-")
        store = f"{name}-store" if name else self.graph.new_store_name("KTABLE-SUPPRESS-")
        draft = NodeDraft(
            name=node_name,
            parents=[self.node],
            make=lambda d: step,
            key_serde=self.key_serde,
            value_serde=self.value_serde,
            rows_of=(self.node,),
        )
        self.graph.add_store(self.graph.add(draft), store, "buffer")
        self.graph.send_old(self.node)
        return KTable(self.graph, node_name, self.key_serde, self.value_serde, self.grace_ms)

    def _join(
        self,
        other: "KTable[K, Any]",
        joiner: Callable[[Any, Any], Any],
        kind: JoinKind,
        store: str | None,
        name: str | None,
    ) -> "KTable[K, Any]":
        graph = self.graph
        member(other, KTable, graph, "the other table", "a stream meets a table by join_table")
        check_function(joiner, 2, "a joiner")
        merge_name = graph.named(name, "", "KTABLE-MERGE-")
        if kind != "inner":
            graph.send_old(self.node)
        if kind == "outer":
            graph.send_old(other.node)
        sides = []
        for mine, its, part in ((self, other, "this"), (other, self, "other")):
            draft = NodeDraft(
                name=graph.named(name, f"-join-{part}", f"KTABLE-JOIN{part.upper()}-"),
                parents=[mine.node],
                stores=graph.materialize(its.node),
                make=lambda d, is_left=part == "this": PairRows(  # type: ignore[misc]
                    kind=kind, is_left=is_left, joiner=joiner, sends_old=d.sends_old
                ),
                table=its.node,
                key_serde=self.key_serde,
                old_from=(self.node, other.node),
            )
            sides.append(graph.add(draft).name)
        merge = NodeDraft(
            name=merge_name,
            parents=sides,
            make=lambda d: MergeRows(
                kind=kind, joiner=joiner, has_state=d.has_store, sends_old=d.sends_old
            ),
            rows_of=(self.node, other.node),
            key_serde=self.key_serde,
            old_from=tuple(sides),
        )
        graph.add(merge)
        if store is not None:
            graph.add_store(merge, store, "rows")
        return KTable(graph, merge_name, self.key_serde, None, self.grace_ms)

    def _join_foreign(
        self,
        other: "KTable[Any, Any]",
        foreign_key: Callable[[Any, Any], Any],
        joiner: Callable[[Any, Any], Any],
        store: str | None,
        name: str | None,
        *,
        left: bool,
    ) -> "KTable[K, Any]":
        graph = self.graph
        member(other, KTable, graph, "the other table", "a stream meets one by join_table")
        check_function(foreign_key, 2, "the foreign key", "it gets key and value of a row")
        check_function(joiner, 2, "a joiner")
        graph.send_old(other.node)
        graph.send_old(self.node)
        key_serde = self.key_serde or graph.default_key
        value_serde = self.value_serde or graph.default_value
        foreign_serde = other.key_serde or graph.default_key
        part = "KTABLE-FK-JOIN-"
        ask = "-subscription-registration"
        asked = graph.named(name, ask, f"{part}SUBSCRIPTION-REGISTRATION-") + "-topic"
        asking = NodeDraft(
            name=graph.named(name, f"{ask}-processor", f"{part}SUBSCRIPTION-REGISTRATION-"),
            parents=[self.node],
            make=lambda d: SubscribeRows(
                foreign_key=foreign_key,
                left=left,
                key_serde=key_serde,
                value_serde=value_serde,
                foreign_serde=foreign_serde,
            ),
        )
        graph.add(asking)
        ask_source = self._through(asked, [asking.name], foreign_serde, name and name + ask)
        store_name = graph.named(name, "-subscription-store", f"{part}SUBSCRIPTION-STATE-STORE-")
        worker = f"{part}SUBSCRIPTION-PROCESSOR-"
        receive = NodeDraft(
            name=graph.named(name, "-subscription-receive", worker),
            parents=[ask_source],
            make=lambda d: KeepSubscriptions(),
            key_serde=foreign_serde,
        )
        graph.add_store(graph.add(receive), store_name, "inner")
        answer = NodeDraft(
            name=graph.named(name, "-subscription-join-foreign", worker),
            parents=[receive.name],
            stores=graph.materialize(other.node),
            make=lambda d: AnswerSubscription(),
            table=other.node,
        )
        graph.add(answer)
        tell = NodeDraft(
            name=graph.named(name, "-foreign-join-subscription", worker),
            parents=[other.node],
            stores=[store_name],
            make=lambda d: AnswerSubscribers(),
            state=store_name,
            key_serde=foreign_serde,
        )
        graph.add(tell)
        reply, kind = "-subscription-response", f"{part}SUBSCRIPTION-RESPONSE-"
        answered = graph.named(name, reply, kind) + "-topic"
        tellers = [answer.name, tell.name]
        answer_source = self._through(answered, tellers, key_serde, name and name + reply)
        resolve = NodeDraft(
            name=graph.named(name, f"{reply}-resolver", f"{kind}RESOLVER-PROCESSOR-"),
            parents=[answer_source],
            stores=graph.materialize(self.node),
            make=lambda d: ResolveAnswer(joiner=joiner, left=left, value_serde=value_serde),
            table=self.node,
        )
        graph.add(resolve)
        output = NodeDraft(
            name=graph.named(name, "-result", f"{part}OUTPUT-"),
            parents=[resolve.name],
            make=lambda d: KeepRows(has_state=d.has_store, sends_old=d.sends_old),
            key_serde=key_serde,
        )
        graph.add(output)
        output.store_when_needed = store or graph.new_store_name(f"{part}OUTPUT-")
        if store is not None:
            graph.materialize(output.name)
        return KTable(graph, output.name, self.key_serde, None)

    def _through(
        self, topic: str, parents: list[str], key_serde: Serde[Any], name: str | None
    ) -> str:
        graph = self.graph
        sink = NodeDraft(
            name=graph.named(name, "-sink", "KTABLE-SINK-"),
            kind="sink",
            parents=parents,
            topics=[topic],
            key_serde=key_serde,
        )
        graph.add(sink)
        source = NodeDraft(
            name=graph.named(name, "-source", "KTABLE-SOURCE-"),
            kind="source",
            topics=[topic],
            key_serde=key_serde,
        )
        graph.add(source)
        graph.internal_topics.add(topic)
        return source.name


def _window_end(record: Any) -> int:
    windowed: Windowed = record.key
    return windowed.window.end_ms


@dataclass(frozen=True, slots=True)
class GroupedTable(KafkaWords, Generic[K, V]):
    """A table's rows under other keys, before they are added up."""

    graph: Graph
    node: str
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    name: str | None = None  # Of the repartition topic; None: it is named after the store.

    def count(self, *, store: str | None = None, name: str | None = None) -> KTable[K, int]:
        """How many rows each group has."""
        return self._aggregated(
            "AGGREGATE",
            lambda d: AggregateRows(
                initializer=lambda: 0,
                adder=lambda k, v, total: total + 1,
                subtractor=lambda k, v, total: total - 1,
                reduces=False,
                sends_old=d.sends_old,
            ),
            store,
            name,
            LONG,
        )

    def reduce(
        self,
        adder: Callable[[V, V], V],
        subtractor: Callable[[V, V], V] | None = None,  # Needed; None is told why.
        *,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """The rows of a group as one; `adder(total, new)`, `subtractor(total, old)`."""
        check_function(adder, 2, "the adder of reduce")
        check_function(subtractor, 2, "the subtractor of reduce", "a row that changes is taken out")
        taken_out: Any = subtractor
        return self._aggregated(
            "REDUCE",
            lambda d: AggregateRows(
                initializer=lambda: None,
                adder=lambda k, v, total: v if total is None else adder(total, v),
                subtractor=lambda k, v, total: taken_out(total, v),
                reduces=True,
                sends_old=d.sends_old,
            ),
            store,
            name,
            self.value_serde,
        )

    @overload
    def aggregate(
        self,
        initializer: Callable[[], R],
        adder: Callable[[K, V, R], R],
        subtractor: Callable[[K, V, R], R],
        *,
        value: Serde[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[K, R]: ...

    @overload
    def aggregate(
        self,
        *,
        value: Serde[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
        **columns: AggregateColumn,
    ) -> KTable[K, Any]: ...

    def aggregate(
        self,
        initializer: Any = None,
        adder: Any = None,
        subtractor: Any = None,
        *,
        value: Serde[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
        **columns: AggregateColumn,
    ) -> KTable[K, Any]:
        """The rows of a group as an aggregate of its own type, or as declared columns."""
        rows = None
        if columns:
            tally = self._tally(columns, (initializer, adder, subtractor))
            initializer, adder, subtractor = tally.start, tally.add, tally.take_out
            rows = json_serde_keeping(tally.type, PARTS)
            value = value or json_serde(tally.type)
        check_function(initializer, 0, "the initializer of aggregate")
        check_function(adder, 3, "the adder of aggregate")
        check_function(subtractor, 3, "the subtractor of aggregate", "a row that changes leaves")
        return self._aggregated(
            "AGGREGATE",
            lambda d: AggregateRows(
                initializer=initializer,
                adder=adder,
                subtractor=subtractor,
                reduces=False,
                sends_old=d.sends_old,
            ),
            store,
            name,
            value,
            rows,
        )

    def _tally(
        self, columns: dict[str, AggregateColumn], functions: tuple[Any, ...]
    ) -> ColumnTally:
        from penstock.streams.dsl.aggregation import refuse_both, tallied

        refuse_both(*functions)
        for name, one in columns.items():
            if getattr(one, "kind", "sum") not in RETRACTABLE:
                raise TopologyError(
                    f"{name}: {one.kind} is not for the rows of a table, because a row that "
                    "changes could not be taken out again"
                )
        return tallied(columns, record_type(self.key_serde, self.value_serde))

    def _aggregated(
        self,
        kind: str,
        make: Callable[[NodeDraft], AggregateRows],
        store: str | None,
        name: str | None,
        value_serde: Serde[Any] | None,
        row_serde: Serde[Any] | None = None,
    ) -> KTable[K, Any]:
        graph = self.graph
        store_name = store or graph.new_store_name("KTABLE-AGGREGATE-")
        sink_name = graph.named(name, "-sink", "KSTREAM-SINK-")
        source_name = graph.named(name, "-source", "KSTREAM-SOURCE-")
        node_name = graph.named(name, "", f"KTABLE-{kind}-")
        topic = f"{self.name or store_name}-repartition"
        serde = self.key_serde
        draft = NodeDraft(
            name=node_name,
            parents=[self._regrouped(topic, sink_name, source_name)],
            make=make,
            key_serde=serde,
            value_serde=row_serde or value_serde,
        )
        graph.add_store(graph.add(draft), store_name, "rows")
        return KTable(graph, node_name, serde, value_serde)

    def _regrouped(self, topic: str, sink_name: str, source_name: str) -> str:
        """The source of the repartition topic; a group with a name has one for all that it does."""
        graph = self.graph
        for one in graph.drafts.values():
            if one.topics == [topic] and one.parents == [self.node]:
                return graph.source_of((topic,)) or source_name
        sink = NodeDraft(name=sink_name, kind="sink", parents=[self.node], topics=[topic])
        source = NodeDraft(name=source_name, kind="source", topics=[topic])
        sink.key_serde = source.key_serde = self.key_serde
        graph.add(sink)
        graph.add(source)
        graph.internal_topics.add(topic)
        return source_name
