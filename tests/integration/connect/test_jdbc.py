"""JDBC source and sink on the three products: rows in, rows out, crashes between."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.support.mariadb import running_mariadb
from tests.support.postgres import running_postgres
from tests.support.processes import HOST
from tests.support.source_tasks import KeptOffsets, TaskRun, plain

from penstock.connect.columnar.encoding import ColumnEncoder
from penstock.connect.connectors.jdbc.sink import JdbcSinkConnector, JdbcSinkTask
from penstock.connect.connectors.jdbc.source import JdbcSourceConnector, JdbcSourceTask
from penstock.connect.converters.json import JsonConverter
from penstock.connect.errors.kinds import ConnectError, RetriableConnectError
from penstock.connect.records import SinkRecord
from penstock.connect.values.logical import OPTIONAL_TIMESTAMP_SCHEMA, decimal_schema
from penstock.connect.values.schema import (
    INT64_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    struct_schema,
)
from penstock.connect.values.struct import StructValue
from penstock.records.topic_partition import TopicPartition

Run = Callable[..., list[tuple[Any, ...]]]


class Product:
    """A database with its settings and a way to run statements."""

    def __init__(self, name: str, config: Mapping[str, str], run: Run) -> None:
        self.name = name
        self.config = dict(config)
        self.run = run


@pytest.fixture(scope="module", params=["postgresql", "mariadb", "sqlite"])
def product(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    with ExitStack() as stack:
        if request.param == "postgresql":
            pg = stack.enter_context(running_postgres())
            login = {"connection.user": "postgres", "connection.password": "secret"}
            url = f"jdbc:postgresql://{HOST}:{pg.port}/postgres"
            yield Product("postgresql", {"connection.url": url, **login}, pg.run)
        elif request.param == "mariadb":
            maria = stack.enter_context(running_mariadb())
            login = {"connection.user": "tester", "connection.password": "secret"}
            yield Product("mariadb", {"connection.url": maria.url, **login}, maria.run)
        else:
            file = tmp_path_factory.mktemp("sqlite") / "file.db"
            yield Product("sqlite", {"connection.url": f"jdbc:sqlite:{file}"}, _sqlite(file))


def _sqlite(file: Path) -> Run:
    def run(*statements: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(file) as connection:
            for statement in statements:
                rows = connection.execute(statement).fetchall()
        return rows

    return run


def source(product: Product, kept: KeptOffsets, **more: str) -> TaskRun:
    named = {name.replace("_", "."): text for name, text in more.items()}
    config = {"topic.prefix": "db-", "poll.interval.ms": "20", "batch.max.rows": "7", **named}
    return TaskRun(JdbcSourceTask(), {**product.config, **config}, kept)


def test_rows_that_count_up_are_read_once_also_after_a_stop(product: Product) -> None:
    product.run(
        "CREATE TABLE counted (id BIGINT PRIMARY KEY, note VARCHAR(20), price DECIMAL(8,2),"
        " d DATE)",
        *[f"INSERT INTO counted VALUES ({n}, 'n{n}', 1.50, '2024-02-29')" for n in range(20)],
    )
    more = {"mode": "incrementing", "incrementing_column_name": "id", "table_whitelist": "counted"}
    kept = KeptOffsets()
    with source(product, kept, **more) as run:
        run.until(14)
        run.poll(commits=False)  # Polled, and never in Kafka.
        first = [plain(one.value)["id"] for one in run.records[:14]]
    product.run("INSERT INTO counted VALUES (20, NULL, NULL, NULL)")
    with source(product, kept, **more) as run:
        rest = [plain(one.value) for one in run.until(7)]
        assert run.records[0].topic == "db-counted"
    assert first + [one["id"] for one in rest] == list(range(21))
    assert rest[0]["note"] == "n14" and rest[0]["d"] == date(2024, 2, 29)
    assert rest[-1] == {"id": 20, "note": None, "price": None, "d": None}


def test_changed_rows_are_found_by_their_time(product: Product) -> None:
    kind = "TEXT" if product.name == "sqlite" else "TIMESTAMP(6)"
    at = "2024-02-29 10:00:0"
    product.run(
        f"CREATE TABLE timed (id INT PRIMARY KEY, ts {kind} NOT NULL)",
        *[f"INSERT INTO timed VALUES ({n}, '{at}{n // 2}.000001')" for n in range(6)],
    )
    more = {
        "mode": "timestamp+incrementing",
        "timestamp_column_name": "ts",
        "incrementing_column_name": "id",
        "table_whitelist": "timed",
    }
    kept = KeptOffsets()
    with source(product, kept, batch_max_rows="3", **more) as run:
        run.until(3)
    product.run(f"UPDATE timed SET ts = '{at}9.5' WHERE id = 0")
    with source(product, kept, **more) as run:
        assert [plain(one.value)["id"] for one in run.until(4)] == [3, 4, 5, 0]


def test_a_query_is_read_whole_each_time(product: Product) -> None:
    with source(product, KeptOffsets(), mode="bulk", query="SELECT 7 AS n, 'x' AS s") as run:
        records = run.until(2)
    assert [plain(one.value) for one in records[:2]] == [{"n": 7, "s": "x"}] * 2


VALUE = struct_schema(
    {
        "id": INT64_SCHEMA,
        "note": OPTIONAL_STRING_SCHEMA,
        "price": decimal_schema(2, optional=True),
        "at": OPTIONAL_TIMESTAMP_SCHEMA,
    },
    name="order",
)
KEY = struct_schema({"id": INT64_SCHEMA}, name="key")


def record(
    offset: int, row_id: int, note: str | None = "x", *, deletes: bool = False
) -> SinkRecord:
    price, at = Decimal("1.50"), datetime(2024, 2, 29, 10, tzinfo=UTC)
    return SinkRecord(
        topic="orders",
        partition=0,
        key_schema=KEY,
        key=StructValue(KEY, (row_id,)),
        value_schema=None if deletes else VALUE,
        value=None if deletes else StructValue(VALUE, (row_id, note, price, at)),
        offset=offset,
    )


class SinkRig:
    """A sink task's context."""

    def __init__(self, product: Product, *, tolerant: bool = False, **more: str) -> None:
        named = {name.replace("_", "."): text for name, text in more.items()}
        self.config = {"name": "s", "auto.create": "true", **product.config, **named}
        self.reported: list[int] = []
        self.errant_record_reporter = self if tolerant else None
        self.task = JdbcSinkTask()
        self.task.initialize(self)  # type: ignore[arg-type]
        self.task.start(self.config)

    def report(self, record: SinkRecord, error: Exception) -> None:
        self.reported.append(record.offset)

    def set_timeout_ms(self, timeout_ms: int) -> None:
        return


