"""Statements that /ksql answers: commands, rows to be stored, and what is to be shown."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from penstock.errors import ConfigError
from penstock.schemas.errors import SchemaError
from penstock.sql.analysis.durations import duration_ms
from penstock.sql.analysis.inserting import RowValues, analyse_insert_row
from penstock.sql.analysis.logical import LogicalQuery
from penstock.sql.analysis.persistent import QueryInto
from penstock.sql.analysis.pulling import analyse_pull
from penstock.sql.analysis.select import analyse_select
from penstock.sql.answers import entities
from penstock.sql.answers.schemas import Document
from penstock.sql.asking.connectors import CONNECTOR_LISTS, ConnectorAnswers
from penstock.sql.asking.row_reader import is_row_by_row
from penstock.sql.asking.transient import transient_query
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.commands.applying import COMMANDS, Commands
from penstock.sql.formats.serdes import topic_serdes
from penstock.sql.functions.overloads import FunctionRefused
from penstock.sql.language.queries import Duration, Select
from penstock.sql.language.statements import (
    AssertSchema,
    AssertTopic,
    CreateAs,
    CreateConnector,
    Describe,
    Drop,
    Explain,
    InsertFrom,
    InsertRow,
    PrintTopic,
    SetProperty,
    SetVariable,
    Show,
    Statement,
)
from penstock.sql.running.engine import SqlEngine
from penstock.sql.running.ports import (
    QueryHealth,
    RecordWriter,
    TopicPort,
    TopicShape,
    WrittenRecord,
)
from penstock.sql.running.scope import RequestScope
from penstock.sql.service.settings import check_property
from penstock.streams import SerdeError

_ASSERT_MS = 1_000
_LOOK_S = 0.1
_HIDDEN = "_confluent-"


class WrongPlace(ValueError):
    """A statement that another address answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredStatement:
    """The answer to a statement, if it has one, and what holds for the next."""

    scope: RequestScope
    document: Document | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementAnswers:
    """What statements are answered with."""

    engine: SqlEngine
    topics: TopicPort
    writer: RecordWriter
    settings: Mapping[str, str] = field(default_factory=dict)  # For SHOW PROPERTIES.
    pushes: Callable[[], list[Document]] = list
    connectors: ConnectorAnswers = field(default_factory=ConnectorAnswers)

    def check(
        self, catalog: Catalog, statement: Statement, scope: RequestScope
    ) -> tuple[Catalog, RequestScope]:
        """Whether a statement could be carried out, and what would hold then."""
        if isinstance(statement, Select | PrintTopic):
            raise WrongPlace(
                "The following statement types should be issued to the websocket endpoint "
                "'/query': SELECT, PRINT"
            )
        if isinstance(statement, SetProperty):
            refuse_value(statement)
        if isinstance(statement, SetProperty | SetVariable) and not _is_for_all(statement):
            return catalog, scope.after(statement)
        if isinstance(statement, InsertRow):
            analyse_insert_row(statement, scope.over(catalog), self.engine.functions)
        if isinstance(statement, CreateConnector):
            self.connectors.check(statement)
        if _is_of_connect(statement):
            return catalog, scope
        return self.engine.tried(catalog, statement, scope), scope

    def answer(self, statement: Statement, text: str, scope: RequestScope) -> AnsweredStatement:
        """Carry a statement out."""
        if isinstance(statement, SetProperty | SetVariable) and not _is_for_all(statement):
            return AnsweredStatement(scope=scope.after(statement))
        if isinstance(statement, InsertRow):
            self.insert(analyse_insert_row(statement, scope.over(self.engine.catalog),
                                           self.engine.functions))  # fmt: skip
            return AnsweredStatement(scope=scope)
        return AnsweredStatement(scope=scope, document=self._document(statement, text, scope))

    def insert(self, *rows: RowValues) -> None:
        """Store rows; returns when they are."""
        self.writer.write([self._record(row) for row in rows])

    def _record(self, row: RowValues) -> WrittenRecord:
        relation = row.relation
        if row.time_ms is not None and row.time_ms <= 0:
            raise StatementRefused(f"ROWTIME must be a time after 1970, not {row.time_ms}.")
        serdes = topic_serdes(relation, self.engine.schemas)
        value = {c.name: row.values.get(c.name) for c in relation.columns.values}
        try:
            return WrittenRecord(
                relation.topic,
                serdes.key.serialize(row.key),
                serdes.value.serialize(value),
                row.time_ms,
            )
        except SerdeError as error:
            raise StatementRefused(
                f"Failed to insert values into '{relation.name}'. {error}"
            ) from None

    def _document(self, statement: Statement, text: str, scope: RequestScope) -> Document:
        match statement:
            case CreateConnector():
                return self.connectors.create(statement, text)
            case Drop(kind="CONNECTOR"):
                return self.connectors.drop(statement, text)
            case Show():
                return self._show(statement, text, scope)
            case Describe():
                return self._describe(statement, text)
            case Explain():
                return self._explain(statement, text, scope)
            case AssertTopic():
                return self._assert_topic(statement, text)
            case AssertSchema():
                return self._assert_schema(statement, text)
            case _ if isinstance(statement, COMMANDS):
                return entities.current_status(text, self.engine.execute(statement, scope))
        words = " ".join(str(statement).split()[:2])
        raise StatementRefused(
            f"{words} is not a statement that a server carries out: "
            "the shell does (`penstock sql`), or `penstock sql test`.",
            place=statement.at,
        )

    def _show(self, statement: Show, text: str, scope: RequestScope) -> Document:
        catalog = self.engine.catalog
        match statement.what:
            case "STREAMS" | "TABLES":
                if statement.is_extended:
                    return self._describe_all(statement.what, text, is_extended=True)
                return entities.sources(text, statement.what[:-1], catalog)
            case "QUERIES":
                return self._queries(statement, text)
            case "TOPICS" | "ALL TOPICS":
                found = [
                    one for one in self.topics.all()
                    if statement.what == "ALL TOPICS" or not one.name.startswith(_HIDDEN)
                ]  # fmt: skip
                readers = self.topics.readers() if statement.is_extended else None
                return entities.topic_list(text, found, readers)
            case "FUNCTIONS":
                return entities.function_list(text, self.engine.functions)
            case "TYPES":
                return entities.type_list(text, catalog)
            case "VARIABLES":
                return entities.variable_list(text, scope.variables)
            case "PROPERTIES":
                known = {**self.settings, **catalog.properties}
                return entities.property_list(text, known, scope.properties)
        assert statement.what in CONNECTOR_LISTS
        return self.connectors.show(statement, text)

    def _queries(self, statement: Show, text: str) -> Document:
        catalog, healths = self.engine.catalog, self._healths()
        if statement.is_extended:
            full = [self._query_description(one) for one in sorted(catalog.queries)]
            return entities.entity("queryDescriptions", text, queryDescriptions=full)
        shown = [
            entities.query_document(catalog.queries[one], catalog, healths)
            for one in sorted(catalog.queries)
        ]
        return entities.entity("queries", text, queries=[*shown, *self.pushes()])

    def _healths(self) -> dict[str, QueryHealth]:
        return {name: self.engine.health(name) for name in self.engine.catalog.queries}

    def _describe(self, statement: Describe, text: str) -> Document:
        match statement.kind:
            case "STREAMS" | "TABLES":
                return self._describe_all(statement.kind, text, is_extended=statement.is_extended)
            case "FUNCTION":
                return self._describe_function(statement, text)
            case "CONNECTOR":
                return self.connectors.describe(statement, text, self._sources_of)
        name = statement.name or ""
        if name not in self.engine.catalog.relations:
            raise StatementRefused(
                f"Could not find STREAM/TABLE '{name}' in the Metastore", place=statement.at
            )
        shown = self._source(name, is_extended=statement.is_extended)
        return entities.entity("sourceDescription", text, sourceDescription=shown)

    def _describe_function(self, statement: Describe, text: str) -> Document:
        try:
            found = self.engine.functions.of_name(statement.name or "")
        except FunctionRefused as error:
            raise StatementRefused(str(error), place=statement.at) from None
        return entities.function_description(text, found[0])

    def _describe_all(self, what: str, text: str, *, is_extended: bool) -> Document:
        relations = self.engine.catalog.relations
        names = [name for name in sorted(relations) if relations[name].kind == what[:-1]]
        shown = [self._source(name, is_extended=is_extended) for name in names]
        return entities.entity("source_descriptions", text, sourceDescriptions=shown)

    def _source(self, name: str, *, is_extended: bool) -> Document:
        catalog = self.engine.catalog
        relation = catalog.relations[name]
        return entities.source_description(
            relation,
            catalog,
            self._healths(),
            topic=self.topics.find(relation.topic) if is_extended else None,
            is_extended=is_extended,
        )

    def _sources_of(self, topic: str) -> list[Document]:
        relations = self.engine.catalog.relations
        names = [name for name in sorted(relations) if relations[name].topic == topic]
        return [self._source(name, is_extended=False) for name in names]

    def _explain(self, statement: Explain, text: str, scope: RequestScope) -> Document:
        subject = statement.subject
        if isinstance(subject, str):
            if subject not in self.engine.catalog.queries:
                raise StatementRefused(f"Query with id:{subject} does not exist, use SHOW QUERIES "
                                       "to view the full set of queries.",
                                       place=statement.at)  # fmt: skip
            shown = self._query_description(subject)
        else:
            shown = self._explained(subject, scope)
        return entities.entity("queryDescription", text, queryDescription=shown)

    def _query_description(self, query_id: str) -> Document:
        catalog, hosted = self.engine.catalog, self.engine.hosted(query_id)
        note = catalog.queries[query_id]
        return entities.query_description(
            note,
            text=note.statement,
            relation=catalog.relations.get(note.sink or ""),
            sources=note.sources,
            topology="" if hosted is None else hosted.topology.describe(),
            health=self.engine.health(query_id),
            properties={} if hosted is None else hosted.properties,
        )

    def _explained(self, subject: Statement, scope: RequestScope) -> Document:
        catalog = scope.over(self.engine.catalog)
        functions = self.engine.functions
        made: QueryInto | None = None
        if isinstance(subject, CreateAs | InsertFrom):
            outcome = Commands(functions, self.engine.schemas).apply(catalog, subject)
            made = outcome.started
        if made is not None:
            return entities.query_description(
                made.note,
                text=str(subject),
                relation=made.sink,
                sources=made.note.sources,
                topology=self.engine.planner(catalog).plan(made).describe(),
                health=None,
                properties=scope.properties,
            )
        if not isinstance(subject, Select):
            raise StatementRefused("Only queries can be explained.", place=subject.at)
        logical = (
            analyse_pull(subject, catalog, functions).logical
            if subject.emit is None
            else analyse_select(subject, catalog, functions)
        )
        return entities.query_description(
            None,
            text=str(subject),
            relation=None,
            sources=logical.source_names,
            topology=self._transient_topology(logical, catalog),
            health=None,
            properties=scope.properties,
        )

    def _transient_topology(self, logical: LogicalQuery, catalog: Catalog) -> str:
        """What Spark would run for a push query; empty where a reader of the topic answers."""
        if logical.emit is None or is_row_by_row(logical):
            return ""
        query = transient_query(logical, "transient", "transient")
        return self.engine.planner(catalog).plan(query).describe()

    def _assert_topic(self, statement: AssertTopic, text: str) -> Document:
        fault: str | None = None

        def holds() -> bool:
            nonlocal fault
            fault = topic_fault(statement, self.topics.find(statement.topic))
            return fault is None

        if not _within(statement.timeout, holds):
            raise StatementRefused(fault or "", place=statement.at)
        return entities.entity(
            "assert_topic", text, topicName=statement.topic, exists=statement.exists
        )

    def _assert_schema(self, statement: AssertSchema, text: str) -> Document:
        def holds() -> bool:
            return self._has_schema(statement) == statement.exists

        if not _within(statement.timeout, holds):
            word = "does not exist" if statement.exists else "exists"
            named = statement.subject or f"id {statement.id}"
            raise StatementRefused(f"Schema with {named} {word}", place=statement.at)
        return entities.entity(
            "assert_schema",
            text,
            subject=statement.subject,
            id=statement.id,
            exists=statement.exists,
        )

    def _has_schema(self, statement: AssertSchema) -> bool:
        schemas = self.engine.schemas
        if schemas is None:
            raise StatementRefused("There is no schema registry: set 'ksql.schema.registry.url'.",
                                   place=statement.at)  # fmt: skip
        try:
            if statement.subject is not None:
                found = schemas.latest(statement.subject)
                return statement.id is None or found.schema_id == statement.id
            schemas.by_id(statement.id or 0)
        except SchemaError:
            return False
        return True


