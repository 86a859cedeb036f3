"""Change data capture of a real MariaDB: snapshot, binary log, and what goes wrong between."""

import random
import threading
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pymysql
import pytest
from tests.support.mariadb import PASSWORD, USER, MariadbProcess, running_mariadb
from tests.support.processes import HOST
from tests.support.source_tasks import KeptOffsets, TaskRun, plain

from penstock.connect.connectors.mysql.source import MariaDbConnector, MariaDbConnectorTask
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.records import SourceRecord


@pytest.fixture(scope="module")
def server() -> Iterator[MariadbProcess]:
    with running_mariadb() as process:
        yield process


class Database:
    """Statements in the database of a test."""

    def __init__(self, server: MariadbProcess, name: str) -> None:
        self.server = server
        self.name = name

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        return self.server.run(f"USE {self.name}", *statements)

    def connect(self) -> Any:
        """A connection whose statements are one transaction until `commit`."""
        return pymysql.connect(
            host=HOST, port=self.server.port, user=USER, password=PASSWORD, database=self.name
        )


@pytest.fixture
def database(server: MariadbProcess, request: pytest.FixtureRequest) -> Iterator[Database]:
    name = f"d{abs(hash(request.node.name)) % 10**9}"
    server.run(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    yield Database(server, name)
    server.run(f"DROP DATABASE {name}")


@pytest.fixture
def config(database: Database) -> dict[str, str]:
    return {
        "database.hostname": HOST,
        "database.port": str(database.server.port),
        "database.user": USER,
        "database.password": PASSWORD,
        "database.server.id": str(random.randrange(1000, 2**31)),
        "database.include.list": database.name,
        "topic.prefix": "my",
        "poll.interval.ms": "50",
        "retriable.restart.connector.wait.ms": "50",
        "errors.max.retries": "-1",
    }


def run_of(config: dict[str, str], kept: KeptOffsets, **more: str) -> TaskRun:
    named = {name.replace("_", "."): text for name, text in more.items()}
    return TaskRun(MariaDbConnectorTask(), {**config, **named}, kept)


def told(record: SourceRecord) -> tuple[str, Any]:
    """The operation and the id of the row."""
    if record.value is None:
        return "tombstone", plain(record.key)["id"]
    event = plain(record.value)
    return event["op"], (event["after"] or event["before"] or {"id": None})["id"]


def test_rows_come_first_and_then_every_change_in_debeziums_envelope(
    config: dict[str, str], database: Database
) -> None:
    database.run(
        "CREATE TABLE orders (id int PRIMARY KEY, note text)",
        "INSERT INTO orders VALUES (1, 'one'), (2, 'two')",
    )
    with run_of(config, KeptOffsets()) as run:
        run.until(2)
        database.run(
            "INSERT INTO orders VALUES (3, 'three')",
            "UPDATE orders SET note = 'zwei' WHERE id = 2",
            "UPDATE orders SET id = 30 WHERE id = 3",
            "DELETE FROM orders WHERE id = 1",
        )
        records = run.until(9)
    assert [told(one) for one in records] == [
        ("r", 1), ("r", 2), ("c", 3), ("u", 2),
        ("d", 3), ("tombstone", 3), ("c", 30), ("d", 1), ("tombstone", 1),
    ]  # fmt: skip
    assert {one.topic for one in records} == {f"my.{database.name}.orders"}
    update = plain(records[3].value)
    assert (update["before"], update["after"]) == (
        {"id": 2, "note": "two"},
        {"id": 2, "note": "zwei"},
    )
    source = update["source"]
    assert (source["connector"], source["db"], source["table"]) == (
        "mariadb", database.name, "orders",
    )  # fmt: skip
    assert source["gtid"].startswith("0-1-") and source["server_id"] == 1
    assert [plain(one.value)["source"]["snapshot"] for one in records[:3]] == [
        "true", "last", "false",
    ]  # fmt: skip
    schemas = {id(one.value_schema): one.value_schema for one in records if one.value_schema}
    first, *others = schemas.values()
    assert all(one == first for one in others), "snapshot and stream tell one shape"
    assert [plain(one.key) for one in records[:4]] == [{"id": n} for n in (1, 2, 3, 2)]
    assert [one.name for one in records[6].headers] == ["__debezium.oldkey"]


_TYPES = """
CREATE TABLE t (id int unsigned PRIMARY KEY, a tinyint(1), b bigint unsigned, c decimal(10,3),
 d date, e datetime, f datetime(6), g timestamp(3) NULL, h time(2), i year, j enum('x','y,''z'),
 k set('p','q'), l bit(1), m bit(10), n varchar(20) CHARACTER SET latin1 NOT NULL, o text,
 p varbinary(10), q blob, r float, s double, t point, u uuid, v inet6, w smallint unsigned,
 x mediumint, y binary(3), z json, zero date NOT NULL, empty set('p') NOT NULL)
"""
_ROW = """
({}, 1, 18446744073709551615, -12.5, '2024-02-29', '2024-02-29 10:20:30',
 '2024-02-29 10:20:30.123456', '2024-02-29 10:20:30.12', '-10:20:30.25', 2024, 'y,''z', 'q,p',
 1, b'1000000011', 'näme', 'größe', x'00ff', x'0102', 3.1415927, 2.5, POINT(1,2),
 '123e4567-e89b-12d3-a456-426614174000', '::ffff:1.2.3.4', 65535, -5, x'01', '{{"a": 1}}',
 '0000-00-00', '')
"""


def test_values_are_the_same_from_the_snapshot_and_from_the_log(
    config: dict[str, str], database: Database
) -> None:
    database.run("SET time_zone = '+00:00'", "SET sql_mode = ''", _TYPES,
                 "INSERT INTO t VALUES " + _ROW.format(1))  # fmt: skip
    with run_of(config, KeptOffsets()) as run:
        run.until(1)
        database.run("SET time_zone = '+00:00'", "SET sql_mode = ''",
                     "INSERT INTO t VALUES " + _ROW.format(2),
                     "INSERT INTO t (id, n, zero, empty) VALUES (3, '', '2024-01-01', 'p')",
                     )  # fmt: skip
        records = run.until(3)
    read, created, nulls = (plain(one.value)["after"] for one in records)
    assert records[0].value_schema == records[1].value_schema
    assert {**read, "id": 2} == created
    assert {name: created[name] for name in "abcdefghij"} == {
        "a": 1, "b": -1, "c": Decimal("-12.500"), "d": 19782, "e": 1709202030000,
        "f": 1709202030123456, "g": "2024-02-29T10:20:30.12Z", "h": -37_230_250_000, "i": 2024,
        "j": "y,'z",
    }  # fmt: skip
    assert {name: created[name] for name in "klmnopq"} == {
        "k": "p,q", "l": True, "m": b"\x03\x02", "n": "näme", "o": "größe", "p": b"\x00\xff",
        "q": b"\x01\x02",
    }  # fmt: skip
    assert (created["r"], created["s"], created["t"]["srid"]) == (
        pytest.approx(3.1415927, abs=1e-7), 2.5, None,
    )  # fmt: skip
    assert {name: created[name] for name in ("u", "v", "w", "x", "y", "z", "zero", "empty")} == {
        "u": "123e4567-e89b-12d3-a456-426614174000", "v": "::ffff:1.2.3.4", "w": 65535, "x": -5,
        "y": b"\x01\x00\x00", "z": '{"a": 1}', "zero": 0, "empty": "",
    }  # fmt: skip
    assert all(nulls[name] is None for name in "abcdefghijklmopqrstuvwxyz")


def test_a_large_transaction_is_left_in_its_middle_and_gone_on_with(
    config: dict[str, str], database: Database
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE u (id int PRIMARY KEY)")
    kept = KeptOffsets()
    with run_of(config, kept, snapshot_mode="no_data", heartbeat_interval_ms="1") as run:
        run.until(1)
    connection = database.connect()
    with connection.cursor() as cursor:
        for first in range(0, 200, 50):
            rows = ",".join(f"({n})" for n in range(first, first + 50))
            cursor.execute(f"INSERT INTO t VALUES {rows}")
            cursor.execute(f"INSERT INTO u VALUES ({first + 1000})")
    connection.commit()
    connection.close()
    database.run("INSERT INTO t VALUES (2000)")
    seen: list[Any] = []
    while len(seen) < 205:
        with run_of(config, kept, max_batch_size="7") as run:
            for _ in range(6):
                seen += [told(one)[1] for one in run.poll()]
            run.poll(commits=False)  # Lost with the task.
    wanted = [n for first in range(0, 200, 50) for n in (*range(first, first + 50), first + 1000)]
    assert seen == [*wanted, 2000]


def test_a_snapshot_fits_the_stream_while_tables_change(
    config: dict[str, str], database: Database
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY AUTO_INCREMENT, v int)",
                 *["INSERT INTO t (v) VALUES (0)"] * 20)  # fmt: skip
    stopping = threading.Event()

    def change() -> None:
        connection = database.connect()
        with connection.cursor() as cursor:
            while not stopping.is_set():
                cursor.execute("INSERT INTO t (v) VALUES (1)")
                cursor.execute("UPDATE t SET v = v + 1 ORDER BY id DESC LIMIT 3")
                connection.commit()
        connection.close()

    changing = threading.Thread(target=change)
    changing.start()
    rows: dict[int, int] = {}
    with run_of(config, KeptOffsets(), max_batch_size="5") as run:
        run.until(200)
        stopping.set()
        changing.join()
        truth = dict(database.run("SELECT id, v FROM t"))
        last = max(truth)
        run.until_true(
            lambda: any(told(one)[1] == last for one in run.records[-500:]) and not run.poll(),
            "the last row",
        )
        for record in run.records:
            operation, after = plain(record.value)["op"], plain(record.value)["after"]
            was = rows.get(after["id"])
            assert (was is None) == (operation in "cr"), (operation, after, was)
            assert operation in "cr" or after["v"] == was + 1
            rows[after["id"]] = after["v"]
    assert rows == truth


def test_a_table_altered_under_the_stream_gives_later_records_another_schema(
    config: dict[str, str], database: Database
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, v int)")
    kept = KeptOffsets()
    with run_of(config, kept, snapshot_mode="no_data", heartbeat_interval_ms="1") as run:
        run.until(1)
    database.run(
        "INSERT INTO t VALUES (1, 10)",
        "ALTER TABLE t ADD COLUMN w varchar(5) FIRST, CHANGE v x bigint",
        "INSERT INTO t VALUES ('new', 2, 20)",
        "TRUNCATE TABLE t",
        "INSERT INTO t VALUES ('last', 3, 30)",
    )
    with run_of(config, kept, skipped_operations="none") as run:
        first, second, emptied, third = run.until(4)
    assert plain(first.value)["after"] == {"id": 1, "v": 10}
    assert plain(second.value)["after"] == {"w": "new", "id": 2, "x": 20}
    assert (plain(emptied.value)["op"], emptied.key) == ("t", None)
    assert plain(third.value)["after"]["id"] == 3


def test_a_row_that_cannot_be_read_is_named_or_left_out(
    config: dict[str, str], database: Database
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, h time)",
                 "INSERT INTO t VALUES (1, '10:00:00'), (2, '30:00:00')")  # fmt: skip
    connect = {"time_precision_mode": "connect"}
    with pytest.raises(ConnectError, match=r"column h: .* is no time of day"), run_of(
        config, KeptOffsets(), **connect
    ) as run:  # fmt: skip
        run.until(2)
    kept, more = KeptOffsets(), {**connect, "event_processing_failure_handling_mode": "skip"}
    with run_of(config, kept, **more) as run:
        run.until(1)
        database.run("INSERT INTO t VALUES (3, '-1:00:00'), (4, '4:00:00')")
        assert [told(one) for one in run.until(2)] == [("r", 1), ("c", 4)]


