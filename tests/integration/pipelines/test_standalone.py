"""A real master and a real worker, and an example on them, unchanged."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.broker import BrokerProcess
from tests.support.pipelines import command, run_arguments, run_command, send_sample, values_of
from tests.support.processes import ROOT, assert_group_is_gone, free_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(900)


class SparkProcess:
    """`penstock spark ...` with its output in a file."""

    def __init__(self, words: list[str], log: Path) -> None:
        self.log_path = log
        with log.open("wb") as target:
            self.process = subprocess.Popen(
                command("spark", *words),
                stdin=subprocess.DEVNULL,
                stdout=target,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_for(self, words: str) -> None:
        def said() -> bool:
            text = self.log_path.read_text()
            assert self.process.poll() is None, text
            return words in text

        eventually(said, timeout_s=120, every_s=0.1, what=words)

    def stop(self) -> None:
        """SIGTERM ends it and what it started."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(120)
            assert_group_is_gone(self.process.pid)
        except BaseException:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise


@pytest.fixture
def master_url(tmp_path: Path) -> Iterator[str]:
    """A master with one worker of two cores."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        words = ["master", "--port", str(port), "--webui-port", "0"]
        master = SparkProcess(words, tmp_path / "master.log")
        stack.callback(master.stop)
        master.wait_for("I have been elected leader")
        words = ["worker", url, "--cores", "2", "--memory", "1g"]
        worker = SparkProcess([*words, "--work-dir", str(tmp_path / "work")], tmp_path / "w.log")
        stack.callback(worker.stop)
        worker.wait_for("Successfully registered with master")
        yield url


def test_an_example_runs_on_a_standalone_cluster(
    broker: BrokerProcess, master_url: str, tmp_path: Path
) -> None:
    send_sample(broker.address, "customers", "customers.txt")
    send_sample(broker.address, "orders", "orders.txt")
    file = ROOT / "examples" / "enrich_orders.py"
    words = run_arguments([file], broker.address, master=master_url)
    memory = ["--conf", "spark.executor.memory=512m"]
    said = run_command([*words, *memory, "--once"], tmp_path / "state", timeout_s=300)
    assert "enrich-orders has finished: 3 records read." in said
    orders = {one["id"]: one for one in values_of(broker.address, "orders.enriched")}
    assert {key: one.get("city") for key, one in orders.items()} == {
        1: "London",
        2: "Minna",
        3: None,
    }
    assert list((tmp_path / "work").glob("app-*/0/stderr"))  # It was the worker that ran it.
