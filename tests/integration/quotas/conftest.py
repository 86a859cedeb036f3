"""A broker whose quotas are measured over a short time, and the tool that sets them."""

import shutil
import subprocess
from collections.abc import Callable, Iterator

import pytest
from tests.support.broker import BrokerProcess
from tests.support.fixtures import StartBroker
from tests.support.processes import ROOT, free_port, python

Configs = Callable[..., str]

SAMPLES = 2
# With two samples of a second, a client may use at once what it is allowed in one second, and
# never more than that of two: tests need not spend ten seconds to exceed a quota.
SETTINGS = {
    "quota.window.num": str(SAMPLES),
    "quota.window.size.seconds": "1",
    "controller.quota.window.num": str(SAMPLES),
}


def run_configs(broker: BrokerProcess, *words: str) -> str:
    """What kafka-configs prints; it must succeed."""
    command = [python(), "-m", "penstock.cli.main", "kafka-configs"]
    done = subprocess.run(
        [*command, "--bootstrap-server", broker.address, *words],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def metrics_port() -> int:
    return free_port()


@pytest.fixture
def quota_broker(start_broker: StartBroker, metrics_port: int) -> Iterator[BrokerProcess]:
    broker = start_broker({**SETTINGS, "metrics.listeners": f"http://127.0.0.1:{metrics_port}"})
    yield broker
    assert broker.tracebacks() == {}
    if broker.process is not None:
        broker.kill()
    shutil.rmtree(broker.data)  # Some tests write more than one wants to keep.


@pytest.fixture
def configs(quota_broker: BrokerProcess) -> Configs:
    """Runs kafka-configs against the broker."""
    return lambda *words: run_configs(quota_broker, *words)
