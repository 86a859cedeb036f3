"""The documents of a SQL service as tables: SHOW, DESCRIBE, EXPLAIN and what became of a change."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table of texts, or a text alone; both if something is to be said below the table."""

    title: str = ""
    names: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    text: str = ""


def type_text(schema: Any) -> str:
    """The type that a schema of the service describes."""
    name = str(schema["type"])
    if name == "ARRAY":
        return f"ARRAY<{type_text(schema['memberSchema'])}>"
    if name == "MAP":
        return f"MAP<STRING, {type_text(schema['memberSchema'])}>"
    if name == "STRUCT":
        fields = [f"{f['name']} {type_text(f['schema'])}" for f in schema.get("fields") or ()]
        return f"STRUCT<{', '.join(fields)}>"
    parameters = schema.get("parameters") or {}
    if name == "DECIMAL" and parameters:
        return f"DECIMAL({parameters['precision']}, {parameters['scale']})"
    return "VARCHAR(STRING)" if name == "STRING" else name


def _cells(items: Iterable[Any], *readers: Callable[[Any], Any]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(_text(read(item)) for read in readers) for item in items)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(_text(one) for one in value)
    return str(value)


def _of(*names: str) -> tuple[Callable[[Any], Any], ...]:
    return tuple(lambda item, name=name: item.get(name) for name in names)


def _status(document: Any) -> list[Grid]:
    status = document["commandStatus"]
    query = status.get("queryId")
    text = str(status.get("message") or status.get("status"))
    return [Grid(text=text if not query or query in text else f"{text} (query {query})")]


def _streams(document: Any) -> list[Grid]:
    rows = _cells(document["streams"], *_of("name", "topic", "keyFormat", "valueFormat",
                                            "isWindowed"))  # fmt: skip
    names = ("Stream Name", "Kafka Topic", "Key Format", "Value Format", "Windowed")
    return [Grid(names=names, rows=rows)]


def _tables(document: Any) -> list[Grid]:
    rows = _cells(document["tables"], *_of("name", "topic", "keyFormat", "valueFormat",
                                           "isWindowed"))  # fmt: skip
    names = ("Table Name", "Kafka Topic", "Key Format", "Value Format", "Windowed")
    return [Grid(names=names, rows=rows)]


def _topics(document: Any) -> list[Grid]:
    rows = _cells(
        document["topics"],
        lambda one: one["name"],
        lambda one: len(one.get("replicaInfo") or ()),
        lambda one: ", ".join(sorted({str(n) for n in one.get("replicaInfo") or ()})),
    )
    return [Grid(names=("Kafka Topic", "Partitions", "Partition Replicas"), rows=rows)]


def _topics_extended(document: Any) -> list[Grid]:
    [plain] = _topics(document)
    counts = _cells(document["topics"], *_of("consumerCount", "consumerGroupCount"))
    rows = tuple(one + two for one, two in zip(plain.rows, counts, strict=True))
    return [Grid(names=(*plain.names, "Consumers", "ConsumerGroups"), rows=rows)]


def _queries(document: Any) -> list[Grid]:
    rows = _cells(
        document["queries"],
        lambda one: one["id"],
        lambda one: one.get("queryType"),
        lambda one: _query_state(one),
        lambda one: one.get("sinks"),
        lambda one: one.get("sinkKafkaTopics"),
        _query_text,
    )
    names = ("Query ID", "Query Type", "Status", "Sink Name", "Sink Kafka Topic", "Query String")
    help_text = "For detailed information on a Query run: EXPLAIN <Query ID>;"
    return [Grid(names=names, rows=rows, text=help_text if rows else "")]


def _query_text(query: Any) -> str:
    return " ".join(str(query.get("queryString", "")).split())


def _query_state(query: Any) -> str:
    counts = query.get("statusCount") or {}
    told = ", ".join(f"{state}:{count}" for state, count in counts.items())
    return told or _text(query.get("state"))