def dropped(product: Product, table: str) -> str:
    product.run(f"DROP TABLE IF EXISTS {table}", "DROP TABLE IF EXISTS connect_sink_offsets")
    return table


def test_records_that_come_again_are_not_inserted_again(product: Product) -> None:
    table = dropped(product, "plain_rows")
    records = [record(n, n) for n in range(10)]
    first = SinkRig(product, table_name_format=table)
    first.task.put(records[:6])  # Its offsets are never committed: the task dies.
    second = SinkRig(product, table_name_format=table)
    second.task.put(records)
    rows = product.run(f"SELECT id FROM {table} ORDER BY id")
    assert [row[0] for row in rows] == list(range(10))
    JdbcSinkConnector().alter_offsets(second.config, {TopicPartition("orders", 0): 8})
    product.run(f"DELETE FROM {table} WHERE id >= 8")
    second.task.put(records)
    assert product.run(f"SELECT COUNT(*) FROM {table}")[0][0] == 10
    first.task.stop()
    second.task.stop()


def test_rows_are_replaced_and_deleted_by_their_keys(product: Product) -> None:
    table = dropped(product, "keyed_rows")
    more = {"insert_mode": "upsert", "pk_mode": "record_key", "delete_enabled": "true"}
    rig = SinkRig(product, table_name_format=table, **more)
    rig.task.put([record(0, 1, "a"), record(1, 2, "b"), record(2, 1, "c"), record(3, 3)])
    rig.task.put([record(4, 2, deletes=True), record(5, 3, None)])
    rows = product.run(f"SELECT id, note FROM {table} ORDER BY id")
    assert [tuple(row) for row in rows] == [(1, "c"), (3, None)]
    rig.task.stop()


def test_a_row_that_the_table_refuses_is_named_or_put_aside(product: Product) -> None:
    table = dropped(product, "strict_rows")
    strict = {"pk_mode": "record_key", "table_name_format": table}
    rig = SinkRig(product, **strict)
    rig.task.put([record(0, 1), record(1, 2)])
    with pytest.raises(ConnectError, match="orders-0, offset 3"):
        rig.task.put([record(2, 5), record(3, 2), record(4, 6)])
    rig.task.stop()
    tolerant = SinkRig(product, tolerant=True, **strict)
    tolerant.task.put([record(2, 5), record(3, 2), record(4, 6)])
    assert tolerant.reported == [3]
    rows = product.run(f"SELECT id FROM {table} ORDER BY id")
    assert [row[0] for row in rows] == [1, 2, 5, 6]
    tolerant.task.stop()


def test_a_table_gets_columns_that_it_lacks(product: Product) -> None:
    table = dropped(product, "growing_rows")
    rig = SinkRig(product, table_name_format=table, auto_evolve="true")
    rig.task.put([record(0, 1)])
    wider = struct_schema({"id": INT64_SCHEMA, "more": OPTIONAL_INT32_SCHEMA})
    rig.task.put(
        [SinkRecord(topic="orders", partition=1, value_schema=wider,
                    value=StructValue(wider, (2, 7)), offset=0)]
    )  # fmt: skip
    rows = product.run(f"SELECT id, more FROM {table} ORDER BY id")
    rig.task.stop()
    assert [tuple(row) for row in rows] == [(1, None), (2, 7)]


