"""A query as a topology: sources, joins, filter, table functions, groups, projection, sink."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.sql.analysis.checking import TypeChecker
from penstock.sql.analysis.logical import LogicalQuery, SourceRead
from penstock.sql.analysis.persistent import QueryInto
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import Relation
from penstock.sql.formats.codec import SchemaPort
from penstock.sql.formats.serdes import key_serde, topic_serdes
from penstock.sql.functions.table import FunctionTable
from penstock.sql.planning.aggregating import grouped
from penstock.sql.planning.evaluating import Failed, RowCompiler
from penstock.sql.planning.joining import Rows, joined
from penstock.sql.planning.lanes import planned_lane
from penstock.sql.planning.rows import ROW
from penstock.sql.planning.sources import column_time, intake_of
from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import DataType
from penstock.streams import KStream, KTable, StreamsBuilder, StreamsTopology
from penstock.streams.plan.lanes import with_lane
from penstock.streams.tasks.failures import tell
from penstock.streams.values.records import Intake


@dataclass(frozen=True, slots=True)
class Planner:
    """What queries are planned with."""

    functions: FunctionTable
    user_types: Mapping[str, DataType]
    schemas: SchemaPort | None = None  # None: formats with a registry are refused.
    failed: Failed = tell

    @classmethod
    def of(
        cls,
        catalog: Catalog,
        functions: FunctionTable,
        schemas: SchemaPort | None = None,
        failed: Failed = tell,
    ) -> "Planner":
        """With the types that a catalog has."""
        return cls(functions, catalog.types, schemas, failed)

    def plan(self, query: QueryInto) -> StreamsTopology:
        """The topology of a persistent query."""
        builder = StreamsBuilder(key=ROW, value=ROW)
        logical, sink = query.logical, query.sink
        compiler = self._compiler(logical.row)
        rows = self._filtered(self._read(builder, logical, compiler), logical, compiler)
        if logical.grouping is not None:
            inner = key_serde(sink.columns.keys, sink.key_format, sink.topic, self.schemas)
            stream = grouped(
                rows, logical.grouping, inner, compiler, is_final=logical.emit == "FINAL"
            )
        else:
            stream = rows.to_stream() if isinstance(rows, KTable) else rows
            stream = self._by_new_key(stream, logical, compiler)
        self._write(stream, logical, sink)
        return self._in_a_lane(builder.build(), query)

    def _in_a_lane(self, topology: StreamsTopology, query: QueryInto) -> StreamsTopology:
        """The same plan, with a lane if its records can be taken in columns."""
        checker = TypeChecker(self.functions, self.user_types)
        found = planned_lane(query.logical, query.sink, checker)
        if found is None:
            return topology
        (source,) = query.logical.sources
        return with_lane(topology, source.relation.topic, found.lane, found.tally)

    def projection(self, logical: LogicalQuery) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        """What makes the columns of the result out of a row, those of the key too."""
        compiler = self._compiler(logical.final_row)
        made = [(one.name, compiler.value(one.expression)) for one in logical.outputs]
        return lambda row: {name: value(row) for name, value in made}

    def condition(self, logical: LogicalQuery) -> Callable[[Mapping[str, Any]], bool]:
        """Whether a row is part of the result."""
        if logical.where is None:
            return lambda row: True
        return self._compiler(logical.row).truth(logical.where)

    def intake(self, source: SourceRead) -> Intake:
        """What makes rows of the records of a source."""
        return intake_of(source, TypeChecker(self.functions, self.user_types))

    def results(self, logical: LogicalQuery) -> Callable[[Mapping[str, Any]], list[dict[str, Any]]]:
        """What makes the rows of the result out of one row, where one row is all it takes."""
        holds, project = self.condition(logical), self.projection(logical)
        if not logical.exploded:
            return lambda row: [project(row)] if holds(row) else []
        spread = self._compiler(logical.row).exploded(logical.exploded)
        return lambda row: [project(one) for one in spread(row)] if holds(row) else []

    def _compiler(self, row: Mapping[str, DataType]) -> RowCompiler:
        return RowCompiler(TypeChecker(self.functions, self.user_types), row, self.failed)

    def _read(self, builder: StreamsBuilder, logical: LogicalQuery, compiler: RowCompiler) -> Rows:
        _check_topics(logical)
        first, *others = logical.sources
        left = self._source(builder, first, compiler)
        seen, key_format = first.row(), first.relation.key_format
        for source, step in zip(others, logical.joins, strict=True):
            right = self._source(builder, source, compiler)
            rekeyed = step.rekeys_left or step.rekeys_right or step.shape == "FOREIGN-KEY"
            left = joined(
                left,
                right,
                step,
                compiler,
                nothing=(dict.fromkeys(seen), dict.fromkeys(source.row())),
                formats_differ=not rekeyed and key_format != source.relation.key_format,
            )
            seen = {**seen, **source.row()}
            if step.rekeys_left:
                key_format = source.relation.key_format
        return left

    def _source(self, builder: StreamsBuilder, source: SourceRead, compiler: RowCompiler) -> Rows:
        serdes = topic_serdes(source.relation, self.schemas)
        stream = builder.stream(
            source.relation.topic,
            key=serdes.key,
            value=serdes.value,
            intake=intake_of(source, compiler.checker),
        )
        stream = replace(stream, value_serde=ROW)
        return stream if source.relation.kind == "STREAM" else stream.to_table()

    def _filtered(self, rows: Rows, logical: LogicalQuery, compiler: RowCompiler) -> Rows:
        if logical.where is not None:
            holds = compiler.truth(logical.where)
            rows = rows.filter(lambda _key, row: row is not None and holds(row))
            if isinstance(rows, KTable):
                # A filter that knows the old row does not delete what nobody saw.
                rows.graph.send_old(rows.node)
        if logical.exploded:
            if isinstance(rows, KTable):
                raise StatementRefused("Table source is not supported with table functions")
            spread = compiler.exploded(logical.exploded)
            rows = rows.flat_map_values(lambda row: [] if row is None else spread(row))
        return rows

    def _by_new_key(
        self, stream: KStream[Any, Any], logical: LogicalQuery, compiler: RowCompiler
    ) -> KStream[Any, Any]:
        if logical.partitioning is None:
            return stream
        key_of = compiler.key([part.expression for part in logical.partitioning])
        return stream.map(lambda _key, row: (None if row is None else key_of(row), row))

    def _write(self, stream: KStream[Any, Any], logical: LogicalQuery, sink: Relation) -> None:
        serdes = topic_serdes(sink, self.schemas)
        compiler = self._compiler(logical.final_row)
        if sink.time is not None:
            stream = stream.restamp(_sink_time(logical, sink, compiler))
        columns = zip(logical.values, sink.columns.values, strict=True)
        made = [(column.name, compiler.value(one.expression)) for one, column in columns]
        values = stream.map_values(
            lambda row: None if row is None else {name: value(row) for name, value in made}
        )
        values.to(sink.topic, key=serdes.key, value=serdes.value)


def _sink_time(
    logical: LogicalQuery, sink: Relation, compiler: RowCompiler
) -> Callable[[Any, Any], int | None]:
    assert sink.time is not None
    output = next(one for one in logical.outputs if one.name == sink.time.name)
    value, column_ms = compiler.value(output.expression), column_time(sink.time, compiler.checker)

    def time_of(_key: Any, row: Any) -> int | None:
        try:
            return None if row is None else column_ms(value(row))
        except RowFailure as failure:
            compiler.failed(f"Error computing the time of a row: {failure.reason}")
            return None

    return time_of


def _check_topics(logical: LogicalQuery) -> None:
    seen: dict[str, str] = {}
    for source in logical.sources:
        relation = source.relation
        if relation.topic in seen:
            raise StatementRefused(
                f"{seen[relation.topic]} and {relation.name} read the same topic "
                f"{relation.topic}, so they cannot be joined with each other."
            )
        seen[relation.topic] = relation.name
