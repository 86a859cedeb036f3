"""CREATE ... AS and INSERT INTO ... SELECT: a query, and the stream or table that it writes."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.sql.analysis.creating import check_formats, time_column
from penstock.sql.analysis.logical import LogicalQuery
from penstock.sql.analysis.properties import GivenProperties
from penstock.sql.analysis.select import analyse_select
from penstock.sql.catalog.catalog import Catalog, PersistentQuery, QueryKind, query_id
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import Columns, Relation, RelationColumn
from penstock.sql.functions.table import FunctionTable
from penstock.sql.language.queries import Select
from penstock.sql.language.statements import CreateAs, InsertFrom


@dataclass(frozen=True, slots=True)
class QueryInto:
    """A persistent query: what it does, where it writes, and what the catalog notes of it."""

    logical: LogicalQuery
    sink: Relation
    note: PersistentQuery


def analyse_create_as(statement: CreateAs, catalog: Catalog, functions: FunctionTable) -> QueryInto:
    """The stream or table that a query makes."""
    _check_endless(statement.query)
    logical = analyse_select(statement.query, catalog, functions, is_persistent=True)
    if logical.kind != statement.kind:
        raise StatementRefused(
            f"Invalid result type. Your SELECT query produces a {logical.kind}. Please use CREATE "
            f"{logical.kind} AS SELECT statement instead.",
            place=statement.at,
        )
    _check_keys(logical, statement.name)
    kind: QueryKind = "CSAS" if statement.kind == "STREAM" else "CTAS"
    before = catalog.relations.get(statement.name)
    id_before = before.query if before is not None and statement.is_replacing else None
    note = _note(catalog, kind, logical, statement.name, str(statement), id_before)
    return QueryInto(logical, _sink(statement, logical, catalog, note.id), note)


def analyse_insert(statement: InsertFrom, catalog: Catalog, functions: FunctionTable) -> QueryInto:
    """One more query into a stream that is there."""
    _check_endless(statement.query)
    given = GivenProperties.of_insert(statement.properties)
    sink = catalog.relation(statement.target, statement.at)
    logical = analyse_select(statement.query, catalog, functions, is_persistent=True)
    if sink.kind != "STREAM" or logical.kind != "STREAM":
        raise StatementRefused(
            f"INSERT INTO can only be used to insert into a stream. {sink.name} is a "
            f"{sink.kind.lower()}, and the query gives a {logical.kind.lower()}.",
            place=statement.at,
        )
    if sink.is_read_only:
        raise StatementRefused(
            f"Cannot insert into read-only stream: {sink.name}", place=statement.at
        )
    _check_same_columns(logical, sink, statement)
    note = _note(catalog, "INSERTQUERY", logical, sink.name, str(statement), given.get("QUERY_ID"))
    return QueryInto(logical, sink, note)


def _note(
    catalog: Catalog,
    kind: QueryKind,
    logical: LogicalQuery,
    sink: str,
    statement: str,
    id_given: str | None,
) -> PersistentQuery:
    return PersistentQuery(
        id=id_given or query_id(catalog, kind, sink),
        kind=kind,
        sources=logical.source_names,
        sink=sink,
        statement=statement,
    )


def _check_endless(select: Select) -> None:
    if select.limit is not None:
        raise StatementRefused("LIMIT is not supported in persistent queries.", place=select.at)


def _check_keys(logical: LogicalQuery, name: str) -> None:
    """All parts of the key are selected, and something besides them."""
    found = {one.key_part for one in logical.outputs}
    missing = [at for at in range(len(logical.key_types)) if at not in found]
    if missing:
        told, what = _missing(logical, missing)
        raise StatementRefused(
            f"Key missing from projection (ie, SELECT). The query used to build `{name}` must "
            f"include the {what} {told} in its projection (eg, SELECT {told}...)."
        )
    if not logical.values:
        raise StatementRefused("The projection contains no value columns.")


def _missing(logical: LogicalQuery, places: list[int]) -> tuple[str, str]:
    if logical.grouping is not None:
        told = [str(logical.grouping.keys[at].expression) for at in places]
        what = "grouping expression"
    elif logical.partitioning is not None:
        told = [str(logical.partitioning[at].expression) for at in places]
        what = "partitioning expression"
    elif logical.joins and logical.joins[-1].shape != "FOREIGN-KEY":
        return " or ".join(logical.joins[-1].key_columns), "join expression"
    else:
        source = logical.sources[0]
        told = [source.relation.columns.keys[at].name for at in places]
        what = "key column"
    return " and ".join(told), what if len(told) == 1 else f"{what}s"


def _sink(statement: CreateAs, logical: LogicalQuery, catalog: Catalog, query: str) -> Relation:
    given = GivenProperties.of_query(statement.properties)
    first = logical.sources[0].relation
    values = [RelationColumn(one.name, one.type) for one in logical.values]
    columns = Columns((*logical.keys, *values))
    key_format = given.key_format(first.key_format, has_key=bool(columns.keys))
    value_format = given.value_format(first.value_format)
    if value_format.schema_id is None and len(values) > 1 and not value_format.is_wrapped:
        value_format = given.value_format(None) if given.get("VALUE_FORMAT") else value_format
    check_formats(key_format, value_format, columns)
    return Relation(
        kind=statement.kind,
        name=statement.name,
        columns=columns,
        topic=given.get("KAFKA_TOPIC") or _topic(statement.name, catalog),
        key_format=key_format,
        value_format=value_format,
        key_window=logical.key_window,
        time=time_column(given, columns),
        partitions=given.get("PARTITIONS") or first.partitions,
        replicas=given.get("REPLICAS") or first.replicas,
        retention_ms=given.get("RETENTION_MS"),
        statement=str(statement),
        query=query,
    )


def _topic(name: str, catalog: Catalog) -> str:
    return catalog.properties.get("ksql.output.topic.name.prefix", "") + name


def _check_same_columns(logical: LogicalQuery, sink: Relation, statement: InsertFrom) -> None:
    made = (*logical.keys, *(RelationColumn(one.name, one.type) for one in logical.values))
    wanted = sink.columns.all
    keys = [c.type for c in made if c.role == "KEY"]
    values = [c for c in made if c.role != "KEY"]
    if keys != [c.type for c in sink.columns.keys] or values != list(wanted[len(keys) :]):
        raise StatementRefused(
            "Incompatible schema between results and sink.\nResult schema is "
            f"{_listed(made)}\nSink schema is {_listed(wanted)}",
            place=statement.at,
        )
    if sink.key_window != logical.key_window:
        raise StatementRefused("Incompatible windows between results and sink.", place=statement.at)


def _listed(columns: Sequence[RelationColumn]) -> str:
    return ", ".join(str(column) for column in columns)
