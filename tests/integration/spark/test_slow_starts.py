"""Commands while Spark starts: a Python process that comes too late, and a signal to end.

Each needs a Spark of its own, since it is the start that is looked at.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tests.integration.lake.topics import create, send, sync_command
from tests.support.broker import BrokerProcess
from tests.support.pipelines import PipelineProcess, run_command
from tests.support.processes import assert_group_is_gone
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(900)

WAIT_S = 240
# The first process that plans the stream sleeps for longer than Spark waits for it.
LATE = """
import sys, time
from pathlib import Path
if "penstock.spark.start.early_connection" in sys.orig_argv:
    try:
        Path(__file__).with_name("late").touch(exist_ok=False)
    except FileExistsError:
        pass
    else:
        time.sleep(15)
"""


def test_lake_sync_once_lands_all_though_a_python_process_came_too_late(
    shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    create(shared_broker, "late")
    send(shared_broker, "late", [b"a", b"b"])
    (tmp_path / "sitecustomize.py").write_text(LATE)
    process = sync_command(
        shared_broker,
        "late",
        tmp_path / "table",
        "--once",
        "--master",
        "local[2]",
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert (tmp_path / "late").exists()
    assert "the machine was too busy to start it within 10 s. Trying again in 1 s." in said
    assert "stopped after 2 rows" in said
    first, *_ = said.splitlines()
    assert first.startswith("Starting Spark to land late")
    assert "WARNING" not in said and "log4j" not in said and "log level" not in said


def java_of(pid: int) -> list[psutil.Process]:
    """Spark's process; the scripts that start it come and go meanwhile."""
    found = []
    for each in psutil.Process(pid).children():
        with suppress(psutil.NoSuchProcess):
            found += [each] if "java" in " ".join(each.cmdline()) else []
    return found


def test_lake_sync_that_is_told_to_stop_while_spark_starts_ends_in_good_order(
    shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    create(shared_broker, "early-end")
    options = ("--master", "local[2]")
    with sync_command(
        shared_broker, "early-end", tmp_path / "table", *options, env=os.environ
    ) as process:
        eventually(lambda: java_of(process.pid), timeout_s=WAIT_S, what="Spark's process")
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, said
    assert said.startswith("Starting Spark") and len(said.splitlines()) == 1, said
    assert_group_is_gone(process.pid)


PIPELINE = """
from penstock.pipelines import Topic, pipeline

@pipeline(inputs=Topic("in", partitions=1), output=Topic("out", partitions=1))
def copied(rows):
    return rows.select("key", "value")
"""


@pytest.fixture
def supervisor(broker: BrokerProcess, tmp_path: Path) -> Iterator[PipelineProcess]:
    (tmp_path / "copied.py").write_text(PIPELINE)
    running = PipelineProcess([tmp_path / "copied.py"], broker.address, tmp_path)
    yield running
    if running.process.poll() is None:
        os.killpg(running.process.pid, signal.SIGKILL)
        running.process.wait()


def test_a_pipeline_that_is_told_to_stop_while_spark_starts_ends_in_good_order(
    supervisor: PipelineProcess,
) -> None:
    process = supervisor.process
    eventually(lambda: java_of(process.pid), timeout_s=WAIT_S, what="Spark's process")
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_S) == 0, supervisor.log
    assert "Spark is ready" not in supervisor.log and "Traceback" not in supervisor.log
    assert_group_is_gone(process.pid)
    assert "copied does not run" in run_command(["status"], supervisor.state)
