"""Made-up records: the same for a seed, exactly once through crashes, refused where unclear."""

import json
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.connect.connectors.datagen import source
from penstock.connect.connectors.datagen.quickstarts import QUICKSTARTS
from penstock.connect.connectors.datagen.source import DatagenConnector
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.testing import SourceRun, refused_settings
from penstock.connect.testing.checks import JSON

ORDERS = {"kafka.topic": "t", "quickstart": "ORDERS", "max.interval": "0"}


def made(config: dict[str, str], count: int, task: int = 0) -> list[str]:
    given = {**ORDERS, "iterations": str(count), **config}
    with SourceRun(DatagenConnector, given, task=task, tasks_max=2, converters=JSON) as run:
        run.run_until(lambda: len(run.values("t")) >= count)
        assert not run.poll()
        return run.values("t")


@pytest.mark.parametrize("name", sorted(QUICKSTARTS))
def test_every_quickstart_makes_records_with_its_key(name: str) -> None:
    config = {"kafka.topic": "t", "quickstart": name, "max.interval": "0", "iterations": "3"}
    with SourceRun(DatagenConnector, config, converters=JSON) as run:
        run.run_until(lambda: len(run.values("t")) == 3)
        values = [json.loads(one) for one in run.values("t")]
        assert run.keys("t") == [json.dumps(one[QUICKSTARTS[name][1]]) for one in values]


def test_a_seed_makes_the_same_records_and_each_task_others() -> None:
    seeded = {"random.seed": "7"}
    assert made(seeded, 20) == made(seeded, 20)
    assert made(seeded, 20) != made({"random.seed": "8"}, 20)
    assert made(seeded, 20) != made(seeded, 20, task=1)


@settings(max_examples=25)
@given(st.lists(st.sampled_from(["poll", "commit", "crash", "restart"]), max_size=20))
def test_wherever_it_crashes_each_order_is_there_once(steps: list[str]) -> None:
    config = {**ORDERS, "iterations": "30"}
    batches = mock.patch.object(source, "_BATCH_MAX", 7)
    with batches, SourceRun(DatagenConnector, config, converters=JSON) as run:
        for step in steps:
            getattr(run, step)()
        run.run_until(lambda: len(run.values("t")) >= 30)
        orders = [json.loads(one)["orderid"] for one in run.values("t")]
        assert orders == list(range(30))
        assert run.offsets[0][1] is not None
        assert run.offsets[0][1]["current.iteration"] == 30


def test_a_schema_may_come_as_text_or_in_a_file(tmp_path: Path) -> None:
    fields = [
        {"name": "n", "type": ["null", {"type": "int", "arg.properties": {"options": [1, 2]}}]},
        {
            "name": "at",
            "type": {
                "type": "long",
                "logicalType": "timestamp-millis",
                "arg.properties": {"range": {"min": 0, "max": 9}},
            },
        },
        {
            "name": "list",
            "type": {
                "type": "array",
                "items": "boolean",
                "arg.properties": {"length": {"min": 1, "max": 3}},
            },
        },
        {"name": "f", "type": {"type": "fixed", "name": "Four", "size": 4}},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {
            "name": "round",
            "type": {"type": "int", "arg.properties": {"iteration": {"start": 0, "restart": 3}}},
        },
    ]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    (tmp_path / "s.avro").write_text(text)
    same = {"quickstart": "", "random.seed": "1"}
    found = made({**same, "schema.string": text}, 6)
    assert found == made({**same, "schema.filename": str(tmp_path / "s.avro")}, 6)
    assert [json.loads(one)["round"] for one in found] == [0, 1, 2, 0, 1, 2]


def test_all_that_is_wrong_is_told_at_once() -> None:
    wrong = refused_settings(DatagenConnector, {"max.interval": "-1", "iterations": "x"})
    assert sorted(wrong) == ["iterations", "kafka.topic", "max.interval", "quickstart"]


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"schema.string": "{}"}, "quickstart"),  # Two schemas.
        ({"quickstart": "nothing"}, "quickstart"),
        ({"schema.keyfield": "nothing"}, "schema.keyfield"),
        ({"quickstart": "", "schema.string": "{"}, "schema.string"),
        ({"quickstart": "", "schema.string": '{"type":"int"}'}, "schema.string"),
        ({"quickstart": "", "schema.string": '{"type":"record","name":"r"}'}, "schema.string"),
        ({"quickstart": "", "schema.filename": "/not/there"}, "schema.filename"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(config: dict[str, str], name: str) -> None:
    assert list(refused_settings(DatagenConnector, {**ORDERS, **config})) == [name]


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "int", "arg.properties": {"regex": "a"}},  # Not for numbers.
        {"type": "int", "arg.properties": {"range": {"min": 3, "max": 3}}},
        {"type": "int", "arg.properties": {"iteration": {"start": 0, "step": 0}}},
        {"type": "int", "arg.properties": {"options": ["a"]}},
        {"type": "int", "arg.properties": {"options": []}},
        {"type": "string", "arg.properties": {"regex": "("}},
        {"type": "string", "arg.properties": {"length": {"min": 5, "max": 2}}},
        {"type": "boolean", "arg.properties": {"odds": 2}},
        "nothing",
    ],
)
def test_a_field_that_cannot_be_made_is_refused(kind: object) -> None:
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": kind}]})
    config = {"kafka.topic": "t", "schema.string": text}
    assert list(refused_settings(DatagenConnector, config)) == ["schema.string"]


def test_offsets_that_cannot_be_used_are_refused() -> None:
    connector = DatagenConnector()
    task = frozenset({("task.id", 0)})
    assert connector.alter_offsets(ORDERS, {task: {"current.iteration": 3}, frozenset(): None})
    for partition, offset in ((task, {}), (frozenset(), {"current.iteration": 3})):
        with pytest.raises(ConnectError):
            connector.alter_offsets(ORDERS, {partition: offset})
