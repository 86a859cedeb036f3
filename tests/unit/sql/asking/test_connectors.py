"""Statements about connectors, over a worker in memory that answers as Connect does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from penstock.sql.asking.connectors import ConnectorAnswers, config_of, state_of
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.language.parse import parse_one
from penstock.sql.running.ports import ConnectRefused

SOURCE = "CREATE SOURCE CONNECTOR c WITH ('connector.class'='File', 'tasks.max'=2, 'x'=true);"


@dataclass
class MemoryWorker:
    """Connectors by name; `wrong` is what it finds wrong with any configuration."""

    known: dict[str, dict[str, str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def create(self, name: str, config: Mapping[str, str]) -> Mapping[str, Any]:
        if name in self.known:
            raise ConnectRefused(409, f"Connector {name} already exists")
        self.known[name] = dict(config)
        return self.info(name)

    def problems(self, plugin: str, config: Mapping[str, str]) -> Sequence[str]:
        return self.wrong

    def names(self) -> Sequence[str]:
        return sorted(self.known)

    def info(self, name: str) -> Mapping[str, Any]:
        if name not in self.known:
            raise ConnectRefused(404, f"Connector {name} not found")
        return {"name": name, "config": self.known[name], "tasks": [], "type": "source"}

    def status(self, name: str) -> Mapping[str, Any]:
        worker = {"state": "RUNNING", "worker_id": "w:1"}
        return {"name": name, "connector": worker, "tasks": [{"id": 0, **worker}], "type": "source"}

    def topics(self, name: str) -> Sequence[str]:
        return ["t"]

    def plugins(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"class": "File", "type": "source", "version": "1"},
            {"class": "Mask", "type": "transformation"},
        ]

    def delete(self, name: str) -> None:
        if self.known.pop(name, None) is None:
            raise ConnectRefused(404, f"Connector {name} not found")


def test_properties_become_texts() -> None:
    statement: Any = parse_one(SOURCE)
    assert config_of(statement) == {
        "connector.class": "File", "tasks.max": "2", "x": "true", "name": "C",
    }  # fmt: skip


def test_a_connector_is_made_listed_described_and_dropped() -> None:
    answers = ConnectorAnswers(worker=MemoryWorker())
    made: Any = parse_one(SOURCE)
    answers.check(made)
    assert answers.create(made, SOURCE)["info"]["name"] == "C"
    listed: Any = parse_one("SHOW CONNECTORS;")
    (shown,) = answers.show(listed, "")["connectors"]
    assert shown == {
        "name": "C", "type": "source", "className": "File", "state": "RUNNING (1/1 tasks RUNNING)",
    }  # fmt: skip
    sinks: Any = parse_one("SHOW SINK CONNECTORS;")
    assert answers.show(sinks, "")["connectors"] == []
    described: Any = parse_one("DESCRIBE CONNECTOR c;")
    found = answers.describe(described, "", lambda topic: [{"name": topic.upper()}])
    assert (found["connectorClass"], found["topics"]) == ("File", ["t"])
    assert found["sources"] == [{"name": "T"}]
    plugins: Any = parse_one("SHOW CONNECTOR PLUGINS;")
    assert [p["className"] for p in answers.show(plugins, "")["connectorsPlugins"]] == ["File"]
    again: Any = parse_one(SOURCE.replace("CONNECTOR c", "CONNECTOR IF NOT EXISTS c"))
    assert answers.create(again, "")["@type"] == "warning_entity"
    gone: Any = parse_one("DROP CONNECTOR c;")
    assert answers.drop(gone, "")["@type"] == "drop_connector"
    missing: Any = parse_one("DROP CONNECTOR IF EXISTS c;")
    assert answers.drop(missing, "")["@type"] == "warning_entity"


@pytest.mark.parametrize(
    ("worker", "text", "reason"),
    [
        (None, SOURCE, "set 'ksql.connect.url'"),
        (MemoryWorker(), "CREATE SINK CONNECTOR c WITH ('a'='b');", "'connector.class' is missing"),
        (MemoryWorker(wrong=["file - is missing"]), SOURCE, "Validation error: file - is missing"),
    ],
)
def test_what_connect_would_refuse_is_refused(
    worker: MemoryWorker | None, text: str, reason: str
) -> None:
    statement: Any = parse_one(text)
    with pytest.raises(StatementRefused, match=reason):
        ConnectorAnswers(worker=worker).check(statement)


def test_refusals_have_connects_words() -> None:
    answers = ConnectorAnswers(worker=MemoryWorker())
    statement: Any = parse_one("DROP CONNECTOR c;")
    with pytest.raises(StatementRefused, match="Failed to drop connector C: Connector C not found"):
        answers.drop(statement, "")
    described: Any = parse_one("DESCRIBE CONNECTOR c;")
    with pytest.raises(StatementRefused, match="not found"):
        answers.describe(described, "", lambda _: [])


@pytest.mark.parametrize(
    ("connector", "tasks", "told"),
    [
        ("RUNNING", ["RUNNING", "FAILED"], "WARNING (1/2 tasks RUNNING)"),
        ("RUNNING", ["FAILED"], "FAILED (0/1 tasks RUNNING)"),
        ("RUNNING", [], "WARNING (0/0 tasks RUNNING)"),
        ("PAUSED", ["PAUSED"], "PAUSED"),
    ],
)
def test_a_state_is_one_line(connector: str, tasks: list[str], told: str) -> None:
    status = {"connector": {"state": connector}, "tasks": [{"state": one} for one in tasks]}
    assert state_of(status) == told
