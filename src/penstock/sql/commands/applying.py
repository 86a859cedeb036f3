"""One statement and a catalog give the next catalog, the query that begins and those that end.

Nothing is carried out here: a server writes the statement to its log first, a test runs it in
memory, and both come to the same catalog.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias, get_args

from penstock.sql.analysis.creating import (
    added_columns,
    check_formats,
    infers,
    relation_of,
    type_of,
)
from penstock.sql.analysis.persistent import QueryInto, analyse_create_as, analyse_insert
from penstock.sql.analysis.properties import GivenProperties
from penstock.sql.analysis.replacing import check_query_replaced, check_replaced
from penstock.sql.catalog import catalog as changes
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import DataFormat, Relation, RelationColumn
from penstock.sql.formats.codec import SchemaPort
from penstock.sql.formats.serdes import inferred_columns
from penstock.sql.functions.table import FunctionTable
from penstock.sql.language.parse import parse_one
from penstock.sql.language.statements import (
    AddColumns,
    Control,
    CreateAs,
    CreateSource,
    CreateType,
    Drop,
    InsertFrom,
    SetProperty,
    SetVariable,
)

Command: TypeAlias = (
    CreateSource | CreateAs | CreateType | Drop | AddColumns | InsertFrom | Control | SetProperty
    | SetVariable
)  # fmt: skip
COMMANDS: Final = get_args(Command)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementOutcome:
    """What a statement made."""

    catalog: Catalog
    started: QueryInto | None = None
    ended: frozenset[str] = frozenset()  # The ids of queries that are no more.
    message: str
    deleted_topic: str | None = None


@dataclass(frozen=True, slots=True)
class Commands:
    """What statements are judged with."""

    functions: FunctionTable
    schemas: SchemaPort | None = None

    def apply(self, catalog: Catalog, statement: Command) -> StatementOutcome:
        """The catalog after a statement; StatementRefused leaves all as it was."""
        match statement:
            case CreateSource():
                return self._create_source(catalog, statement)
            case CreateAs():
                return self._create_as(catalog, statement)
            case InsertFrom():
                return self._insert(catalog, statement)
            case Drop():
                return _drop(catalog, statement)
            case Control():
                return _control(catalog, statement)
        return self._small(catalog, statement)

    def _small(self, catalog: Catalog, statement: Command) -> StatementOutcome:
        match statement:
            case CreateType():
                made = type_of(statement.type, catalog, statement.at)
                after = changes.add_type(
                    catalog, statement.name, made, if_not_exists=statement.if_not_exists
                )
                told = f"Registered custom type with name '{statement.name}' and SQL type {made}"
                return StatementOutcome(catalog=after, message=told)
            case AddColumns():
                return _add_columns(catalog, statement)
            case SetProperty():
                return StatementOutcome(
                    catalog=changes.set_property(catalog, statement), message=""
                )
            case SetVariable():
                return StatementOutcome(
                    catalog=changes.set_variable(catalog, statement), message=""
                )
        raise StatementRefused(f"{type(statement).__name__} changes nothing.")

    def _create_source(self, catalog: Catalog, statement: CreateSource) -> StatementOutcome:
        before = catalog.relations.get(statement.name)
        if before is not None and statement.if_not_exists:
            return _already(catalog, statement.name, before)
        relation = relation_of(statement, catalog, self.inferred(statement))
        if before is not None and statement.is_replacing:
            check_replaced(before, relation)
        after = changes.add_relation(catalog, relation, is_replacing=statement.is_replacing)
        return StatementOutcome(catalog=after, message=f"{statement.kind.capitalize()} created")

    def inferred(self, statement: CreateSource) -> list[RelationColumn]:
        """The columns that a registry has to tell."""
        key, value = infers(statement)
        given = GivenProperties.of_source(statement.properties)
        topic = given.get("KAFKA_TOPIC")
        found: list[RelationColumn] = []
        if key is not None and topic is not None:
            chosen = DataFormat(
                key,
                is_wrapped=False,
                schema_id=given.get("KEY_SCHEMA_ID"),
                schema_name=given.get("KEY_SCHEMA_FULL_NAME"),
            )
            found += inferred_columns(chosen, f"{topic}-key", "KEY", self.schemas)
        if value is not None and topic is not None:
            chosen = DataFormat(
                value,
                schema_id=given.get("VALUE_SCHEMA_ID"),
                schema_name=given.get("VALUE_SCHEMA_FULL_NAME"),
            )
            found += inferred_columns(chosen, f"{topic}-value", "VALUE", self.schemas)
        return found

    def _create_as(self, catalog: Catalog, statement: CreateAs) -> StatementOutcome:
        before = catalog.relations.get(statement.name)
        if before is not None and statement.if_not_exists:
            return _already(catalog, statement.name, before)
        made = analyse_create_as(statement, catalog, self.functions)
        ended: frozenset[str] = frozenset()
        if before is not None and statement.is_replacing:
            self._check_replaced(catalog, before, made)
            ended = frozenset({before.query or ""})
        after = changes.add_relation(catalog, made.sink, is_replacing=statement.is_replacing)
        after = changes.add_query(after, made.note)
        told = f"Created query with ID {made.note.id}"
        return StatementOutcome(catalog=after, started=made, ended=ended, message=told)

    def _check_replaced(self, catalog: Catalog, before: Relation, made: QueryInto) -> None:
        check_replaced(before, made.sink)
        old = parse_one(before.statement)
        assert isinstance(old, CreateAs), "check_replaced has seen to it"
        logical = analyse_create_as(old, catalog, self.functions).logical
        check_query_replaced(before.name, logical, made.logical)

    def _insert(self, catalog: Catalog, statement: InsertFrom) -> StatementOutcome:
        made = analyse_insert(statement, catalog, self.functions)
        if made.note.id in catalog.queries:
            raise StatementRefused(f"Query ID '{made.note.id}' already exists.", place=statement.at)
        after = changes.add_query(catalog, made.note)
        return StatementOutcome(
            catalog=after, started=made, message=f"Created query with ID {made.note.id}"
        )


def _already(catalog: Catalog, name: str, before: Relation) -> StatementOutcome:
    told = f"Cannot add {before.kind.lower()} `{name}`: A {before.kind.lower()} with the same name "
    return StatementOutcome(catalog=catalog, message=told + "already exists.")


def _drop(catalog: Catalog, statement: Drop) -> StatementOutcome:
    if statement.kind == "CONNECTOR":
        raise StatementRefused("Connectors belong to Connect.", place=statement.at)
    before = catalog.relations.get(statement.name)
    after = changes.drop(catalog, statement)
    if after is catalog:
        kind = statement.kind.capitalize()
        return StatementOutcome(catalog=catalog, message=f"{kind} {statement.name} does not exist.")
    ended = frozenset(set(catalog.queries) - set(after.queries))
    topic = before.topic if before is not None and statement.deletes_topic else None
    told = f"Source `{statement.name}` (topic: {before.topic}) was dropped." if before else (
        f"Type '{statement.name}' was dropped."
    )  # fmt: skip
    return StatementOutcome(catalog=after, ended=ended, message=told, deleted_topic=topic)


def _control(catalog: Catalog, statement: Control) -> StatementOutcome:
    after = changes.control(catalog, statement)
    ended = frozenset(set(catalog.queries) - set(after.queries))
    word = {"TERMINATE": "terminated", "PAUSE": "paused", "RESUME": "resumed"}[statement.action]
    return StatementOutcome(catalog=after, ended=ended, message=f"Query {word}.")


def _add_columns(catalog: Catalog, statement: AddColumns) -> StatementOutcome:
    added = added_columns(statement.columns, catalog)
    after = changes.add_columns(catalog, statement.kind, statement.name, added)
    relation = after.relations[statement.name]
    check_formats(relation.key_format, relation.value_format, relation.columns)
    return StatementOutcome(
        catalog=after, message=f"{statement.kind.capitalize()} {statement.name} altered"
    )
