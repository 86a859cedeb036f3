"""The catalog, and what each statement makes of it.

A catalog is a value: a statement gives the next one, or is refused. So the log of statements can be
replayed anywhere, a script can be tried before it is believed, and nobody sees half a change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from typing import Literal as OneOf

from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import Columns, Relation, RelationColumn
from penstock.sql.language.place import Place
from penstock.sql.language.statements import Control, Drop, Kind, SetProperty, SetVariable
from penstock.sql.types.kinds import DataType

QueryKind = OneOf["CSAS", "CTAS", "INSERTQUERY", "CST"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersistentQuery:
    """A query that goes on for ever: what it reads and what it writes."""

    id: str
    kind: QueryKind
    sources: frozenset[str]
    sink: str | None  # None: a table that is only read, for those who ask it.
    statement: str
    is_paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All that exists after some statements."""

    relations: Mapping[str, Relation] = field(default_factory=dict)
    types: Mapping[str, DataType] = field(default_factory=dict)
    queries: Mapping[str, PersistentQuery] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    number: int = 1  # Of the next query.

    def relation(self, name: str, place: Place | None = None) -> Relation:
        """The stream or table of that name; StatementRefused if there is none."""
        found = self.relations.get(name)
        if found is None:
            raise StatementRefused(f"{name} does not exist.", place=place)
        return found

    def readers(self, name: str) -> list[str]:
        """The queries that read a stream or table."""
        return sorted(query.id for query in self.queries.values() if name in query.sources)

    def writers(self, name: str) -> list[str]:
        """The queries that write to a stream or table."""
        return sorted(query.id for query in self.queries.values() if query.sink == name)

    def derived(self, name: str) -> list[str]:
        """The streams and tables that a query makes out of this one."""
        sinks = {q.sink for q in self.queries.values() if name in q.sources and q.kind != "CST"}
        return sorted(sink for sink in sinks if sink is not None and sink != name)


def add_relation(catalog: Catalog, relation: Relation, *, is_replacing: bool = False) -> Catalog:
    """CREATE STREAM or TABLE: a new one, or one in the place of another of its kind."""
    before = catalog.relations.get(relation.name)
    if before is not None and not is_replacing:
        kind = before.kind.lower()
        raise StatementRefused(
            f"Cannot add {relation.kind.lower()} '{relation.name}': A {kind} with the same name "
            "already exists"
        )
    if before is not None and before.kind != relation.kind:
        raise StatementRefused(
            f"Cannot add {relation.kind.lower()} '{relation.name}': it is a {before.kind.lower()}, "
            "and only another of its kind can replace it"
        )
    return replace(catalog, relations={**catalog.relations, relation.name: relation})


def query_id(catalog: Catalog, kind: QueryKind, sink: str) -> str:
    """The id of the next query: `CTAS_PAGEVIEWS_5`."""
    name = "" if kind == "INSERTQUERY" else f"{sink}_"
    return f"{kind}_{name}{catalog.number}"


def add_query(catalog: Catalog, query: PersistentQuery) -> Catalog:
    """A persistent query begins; one of the same id takes the place of its predecessor."""
    queries = {**catalog.queries, query.id: query}
    return replace(catalog, queries=queries, number=catalog.number + 1)


def drop(catalog: Catalog, statement: Drop) -> Catalog:
    """DROP: refused while something is made of it, or another query writes to it.

    The query that made a stream or table ends with it.
    """
    if statement.kind == "TYPE":
        return _drop_type(catalog, statement)
    relation = catalog.relations.get(statement.name)
    if relation is None:
        if statement.if_exists:
            return catalog
        what = f"{statement.kind.capitalize()} {statement.name}"
        raise StatementRefused(f"{what} does not exist.", place=statement.at)
    _check_droppable(catalog, relation, statement)
    relations = {name: one for name, one in catalog.relations.items() if name != relation.name}
    ended = {relation.query, f"CST_{relation.name}"}
    queries = {name: query for name, query in catalog.queries.items() if name not in ended}
    return replace(catalog, relations=relations, queries=queries)