def refuse_value(statement: SetProperty) -> None:
    """StatementRefused for a property with a value that it cannot have."""
    if statement.value is None:
        return
    try:
        check_property(statement.name, statement.value)
    except ConfigError as error:
        raise StatementRefused(str(error), place=statement.at) from None


def topic_fault(statement: AssertTopic, found: TopicShape | None) -> str | None:
    """What is not as ASSERT TOPIC says; of one that must not be there, properties say nothing."""
    name = statement.topic
    if not statement.exists:
        return None if found is None else f"Topic {name} exists"
    if found is None:
        return f"Topic {name} does not exist"
    known = {"PARTITIONS": found.partitions, "REPLICAS": found.replication}
    for part, literal in statement.properties.items():
        if part not in known:
            return f"Cannot assert unknown topic property: {part}"
        if known[part] != literal.value:
            return (
                f"Mismatched configuration for topic {name}: For config {part.lower()}, "
                f"expected {literal.value} got {known[part]}"
            )
    return None


def _is_of_connect(statement: Statement) -> bool:
    return isinstance(statement, CreateConnector) or (
        isinstance(statement, Drop) and statement.kind == "CONNECTOR"
    )


def _is_for_all(statement: SetProperty | SetVariable) -> bool:
    return isinstance(statement, SetProperty) and statement.is_for_all


def _within(timeout: Duration | None, holds: Callable[[], bool]) -> bool:
    """Whether a condition holds within a time, a second where none is given."""
    limit_ms = _ASSERT_MS if timeout is None else duration_ms(timeout)
    deadline_s = time.monotonic() + limit_ms / 1000
    while not holds():
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(_LOOK_S)
    return True
