"""A connection to a SQL service: what is asked at which of its paths, and what comes back."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Self

from penstock.sql.client.answers import ServiceAnswer, ServiceAnswers
from penstock.sql.client.errors import SqlClientError, SqlServiceUnreachable, refusal
from penstock.sql.client.row_stream import RowStream
from penstock.sql.client.rows import ResultTable
from penstock.sql.client.service_http import LineStream, ServiceHttp, read_json
from penstock.sql.client.values import json_text

DEFAULT_URL = "http://localhost:8088"
_INSERTED_AT_ONCE = 1_000  # Rows of one request: their acknowledgements are read after them.


def connect(
    url: str = DEFAULT_URL,
    *,
    auth: tuple[str, str] | str | None = None,
    ca_location: str | None = None,
    timeout_s: float = 60.0,
    properties: Mapping[str, str] | None = None,
) -> "SqlConnection":
    """A connection to a SQL service; nothing is sent until something is asked.

    `auth` is a user and a password, or the token of a bearer. `properties` go with every statement,
    as those of SET do.
    """
    http = ServiceHttp.of(url, auth=auth, ca_location=ca_location, timeout_s=timeout_s)
    return SqlConnection(http=http, properties=dict(properties or {}))


@dataclass(slots=True, kw_only=True)
class SqlConnection:
    """Statements, queries and inserts of one user; several threads may share it."""

    http: ServiceHttp
    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    def execute(self, statements: str) -> ServiceAnswers:
        """Carry statements out that are no queries; one answer for each."""
        document = self.http.post(
            "/ksql",
            {
                "ksql": _ended(statements),
                "streamsProperties": self.properties,
                "sessionVariables": self.variables,
            },
        )
        if not isinstance(document, list):
            raise SqlServiceUnreachable(f"{self.http.url} does not answer like a SQL service")
        return ServiceAnswers(tuple(ServiceAnswer(one) for one in document))

    def stream(self, query: str) -> RowStream:
        """The rows of a query as they come: those of a push query never end by themselves."""
        body = {
            "sql": _ended(query),
            "properties": self.properties,
            "sessionVariables": self.variables,
        }
        lines = self.http.stream("/query-stream", json_text(body).encode())
        return RowStream.of(lines, self.end_query)

    def query(self, query: str) -> ResultTable:
        """All rows of a query that ends: a pull query, or a push query with a LIMIT."""
        with self.stream(query) as rows:
            return rows.table()

    def print_topic(self, statement: str) -> LineStream:
        """The lines of PRINT as they come."""
        body = {"ksql": _ended(statement), "streamsProperties": self.properties}
        return self.http.stream("/query", json_text(body).encode(), "application/json")

    def insert(self, target: str, row: Mapping[str, Any]) -> None:
        """One row into a stream, by the names of its columns."""
        self.insert_many(target, [row])

    def insert_many(self, target: str, rows: Iterable[Mapping[str, Any]]) -> int:
        """Rows into a stream, in order; how many there were.

        A row that is refused ends it: the error says which, and those before it are written.
        """
        waiting, count = iter(rows), 0
        while batch := list(islice(waiting, _INSERTED_AT_ONCE)):
            self._insert(target, batch, count)
            count += len(batch)
        return count

    def end_query(self, query_id: str) -> None:
        """Let the service end a push query; one that has ended is fine."""
        with suppress(SqlClientError):  # It is gone, or ends with its connection.
            self.http.post("/close-query", {"queryId": query_id})

    def info(self) -> dict[str, Any]:
        """The version, the cluster and the id of the service."""
        document = self.http.get("/info")
        found = document.get("KsqlServerInfo") if isinstance(document, dict) else None
        if not isinstance(found, dict):
            raise SqlServiceUnreachable(f"{self.http.url} does not answer like a SQL service")
        return found

    def _insert(self, target: str, batch: list[Mapping[str, Any]], before: int) -> None:
        head = json_text({"target": target, "properties": self.properties})
        body = "\n".join([head, *(json_text(row) for row in batch)]) + "\n"
        taken = 0
        with self.http.stream("/inserts-stream", body.encode(), waits=False) as lines:
            for line in lines:
                read = read_json(line, self.http.url)
                if not isinstance(read, dict) or read.get("status") != "ok":
                    raise _refused_row(read, before + taken)
                taken += 1
        if taken != len(batch):
            raise SqlServiceUnreachable(f"{taken} of {len(batch)} rows were acknowledged")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to close: each question has a connection of its own."""


def _ended(statements: str) -> str:
    return statements if statements.rstrip().endswith(";") else f"{statements};"


def _refused_row(read: Any, number: int) -> Exception:
    told = read if isinstance(read, dict) else {}
    message = told.get("message") or "it was not acknowledged"
    return refusal({**told, "message": f"the row {number + 1} was not inserted: {message}"})
