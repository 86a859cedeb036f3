"""The settings of a capture of DynamoDB: all errors at once, tables dealt out, offsets checked."""

import pytest

from penstock.connect.connectors.dynamodb.source import DynamoDbSourceConnector
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.testing import refused_settings

GOOD = {"dynamodb.tables": "orders", "topic.prefix": "shop", "aws.access.key.id": "${file:a:b}"}


def test_all_that_is_wrong_is_told_at_once() -> None:
    wrong = {
        "dynamodb.tables": "ok-table,no/table",
        "dynamodb.service.endpoint": "ftp://x",
        "topic.prefix": "a b",
        "snapshot.mode": "sometimes",
        "stream.initial.position": "AT_TIMESTAMP",
        "stream.gap.handling.mode": "pray",
        "stream.records.max": "1001",
        "item.format": "xml",
        "decimal.handling.mode": "roughly",
        "skipped.operations": "x",
        "max.batch.size": "0",
        "aws.access.key.id": "AKIA",
    }
    assert refused_settings(DynamoDbSourceConnector, wrong).keys() == wrong.keys()


def test_what_is_missing_or_contradicts_is_told() -> None:
    assert list(refused_settings(DynamoDbSourceConnector, {})) == [
        "dynamodb.tables",
        "topic.prefix",
    ]
    twice = {"dynamodb.tables": "orders,orders", "topic.prefix": "p"}
    assert list(refused_settings(DynamoDbSourceConnector, twice)) == ["dynamodb.tables"]
    gap = GOOD | {"snapshot.mode": "never", "stream.gap.handling.mode": "snapshot"}
    assert "stream.gap.handling.mode" in refused_settings(DynamoDbSourceConnector, gap)
    long = GOOD | {"topic.prefix": "p" * 200, "dynamodb.tables": "t" * 200}
    assert "dynamodb.tables" in refused_settings(DynamoDbSourceConnector, long)


def test_tables_are_dealt_out_to_at_most_as_many_tasks_as_there_may_be() -> None:
    connector = DynamoDbSourceConnector()
    connector.start({"dynamodb.tables": "aaa,bbb,ccc", "topic.prefix": "p"})
    assert [one["dynamodb.tables"] for one in connector.task_configs(2)] == ["aaa,ccc", "bbb"]
    assert len(connector.task_configs(9)) == 3


def test_offsets_that_no_task_could_use_are_refused() -> None:
    connector = DynamoDbSourceConnector()
    shard = frozenset({("table", "t"), ("stream", "l"), ("shard", "s")})
    table = frozenset({("table", "t")})
    good = {shard: {"sequence": "123"}, table: {"stream": "l", "snapshot": "done"}}
    assert connector.alter_offsets(GOOD, {**good, frozenset({("x", "y")}): None})
    for partition, offset in (
        (shard, {"sequence": 123}),
        (shard, {"sequence": "12x"}),
        (shard, {"sequence": "1" * 65}),
        (shard, {"sequence": "1", "part": -1}),
        (table, {"stream": "l", "snapshot": "half"}),
        (table, {"stream": "l", "snapshot": "done", "since": "x"}),
        (frozenset({("shard", "s")}), {"sequence": "1"}),
    ):
        with pytest.raises(ConnectError, match=r"none of|partition has"):
            connector.alter_offsets(GOOD, {partition: offset})
