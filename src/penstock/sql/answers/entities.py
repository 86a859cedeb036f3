"""The answers of /ksql: one document for each statement, under ksqlDB's `@type`s."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock.sql.answers.schemas import Document, field_documents, type_document
from penstock.sql.catalog.catalog import Catalog, PersistentQuery
from penstock.sql.catalog.relations import Relation
from penstock.sql.functions.aggregates.aggregate import AggregateFunction
from penstock.sql.functions.table import FunctionTable, SqlFunction, TableFunction
from penstock.sql.running.ports import CommandStatus, QueryHealth, TopicReaders, TopicShape


def entity(kind: str, text: str, **parts: Any) -> Document:
    """An answer to one statement."""
    return {"@type": kind, "statementText": text, **parts, "warnings": []}


def current_status(text: str, status: CommandStatus) -> Document:
    """What became of a command."""
    if status.offset is None:
        return entity("warning_entity", text, message=status.message)
    return entity(
        "currentStatus",
        text,
        commandId=status.id,
        commandStatus=status_document(status),
        commandSequenceNumber=status.offset,
    )


def status_document(status: CommandStatus) -> Document:
    """A status alone."""
    word = "ERROR" if status.is_error else "SUCCESS"
    return {"status": word, "message": status.message, "queryId": status.query}


def sources(text: str, kind: str, catalog: Catalog) -> Document:
    """SHOW STREAMS or TABLES."""
    found = [one for one in _sorted(catalog) if one.kind == kind]
    word = f"{kind.lower()}s"
    return entity(word, text, **{word: [_source(one) for one in found]})


def _sorted(catalog: Catalog) -> list[Relation]:
    return [catalog.relations[name] for name in sorted(catalog.relations)]


def _source(relation: Relation) -> Document:
    return {
        "type": relation.kind,
        "name": relation.name,
        "topic": relation.topic,
        "keyFormat": relation.key_format.name,
        "valueFormat": relation.value_format.name,
        "isWindowed": relation.key_window is not None,
    }


def source_description(
    relation: Relation,
    catalog: Catalog,
    healths: Mapping[str, QueryHealth],
    *,
    topic: TopicShape | None = None,
    is_extended: bool = False,
) -> Document:
    """A stream or table, as DESCRIBE shows it."""
    queries = catalog.queries
    return {
        "name": relation.name,
        "windowType": None if relation.key_window is None else relation.key_window.kind,
        "readQueries": [
            query_document(queries[one], catalog, healths) for one in catalog.readers(relation.name)
        ],
        "writeQueries": [
            query_document(queries[one], catalog, healths) for one in catalog.writers(relation.name)
        ],
        "fields": field_documents(relation),
        "type": relation.kind,
        "timestamp": "" if relation.time is None else relation.time.name,
        "statistics": _statistics(relation, catalog, healths) if is_extended else "",
        "errorStats": "",
        "extended": is_extended,
        "keyFormat": relation.key_format.name,
        "valueFormat": relation.value_format.name,
        "topic": relation.topic,
        "partitions": 0 if topic is None else topic.partitions,
        "replication": 0 if topic is None else topic.replication,
        "statement": relation.statement,
        "queryOffsetSummaries": [],
        "sourceConstraints": catalog.derived(relation.name),
    }


def _statistics(relation: Relation, catalog: Catalog, healths: Mapping[str, QueryHealth]) -> str:
    rows = sum(healths[one].rows for one in catalog.writers(relation.name) if one in healths)
    return f"rows read by the queries that write to it: {rows}"


def query_document(
    query: PersistentQuery, catalog: Catalog, healths: Mapping[str, QueryHealth]
) -> Document:
    """A query, as lists show it."""
    state = healths[query.id].state if query.id in healths else "RUNNING"
    sink = None if query.sink is None else catalog.relations.get(query.sink)
    return {
        "queryString": f"{query.statement};",
        "sinks": [] if query.sink is None else [query.sink],
        "sinkKafkaTopics": [] if sink is None else [sink.topic],
        "id": query.id,
        "statusCount": {state: 1},
        "queryType": "PERSISTENT",
        "state": state,
    }


def push_document(query_id: str, text: str) -> Document:
    """A push query that somebody waits for, as SHOW QUERIES shows it."""
    return {
        "queryString": text,
        "sinks": [],
        "sinkKafkaTopics": [],
        "id": query_id,
        "statusCount": {"RUNNING": 1},
        "queryType": "PUSH",
        "state": "RUNNING",
    }


def query_description(
    query: PersistentQuery | None,
    *,
    text: str,
    relation: Relation | None,
    sources: Iterable[str],
    topology: str,
    health: QueryHealth | None,
    properties: Mapping[str, str],
) -> Document:
    """A query and how it runs, as EXPLAIN shows it."""
    state = None if health is None else health.state
    failures = () if health is None else health.failures
    window = None if relation is None else relation.key_window
    return {
        "id": "" if query is None else query.id,
        "statementText": text,
        "windowType": None if window is None else window.kind,
        "fields": [] if relation is None else field_documents(relation),
        "sources": sorted(sources),
        "sinks": [query.sink] if query is not None and query.sink is not None else [],
        "topology": topology,
        "executionPlan": text,
        "overriddenProperties": dict(properties),
        "ksqlHostQueryStatus": {},
        "queryType": "PUSH" if query is None else "PERSISTENT",
        "queryErrors": [{"errorMessage": one, "type": "UNKNOWN"} for one in failures],
        "tasksMetadata": [],
        "state": state,
    }


def topic_list(
    text: str, topics: Sequence[TopicShape], readers: Mapping[str, TopicReaders] | None
) -> Document:
    """SHOW TOPICS; with readers it is EXTENDED."""
    made: list[Document] = [{"name": one.name, "replicaInfo": list(one.replicas)} for one in topics]
    if readers is None:
        return entity("kafka_topics", text, topics=made)
    nobody = TopicReaders(0, 0)
    counts = [readers.get(one.name, nobody) for one in topics]
    full = [
        {**one, "consumerCount": count.consumers, "consumerGroupCount": count.groups}
        for one, count in zip(made, counts, strict=True)
    ]
    return entity("kafka_topics_extended", text, topics=full)


def type_list(text: str, catalog: Catalog) -> Document:
    """SHOW TYPES."""
    types = {name: type_document(catalog.types[name]) for name in sorted(catalog.types)}
    return entity("type_list", text, types=types)


def variable_list(text: str, variables: Mapping[str, str]) -> Document:
    """SHOW VARIABLES."""
    shown = [{"name": name, "value": variables[name]} for name in sorted(variables)]
    return entity("variables", text, variables=shown)


def property_list(
    text: str, defaults: Mapping[str, str], overridden: Mapping[str, str]
) -> Document:
    """SHOW PROPERTIES."""
    every = {**defaults, **overridden}
    shown = [
        {
            "name": name,
            "scope": "KSQL" if name.startswith("ksql.") else "EXTERNAL",
            "value": every[name],
            "editable": True,
            "level": "QUERY" if name in overridden else "SERVER",
        }
        for name in sorted(every)
    ]
    return entity(
        "properties",
        text,
        properties=shown,
        overwrittenProperties=sorted(overridden),
        defaultProperties=sorted(set(defaults) - set(overridden)),
    )


def function_list(text: str, functions: FunctionTable) -> Document:
    """SHOW FUNCTIONS."""
    shown = [
        {"name": one.name, "type": function_kind(one), "category": one.category}
        for one in functions.all()
    ]
    return entity("function_names", text, functions=shown)


def function_kind(function: SqlFunction) -> str:
    """SCALAR, AGGREGATE or TABLE."""
    if isinstance(function, AggregateFunction):
        return "AGGREGATE"
    return "TABLE" if isinstance(function, TableFunction) else "SCALAR"


def function_description(text: str, function: SqlFunction) -> Document:
    """DESCRIBE FUNCTION."""
    variants = [
        {
            "arguments": _arguments(one),
            "returnType": str(one.signature.result),
            "description": one.about,
        }
        for one in function.overloads
    ]
    return entity(
        "describe_function",
        text,
        name=function.name,
        description=function.about,
        author=function.author,
        version="",
        path=function.path,
        functions=variants,
        type=function_kind(function),
    )


def _arguments(overload: Any) -> list[Document]:
    kinds = overload.signature.parameters
    names = [*overload.names, *[""] * len(kinds)]
    last = len(kinds) - 1
    return [
        {
            "name": names[at],
            "type": str(kind),
            "description": "",
            "isVariadic": overload.signature.is_variadic and at == last,
        }
        for at, kind in enumerate(kinds)
    ]
