"""Topics of an Apache worker taken over by ours and back, and both as members of one group."""

import os
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from tests.support.apache_kafka import CURRENT
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess
from tests.support.connect_files import append, has_lines, source
from tests.support.connect_golden import ApacheConnectProcess
from tests.support.outside import needs
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(os.environ.get("PENSTOCK_LONG") != "1", reason="the long mode's"),
]
_WAIT_S = 480.0


def begin(worker: ConnectProcess) -> None:
    """Start a worker, and ask now and then whether it is there."""
    worker.launch()
    eventually(worker.answers, timeout_s=_WAIT_S, every_s=1)


def test_workers_of_apaches_and_ours_follow_each_other_and_share_one_group(
    shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    needs(CURRENT)
    lines = [f"line {n}" for n in range(50)]
    given = iter(range(10, 60, 10))
    plugins = needs("connect-file-4.3.1")
    apache = ApacheConnectProcess(tmp_path / "apache", shared_broker.address, plugins)
    ours = ConnectProcess(tmp_path / "ours", shared_broker.address)
    for worker in (apache, ours):
        names = ("config", "offset", "status")
        worker.settings |= {f"{name}.storage.topic": f"taken-{name}" for name in names}
        worker.settings |= {"group.id": "taken"}

    def go_on(worker: ConnectProcess) -> None:
        """Ten more lines arrive, each once, and the worker says that it runs them."""
        upto = next(given)
        append(tmp_path / "in.txt", lines[upto - 10 : upto])
        arrived = partial(has_lines, shared_broker, "taken", lines[:upto])
        eventually(arrived, timeout_s=_WAIT_S, every_s=0.5)
        running = ["RUNNING", "RUNNING"]
        eventually(lambda: worker.states("taken") == running, timeout_s=_WAIT_S, every_s=0.5)

    with apache, ours:
        begin(apache)
        config = source(tmp_path, "taken")
        assert apache.ask("PUT", "/connectors/taken/config", config)[0] == 201
        go_on(apache)
        apache.stop()
        begin(ours)
        go_on(ours)
        ours.stop()
        begin(apache)
        go_on(apache)
        begin(ours)  # A member beside Apache's, which leads.
        other = {**source(tmp_path, "other"), "file": str(tmp_path / "other.txt")}
        (tmp_path / "other.txt").write_text("one\n")
        assert ours.ask("PUT", "/connectors/other/config", other)[0] == 201

        def is_shared() -> bool:
            places = Counter(ours.places("taken", "other").values())
            return places == {apache.address: 2, ours.address: 2}

        eventually(is_shared, timeout_s=_WAIT_S, every_s=0.5)
        eventually(lambda: has_lines(shared_broker, "other", ["one"]), timeout_s=_WAIT_S)
        apache.stop()
        go_on(ours)
        begin(apache)  # A member beside ours, which leads now.
        eventually(is_shared, timeout_s=_WAIT_S, every_s=0.5)
        go_on(ours)
