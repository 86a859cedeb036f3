"""The lab of examples/disaster, step by step: lose a cluster, go on, return."""

import os
import subprocess
import threading
from pathlib import Path

from tests.integration.mirror.rig import catch_up, group_offsets
from tests.support.broker import BrokerProcess
from tests.support.processes import ROOT
from tests.support.waiting import eventually

from penstock.config.properties import read_properties
from penstock.mirror.config import MirrorConfig
from penstock.mirror.running.hosts import ThreadHost
from penstock.mirror.running.supervisor import supervise

LAB = ROOT / "examples" / "disaster"


def lab_settings(cluster: str) -> dict[str, str]:
    """A broker's settings of the lab, but for what the test itself decides."""
    given = read_properties(LAB / "config" / f"{cluster}.properties")
    return {name: text for name, text in given.items() if name not in ("listeners", "log.dirs")}


def test_the_shop_moves_over_and_back_without_an_order_lost_or_doubled(tmp_path: Path) -> None:
    a = BrokerProcess(tmp_path / "a", lab_settings("a"))
    b = BrokerProcess(tmp_path / "b", lab_settings("b"))
    with a, b:
        a.start()
        b.start()
        addresses = {"A": a.address, "B": b.address}

        def run(script: str, *words: str) -> list[str]:
            done = subprocess.run(
                [LAB / script, *words],
                env={**os.environ, **addresses},
                stdout=subprocess.PIPE,
                text=True,
                timeout=180,
            )
            assert done.returncode == 0
            return done.stdout.split()

        given = read_properties(LAB / "config" / "mm2.properties")
        given |= {f"{alias}.bootstrap.servers": at for alias, at in addresses.items()}
        given |= {f"{alias}.default.api.timeout.ms": "5000" for alias in addresses}
        config = MirrorConfig.of(given)
        run("send-orders.sh")
        stop, told = threading.Event(), list[str]()
        work = threading.Thread(target=supervise, args=(config, ThreadHost(), told.append, stop))
        work.start()
        try:
            assert run("read-on-a.sh", "4") == ["1", "2", "3", "4"]
            catch_up(config)
            eventually(
                lambda: group_offsets(b.address, "shop") == {("A.orders", 0): 4},
                what="the group on B",
            )
            a.kill()
            assert run("read-on-b.sh", "3") == ["5", "6", "7"]
            a.start()
            eventually(
                lambda: group_offsets(a.address, "shop") == {("orders", 0): 7},
                timeout_s=120,
                what="the group on A",
            )
            assert run("read-on-a.sh", "3") == ["8", "9", "10"]
        finally:
            stop.set()
            work.join(120)
