"""Java source connectors in a JVM beside the task: Apache's for files, and Debezium's."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.outside import needs
from tests.support.postgres import DATABASE, PASSWORD, PostgresProcess, running_postgres
from tests.support.processes import HOST
from tests.support.waiting import eventually

from penstock.connect.errors.kinds import ConnectError
from penstock.connect.java.connector import JavaSourceConnector, close_hosts
from penstock.connect.java.plugins import offer_java
from penstock.connect.plugins import lookup
from penstock.connect.plugins.contract import ExactlyOnceSupport
from penstock.connect.plugins.lookup import PluginKind, load_plugin
from penstock.connect.testing import SourceRun, refused_settings
from penstock.connect.testing.checks import JSON

_FILES = "java:org.apache.kafka.connect.file.FileStreamSourceConnector"
_DEBEZIUM = "java:io.debezium.connector.postgresql.PostgresConnector"
_WAIT_S = 300.0


def offered(jars: Path, name: str) -> Iterator[type[JavaSourceConnector]]:
    offer_java({"plugin.path": str(jars)})
    yield load_plugin(PluginKind.CONNECTOR, name)
    close_hosts()
    lookup._OFFERED.clear()
    lookup.plugins.cache_clear()


@pytest.fixture(scope="module")
def files() -> Iterator[type[JavaSourceConnector]]:
    yield from offered(needs("connect-file-4.3.1"), _FILES)


def java_children() -> list[psutil.Process]:
    """Those that run; of what other tests left, some may have ended and wait to be looked at."""
    return [one for one in psutil.Process().children(recursive=True) if _is_bridge(one)]


def _is_bridge(process: psutil.Process) -> bool:
    try:
        return "py4j.GatewayServer" in process.cmdline()
    except psutil.Error:
        return False


def test_a_java_task_goes_on_where_the_last_commit_was(
    files: type[JavaSourceConnector], tmp_path: Path
) -> None:
    file = tmp_path / "in.txt"
    lines = [f"line {n}" for n in range(5000)]
    file.write_text("".join(f"{line}\n" for line in lines[:3000]))
    config = {"topic": "t", "file": str(file), "batch.size": "700"}
    with SourceRun(files, config) as run:
        for _ in range(3):
            run.poll()
        run.crash()
        run.run_until(lambda: len(run.values("t")) >= 1000, timeout_s=_WAIT_S)
        run.poll()
        run.crash()
        with file.open("a") as more:
            more.write("".join(f"{line}\n" for line in lines[3000:]))
        run.run_until(lambda: len(run.values("t")) >= len(lines), timeout_s=_WAIT_S)
        assert run.values("t") == lines
        assert run.offsets == [({"filename": str(file)}, {"position": file.stat().st_size})]
        kept = len(java_children())
    assert len(java_children()) == kept - 1  # The task's ended with it; the worker's is kept.


def test_java_says_what_is_wrong_and_what_it_can(
    files: type[JavaSourceConnector], tmp_path: Path
) -> None:
    assert set(refused_settings(files, {"batch.size": "x"})) == {"topic", "batch.size"}
    config = {"topic": "t", "file": str(tmp_path / "in.txt")}
    checked = files.validate(config)
    assert {one.entry.name: one.value for one in checked.values}["batch.size"] == 2000
    assert files.config_def().entry("topic").required  # type: ignore[union-attr]
    assert files().exactly_once_support(config) is ExactlyOnceSupport.SUPPORTED
    where = frozenset({("filename", config["file"])})
    assert files().alter_offsets(config, {where: {"position": 3}})
    with pytest.raises(ConnectError, match=r"altering offsets.*\n\s+at org\.apache\.kafka"):
        files().alter_offsets(config, {where: {"position": "three"}})


def test_what_java_throws_fails_the_task_with_its_trace(
    files: type[JavaSourceConnector], tmp_path: Path
) -> None:
    file = tmp_path / "in.txt"
    file.write_text("a\n")
    with SourceRun(files, {"topic": "t", "file": str(file)}) as run:
        run.run_until(lambda: run.values("t") == ["a"], timeout_s=_WAIT_S)
        (key,) = run._kept
        run._kept[key] = b'{"position":"one"}'
        run.crash()
        with pytest.raises(ConnectError, match=r"(?s)incorrect type.*at org\.apache\.kafka"):
            eventually(lambda: run.task.poll() and False, timeout_s=_WAIT_S)


def test_a_jvm_that_dies_fails_the_task(files: type[JavaSourceConnector], tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("a\n")
    before = {one.pid for one in java_children()}
    with SourceRun(files, {"topic": "t", "file": str(file)}) as run:
        run.run_until(lambda: run.values("t") == ["a"], timeout_s=_WAIT_S)
        for one in java_children():
            if one.pid not in before:
                one.kill()
        with pytest.raises(ConnectError, match=r"polling .*FileStreamSourceConnector failed"):
            run.task.poll()
        file.write_text("a\nb\n")
        run.crash()
        run.run_until(lambda: run.values("t") == ["a", "b"], timeout_s=_WAIT_S)


@pytest.fixture(scope="module")
def debezium() -> Iterator[type[JavaSourceConnector]]:
    yield from offered(needs("debezium-postgres-3.2.0"), _DEBEZIUM)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresProcess]:
    with running_postgres() as process:
        yield process


def changes(run: SourceRun) -> list[tuple[str, Any]]:
    """Operation and row of each record."""
    found = [json.loads(one) for one in run.values("pg.public.orders") if one]
    return [(one["op"], one["after"] or one["before"]) for one in found]


def test_debezium_reads_a_snapshot_and_then_changes_each_once_over_a_restart(
    debezium: type[JavaSourceConnector], server: PostgresProcess
) -> None:
    server.run(
        "CREATE TABLE orders (id int PRIMARY KEY, price numeric(10,2), day date, note text)",
        "INSERT INTO orders SELECT n, n / 4.0, '2024-02-29', 'grün' FROM generate_series(1, 500) n",
    )
    config = {
        "database.hostname": HOST,
        "database.port": str(server.port),
        "database.user": "postgres",
        "database.password": PASSWORD,
        "database.dbname": DATABASE,
        "topic.prefix": "pg",
        "plugin.name": "pgoutput",
        "slot.name": "java",
        "table.include.list": "public.orders",
        "poll.interval.ms": "50",
    }
    wrong = refused_settings(debezium, {**config, "slot.name": "No Slot", "snapshot.mode": "x"})
    assert set(wrong) == {"slot.name", "snapshot.mode"}
    numbers = {**JSON, "value.converter.decimal.format": "NUMERIC"}
    with SourceRun(debezium, config | numbers, converters=numbers) as run:
        run.run_until(lambda: len(changes(run)) >= 500, timeout_s=_WAIT_S)
        assert sorted(row["id"] for op, row in changes(run) if op == "r") == list(range(1, 501))
        first = changes(run)[0][1]
        assert first == {"id": 1, "price": 0.25, "day": 19782, "note": "grün"}
        server.run("INSERT INTO orders VALUES (1000, 1, NULL, NULL)")
        run.run_until(lambda: len(changes(run)) >= 501, timeout_s=_WAIT_S)
        run.restart()
        server.run(
            "UPDATE orders SET note = 'x' WHERE id = 1000", "DELETE FROM orders WHERE id = 1"
        )
        run.run_until(lambda: len(run.values("pg.public.orders")) >= 504, timeout_s=_WAIT_S)
        assert [op for op, _ in changes(run)[500:]] == ["c", "u", "d"]
        assert run.topics["pg.public.orders"][-1].value is None
        ((where, offset),) = run.offsets
        assert where == {"server": "pg"} and offset is not None and offset["lsn"] > 0
