"""The proxy as a process: what it says before it starts, and while there are no brokers."""

import socket
import subprocess
from pathlib import Path

import httpx
from tests.support.broker import BrokerProcess
from tests.support.processes import HOST, free_port, python
from tests.support.rest import RestProcess
from tests.support.waiting import eventually


def test_a_port_that_is_taken_is_told_in_one_sentence(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        file = tmp_path / "kafka-rest.properties"
        file.write_text(f"bootstrap.servers={HOST}:9\nlisteners=http://{HOST}:{port}\n")
        ran = subprocess.run(
            [python(), "-m", "penstock.cli.main", "rest", str(file)],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert ran.returncode == 1
    assert ran.stderr == f"cannot listen on {HOST}:{port}: Address already in use\n"


def test_it_starts_before_the_brokers_and_serves_when_they_come(tmp_path: Path) -> None:
    with (
        BrokerProcess(tmp_path / "broker", port=free_port()) as broker,
        RestProcess(tmp_path / "rest", broker.address) as proxy,
    ):
        proxy.start()
        refused = httpx.get(f"{proxy.url}/v3/clusters", timeout=120)
        assert (refused.status_code, refused.json()["error_code"]) == (503, 50302)
        broker.start()
        eventually(lambda: httpx.get(f"{proxy.url}/v3/clusters", timeout=120).status_code == 200)
        assert proxy.stop() == 0
        assert proxy.tracebacks() == {}


def test_a_version_that_is_off_is_not_there(tmp_path: Path) -> None:
    settings = {"api.v2.enable": "false", "api.v3.enable": "false"}
    with RestProcess(tmp_path, f"{HOST}:9", settings) as proxy:
        proxy.start()
        for path in ("/topics", "/v3/clusters", "/openapi.json"):
            assert httpx.get(proxy.url + path, timeout=60).status_code == 404
