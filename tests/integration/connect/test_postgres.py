"""Change data capture of a real PostgreSQL: snapshot, stream, and what goes wrong between."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.postgres import PASSWORD, PostgresProcess, running_postgres
from tests.support.processes import HOST
from tests.support.source_tasks import KeptOffsets, TaskRun, plain
from tests.support.waiting import eventually

from penstock.connect.connectors.postgres.pgoutput import lsn_of
from penstock.connect.connectors.postgres.source import PostgresConnector, PostgresConnectorTask
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.records import SourceRecord


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresProcess]:
    with running_postgres() as process:
        yield process


@pytest.fixture
def config(server: PostgresProcess, request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """Settings for a database of the test's own; its slots go with it."""
    name = f"d{abs(hash(request.node.name)) % 10**9}"
    server.run(f"CREATE DATABASE {name}")
    yield {
        "database.hostname": HOST,
        "database.port": str(server.port),
        "database.user": "postgres",
        "database.password": PASSWORD,
        "database.dbname": name,
        "topic.prefix": "pg",
        "slot.name": name,
        "poll.interval.ms": "50",
        "retriable.restart.connector.wait.ms": "50",
        "slot.retry.delay.ms": "50",
        "errors.max.retries": "-1",
        "slot.max.retries": "1000",
    }
    eventually(lambda: _drop(server, name), what="the end of the slot")


def _drop(server: PostgresProcess, name: str) -> bool:
    slots = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
    if server.run("SELECT 1 FROM pg_replication_slots WHERE active AND database = '" + name + "'"):
        return False
    server.run(f"{slots} WHERE database = '{name}'", f"DROP DATABASE {name} WITH (FORCE)")
    return True


class Database:
    """Statements in the database of a test."""

    def __init__(self, server: PostgresProcess, config: dict[str, str]) -> None:
        self.server = server
        self.name = config["database.dbname"]

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        with self.server.connect(dbname=self.name) as connection:
            for statement in statements:
                cursor = connection.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def confirmed_lsn(self) -> int:
        asked = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = "
        found = self.run(f"{asked}'{self.name}'")
        return lsn_of(found[0][0])


@pytest.fixture
def database(server: PostgresProcess, config: dict[str, str]) -> Database:
    return Database(server, config)


def run_of(config: dict[str, str], kept: KeptOffsets, **more: str) -> TaskRun:
    named = {name.replace("_", "."): text for name, text in more.items()}
    return TaskRun(PostgresConnectorTask(), {**config, **named}, kept)


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
    assert {one.topic for one in records} == {"pg.public.orders"}
    update = plain(records[3].value)
    assert (update["before"], update["after"]) == (None, {"id": 2, "note": "zwei"})
    assert update["source"]["schema"] == "public" and update["source"]["snapshot"] == "false"
    assert [plain(one.value)["source"]["snapshot"] for one in records[:2]] == ["true", "last"]
    assert [plain(one.key) for one in records[:4]] == [{"id": n} for n in (1, 2, 3, 2)]
    assert [one.name for one in records[6].headers] == ["__debezium.oldkey"]


def test_the_server_hears_of_changes_only_when_they_are_committed(
    config: dict[str, str], database: Database
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)")
    with run_of(config, KeptOffsets(), snapshot_mode="never") as run:
        run.poll()
        before = database.confirmed_lsn()
        database.run("INSERT INTO t VALUES (1)")
        records: list[SourceRecord] = []
        eventually(lambda: records.extend(run.poll(commits=False)) or records)
        assert database.confirmed_lsn() == before
        run.commit(records)
        assert records[-1].source_offset is not None
        wanted = records[-1].source_offset["lsn_commit"]
        eventually(lambda: (run.poll(), database.confirmed_lsn() == wanted)[1])


def test_it_goes_on_where_offsets_are_also_inside_of_a_transaction(
    config: dict[str, str], database: Database
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, note text)")
    kept = KeptOffsets()
    with run_of(config, kept, max_batch_size="7") as run:
        run.poll()
        database.run("INSERT INTO t SELECT n, 'x' FROM generate_series(1, 40) n")
        run.until(10)
        lost = run.poll(commits=False)  # Polled, and never in Kafka.
        done = [told(one)[1] for one in run.records[: len(run.records) - len(lost)]]
    database.run("INSERT INTO t VALUES (41, 'y')")
    with run_of(config, kept, max_batch_size="7") as run:
        rest = [told(one)[1] for one in run.until(41 - len(done))]
    assert done + rest == list(range(1, 42))