def _properties(document: Any) -> list[Grid]:
    found = document["properties"]
    if isinstance(found, dict):  # Of old services.
        found = [{"name": name, "value": value} for name, value in found.items()]
    rows = _cells(sorted(found, key=lambda one: str(one["name"])),
                  *_of("name", "scope", "level", "value"))  # fmt: skip
    return [Grid(names=("Property", "Scope", "Default override", "Effective Value"), rows=rows)]


def _functions(document: Any) -> list[Grid]:
    found = sorted(document["functions"], key=lambda one: str(one["name"]))
    rows = _cells(found, *_of("name", "type", "category"))
    return [Grid(names=("Function Name", "Type", "Category"), rows=rows)]


def _function(document: Any) -> list[Grid]:
    lines = [f"Name        : {document['name']}"]
    for name, title in (("author", "Author"), ("version", "Version"), ("description", "Overview")):
        if document.get(name):
            lines.append(f"{title:<12}: {document[name]}")
    lines.append(f"Type        : {str(document.get('type', '')).lower()}")
    for one in document.get("functions") or ():
        given = ", ".join(
            _argument(a) for a in one.get("arguments") or one.get("argumentTypes", ())
        )
        lines += ["", f"  Variation   : {document['name']}({given})",
                  f"  Returns     : {one.get('returnType', '')}"]  # fmt: skip
        if one.get("description"):
            lines.append(f"  Description : {one['description']}")
    return [Grid(text="\n".join(lines))]


def _argument(one: Any) -> str:
    if not isinstance(one, dict):
        return str(one)
    more = "[]" if one.get("isVariadic") else ""
    return " ".join(part for part in (str(one.get("name") or ""), f"{one['type']}{more}") if part)


def _source(document: Any) -> list[Grid]:
    return _source_grids(document["sourceDescription"])


def _sources(document: Any) -> list[Grid]:
    return [grid for one in document["sourceDescriptions"] for grid in _source_grids(one)]


def _source_grids(source: Any) -> list[Grid]:
    is_table = source.get("type") == "TABLE"
    grids = [
        Grid(
            title=f"Name                 : {source['name']}",
            names=("Field", "Type"),
            rows=tuple(
                (str(f["name"]), _field_type(f, is_table) + _window(f, source))
                for f in source["fields"]
            ),
        )
    ]
    if not source.get("extended"):
        text = "For runtime statistics and query details run: DESCRIBE <Stream,Table> EXTENDED;"
        return [*grids, Grid(text=text)]
    facts = (
        ("Type", "type"), ("Timestamp field", "timestamp"), ("Key format", "keyFormat"),
        ("Value format", "valueFormat"), ("Kafka topic", "topic"), ("Partitions", "partitions"),
        ("Replication", "replication"), ("Statement", "statement"), ("Statistics", "statistics"),
    )  # fmt: skip
    told = [f"{title:<21}: {_text(source[key])}" for title, key in facts
            if source.get(key) not in (None, "")]  # fmt: skip
    grids.append(Grid(text="\n".join(told)))
    for title, key in (("read", "readQueries"), ("written", "writeQueries")):
        if source.get(key):
            names = ("Query ID", f"Queries by which it is {title}")
            rows = _cells(source[key], lambda one: one["id"], _query_text)
            grids.append(Grid(names=names, rows=rows))
    return grids


def _field_type(field: Any, is_table: bool) -> str:
    header = field.get("headerKey")
    role = {
        "KEY": " (primary key)" if is_table else " (key)",
        "HEADER": " (headers)" if header is None else f" (header('{header}'))",
    }
    return type_text(field["schema"]) + role.get(str(field.get("type") or ""), "")


def _window(field: Any, source: Any) -> str:
    """A key of a windowed source tells its window."""
    kind = source.get("windowType")
    return f" (Window type: {kind})" if kind and field.get("type") == "KEY" else ""


def _query(document: Any) -> list[Grid]:
    return _query_grids(document["queryDescription"])


def _query_descriptions(document: Any) -> list[Grid]:
    found = [grid for one in document["queryDescriptions"] for grid in _query_grids(one)]
    return found or [Grid(names=("Query ID", "Query Type", "Status"))]


