"""Which queries go through a lane: those of one stream whose work columns can do, or most of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.sql.analysis.checking import TypeChecker
from penstock.sql.analysis.logical import AggregateCall, Grouping, LogicalQuery, SourceRead
from penstock.sql.analysis.walking import columns_of
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import DataFormat, Relation, RelationColumn
from penstock.sql.columns.adding import BatchPart, RowTally, adding_of
from penstock.sql.columns.cells import ColumnExpression, NotInColumns
from penstock.sql.columns.compile import ColumnCompiler
from penstock.sql.columns.lanes import KeyWay, QueryLane, TopicColumns
from penstock.sql.columns.reading import BytesReader, reader_of
from penstock.sql.columns.writing import BytesWriter, writer_of
from penstock.sql.expressions.schema import RowSchema
from penstock.sql.formats.serdes import asks_registry, codec_of
from penstock.sql.language.expressions import Star

_OWN = "penstock.sql.functions.aggregates."


class PlannedLane(NamedTuple):
    """A lane, and what adds up at its end if anything does."""

    lane: QueryLane
    tally: RowTally | None


def planned_lane(logical: LogicalQuery, sink: Relation, checker: TypeChecker) -> PlannedLane | None:
    """The lane of a query; None: its records go step by step."""
    if not _is_plain(logical) or sink.time is not None:
        return None
    try:
        return LanePlanner(logical, sink, checker).planned()
    except (NotInColumns, StatementRefused, UnicodeError):
        return None  # Steps know how to say a part that stands alone, and texts that Arrow has not.


def _is_plain(logical: LogicalQuery) -> bool:
    """Whether a record of one stream is all that a row is made of."""
    source = logical.sources[0]
    relation = source.relation
    plain = not (source.prefix or relation.columns.headers or relation.key_window or relation.time)
    alone = len(logical.sources) == 1 and not logical.joins and not logical.exploded
    return alone and plain and relation.kind == "STREAM"


@dataclass(frozen=True, slots=True)
class LanePlanner:
    """Makes the lane of one query; NotInColumns where there is none."""

    logical: LogicalQuery
    sink: Relation
    checker: TypeChecker

    def planned(self) -> PlannedLane:
        """The whole lane."""
        if self.logical.grouping is not None:
            return self._grouped(self.logical.grouping)
        logical = self.logical
        values = [one.expression for one in logical.values]
        parts = logical.partitioning
        keys = None if parts is None else [part.expression for part in parts]
        write = _writer(self.sink.value_format, self.sink.columns.values)
        lane = self._lane(keys, values, self._compiled(values), write)
        return PlannedLane(lane, None)

    def _grouped(self, grouping: Grouping) -> PlannedLane:
        window = grouping.window
        if grouping.rekeys or (window is not None and window.kind == "SESSION"):
            raise NotInColumns
        if self.sink.key_format.name == "DELIMITED":
            raise NotInColumns  # Not every text is read from it as it was written.
        parts: list[BatchPart] = []
        inputs: list[tuple[Any, ColumnExpression]] = []
        for one in grouping.aggregates:
            arguments, part = self._added(one, len(inputs))
            inputs += arguments
            parts.append(part)
        asked = [expression for expression, _ in inputs]
        lane = self._lane(None, asked, [compiled for _, compiled in inputs], None)
        return PlannedLane(lane, RowTally(tuple(parts)))

    def _added(
        self, one: AggregateCall, at: int
    ) -> tuple[list[tuple[Any, ColumnExpression]], BatchPart]:
        """What an aggregate adds up, and how; its column is the next one."""
        call, row = one.call, self.logical.row
        function = self.checker.functions.aggregate(call.function)
        if not all(each.make.__module__.startswith(_OWN) for each in function.overloads):
            raise NotInColumns
        compiled = self.checker.aggregate(call, row)
        kinds = [argument.type for argument in compiled.arguments]
        asked = [argument for argument in call.arguments if not isinstance(argument, Star)]
        if len(asked) != len(kinds):
            raise NotInColumns  # Some of them are constants.
        adding = adding_of(call.function.upper(), kinds)
        compiler = ColumnCompiler(self.checker, row)
        inputs = [
            (argument, compiler.compile_as(argument, kind))
            for argument, kind in zip(asked, kinds, strict=True)
        ]
        column = f"i{at}" if inputs else None
        return inputs, BatchPart(adding, compiled.aggregator, column)

    def _lane(
        self,
        keys: Sequence[Any] | None,
        values: Sequence[Any],
        compiled: Sequence[ColumnExpression],
        write: BytesWriter | None,
    ) -> QueryLane:
        source, where = self.logical.sources[0], self.logical.where
        key = KeyWay(
            parts=None if keys is None else self._compiled(keys),
            names=source.key_names,
            write=_writer(self.sink.key_format, self.sink.columns.keys),
        )
        own = source.key_names if keys is None else ()
        return QueryLane(
            source=_reader(source),
            where=None if where is None else self._compiled([where])[0],
            key=key,
            values=compiled,
            write=write,
            needed=frozenset([*own, *self._named([*values, *(keys or ())])]),
        )

    def _compiled(self, expressions: Iterable[Any]) -> list[ColumnExpression]:
        compiler = ColumnCompiler(self.checker, self.logical.row)
        return [compiler.compile(one) for one in expressions]

    def _named(self, expressions: Iterable[Any]) -> Iterable[str]:
        schema = RowSchema(self.logical.row)
        for expression in expressions:
            for one in columns_of(expression):
                yield schema.key_of(one.name, one.source)


def _reader(source: SourceRead) -> TopicColumns:
    relation = source.relation
    keys, values = relation.columns.keys, relation.columns.values
    return TopicColumns(
        keys=[column.name for column in keys],
        values=[column.name for column in values],
        read_key=_bytes_reader(relation.key_format, keys),
        read_value=_bytes_reader(relation.value_format, values),
    )


def _bytes_reader(chosen: DataFormat, columns: Sequence[RelationColumn]) -> BytesReader:
    if asks_registry(chosen):
        raise NotInColumns
    return reader_of(chosen, columns, codec_of(chosen, columns, "", None))


def _writer(chosen: DataFormat, columns: Sequence[RelationColumn]) -> BytesWriter:
    if asks_registry(chosen):
        raise NotInColumns
    return writer_of(chosen, columns, codec_of(chosen, columns, "", None))