def test_a_snapshot_that_is_broken_off_tells_no_row_and_no_change_twice(
    config: dict[str, str], database: Database
) -> None:
    database.run(
        "CREATE TABLE a (id text PRIMARY KEY, v int)",
        "CREATE TABLE b (id int, part int, v int, PRIMARY KEY (part, id))",
        "INSERT INTO a SELECT 'k' || n, 0 FROM generate_series(1, 30) n",
        "INSERT INTO b SELECT n, n % 3, 0 FROM generate_series(1, 30) n",
    )
    kept, events = KeptOffsets(), []
    for step in range(9):
        with run_of(config, kept, max_batch_size="8") as run:
            eventually(lambda run=run: run.poll())  # type: ignore[misc]
            events += run.records
        database.run(
            f"INSERT INTO a VALUES ('m{step}', 0), ('a{step}', 0)",
            f"UPDATE a SET v = v + 1 WHERE id IN ('k{step + 1}', 'k{30 - step}')",
            f"UPDATE b SET v = v + 1 WHERE id IN ({step + 1}, {30 - step})",
            f"DELETE FROM a WHERE id = 'k{15 + step}'",
            f"UPDATE b SET id = id + 100 WHERE id = {10 + step}",
        )
    with run_of(config, kept) as run:
        database.run("INSERT INTO b VALUES (999, 0, 0)")
        run.until_true(lambda: bool(run.records) and told(run.records[-1])[1] == 999, "the end")
        events += run.records
    for table in ("a", "b"):
        rows = {tuple(row[:-1]): row[-1] for row in database.run(f"SELECT * FROM {table}")}
        if table == "b":
            rows = {(one, part): v for (one, part), v in rows.items()}
        assert _replayed(events, f"pg.public.{table}") == rows


def _replayed(events: list[SourceRecord], topic: str) -> dict[tuple[Any, ...], int]:
    """The table that the events make; each must fit the row as it then is."""
    rows: dict[tuple[Any, ...], int] = {}
    for record in events:
        if record.topic != topic or record.value is None:
            continue
        event = plain(record.value)
        row = event["after"] or event["before"]
        key = tuple(row[name] for name in ("id", "part") if name in row)
        match event["op"]:
            case "r" | "c":
                assert key not in rows, f"{key} was told twice"
                rows[key] = row["v"]
            case "u":
                assert rows[key] == row["v"] - 1, f"{key} was told twice or not at all"
                rows[key] = row["v"]
            case "d":
                del rows[key]
    return rows


