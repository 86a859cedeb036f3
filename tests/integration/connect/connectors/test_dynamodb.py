"""DynamoDB against moto: every item and change once, wherever the task stops, and bad input."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.support.moto_server import REGION, MotoProcess, moto_server
from tests.support.processes import HOST, free_port

from penstock.connect.connectors.dynamodb.source import DynamoDbSourceConnector
from penstock.connect.errors.kinds import ConnectError, RetriableConnectError
from penstock.connect.testing import SourceRun, refused_settings
from penstock.connect.testing.checks import JSON

_HEARTBEATS = "__debezium-heartbeat.p"


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoProcess]:
    with moto_server(tmp_path_factory.mktemp("moto")) as process:
        yield process


class Table:
    """A table of one test."""

    def __init__(self, moto: MotoProcess, name: str, view: str | None) -> None:
        self.name = name
        self.client = moto.client("dynamodb")
        stream = {"StreamEnabled": True, "StreamViewType": view} if view else None
        more: dict[str, Any] = {"StreamSpecification": stream} if stream else {}
        self.client.create_table(
            TableName=name,
            KeySchema=[
                {"AttributeName": "id", "KeyType": "HASH"},
                {"AttributeName": "at", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": "id", "AttributeType": "S"},
                {"AttributeName": "at", "AttributeType": "N"},
            ],
            BillingMode="PAY_PER_REQUEST",
            **more,
        )

    def put(self, key: str, **attributes: dict[str, Any]) -> None:
        self.client.put_item(TableName=self.name, Item={**_key(key), **attributes})

    def delete(self, key: str) -> None:
        self.client.delete_item(TableName=self.name, Key=_key(key))


def _key(key: str) -> dict[str, Any]:
    return {"id": {"S": key}, "at": {"N": "1"}}


class TableMaker(Protocol):
    """Makes a table whose stream has a view; None: without a stream."""

    def __call__(self, view: str | None = "NEW_AND_OLD_IMAGES") -> Table: ...


@pytest.fixture
def tables(moto: MotoProcess, request: pytest.FixtureRequest) -> TableMaker:
    """Makes tables whose names no other test has."""
    count = iter(range(100))

    def make(view: str | None = "NEW_AND_OLD_IMAGES") -> Table:
        return Table(moto, f"t{abs(hash(request.node.name)) % 10**9}-{next(count)}", view)

    return make


def config(moto: MotoProcess, *tables: Table, **more: str) -> dict[str, str]:
    return {
        "dynamodb.tables": ",".join(one.name for one in tables),
        "dynamodb.region": REGION,
        "dynamodb.service.endpoint": moto.url,
        "aws.access.key.id": "test",
        "aws.secret.access.key": "test",
        "topic.prefix": "p",
        "poll.interval.ms": "20",
        **{name.replace("_", "."): text for name, text in more.items()},
    }


def told(run: SourceRun, table: Table) -> list[tuple[str, str]]:
    """Operation and key of each record; "-" for a tombstone."""
    topic = f"p.{table.name}"
    found = zip(run.keys(topic), run.topics.get(topic, []), strict=True)
    return [
        ("-" if one.value is None else json.loads(one.value)["op"], json.loads(key or "")["id"])
        for key, one in found
    ]


def values(run: SourceRun, table: Table) -> list[Any]:
    return [json.loads(one) if one else None for one in run.values(f"p.{table.name}")]


def source(moto: MotoProcess, *tables: Table, **more: str) -> SourceRun:
    return SourceRun(DynamoDbSourceConnector, config(moto, *tables, **more), converters=JSON)


def test_items_then_changes_each_once_though_the_task_crashes(
    moto: MotoProcess, tables: TableMaker
) -> None:
    table = tables(None)
    for n in range(20):
        table.put(f"i{n:02}", n={"N": str(n)})
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    table.client.update_table(TableName=table.name, StreamSpecification=stream)
    more = {"snapshot_fetch_size": "6", "stream_records_max": "3", "max_batch_size": "1"}
    with source(moto, table, **more) as run:
        run.poll()
        run.crash()
        for _ in range(2):
            run.poll()
            run.commit()
        run.poll()
        run.crash()
        run.run_until(lambda: len(told(run, table)) == 20)
        assert sorted(told(run, table)) == [("r", f"i{n:02}") for n in range(20)]
        for n in range(10):
            table.put(f"c{n}")
            table.put(f"c{n}", x={"S": "changed"})
            table.delete(f"c{n}")
        expected = [(op, f"c{n}") for n in range(10) for op in ("c", "u", "d", "-")]
        for _ in range(3):
            run.poll()
            run.commit()
            run.poll()
            run.crash()
        run.run_until(lambda: len(told(run, table)) >= 60)
        run.restart()
        run.poll()
        run.commit()
        assert told(run, table)[20:] == expected
        deleted = values(run, table)[22]
        assert deleted["before"]["x"] == "changed" and deleted["after"] is None
        assert deleted["source"]["table"] == table.name
        assert values(run, table)[21]["before"]["x"] is None
        kept = {frozenset(where): offset for where, offset in run.offsets}
        assert kept[frozenset({"table"})]["snapshot"] == "done"  # type: ignore[index]
        assert set(kept) == {frozenset({"table"}), frozenset({"table", "stream", "shard"})}


def test_all_types_arrive_and_json_is_a_choice(moto: MotoProcess, tables: TableMaker) -> None:
    table = tables()
    digits = "12345678901234567890.0123456789"
    attributes = {
        "n": {"N": digits},
        "b": {"B": b"\x01"},
        "t": {"BOOL": True},
        "z": {"NULL": True},
        "l": {"L": [{"S": "x"}, {"N": "1"}]},
        "m": {"M": {"k": {"S": "v"}}},
        "ss": {"SS": ["b", "a"]},
        "ns": {"NS": ["3"]},
        "bs": {"BS": [b"y"]},
    }
    table.put("a", **attributes)
    never = {"snapshot_mode": "never"}
    with source(moto, table, **never) as run:
        run.run_until(lambda: len(told(run, table)) == 1)
        after = values(run, table)[0]["after"]
    assert after == {
        "id": "a",
        "at": "1",
        "n": digits,
        "b": "AQ==",
        "t": True,
        "z": None,
        "l": ['"x"', "1"],
        "m": {"k": "v"},
        "ss": ["a", "b"],
        "ns": ["3"],
        "bs": ["eQ=="],
    }
    with source(moto, table, **never, item_format="json", decimal_handling_mode="double") as run:
        run.run_until(lambda: len(told(run, table)) == 1)
        text = values(run, table)[0]["after"]
        assert json.loads(run.keys(f"p.{table.name}")[0] or "") == {"id": "a", "at": 1.0}
    assert f'"n":{digits}' in text and json.loads(text)["l"] == ["x", 1]


@pytest.mark.parametrize(
    ("view", "images"),
    [
        ("KEYS_ONLY", [(False, False)] * 3),
        ("NEW_IMAGE", [(False, True), (False, True), (False, False)]),
        ("OLD_IMAGE", [(False, False), (True, False), (True, False)]),
        ("NEW_AND_OLD_IMAGES", [(False, True), (True, True), (True, False)]),
    ],
)
def test_changes_have_the_images_that_their_stream_has(
    moto: MotoProcess,
    tables: TableMaker,
    view: str,
    images: list[tuple[bool, bool]],
) -> None:
    table = tables(view)
    table.put("a")
    table.put("a", x={"S": "y"})
    table.delete("a")
    with source(moto, table, snapshot_mode="never", tombstones_on_delete="false") as run:
        run.run_until(lambda: len(told(run, table)) == 3)
        assert told(run, table) == [("c", "a"), ("u", "a"), ("d", "a")]
        found = values(run, table)
    assert [(one["before"] is not None, one["after"] is not None) for one in found] == images
    assert {one["source"]["view"] for one in found} == {view}


def test_latest_begins_with_what_comes_and_tables_are_shared_out(
    moto: MotoProcess, tables: TableMaker
) -> None:
    one, two = tables(), tables()
    latest = {"snapshot_mode": "never", "stream_initial_position": "LATEST"}
    given = config(moto, one, two, **latest, heartbeat_interval_ms="1")
    one.put("old")
    with (
        SourceRun(DynamoDbSourceConnector, given, tasks_max=2, converters=JSON) as first,
        SourceRun(DynamoDbSourceConnector, given, task=1, tasks_max=2, converters=JSON) as second,
    ):
        for run, table in ((first, one), (second, two)):
            assert run.config["dynamodb.tables"] == table.name
            run.run_until(lambda run=run: _HEARTBEATS in run.topics)
            table.put("new")
            run.run_until(lambda run=run, table=table: bool(told(run, table)))
            assert told(run, table) == [("c", "new")]
            assert set(run.topics) == {f"p.{table.name}", _HEARTBEATS}


def test_a_heartbeat_carries_the_position_of_a_quiet_table(
    moto: MotoProcess, tables: TableMaker
) -> None:
    table = tables()
    with source(moto, table, snapshot_mode="never", heartbeat_interval_ms="1") as run:
        run.run_until(lambda: _HEARTBEATS in run.topics)
        ((where, offset),) = run.offsets
        assert where == {"table": table.name} and offset is not None and offset["seen"] > 0


def test_tables_that_cannot_be_captured_are_told_at_once(
    moto: MotoProcess, tables: TableMaker
) -> None:
    plain, streamed = tables(None), tables()
    missing = config(moto, plain, streamed)
    missing["dynamodb.tables"] += ",nothing-here"
    (sentences,) = refused_settings(DynamoDbSourceConnector, missing).values()
    assert "has no stream" in sentences[0] and "nothing-here is not there" in sentences[1]
    only = config(moto, plain, snapshot_mode="initial_only")
    assert refused_settings(DynamoDbSourceConnector, only) == {}
    plain.put("a")
    with source(moto, plain, snapshot_mode="initial_only") as run:
        run.run_until(lambda: told(run, plain) == [("r", "a")])
        assert run.poll() == []
    away = {**only, "dynamodb.service.endpoint": f"http://{HOST}:{free_port()}"}
    assert list(refused_settings(DynamoDbSourceConnector, away)) == ["dynamodb.service.endpoint"]


def test_a_table_that_is_dropped_under_the_stream_fails_the_task(
    moto: MotoProcess, tables: TableMaker
) -> None:
    table = tables()
    table.put("a")
    with source(moto, table) as run:
        run.run_until(lambda: len(told(run, table)) >= 1)
        table.client.delete_table(TableName=table.name)
        run.restart()
        with pytest.raises(ConnectError, match=table.name):
            run.task.poll()


def test_a_server_that_is_away_is_tried_so_many_times(tmp_path: Path) -> None:
    with moto_server(tmp_path) as own:
        table = Table(own, "orders", "NEW_AND_OLD_IMAGES")
        patience = {"errors_max_retries": "1", "retriable_restart_connector_wait_ms": "1"}
        with source(own, table, snapshot_mode="never", **patience) as run:
            run.poll()
            own.stop()
            with pytest.raises(RetriableConnectError):
                run.task.poll()
            with pytest.raises(ConnectError, match="tried 2 times"):
                run.task.poll()
