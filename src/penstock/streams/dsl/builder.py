"""StreamsBuilder: where a topology starts and ends."""

import re
from typing import Any

from penstock.streams.dsl.arguments import function, topic_names
from penstock.streams.dsl.global_table import GlobalKTable
from penstock.streams.dsl.stream import KStream, read_topics
from penstock.streams.dsl.table import KTable
from penstock.streams.plan.graph import Graph, NodeDraft, TopologyError, check_serde
from penstock.streams.plan.nodes import StoreSpec, StreamsTopology
from penstock.streams.steps.tables import KeepRows
from penstock.streams.values.records import Intake
from penstock.streams.values.serdes import JSON, STRING, Serde
from penstock.streams.words.kafka_words import KafkaWords


class StreamsBuilder(KafkaWords):
    """Makes streams and tables out of topics, and the topology out of what became of them."""

    def __init__(self, *, key: Serde[Any] = STRING, value: Serde[Any] = JSON) -> None:
        self._graph = Graph(default_key=key, default_value=value)

    def stream(
        self,
        *topics: str,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        name: str | None = None,
        intake: Intake | None = None,
    ) -> KStream[Any, Any]:
        """The records of the topics, each on its own.

        An intake makes each record anew from what was read and from where it lies, before anything
        else sees it: its time may come from the value.
        """
        if not topics:
            raise TopologyError("a stream needs a topic")
        if any(isinstance(topic, re.Pattern) for topic in topics):
            raise TopologyError(
                "a stream names its topics, and takes no pattern: what an application reads is "
                "compared with its state at every start, and a pattern would find other topics "
                "from one start to the next. List them: stream(*names)"
            )
        topic_names(topics)
        if intake is not None:
            function(intake, 3, "an intake", "it gets a record, its partition and its offset")
        key, value = key or self._graph.default_key, value or self._graph.default_value
        return read_topics(self._graph, topics, key, value, name, intake)

    def table(
        self,
        topic: str,
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> KTable[Any, Any]:
        """The topic as a table: a record is the row of its key from now on, null deletes it."""
        key, value = key or self._graph.default_key, value or self._graph.default_value
        draft, store_name = self._table_source(topic, key, value, store, name, is_global=False)
        if store is not None:
            self._graph.materialize(draft.name)
        else:
            draft.store_when_needed = store_name
        return KTable(self._graph, draft.name, key, value)

    def global_table(
        self,
        topic: str,
        *,
        key: Serde[Any] | None = None,
        value: Serde[Any] | None = None,
        store: str | None = None,
        name: str | None = None,
    ) -> GlobalKTable:
        """The topic as a table that is everywhere."""
        draft, store_name = self._table_source(topic, key, value, store, name, is_global=True)
        self._graph.materialize(draft.name)
        return GlobalKTable(self._graph, draft.name, store_name)

    def add_state_store(
        self, name: str, *, key: Serde[Any] | None = None, value: Serde[Any] | None = None
    ) -> "StreamsBuilder":
        """A key-value store for processors of the user's."""
        self._graph.check_store(name)
        for given in (key, value):
            check_serde(given, f"the store {name}")
        serde = key or self._graph.default_key
        self._graph.stores[name] = StoreSpec(
            name=name, kind="user", node="", key_serde=serde, value_serde=value
        )
        return self

    def build(self) -> StreamsTopology:
        """The topology as it is now."""
        return self._graph.build()

    def _table_source(
        self,
        topic: str,
        key: Serde[Any] | None,
        value: Serde[Any] | None,
        store: str | None,
        name: str | None,
        *,
        is_global: bool,
    ) -> tuple[NodeDraft, str]:
        topic_names((topic,))
        graph = self._graph
        store_name = store or graph.new_store_name(f"{topic}-")
        source_name = graph.named(name, "-source", "KSTREAM-SOURCE-")
        source = NodeDraft(
            name=source_name,
            kind="source",
            topics=[topic],
            key_serde=key,
            value_serde=value,
            is_global=is_global,
            is_table_source=True,
        )
        graph.source_of((topic,))
        graph.add(source)
        draft = NodeDraft(
            name=graph.named(name, "", "KTABLE-SOURCE-"),
            parents=[source.name],
            make=_keep_rows,
            key_serde=key,
            value_serde=value,
            is_global=is_global,
            store_when_needed=store_name,
        )
        return graph.add(draft), store_name


def _keep_rows(draft: NodeDraft) -> KeepRows:
    return KeepRows(has_state=draft.has_store, sends_old=draft.sends_old)
