"""kill -9 of the driver at every step between a task's first row and the end of a batch.

The driver is the real command in a process of its own; whoever goes on after it is this process, as
another driver on the same machine would. In the end each record is in the table once.
"""

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.integration.lake.topics import create, send, sync_command
from tests.support.broker import BrokerProcess
from tests.unit.lake.reading import rows_of

from penstock import lake
from penstock.lake.spec import TableSpec

STEPS = ("task-writing", "task-written", "before-commit", "after-commit", "table-created")
RECORDS = 900
HERE = Path(__file__).parent

pytestmark = pytest.mark.timeout(600)


def environment(tmp_path: Path, step: str) -> dict[str, str]:
    paths = [str(HERE / "kill"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "LAKE_KILL_AT": step,
        "LAKE_KILL_MARKER": str(tmp_path / "killed"),
        "LAKE_KILL_DRIVER": str(tmp_path / "driver.pid"),
    }


def land(broker: BrokerProcess, topic: str, table: Path, kind: str, spark: SparkSession) -> None:
    query = lake.sync(
        topic,
        to=table,
        bootstrap=broker.address,
        format=kind,
        value_format="json",
        max_records_per_batch=RECORDS // 3,
        once=True,
        spark=spark,
    )
    query.awaitTermination()


def numbers(table: Path, kind: str, topic: str) -> list[int]:
    spec = TableSpec(directory=str(table), format=kind, table_name=f"lake.{topic}")
    return sorted(row["n"] for row in rows_of(spec))


def killed_at(
    broker: BrokerProcess, topic: str, tmp_path: Path, table: Path, kind: str, step: str
) -> None:
    options = ["--format", kind, "--value-format", "json", "--once"]
    options += ["--max-records-per-batch", str(RECORDS // 3), "--master", "local[2]"]
    process = sync_command(broker, topic, table, *options, env=environment(tmp_path, step))
    (tmp_path / "driver.pid").write_text(str(process.pid))
    said, _ = process.communicate(timeout=200)
    assert process.returncode == -signal.SIGKILL, said
    assert (tmp_path / "killed").exists()


def one_round(
    broker: BrokerProcess, spark: SparkSession, tmp_path: Path, kind: str, step: str, name: str
) -> None:
    tmp_path.mkdir(exist_ok=True)
    topic, table = f"killed-{name}", tmp_path / "table"
    create(broker, topic)
    send(broker, topic, ({"n": n} for n in range(RECORDS)))
    killed_at(broker, topic, tmp_path, table, kind, step)
    send(broker, topic, ({"n": n} for n in range(RECORDS, RECORDS + 10)))
    land(broker, topic, table, kind, spark)
    assert numbers(table, kind, topic) == list(range(RECORDS + 10))


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        ("delta", "after-commit"),
        ("iceberg", "after-commit"),
        ("parquet", "log-entry-written"),
    ],
)
def test_a_driver_killed_between_the_tables_commit_and_sparks_doubles_no_row(
    shared_broker: BrokerProcess, spark: SparkSession, tmp_path: Path, kind: str, step: str
) -> None:
    one_round(shared_broker, spark, tmp_path, kind, step, f"{kind}-{step}")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(int(os.environ.get("PENSTOCK_LAKE_ROUNDS", "100"))))
def test_a_driver_killed_anywhere_loses_and_doubles_no_row(
    shared_broker: BrokerProcess, spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    kind = ("delta", "iceberg", "parquet")[seed % 3]
    if seed % 2:
        step = chance.choice([*STEPS, *(["log-entry-written"] if kind == "parquet" else [])])
        one_round(shared_broker, spark, tmp_path, kind, step, f"step-{seed}")
    else:
        killed_at_random(shared_broker, spark, tmp_path, kind, chance, f"time-{seed}")


def killed_at_random(
    broker: BrokerProcess,
    spark: SparkSession,
    tmp_path: Path,
    kind: str,
    chance: random.Random,
    name: str,
) -> None:
    topic, table = f"killed-{name}", tmp_path / "table"
    create(broker, topic)
    send(broker, topic, ({"n": n} for n in range(RECORDS)))
    options = ["--format", kind, "--value-format", "json", "--every", "200 milliseconds"]
    options += ["--max-records-per-batch", "100", "--master", "local[2]"]
    process = sync_command(broker, topic, table, *options, env=os.environ)
    assert process.stdout is not None
    # From the start of Spark to well after the last batch, most often in between.
    process.stdout.readline()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(chance.uniform(4, 14))
    process.kill()
    process.communicate()
    land(broker, topic, table, kind, spark)
    assert numbers(table, kind, topic) == list(range(RECORDS))
