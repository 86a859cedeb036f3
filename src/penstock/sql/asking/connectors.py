"""Statements about connectors: Connect carries them out, ksqlDB's documents tell of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.sql.answers import entities
from penstock.sql.answers.schemas import Document
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.language.place import Place
from penstock.sql.language.statements import CreateConnector, Describe, Drop, Show
from penstock.sql.running.ports import ConnectPort, ConnectRefused

CONNECTOR_LISTS: Final = frozenset(
    {"CONNECTORS", "SOURCE CONNECTORS", "SINK CONNECTORS", "CONNECTOR PLUGINS"}
)
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorAnswers:
    """What statements about connectors are answered with; without a worker all are refused."""

    worker: ConnectPort | None = None

    def check(self, statement: CreateConnector) -> None:
        """Whether Connect would take it; StatementRefused has Connect's reasons."""
        worker = self._worker(statement.at)
        config = config_of(statement)
        plugin = config.get("connector.class")
        if plugin is None:
            raise StatementRefused("Validation error: 'connector.class' is missing.",
                                   place=statement.at)  # fmt: skip
        if statement.if_not_exists and statement.name in worker.names():
            return
        try:
            problems = worker.problems(plugin, config)
        except ConnectRefused as error:
            raise StatementRefused(f"Validation error: {error}", place=statement.at) from None
        if problems:
            listed = "\n".join(problems)
            raise StatementRefused(f"Validation error: {listed}", place=statement.at)

    def create(self, statement: CreateConnector, text: str) -> Document:
        """CREATE SOURCE or SINK CONNECTOR."""
        worker = self._worker(statement.at)
        try:
            info = worker.create(statement.name, config_of(statement))
        except ConnectRefused as error:
            if error.status == _CONFLICT and statement.if_not_exists:
                told = f"Connector {statement.name} already exists"
                return entities.entity("warning_entity", text, message=told)
            raise _failed("create", statement.name, error, statement.at) from None
        return entities.entity("connector_info", text, info=dict(info))

    def drop(self, statement: Drop, text: str) -> Document:
        """DROP CONNECTOR."""
        worker = self._worker(statement.at)
        try:
            worker.delete(statement.name)
        except ConnectRefused as error:
            if error.status == _NOT_FOUND and statement.if_exists:
                told = f"Connector '{statement.name}' does not exist."
                return entities.entity("warning_entity", text, message=told)
            raise _failed("drop", statement.name, error, statement.at) from None
        return entities.entity("drop_connector", text, connectorName=statement.name)

    def show(self, statement: Show, text: str) -> Document:
        """SHOW CONNECTORS, of one kind or of both, and SHOW CONNECTOR PLUGINS."""
        worker = self._worker(statement.at)
        if statement.what == "CONNECTOR PLUGINS":
            plugins = [
                {"className": one["class"], "type": one["type"], "version": one.get("version")}
                for one in worker.plugins()
                if one.get("type") in ("source", "sink")
            ]
            return entities.entity("connector_plugins_list", text, connectorsPlugins=plugins)
        kind = statement.what.removesuffix("CONNECTORS").strip().lower()
        told = [shown for name in worker.names() if (shown := _listed(worker, name)) is not None]
        listed = [one for one in told if not kind or one["type"] == kind]
        return entities.entity("connector_list", text, connectors=listed)

    def describe(
        self, statement: Describe, text: str, sources: Callable[[str], list[Document]]
    ) -> Document:
        """DESCRIBE CONNECTOR; `sources` are the streams and tables of a topic."""
        worker, name = self._worker(statement.at), statement.name or ""
        try:
            info, status = worker.info(name), worker.status(name)
            topics = worker.topics(name)
        except ConnectRefused as error:
            raise _failed("query", name, error, statement.at) from None
        return entities.entity(
            "connector_description",
            text,
            connectorClass=info["config"].get("connector.class", ""),
            status=dict(status),
            sources=[one for topic in topics for one in sources(topic)],
            topics=list(topics),
        )

    def _worker(self, place: Place | None) -> ConnectPort:
        if self.worker is None:
            raise StatementRefused(
                "There is no Connect worker: set 'ksql.connect.url' to its address.", place=place
            )
        return self.worker


def config_of(statement: CreateConnector) -> dict[str, str]:
    """The properties of WITH as Connect takes them: texts under their own names."""
    return {
        name: _text(literal.value) for name, literal in statement.properties.items()
    } | {"name": statement.name}  # fmt: skip


def state_of(status: Mapping[str, Any]) -> str:
    """One line for a connector and its tasks."""
    word = str(status["connector"]["state"])
    tasks = status.get("tasks", ())
    running = sum(1 for task in tasks if task["state"] == "RUNNING")
    if word != "RUNNING":
        return word
    if running < len(tasks) or not tasks:
        word = "WARNING" if running or not tasks else "FAILED"
    return f"{word} ({running}/{len(tasks)} tasks RUNNING)"


def _listed(worker: ConnectPort, name: str) -> Document | None:
    try:
        info, status = worker.info(name), worker.status(name)
    except ConnectRefused as error:
        if error.status == _NOT_FOUND:
            return None  # It was deleted meanwhile, or has no status yet.
        raise
    return {
        "name": name,
        "type": info.get("type", "unknown"),
        "className": info["config"].get("connector.class", ""),
        "state": state_of(status),
    }


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _failed(action: str, name: str, error: ConnectRefused, place: Place | None) -> StatementRefused:
    return StatementRefused(f"Failed to {action} connector {name}: {error}", place=place)