def _query_grids(query: Any) -> list[Grid]:
    lines = []
    for title, key in (("ID", "id"), ("Query Type", "queryType"), ("SQL", "statementText"),
                       ("State", "state")):  # fmt: skip
        if query.get(key):
            lines.append(f"{title:<21}: {_text(query[key])}")
    grids = [Grid(text="\n".join(lines))]
    if query.get("fields"):
        rows = tuple((str(f["name"]), _field_type(f, False)) for f in query["fields"])
        grids.append(Grid(names=("Field", "Type"), rows=rows))
    for title, key in (("Execution plan", "executionPlan"), ("Processing topology", "topology")):
        if query.get(key):
            grids.append(Grid(title=title, text=str(query[key])))
    return grids


def _types(document: Any) -> list[Grid]:
    rows = tuple((name, type_text(schema)) for name, schema in sorted(document["types"].items()))
    return [Grid(names=("Type Name", "Schema"), rows=rows)]


def _variables(document: Any) -> list[Grid]:
    rows = _cells(document["variables"], *_of("name", "value"))
    return [Grid(names=("Variable Name", "Value"), rows=rows)]


def _connectors(document: Any) -> list[Grid]:
    rows = _cells(document["connectors"], *_of("name", "type", "className", "state"))
    return [Grid(names=("Connector Name", "Type", "Class", "Status"), rows=rows)]


def _plugins(document: Any) -> list[Grid]:
    rows = _cells(document["connectorsPlugins"], *_of("className", "type", "version"))
    return [Grid(names=("Class", "Type", "Version"), rows=rows)]


def _connector(document: Any) -> list[Grid]:
    info = document["info"]
    return [Grid(text=f"Created connector {info['name']}")]


def _connector_gone(document: Any) -> list[Grid]:
    return [Grid(text=f'Dropped connector "{document["connectorName"]}"')]


def _connector_description(document: Any) -> list[Grid]:
    status = document["status"]
    facts = (
        ("Name", status["name"]), ("Class", document["connectorClass"]),
        ("Type", status.get("type")), ("State", status["connector"]["state"]),
        ("WorkerId", status["connector"]["worker_id"]), ("Topics", document["topics"]),
    )  # fmt: skip
    told = "\n".join(f"{title:<21}: {_text(value)}" for title, value in facts)
    tasks = _cells(status.get("tasks", ()), *_of("id", "state", "trace"))
    grids = [Grid(text=told), Grid(names=("Task ID", "State", "Error Trace"), rows=tasks)]
    if document.get("sources"):
        rows = _cells(document["sources"], *_of("name", "topic", "type"))
        grids.append(Grid(names=("KSQL Source Name", "Kafka Topic", "Type"), rows=rows))
    return grids


def _topic_asserted(document: Any) -> list[Grid]:
    return [Grid(text=f"Topic {document['topicName']} {_existence(document)}.")]


def _schema_asserted(document: Any) -> list[Grid]:
    named = [f"{part} {document[part]}" for part in ("subject", "id") if document.get(part)]
    return [Grid(text=f"Schema with {' '.join(named)} {_existence(document)}.")]


def _existence(document: Any) -> str:
    return "exists" if document["exists"] else "does not exist"


def _message(document: Any) -> list[Grid]:
    return [Grid(text=_text(document.get("message")))]


GRIDS: Final[dict[str, Callable[[Any], list[Grid]]]] = {
    "currentStatus": _status,
    "streams": _streams,
    "tables": _tables,
    "kafka_topics": _topics,
    "kafka_topics_extended": _topics_extended,
    "queries": _queries,
    "properties": _properties,
    "function_names": _functions,
    "describe_function": _function,
    "sourceDescription": _source,
    "source_descriptions": _sources,
    "queryDescription": _query,
    "queryDescriptions": _query_descriptions,
    "assert_topic": _topic_asserted,
    "assert_schema": _schema_asserted,
    "type_list": _types,
    "variables": _variables,
    "connector_description": _connector_description,
    "connector_info": _connector,
    "connector_list": _connectors,
    "connector_plugins_list": _plugins,
    "drop_connector": _connector_gone,
    "warning_entity": _message,
}
