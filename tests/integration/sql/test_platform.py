"""The SQL server as a part of `penstock up`."""

import json
import urllib.request
from pathlib import Path

import pytest
from tests.support.platform import UpProcess
from tests.support.processes import HOST, free_port

pytestmark = pytest.mark.timeout(300)


def test_a_chosen_sql_server_comes_up_and_goes_with_the_platform(tmp_path: Path) -> None:
    port = free_port()
    settings = {"services": "broker,sql", "sql.listeners": f"http://{HOST}:{port}"}
    up = UpProcess(tmp_path, settings)
    up.settings = {n: v for n, v in up.settings.items() if not n.startswith(("registry", "rest"))}
    with up:
        up.start()
        up.state()
        request = urllib.request.Request(
            f"http://{HOST}:{port}/ksql", json.dumps({"ksql": "SHOW TABLES;"}).encode()
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.load(answer)[0]["tables"] == []
        assert up.stop() == 0
        up.assert_nothing_is_left()