def _check_droppable(catalog: Catalog, relation: Relation, statement: Drop) -> None:
    if relation.kind != statement.kind:
        raise StatementRefused(
            f"Incompatible data source type is {relation.kind}, but statement was DROP "
            f"{statement.kind}",
            place=statement.at,
        )
    if relation.is_read_only and statement.deletes_topic:
        reason = f"Cannot delete topic for read-only source: {relation.name}"
        raise StatementRefused(reason, place=statement.at)
    derived = catalog.derived(relation.name)
    if derived:
        raise StatementRefused(
            f"Cannot drop {relation.name}.\nThe following streams and/or tables read from this "
            f"source: [{', '.join(derived)}].\nYou need to drop them before dropping "
            f"{relation.name}.",
            place=statement.at,
        )
    own = {relation.query, f"CST_{relation.name}"}
    writers = [query for query in catalog.writers(relation.name) if query not in own]
    if writers:
        raise StatementRefused(
            f"Cannot drop {relation.name}.\nThe following queries write into this source: "
            f"[{', '.join(writers)}].\nYou need to terminate them before dropping {relation.name}.",
            place=statement.at,
        )


def _drop_type(catalog: Catalog, statement: Drop) -> Catalog:
    if statement.name not in catalog.types and not statement.if_exists:
        raise StatementRefused(f"Type {statement.name} does not exist.", place=statement.at)
    kept = {name: one for name, one in catalog.types.items() if name != statement.name}
    return replace(catalog, types=kept)


def add_type(catalog: Catalog, name: str, data_type: DataType, *, if_not_exists: bool) -> Catalog:
    """CREATE TYPE: a name for a type; columns that used an older meaning keep it."""
    if name in catalog.types:
        if if_not_exists:
            return catalog
        known = catalog.types[name]
        raise StatementRefused(
            f"Cannot register custom type '{name}' since it is already registered with type: "
            f"{known}"
        )
    return replace(catalog, types={**catalog.types, name: data_type})


def add_columns(
    catalog: Catalog, kind: Kind, name: str, added: tuple[RelationColumn, ...]
) -> Catalog:
    """ALTER STREAM or TABLE: columns are added to the value; nothing else can change."""
    relation = catalog.relation(name)
    if relation.kind != kind:
        reason = f"Incompatible data source type is {relation.kind}, but statement was ALTER {kind}"
        raise StatementRefused(reason)
    if relation.query is not None:
        raise StatementRefused(
            f"ALTER command is not supported for CREATE ... AS statements: {name} is made by "
            f"{relation.query}."
        )
    for number, column in enumerate(added):
        taken = relation.columns.find(column.name) is not None
        if taken or any(column.name == other.name for other in added[:number]):
            raise StatementRefused(f"Cannot add column `{column.name}` to schema. A column with "
                                   "the same name already exists.")  # fmt: skip
    columns = Columns((*relation.columns.all, *added))
    changed = replace(relation, columns=columns)
    return replace(catalog, relations={**catalog.relations, name: changed})


def control(catalog: Catalog, statement: Control) -> Catalog:
    """TERMINATE, PAUSE or RESUME one query or all; what a query wrote stays."""
    if statement.query is not None and statement.query not in catalog.queries:
        raise StatementRefused(f"Unknown queryId: {statement.query}", place=statement.at)
    chosen = set(catalog.queries) if statement.query is None else {statement.query}
    if statement.action == "TERMINATE":
        return _terminated(catalog, chosen)
    paused = statement.action == "PAUSE"
    changed = {name: replace(catalog.queries[name], is_paused=paused) for name in chosen}
    return replace(catalog, queries={**catalog.queries, **changed})


def _terminated(catalog: Catalog, ended: set[str]) -> Catalog:
    queries = {name: query for name, query in catalog.queries.items() if name not in ended}
    return replace(catalog, queries=queries)


def set_property(catalog: Catalog, statement: SetProperty) -> Catalog:
    """SET and UNSET: what the statements after it go by."""
    return replace(catalog, properties=_with_entry(catalog.properties, statement))


def set_variable(catalog: Catalog, statement: SetVariable) -> Catalog:
    """DEFINE and UNDEFINE."""
    return replace(catalog, variables=_with_entry(catalog.variables, statement))


def _with_entry(entries: Mapping[str, str], statement: Any) -> dict[str, str]:
    kept = {name: value for name, value in entries.items() if name != statement.name}
    return kept if statement.value is None else {**kept, statement.name: statement.value}
