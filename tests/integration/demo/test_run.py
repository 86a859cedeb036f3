"""`make run` as its user has it: prices, windows, a table, a clean end, and a second run."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.support.pipelines import values_of
from tests.support.processes import ROOT, assert_group_is_gone, free_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(900)

WAIT_S = 240


class Demo:
    """scripts/run.py on a port and a folder of the test's."""

    def __init__(self, folder: Path, port: int, *, run: int) -> None:
        self.address = f"127.0.0.1:{port}"
        self.services = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        self.output = folder / f"output-{run}"
        environment = {
            **os.environ,
            "PENSTOCK_DATA": str(folder / "data"),
            "PENSTOCK_ADDRESS": self.address,
            "PENSTOCK_REGISTRY": self.services[0],
            "PENSTOCK_REST": self.services[1],
            "PENSTOCK_PRICES_PER_S": "100",
            "SPARK_MASTER": "local[2]",
        }
        with self.output.open("wb") as target:
            self.process = subprocess.Popen(
                [sys.executable, "scripts/run.py"],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=target,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        return self.output.read_text()

    def windows(self) -> list[dict[str, object]]:
        """What the pipeline has written to its topic."""
        assert self.process.poll() is None, self.said
        return values_of(self.address, "stock-averages")

    def end(self, number: int) -> None:
        """A signal ends everything, in good order."""
        import psutil

        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(number)
        assert self.process.wait(120) == 0, self.said
        assert_group_is_gone(self.process.pid)
        eventually(lambda: not any(one.is_running() for one in children), what="no process left")
        assert "Traceback" not in self.said, self.said

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def test_the_demo_shows_windows_ends_cleanly_and_goes_on(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    port = free_port()
    table = tmp_path / "data" / "demo" / "table"
    first = Demo(tmp_path, port, run=1)
    try:
        eventually(lambda: "prices sent" in first.said, timeout_s=120, what="the first prices")
        eventually(lambda: first.windows(), timeout_s=WAIT_S, every_s=0.5, what="a window")
        eventually(lambda: is_table(table), timeout_s=WAIT_S, every_s=0.5, what="the table")
        assert ask(f"http://{first.services[0]}/subjects") == []
        assert "stock-prices" in ask(f"http://{first.services[1]}/topics")
        first.end(signal.SIGINT)
    finally:
        first.kill()
    second = Demo(tmp_path, port, run=2)
    try:
        # What the first run wrote while it ended is there before the second has a pipeline.
        words = "go on from the last run"
        eventually(lambda: words in second.said, timeout_s=WAIT_S, what="running pipelines")
        before = second.windows()
        more = eventually(
            lambda: len(second.windows()) > len(before) and second.windows(),
            timeout_s=WAIT_S,
            every_s=0.5,
            what="windows of the second run",
        )
        second.end(signal.SIGTERM)
    finally:
        second.kill()
    keys = [(one["name"], one["window_start"]) for one in more]
    assert len(set(keys)) == len(keys), "a window was written twice"
    rows = DeltaTable(table).to_pyarrow_table(columns=["name", "window_start"])
    assert rows.group_by(["name", "window_start"]).aggregate([]).num_rows == rows.num_rows > 0


def test_a_taken_port_is_one_clear_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        demo = Demo(tmp_path, taken.getsockname()[1], run=1)
        assert demo.process.wait(120) == 1
    assert f"cannot listen on {demo.address}" in demo.said
    assert "PENSTOCK_ADDRESS=" in demo.said and "Traceback" not in demo.said


def ask(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)


def is_table(path: Path) -> bool:
    return (path / "_delta_log").is_dir() and any((path / "_delta_log").glob("*.json"))