def test_types_travel_as_debezium_has_them(config: dict[str, str], database: Database) -> None:
    database.run(
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        "CREATE DOMAIN cents AS numeric(8, 2)",
        """CREATE TABLE t (id bigserial PRIMARY KEY, b bool, s int2, f4 float4, f8 float8,
        n numeric(10, 3), free numeric, d cents, txt text, vc varchar(9), by bytea, da date,
        ti time, ti3 time(3), ts timestamp, ts3 timestamp(3), tz timestamptz, ttz timetz,
        i interval, u uuid, j jsonb, m mood, arr int[], texts text[], bi bit(1), bits bit(10),
        p point, ip inet, mo money)""",
    )
    values = """true, 7, 1.5, 2.25, 12.345, 1.50, 9.99, 'naïve', 'v', '\\xdeadbeef', '2024-02-29',
        '10:20:30.123456', '10:20:30.123', '2024-02-29 10:20:30.123456', '2024-02-29 10:20:30.123',
        '2024-02-29 10:20:30.5+02', '10:20:30+02', '1 mon 2 days 03:00:00',
        'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{"a": 1}', 'happy', '{1,NULL,3}',
        '{"a,b","c\\"d",NULL,""}', B'1', B'1000000001', '(1.5,2)', '10.0.0.1', '12.50'"""
    database.run(f"INSERT INTO t VALUES (DEFAULT, {values})")
    with run_of(config, KeptOffsets()) as run:
        run.until(1)
        database.run(f"INSERT INTO t VALUES (DEFAULT, {values})")
        first, second = (plain(one.value)["after"] for one in run.until(2))
    assert {**first, "id": 2} == second, "a snapshot reads values as the stream does"
    number = second.pop("free")
    assert (number["scale"], number["value"]) == (2, b"\x00\x96")
    assert str(second.pop("n")) == "12.345" and str(second.pop("d")) == "9.99"
    assert str(second.pop("mo")) == "12.50"
    assert second == {
        "id": 2, "b": True, "s": 7, "f4": 1.5, "f8": 2.25, "txt": "naïve", "vc": "v",
        "by": b"\xde\xad\xbe\xef", "da": 19782, "ti": 37230123456, "ti3": 37230123,
        "ts": 1709202030123456, "ts3": 1709202030123, "tz": "2024-02-29T08:20:30.5Z",
        "ttz": "08:20:30Z", "i": 2629800000000 + 2 * 86400000000 + 3 * 3600000000,
        "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "j": '{"a": 1}', "m": "happy",
        "arr": [1, None, 3], "texts": ["a,b", 'c"d', None, ""], "bi": True, "bits": b"\x01\x02",
        "p": {"x": 1.5, "y": 2.0}, "ip": "10.0.0.1",
    }  # fmt: skip


def test_a_table_that_is_altered_under_the_stream_gets_a_new_schema(
    config: dict[str, str], database: Database
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, a text)", "INSERT INTO t VALUES (1, 'x')")
    with run_of(config, KeptOffsets()) as run:
        run.until(1)
        database.run(
            "INSERT INTO t VALUES (2, 'y')",
            "ALTER TABLE t ADD COLUMN b int DEFAULT 5",
            "INSERT INTO t VALUES (3, 'z', 7)",
            "ALTER TABLE t DROP COLUMN a",
            "ALTER TABLE t ALTER COLUMN b TYPE text",
            "INSERT INTO t VALUES (4, 'w')",
        )
        rows = [plain(one.value)["after"] for one in run.until(4)]
    assert rows[1:] == [{"id": 2, "a": "y"}, {"id": 3, "a": "z", "b": 7}, {"id": 4, "b": "w"}]


