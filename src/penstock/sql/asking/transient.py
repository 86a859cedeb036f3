"""A push query with joins or groups: a query on Spark for one client, into a topic of its own."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from penstock.errors import PenstockError
from penstock.sql.analysis.logical import LogicalQuery
from penstock.sql.analysis.persistent import QueryInto
from penstock.sql.asking.questions import MakeRows, TooManyQueries, TransientRows
from penstock.sql.asking.records import TopicRecord
from penstock.sql.asking.row_reader import AnswerRow
from penstock.sql.catalog.catalog import PersistentQuery
from penstock.sql.catalog.relations import Columns, DataFormat, Relation, RelationColumn
from penstock.sql.formats.serdes import topic_serdes
from penstock.sql.running.engine import SqlEngine
from penstock.sql.running.ports import HostedQuery, QueryHost, TopicPort

_JSON: Final = DataFormat("JSON")
_JSON_KEY: Final = DataFormat("JSON", is_wrapped=False)


def transient_query(logical: LogicalQuery, query_id: str, topic: str) -> QueryInto:
    """The query as one that writes: all its columns in the value, its key only for its order."""
    outputs = tuple(replace(one, key_part=None) for one in logical.outputs)
    keys = [RelationColumn(f"KEY_{at}", kind, "KEY") for at, kind in enumerate(logical.key_types)]
    values = [RelationColumn(one.name, one.type) for one in outputs]
    sink = Relation(
        kind=logical.kind,
        name=query_id,
        columns=Columns((*keys, *values)),
        topic=topic,
        key_format=_JSON_KEY if keys else DataFormat("NONE"),
        value_format=_JSON,
        key_window=logical.key_window,
    )
    note = PersistentQuery(
        id=query_id, kind="CSAS", sources=logical.source_names, sink=None, statement=""
    )
    return QueryInto(replace(logical, outputs=outputs), sink, note)


class Transients:
    """Starts and ends such queries, a few at a time: each is a query of Spark's."""

    def __init__(
        self,
        engine: SqlEngine,
        host: QueryHost,
        topics: TopicPort,
        *,
        prefix: str,
        queries_max: int,
    ) -> None:
        self._engine = engine
        self._host = host
        self._topics = topics
        self._prefix = prefix
        self._queries_max = queries_max
        self._open: set[str] = set()
        self._lock = threading.Lock()

    def start(
        self, logical: LogicalQuery, query_id: str, properties: Mapping[str, str]
    ) -> TransientRows:
        """Begin; TooManyQueries if as many run as are allowed."""
        self._enter(query_id)
        topic = f"{self._prefix}{query_id}"
        try:
            query = transient_query(logical, query_id, topic)
            topology = self._engine.planner(self._engine.catalog).plan(query)
            self._topics.create(topic, partitions=1, replicas=-1, configs={})
            self._host.start(HostedQuery(query=query, topology=topology, properties=properties))
        except BaseException:
            self._end(query_id, topic)
            raise
        health = self._host.health(query_id)
        if health is not None and health.state == "ERROR":
            self._end(query_id, topic)
            raise PenstockError("; ".join(health.failures))
        return TransientRows(
            topic=topic,
            rows=rows_of(query.sink),
            close=lambda: self._end(query_id, topic),
        )

    def _enter(self, query_id: str) -> None:
        with self._lock:
            if len(self._open) >= self._queries_max:
                raise TooManyQueries(
                    f"As many push queries run on Spark as are allowed ({self._queries_max}): end "
                    "one, or set penstock.sql.push.spark.max higher."
                )
            self._open.add(query_id)

    def _end(self, query_id: str, topic: str) -> None:
        try:
            self._host.end([query_id], forget=True)
            self._topics.delete([topic])
        finally:
            with self._lock:
                self._open.discard(query_id)


def rows_of(sink: Relation) -> MakeRows:
    """What makes rows of the records that such a query writes; one that is gone makes none."""
    serde = topic_serdes(sink, None).value
    names = [column.name for column in sink.columns.values]

    def rows(record: TopicRecord) -> list[AnswerRow]:
        value = serde.deserialize(record.value)
        return [] if value is None else [AnswerRow(tuple(value[name] for name in names))]

    return rows
