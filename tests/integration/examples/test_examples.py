"""Every example, run by its command on its sample: all in one supervisor and one Spark session."""

import os
import re
import subprocess
from pathlib import Path

import duckdb
import pytest
from tests.support.broker import BrokerProcess
from tests.support.pipelines import command, run_arguments, send_sample, values_of
from tests.support.processes import ROOT

pytestmark = pytest.mark.timeout(900)

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SAMPLES = {
    "clicks": "clicks.txt",
    "logs": "logs.txt",
    "customers.changes": "customer_changes.txt",
    "customers": "customers.txt",
    "orders": "orders.txt",
}


@pytest.fixture(scope="module")
def ran(shared_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the lake after all examples have worked off their samples."""
    folder = tmp_path_factory.mktemp("examples")
    for topic, name in SAMPLES.items():
        send_sample(shared_broker.address, topic, name)
    words = [*run_arguments(EXAMPLES, shared_broker.address), "--once"]
    done = subprocess.run(
        command("pipeline", *words, "--state", str(folder / "state")),
        cwd=ROOT,
        env={**os.environ, "LAKE": str(folder / "lake")},
        capture_output=True,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_clicks_become_visits(ran: Path, shared_broker: BrokerProcess) -> None:
    visits = values_of(shared_broker.address, "visits")
    found = {(v["person"], v["began"][11:16]): v for v in visits}
    assert set(found) == {("ada", "09:00"), ("ben", "09:01"), ("ben", "10:15"), ("cleo", "09:20")}
    ada = found[("ada", "09:00")]
    assert ada["pages"] == ["/", "/lamps", "/cart", "/thanks"]
    assert (ada["seconds"], ada["bought"]) == (360, True)
    assert not found[("ben", "10:15")]["bought"]


def test_a_service_in_trouble_gives_one_alert(ran: Path, shared_broker: BrokerProcess) -> None:
    (alert,) = values_of(shared_broker.address, "alerts")
    assert (alert["service"], alert["errors"]) == ("shop", 4)
    assert alert["minute"].startswith("2026-03-02T09:00:00")
    assert alert["last_text"] == "giving up"


def test_every_line_of_the_logs_is_in_the_table_of_its_day(ran: Path) -> None:
    rows = duckdb_rows(ran / "lake" / "logs", "service, level, text")
    assert len(rows) == 12 and ("mail", "INFO", "sent") in rows
    assert (ran / "lake" / "logs" / "day=2026-03-02").is_dir()


def test_the_table_is_as_the_database_is_after_all_changes(ran: Path) -> None:
    rows = duckdb_rows(ran / "lake" / "customers", "id, name, city")
    assert sorted(rows) == [(1, "Ada", "London"), (2, "Benjamin", "Bergen")]


def test_orders_have_the_newest_data_of_their_customers(
    ran: Path, shared_broker: BrokerProcess
) -> None:
    orders = {one["id"]: one for one in values_of(shared_broker.address, "orders.enriched")}
    assert (orders[1]["name"], orders[1]["dollars"]) == ("Ada Lovelace", 42.0)
    assert orders[2]["city"] == "Minna"
    assert "name" not in orders[3] and orders[3]["customer"] == "zoe"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_page_and_says_how_to_run_it(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= 60
    assert f"penstock pipeline run examples/{path.name}" in text
    for name in re.findall(r"examples/samples/\S+", text):
        assert (ROOT / name).is_file()


def duckdb_rows(table: Path, columns: str) -> list[tuple[object, ...]]:
    """Rows of a Delta table by an engine that is not ours."""
    from deltalake import DeltaTable

    database = duckdb.connect()
    database.register("rows", DeltaTable(table).to_pyarrow_table())
    return database.sql(f"SELECT {columns} FROM rows").fetchall()
