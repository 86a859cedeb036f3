"""A supervisor as a process: two pipelines, a poisoned record, and commands from another terminal.

One Spark serves the whole story, so it is one test in steps.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from deltalake import DeltaTable
from tests.support.broker import BrokerProcess
from tests.support.pipelines import PipelineProcess, records_of, run_command, send, values_of
from tests.support.processes import assert_group_is_gone
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(900)

PIPELINES = """
from pyspark.sql import functions as F
from pyspark.sql.types import StringType
from penstock.pipelines import Table, Topic, pipeline

SCHEMA = "id LONG, cents LONG"
OFTEN = "200 milliseconds"

def in_dollars(cents):
    return f"{cents / 100:.2f}"

@pipeline(inputs=Topic("orders", value=SCHEMA, partitions=1), trigger=OFTEN,
          output=Topic("strict", key="id", partitions=1))
def strict(orders):
    return orders.select("id", F.udf(in_dollars, StringType())("cents").alias("dollars"))

@pipeline(inputs=Topic("orders", value=SCHEMA, dead_letter="orders.dead"), trigger=OFTEN,
          output=Topic("tolerant", key="id", partitions=1))
def tolerant(orders):
    return orders.select("id", "cents")

@pipeline(inputs=Topic("orders", value=SCHEMA, on_error="null"), trigger=OFTEN, mode="update",
          output=Topic("totals", key="all", partitions=1, configs={"cleanup.policy": "compact"}))
def totals(orders):
    whole = orders.where("id IS NOT NULL").groupBy(F.lit("orders").alias("all"))
    return whole.agg(F.sum("cents").alias("cents"))

@pipeline(inputs=Topic("orders", value=SCHEMA, on_error="null"), trigger=OFTEN,
          output=Table("TABLE"))
def landed(orders):
    return orders.where("id IS NOT NULL").select("id", "cents")
"""
WAIT_S = 240


def order(number: int) -> tuple[str, str]:
    return str(number), f'{{"id": {number}, "cents": {number * 100}}}'


@pytest.fixture
def supervisor(broker: BrokerProcess, tmp_path: Path) -> Iterator[PipelineProcess]:
    """Running, with one good order in the topic; killed with all its own at the end."""
    file = tmp_path / "orders.py"
    file.write_text(PIPELINES.replace("TABLE", str(tmp_path / "table")))
    send(broker.address, "orders", [order(1)])
    running = PipelineProcess([file], broker.address, tmp_path)
    yield running
    if running.process.poll() is None:
        os.killpg(running.process.pid, signal.SIGKILL)
        running.process.wait()


def test_a_supervisor_runs_tells_stops_and_resets(
    broker: BrokerProcess, supervisor: PipelineProcess, tmp_path: Path
) -> None:
    address, state = broker.address, supervisor.state

    def ids(topic: str) -> list[int]:
        assert supervisor.process.poll() is None, supervisor.log
        return sorted(one["id"] for one in values_of(address, topic))

    # Both work; what the file defines has reached the workers.
    eventually(lambda: ids("strict") == [1] == ids("tolerant"), timeout_s=WAIT_S, what="order 1")
    assert values_of(address, "strict") == [{"id": 1, "dollars": "1.00"}]

    # An aggregate in update mode is written anew when it changes.
    eventually(lambda: last_total(address) == 100, timeout_s=WAIT_S, what="the total of order 1")

    # A record that is no JSON stops the strict one, which names it; the other keeps it apart.
    send(address, "orders", [("2", "{broken"), order(3)])
    eventually(lambda: ids("tolerant") == [1, 3], timeout_s=WAIT_S, what="order 3 after a bad one")
    assert ids("strict") == [1]
    told = eventually(
        lambda: failure_in(run_command(["status", "strict"], state)), timeout_s=WAIT_S
    )
    assert "orders" in told and "JSON" in told and "java" not in told.lower()
    assert "1" in told.split("orders", 1)[1][:40], told  # The offset of the bad record.
    dead = eventually(lambda: records_of(address, "orders.dead"), timeout_s=WAIT_S)
    assert dead == [(b"2", b"{broken")]
    assert "strict failed: " in supervisor.log and "It starts again in" in supervisor.log

    # From another terminal: all are listed, one is stopped, the other goes on.
    listed = run_command(["list"], state)
    assert "strict" in listed and "tolerant" in listed
    assert "strict has stopped." in run_command(["stop", "strict"], state)
    send(address, "orders", [order(4)])
    eventually(lambda: ids("tolerant") == [1, 3, 4], timeout_s=WAIT_S, what="order 4")
    eventually(lambda: last_total(address) == 800, timeout_s=WAIT_S, what="the total of 1, 3 and 4")
    assert f"runs in process {supervisor.process.pid}" in run_command(["status", "tolerant"], state)

    # Spark's own process is killed: that is told, and all goes on in another one.
    killed = java_of(supervisor)
    killed.kill()
    send(address, "orders", [order(5)])
    eventually(lambda: ids("tolerant") == [1, 3, 4, 5], timeout_s=WAIT_S, what="order 5")
    eventually(lambda: last_total(address) == 1300, timeout_s=WAIT_S, what="the total with 5")
    eventually(lambda: ids_in(tmp_path / "table") == [1, 3, 4, 5], timeout_s=WAIT_S, what="a table")
    assert "tolerant failed: Spark's process ended unexpectedly" in supervisor.log
    assert supervisor.log.count("Spark is ready") == 2, supervisor.log
    assert java_of(supervisor).pid != killed.pid

    # SIGTERM ends everything it has started.
    children = supervisor.children()
    assert children
    supervisor.process.send_signal(signal.SIGTERM)
    assert supervisor.process.wait(120) == 0, supervisor.log
    assert_group_is_gone(supervisor.process.pid)
    eventually(lambda: not any(alive(child) for child in children), what="the end of its children")
    assert "Traceback" not in supervisor.log, supervisor.log
    assert "does not run" in run_command(["status", "tolerant"], state)

    # A reset shows what it would remove, and removes it only when told to.
    words = ["reset", "strict"]
    asked = run_command(words, state)
    assert "the consumer group strict with its offsets" in asked and "Nothing was removed" in asked
    checkpoint = state / "pipelines" / "strict" / "checkpoints" / "strict"
    assert checkpoint.is_dir()
    assert "begins anew" in run_command([*words, "--execute"], state)
    assert not checkpoint.exists()
    assert "it has neither a checkpoint nor a group" in run_command(words, state)


def java_of(supervisor: PipelineProcess) -> psutil.Process:
    """The one JVM of a supervisor; Python's processes beside it come and go."""
    found = []
    for one in psutil.Process(supervisor.process.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found += [one] if one.name() == "java" else []
    (java,) = found
    return java


def ids_in(table: Path) -> list[int]:
    """Of the orders in a Delta table."""
    return sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist())


def last_total(address: str) -> int | None:
    """The newest value of the compacted topic's only key."""
    found = values_of(address, "totals")
    return found[-1]["cents"] if found else None


def failure_in(text: str) -> str | None:
    """The sentence after the words `last failure`, if they are there."""
    _, found, rest = text.partition("last failure")
    return rest.strip() if found else None


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