def test_a_database_that_is_away_is_tried_again_and_then_told() -> None:
    away = Product("away", {"connection.url": f"jdbc:postgresql://{HOST}:1/x"}, list)
    rig = SinkRig(away, max_retries="2", retry_backoff_ms="1")
    for _ in range(2):
        with pytest.raises(RetriableConnectError):
            rig.task.put([record(0, 1)])
    with pytest.raises(ConnectError, match="tried 3 times"):
        rig.task.put([record(0, 1)])


def test_tables_are_shared_out_among_tasks_and_errors_told_at_once(product: Product) -> None:
    connector = JdbcSourceConnector()
    tables = {"table.whitelist": "a,b,c", "mode": "bulk", "topic.prefix": "x"}
    connector.start({**product.config, **tables})
    assert [one["tables"] for one in connector.task_configs(2)] == ["a,c", "b"]
    wrong = {"connection.url": "jdbc:oracle:x", "mode": "incrementing", "batch.max.rows": "0"}
    assert JdbcSourceConnector.validate(wrong).errors().keys() == {
        "connection.url", "incrementing.column.name", "topic.prefix", "batch.max.rows",
    }  # fmt: skip
    wrong = {"connection.url": "jdbc:sqlite:x", "insert.mode": "upsert", "delete.enabled": "true"}
    assert JdbcSinkConnector.validate(wrong).errors().keys() == {"pk.mode", "delete.enabled"}


_KINDS = {  # A column's type, and values that are plain, odd or missing.
    "whole": ("BIGINT", ("1", "-9223372036854775808", "NULL")),
    "small": ("SMALLINT", ("-5", "32767", "NULL")),
    "price": ("DECIMAL(8,2)", ("1.50", "-999999.99", "NULL")),
    "ratio": ("DOUBLE PRECISION", ("0.1", "-1e300", "NULL")),
    "note": ("VARCHAR(40)", ("'Zoë \"x\"'", "''", "NULL")),
    "day": ("DATE", ("'2024-02-29'", "'1969-12-31'", "NULL")),
}


def encoded(values: Any, schema: Any) -> list[bytes]:
    """As the JSON converter writes columns."""
    found = ColumnEncoder(JsonConverter({}, is_key=False)).encode("t", schema, values)
    return list(found.to_pylist())


def test_rows_are_the_same_as_columns_and_go_on_in_the_other_lane(product: Product) -> None:
    moment = "TEXT" if product.name == "sqlite" else "TIMESTAMP(6)"
    kinds = {**_KINDS, "at": (f"{moment} NULL", ("'2024-02-29 10:00:00.125'", "NULL", "NULL"))}
    named = ", ".join(f"{name} {kind}" for name, (kind, _) in kinds.items())
    rows = [", ".join(texts[n % 3] for _, texts in kinds.values()) for n in range(40)]
    product.run(
        f"CREATE TABLE both_lanes (id BIGINT PRIMARY KEY, {named})",
        *[f"INSERT INTO both_lanes VALUES ({n}, {row})" for n, row in enumerate(rows)],
    )
    more = {"mode": "incrementing", "incrementing_column_name": "id"}
    more["table_whitelist"] = "both_lanes"
    kept = KeptOffsets()
    with source(product, kept, **more) as run:
        single = run.until(40)
        expected = [
            JsonConverter({}, is_key=False).from_connect("t", one.value_schema, one.value)
            for one in single
        ]
    half = KeptOffsets()
    half.keep(single[13])
    with source(product, half, **more) as run:
        batches = list(run.task.poll_columns())  # type: ignore[attr-defined]
    found = [one for batch in batches for one in encoded(batch.values, batch.schema)]
    assert found == expected[14:]
    # SQLite tells no scale of decimals, and no column holds one of 127 digits.
    assert isinstance(batches[0].values, list) == (product.name == "sqlite")
    assert batches[-1].source_offset == single[-1].source_offset
    assert batches[-1].source_partition == single[-1].source_partition


def test_a_time_that_no_column_can_hold_is_written_from_single_values(product: Product) -> None:
    moment = "TEXT" if product.name == "sqlite" else "TIMESTAMP(6)"
    product.run(
        f"CREATE TABLE micros (id BIGINT PRIMARY KEY, at {moment})",
        "INSERT INTO micros VALUES (1, '2024-02-29 10:00:00.123456')",
    )
    more = {"mode": "bulk", "table_whitelist": "micros"}
    with source(product, KeptOffsets(), **more) as run:
        (batch,) = run.task.poll_columns()  # type: ignore[attr-defined]
        assert isinstance(batch.values, list) == (product.name != "sqlite")
        record = run.until(1)[0]
    converter = JsonConverter({}, is_key=False)
    expected = converter.from_connect("t", record.value_schema, record.value)
    assert encoded(batch.values, batch.schema) == [expected]
