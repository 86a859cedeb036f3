"""One question to a SQL service over HTTP/1.1: answers as documents, or as lines while they come.

What the paths mean is left to `connection`.
"""

import base64
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from penstock.errors import ConfigError
from penstock.http.whole_answers import read_whole
from penstock.sql.client.errors import SqlServiceUnreachable, refusal

_ANSWER_BYTES_MAX = 64 * 1024 * 1024
_LINE_BYTES_MAX = 16 * 1024 * 1024
_PORTS = {"http": 80, "https": 443}
JSON = "application/vnd.ksql.v1+json"
LINES = "application/vnd.ksqlapi.delimited.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceHttp:
    """Where a service is, and who asks there."""

    scheme: str
    host: str
    port: int
    path: str = ""  # In front of all paths, where a proxy has the service below a folder.
    authorization: str | None = field(default=None, repr=False)
    ca_location: str | None = None  # A PEM file; None: what the system trusts.
    timeout_s: float = 60.0

    @classmethod
    def of(
        cls,
        url: str,
        *,
        auth: tuple[str, str] | str | None = None,
        ca_location: str | None = None,
        timeout_s: float = 60.0,
    ) -> Self:
        """From an address such as http://localhost:8088, which may name a user and password."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"{url} is no address of a SQL service: {error}") from None
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ConfigError(f"{url} is no address of a SQL service: write http://localhost:8088")
        return cls(
            scheme=parts.scheme,
            host=parts.hostname,
            port=port or _PORTS[parts.scheme],
            path=parts.path.rstrip("/"),
            authorization=_authorization(auth or _credentials(parts.netloc)),
            ca_location=ca_location,
            timeout_s=timeout_s,
        )

    @property
    def url(self) -> str:
        """The address without credentials."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"

    def get(self, path: str) -> Any:
        """The document of an answer."""
        return self._document(self._ask("GET", path, None, JSON))

    def post(self, path: str, document: Mapping[str, Any]) -> Any:
        """The document that answers another."""
        body = json.dumps(document).encode()
        return self._document(self._ask("POST", path, body, JSON))

    def stream(
        self, path: str, body: bytes, accept: str = LINES, *, waits: bool = True
    ) -> "LineStream":
        """The lines of an answer as they come; `waits`: however long that takes."""
        return self._ask("POST", path, body, accept, waits=waits)

    def _ask(
        self, method: str, path: str, body: bytes | None, accept: str, *, waits: bool = False
    ) -> "LineStream":
        connection = self._connection()
        try:
            connection.connect()
            held = connection.sock
            connection.request(method, self.path + path, body, self._headers(body, accept))
            response = connection.getresponse()
            if waits:
                held.settimeout(None)
        except (OSError, HTTPException) as error:
            connection.close()
            raise SqlServiceUnreachable(f"no SQL service answers at {self.url}: {error}") from error
        lines = LineStream(response=response, connection=held, address=self.url)
        if response.status >= 400:
            raise self._refusal(lines)
        return lines

    def _connection(self) -> HTTPConnection:
        if self.scheme == "http":
            return HTTPConnection(self.host, self.port, timeout=self.timeout_s)
        try:
            context = ssl.create_default_context(cafile=self.ca_location)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"{self.ca_location} is no PEM file of certificates: {error}"
            ) from error
        return HTTPSConnection(self.host, self.port, timeout=self.timeout_s, context=context)

    def _headers(self, body: bytes | None, accept: str) -> dict[str, str]:
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = JSON
        if self.authorization is not None:
            headers["Authorization"] = self.authorization
        return headers

    def _document(self, lines: "LineStream") -> Any:
        with lines:
            body = lines.rest()
        return read_json(body, self.url) if body.strip() else None

    def _refusal(self, lines: "LineStream") -> Exception:
        with lines:
            body, status = lines.rest(), lines.response.status
        try:
            document = read_json(body, self.url)
        except SqlServiceUnreachable:
            document = None
        if status == 401 and document is None:
            document = {"message": f"{self.url} asks for a user name and a password"}
        return refusal(document, status)


@dataclass(slots=True, kw_only=True)
class LineStream:
    """An answer that comes line by line; to close it lets the service go."""

    response: HTTPResponse
    connection: socket.socket
    address: str
    is_closed: bool = False

    def __iter__(self) -> Iterator[bytes]:
        while not self.is_closed:
            line = self._read_line()
            if not line:
                return
            if stripped := line.strip():
                yield stripped

    def rest(self) -> bytes:
        """All that is left, of what has a bound."""
        try:
            return read_whole(self.response, _ANSWER_BYTES_MAX)
        except (OSError, HTTPException) as error:
            raise SqlServiceUnreachable(f"{self.address} gave no whole answer: {error}") from error

    def close(self) -> None:
        """The connection ends, also for a reader in another thread."""
        if self.is_closed:
            return
        self.is_closed = True
        with suppress(OSError):  # The other end was faster.
            self.connection.shutdown(socket.SHUT_RDWR)
        self.response.close()
        self.connection.close()

    def _read_line(self) -> bytes:
        try:
            line = self.response.readline(_LINE_BYTES_MAX + 1)
        except (OSError, HTTPException, ValueError) as error:
            if self.is_closed:
                return b""
            raise SqlServiceUnreachable(f"{self.address} broke off its answer: {error}") from error
        if len(line) > _LINE_BYTES_MAX:
            raise SqlServiceUnreachable(f"{self.address} answers with a line of too many bytes")
        return line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_json(body: bytes, address: str) -> Any:
    """A document; numbers with a point stay exact."""
    try:
        return json.loads(body, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise SqlServiceUnreachable(f"{address} does not answer like a SQL service") from error


def _credentials(netloc: str) -> tuple[str, str] | None:
    who, found, _ = netloc.rpartition("@")
    user, _, password = who.partition(":")
    return (unquote(user), unquote(password)) if found else None


def _authorization(auth: tuple[str, str] | str | None) -> str | None:
    """A pair is a user and a password, a text the token of a bearer."""
    if auth is None:
        return None
    if isinstance(auth, str):
        return f"Bearer {auth}"
    return f"Basic {base64.b64encode(':'.join(auth).encode()).decode()}"
