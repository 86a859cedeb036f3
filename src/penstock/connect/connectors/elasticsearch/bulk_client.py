"""The few calls of Elasticsearch's HTTP interface that a sink needs, on one connection.

A node that cannot be reached or is too busy is a RetriableConnectError, and the next call goes to
the next node.
"""

import base64
import gzip
import http.client
import json
import ssl
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from penstock.connect.errors.kinds import ConnectError, RetriableConnectError


class BulkClient:
    """A cluster, by the addresses of its nodes; the settings are those of `settings.py`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._urls: Sequence[str] = config["connection.url"]
        self._at = 0
        self._connect_s = config["connection.timeout.ms"] / 1000
        self._read_s = config["read.timeout.ms"] / 1000
        self._zips = config["connection.compression"]
        self._headers = {"Content-Type": "application/json"}
        if config["connection.username"]:
            words = f"{config['connection.username']}:{config['connection.password']!s}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(words.encode()).decode()}"
        self._connection: http.client.HTTPConnection | None = None

    def bulk(self, content: bytes) -> list[dict[str, Any]]:
        """What became of each line."""
        found = self._call("POST", "/_bulk", content, kind="application/x-ndjson")[1]
        items = found.get("items") if isinstance(found, dict) else None
        if not isinstance(items, list):
            raise RetriableConnectError(f"{self._url} gave no answer to a bulk call: {found}")
        return items

    def ensure_index(self, name: str, mapping: Mapping[str, Any]) -> None:
        """Make an index with this mapping, if it is not there; else its mapping stays."""
        path = f"/{quote(name, safe='')}"
        if self._call("HEAD", path, b"", allowed=(404,))[0] == 200:
            return
        body = json.dumps({"mappings": mapping}).encode()
        status, answer = self._call("PUT", path, body, allowed=(400,))
        if status == 400 and "already_exists" not in json.dumps(answer):
            raise ConnectError(f"the index {name} cannot be made: {_shown(answer)}")

    def close(self) -> None:
        """End."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def _url(self) -> str:
        return self._urls[self._at % len(self._urls)].rstrip("/")

    def _call(
        self,
        method: str,
        path: str,
        body: bytes,
        *,
        kind: str = "application/json",
        allowed: tuple[int, ...] = (),
    ) -> tuple[int, Any]:
        try:
            status, content = self._exchange(method, path, body, kind)
        except (OSError, http.client.HTTPException) as error:
            url = self._url
            self._turn()
            raise RetriableConnectError(f"{url} cannot be reached: {error!r}") from error
        if status < 300 or status in allowed:
            return status, _parsed(content)
        sentence = f"{self._url} answered {status} to {method} {path}: {_shown(_parsed(content))}"
        if status in (408, 429) or status >= 500:
            self._turn()
            raise RetriableConnectError(sentence)
        raise ConnectError(sentence)

    def _exchange(self, method: str, path: str, body: bytes, kind: str) -> tuple[int, bytes]:
        headers = {**self._headers, "Content-Type": kind}
        if self._zips and body:
            body, headers["Content-Encoding"] = gzip.compress(body, 5), "gzip"
        connection = self._connected()
        prefix = urlsplit(self._url).path.rstrip("/")
        connection.request(method, prefix + path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            parts = urlsplit(self._url)
            host, port = parts.hostname or "", parts.port
            if parts.scheme == "https":
                context = ssl.create_default_context()
                self._connection = http.client.HTTPSConnection(
                    host, port or 443, timeout=self._connect_s, context=context
                )
            else:
                self._connection = http.client.HTTPConnection(
                    host, port or 80, timeout=self._connect_s
                )
            self._connection.connect()
            self._connection.sock.settimeout(self._read_s)
        return self._connection

    def _turn(self) -> None:
        """To the next node."""
        self.close()
        self._at += 1


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content) if content else {}
    except ValueError:
        return content.decode(errors="replace")


def _shown(answer: Any) -> str:
    """The reason in an answer, shortly."""
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    reason = error.get("reason", error) if isinstance(error, dict) else error
    return str(reason)[:500]