def test_a_server_that_goes_away_is_waited_for(config: dict[str, str], database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with run_of(config, KeptOffsets()) as run:
        run.until(1)
        run.poll()
        back = threading.Thread(target=database.server.restart)
        back.start()
        while back.is_alive():
            run.poll()
        database.run("INSERT INTO t VALUES (2)")
        assert [told(one) for one in run.until(2)] == [("r", 1), ("c", 2)]
    with pytest.raises(ConnectError, match="tried 3 times"), run_of(
        config, KeptOffsets(), database_port="1", errors_max_retries="2"
    ) as run:  # fmt: skip
        run.until(1)


def test_a_log_that_is_gone_is_told_and_a_new_snapshot_may_begin(
    config: dict[str, str], database: Database
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    kept = KeptOffsets()
    with run_of(config, kept) as run:
        run.until(1)
    kept.known['{"server": "my"}']["file"] = "binlog.999999"
    with pytest.raises(ConnectError, match=r"no binary log binlog\.999999"), run_of(
        config, kept
    ) as run:  # fmt: skip
        run.poll()
    with run_of(config, kept, snapshot_mode="when_needed") as run:
        assert [told(one) for one in run.until(1)] == [("r", 1)]


def test_validation_names_what_is_wrong(config: dict[str, str], server: MariadbProcess) -> None:
    assert MariaDbConnector.validate(config).error_count == 0
    wrong = {**config, "table.include.list": "a", "table.exclude.list": "b(",
             "include.schema.changes": "true", "database.server.id": "x"}  # fmt: skip
    checked = MariaDbConnector.validate(wrong)
    errors = {one.entry.name: one.errors for one in checked.values if one.errors}
    assert set(errors) == {"table.exclude.list", "database.hostname", "database.server.id"}
    server.run("SET GLOBAL binlog_row_metadata = MINIMAL")
    try:
        (checked_error,) = [
            error for one in MariaDbConnector.validate(config).values for error in one.errors
        ]
        assert "binlog_row_metadata must be FULL; it is MINIMAL" in checked_error
    finally:
        server.run("SET GLOBAL binlog_row_metadata = FULL")
    unreachable = MariaDbConnector.validate({**config, "database.port": "1"})
    assert "cannot be reached" in str([one.errors for one in unreachable.values])