def test_truncation_is_told_if_it_is_wished_for(config: dict[str, str], database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with run_of(config, KeptOffsets(), skipped_operations="none") as run:
        run.until(1)
        database.run("TRUNCATE t", "INSERT INTO t VALUES (2)")
        records = run.until(3)
    assert [told(one) for one in records] == [("r", 1), ("t", None), ("c", 2)]
    assert records[1].key is None


def test_whole_old_rows_and_large_values_that_were_not_sent(
    config: dict[str, str], database: Database
) -> None:
    large = "SELECT string_agg(md5(n::text), '') FROM generate_series(1, 400) n"
    database.run(
        "CREATE TABLE whole (id int PRIMARY KEY, v int, big text)",
        "ALTER TABLE whole REPLICA IDENTITY FULL",
        "CREATE TABLE keyed (id int PRIMARY KEY, v int, big text)",
        "CREATE TABLE bare (v int)",
        "ALTER TABLE bare REPLICA IDENTITY FULL",
    )
    with run_of(config, KeptOffsets(), snapshot_mode="never") as run:
        run.poll()
        for table in ("whole", "keyed"):
            database.run(
                f"INSERT INTO {table} VALUES (1, 1, ({large}))", f"UPDATE {table} SET v = 2"
            )
        database.run("INSERT INTO bare VALUES (5)", "DELETE FROM bare")
        records = run.until(6)
    whole, keyed = plain(records[1].value), plain(records[3].value)
    assert whole["before"]["v"] == 1 and len(whole["after"]["big"]) == 400 * 32
    assert (keyed["before"], keyed["after"]["big"]) == (None, "__debezium_unavailable_value")
    assert [one.key for one in records[4:]] == [None, None]
    assert plain(records[5].value)["before"] == {"v": 5}


def test_a_row_that_cannot_be_read_is_named_and_the_rows_before_it_arrive(
    config: dict[str, str], database: Database
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, n numeric(5,2))")
    kept = KeptOffsets()
    with run_of(config, kept, snapshot_mode="never") as run:
        run.poll()
        database.run("INSERT INTO t VALUES (1, 1.5), (2, 'NaN'), (3, 2.5)")
        with pytest.raises(ConnectError, match=r"table public\.t, column n: 'NaN' cannot be"):
            run.until(3)
        assert [told(one)[1] for one in run.records] == [1]
    more = {"event_processing_failure_handling_mode": "skip"}
    with run_of(config, kept, snapshot_mode="never", **more) as run:
        assert [told(one)[1] for one in run.until(1)] == [3]


def test_a_row_of_the_snapshot_that_cannot_be_read_is_left_out_where_the_settings_say_so(
    config: dict[str, str], database: Database
) -> None:
    database.run(
        "CREATE TABLE t (id int PRIMARY KEY, n numeric(5,2))",
        "INSERT INTO t VALUES (1, 1.5), (2, 'NaN'), (3, 2.5), (4, 'NaN')",
    )
    with pytest.raises(ConnectError, match=r"column n: 'NaN'"), run_of(
        config, KeptOffsets()
    ) as run:  # fmt: skip
        run.until(2)
    more = {"event_processing_failure_handling_mode": "warn"}
    with run_of(config, KeptOffsets(), **more) as run:
        assert [told(one) for one in run.until(2)] == [("r", 1), ("r", 3)]
        database.run("INSERT INTO t VALUES (5, 5)")
        assert told(run.until(3)[-1]) == ("c", 5)


def test_a_server_that_goes_away_is_waited_for(config: dict[str, str], database: Database) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with run_of(config, KeptOffsets()) as run:
        run.until(1)
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


def test_a_slot_that_is_gone_or_was_moved_is_told(
    config: dict[str, str], database: Database
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    kept, name = KeptOffsets(), config["slot.name"]
    with run_of(config, kept) as run:
        run.until(1)
        run.poll()
    drop = f"SELECT pg_drop_replication_slot('{name}') FROM pg_replication_slots WHERE NOT active"
    eventually(lambda: database.run(f"{drop} AND slot_name = '{name}'"))
    with pytest.raises(ConnectError, match=f"slot {name} is gone"), run_of(config, kept) as run:
        run.poll()
    database.run(
        "INSERT INTO t VALUES (2)",
        f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')",
    )
    with pytest.raises(ConnectError, match="changes between are lost"), run_of(
        config, kept
    ) as run:  # fmt: skip
        run.poll()
    with run_of(config, kept, snapshot_mode="when_needed") as run:
        assert [told(one) for one in run.until(2)] == [("r", 1), ("r", 2)]


def test_heartbeats_move_the_slot_on_where_captured_tables_rest(
    config: dict[str, str], database: Database
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE busy (id int PRIMARY KEY)")
    more = {"table_include_list": "public.t", "heartbeat_interval_ms": "1"}
    with run_of(config, KeptOffsets(), publication_autocreate_mode="filtered", **more) as run:
        run.until(1)
        database.run("INSERT INTO busy SELECT * FROM generate_series(1, 1000)")
        end = lsn_of(database.run("SELECT pg_current_wal_insert_lsn()::text")[0][0])
        run.until_true(lambda: database.confirmed_lsn() >= end, "the slot to be moved on")
        assert {one.topic for one in run.records} == {"__debezium-heartbeat.pg"}


def test_validation_asks_the_server_and_tells_all_at_once(
    config: dict[str, str], database: Database
) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY)", "CREATE ROLE weak LOGIN PASSWORD 'w'")
    try:
        assert PostgresConnector.validate(config).errors() == {}
        weak = {"database.user": "weak", "database.password": "w", "table.include.list": "no.such"}
        errors = PostgresConnector.validate({**config, **weak}).errors()
        assert errors.keys() == {"database.user", "table.include.list"}
        errors = PostgresConnector.validate({**config, "database.password": "wrong"}).errors()
        assert "password authentication failed" in errors["database.hostname"][0]
    finally:
        database.run("DROP ROLE weak")
