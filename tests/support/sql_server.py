"""The SQL server as a real process, and what tests say to it over HTTP."""

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.support.processes import HOST, ServerProcess, free_port, python

from penstock.config.properties import format_properties

TIMEOUT_S = 120


class SqlServerProcess(ServerProcess):
    """`penstock sql server` on the brokers at `bootstrap`; settings override the defaults."""

    def __init__(
        self, directory: Path, bootstrap: str, settings: Mapping[str, str] | None = None
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.file = directory / "ksql-server.properties"
        port = free_port()
        self.settings = {
            "listeners": f"http://{HOST}:{port}",
            "bootstrap.servers": f"PLAINTEXT://{bootstrap}",
            "ksql.streams.state.dir": str(directory / "state"),
            "ksql.streams.shuffle.partitions": "1",
            "ksql.streams.commit.interval.ms": "100",
            "penstock.sql.spark.master": "local[2]",
            **(settings or {}),
        }
        command = [python(), "-m", "penstock.cli.main", "sql", "server", str(self.file)]
        super().__init__(command, port=port, log_path=directory / "sql.log")

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def launch(self) -> None:
        """Start with the settings as they are now."""
        self.file.write_text(format_properties(self.settings))
        super().launch()

    def runs_queries(self) -> bool:
        """Whether it is this one of its service's servers that runs the queries."""
        return "This server runs the queries" in self.log

    def answers(self) -> bool:
        """Whether it is ready."""
        assert self.process is not None
        if self.process.poll() is not None:
            code = self.process.returncode
            raise RuntimeError(f"the SQL server ended with code {code}:\n{self.log_end}")
        try:
            return self.ask("GET", "/-/ready")[0] == 200
        except OSError:
            return False

    def ask(
        self, method: str, path: str, document: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status and document of an answer."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=TIMEOUT_S)
        body = document if isinstance(document, bytes | None) else json.dumps(document)
        try:
            connection.request(method, path, body, headers=dict(headers or {}))
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def ksql(self, text: str, **more: Any) -> list[dict[str, Any]]:
        """The answers of statements that are carried out."""
        status, document = self.ask("POST", "/ksql", {"ksql": text, **more})
        assert status == 200, document
        assert isinstance(document, list)
        return document

    def refused(self, text: str, **more: Any) -> dict[str, Any]:
        """The error of statements that are not."""
        status, document = self.ask("POST", "/ksql", {"ksql": text, **more})
        assert status == 400, document
        assert isinstance(document, dict)
        return document

    def rows(self, text: str, **properties: str) -> list[list[Any]]:
        """All rows of a query that ends."""
        named = {name.replace("_", "."): value for name, value in properties.items()}
        status, document = self.ask(
            "POST",
            "/query-stream",
            {"sql": text, "properties": named},
            {"accept": "application/json"},
        )
        assert status == 200, document
        return [row for row in document[1:] if isinstance(row, list)]

    def socket_address(self, text: str, **properties: str) -> str:
        """Where a query is asked over a WebSocket."""
        named = {name.replace("_", "."): value for name, value in properties.items()}
        request = json.dumps({"ksql": text, "streamsProperties": named})
        return f"ws://{self.address}/ws/query?request={quote(request)}"

    @contextmanager
    def pushing(self, text: str, **properties: str) -> Iterator["Push"]:
        """A push query, asked for its rows one by one."""
        named = {name.replace("_", "."): value for name, value in properties.items()}
        connection = http.client.HTTPConnection(HOST, self.port, timeout=TIMEOUT_S)
        try:
            body = json.dumps({"sql": text, "properties": named})
            connection.request("POST", "/query-stream", body)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            yield Push(answer)
        finally:
            connection.close()


class Push:
    """Rows as they come."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self._answer = answer
        self.head: dict[str, Any] = json.loads(answer.readline())

    def row(self) -> list[Any] | None:
        """The next; None: the end."""
        line = self._answer.readline()
        found: list[Any] | None = json.loads(line) if line.strip() else None
        return found
