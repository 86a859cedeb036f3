"""Where a login is asked for, nobody runs SQL without one."""

import base64
from pathlib import Path

import pytest
from tests.support.broker import BrokerProcess
from tests.support.sql_server import SqlServerProcess
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

pytestmark = pytest.mark.timeout(300)


def test_statements_and_queries_need_a_login(broker: BrokerProcess, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("ann: secret,admin\n")
    settings = {
        "authentication.method": "BASIC",
        "authentication.roles": "admin",
        "authentication.users.file": str(users),
        "ksql.service.id": "secured_",
        "ksql.logging.processing.stream.auto.create": "true",
    }
    with SqlServerProcess(tmp_path / "sql", broker.address, settings) as server:
        server.start()
        for path, body in (
            ("/ksql", {"ksql": "SHOW STREAMS;"}),
            ("/query", {"ksql": "SELECT 1;"}),
            ("/query-stream", {"sql": "SELECT 1;"}),
            ("/inserts-stream", {"target": "x"}),
            ("/close-query", {"queryId": "x"}),
            ("/ksql/terminate", {}),
        ):
            status, document = server.ask("POST", path, body)
            assert (status, document["error_code"]) == (401, 40100)
        assert server.ask("GET", "/info")[0] == 401
        with pytest.raises(InvalidStatus, match="403"):
            connect(server.socket_address("SELECT 1 FROM x;"))
        login = {"authorization": "Basic " + base64.b64encode(b"ann:secret").decode()}
        status, answers = server.ask("POST", "/ksql", {"ksql": "SHOW STREAMS;"}, login)
        assert (status, answers[0]["@type"]) == (200, "streams")
        (stream,) = answers[0]["streams"]
        assert (stream["name"], stream["topic"]) == (
            "KSQL_PROCESSING_LOG", "secured_ksql_processing_log")  # fmt: skip
        assert server.stop() == 0


def test_settings_that_cannot_be_used_end_the_process_with_a_sentence(tmp_path: Path) -> None:
    server = SqlServerProcess(tmp_path, "127.0.0.1:1", {"ksql.service.id": "no good"})
    with server:
        server.launch()
        assert server.process is not None and server.process.wait(120) == 1
        assert "ksql.service.id=no good must be of letters" in server.log
        assert "Traceback" not in server.log
        server.process = None
