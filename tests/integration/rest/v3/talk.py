"""Bytes of HTTP, for what no client library would do: bodies without end, and readers that stop."""

import json
import socket
from typing import Any

import httpx


def record(value: object, **more: object) -> bytes:
    """A record of a produce request."""
    return json.dumps({"value": {"type": "JSON", "data": value}, **more}).encode()


def receipts(text: str | bytes) -> list[Any]:
    """The documents of an answer, one per line."""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def produce(cluster: httpx.Client, topic: str, *values: object) -> list[Any]:
    """Records in one request; their receipts."""
    body = b"".join(record(value) for value in values)
    headers = {"content-type": "application/json"}
    got = cluster.post(f"/topics/{topic}/records", content=body, headers=headers)
    assert got.status_code == 200, got.text
    return receipts(got.text)


class OpenRequest:
    """A request whose body goes on, with what comes back."""

    def __init__(self, cluster: httpx.Client, path: str, *, method: str = "POST") -> None:
        url = httpx.URL(str(cluster.base_url).rstrip("/") + path)
        self.socket = socket.create_connection((url.host, url.port or 80), timeout=60)
        self._buffer = b""
        body = "content-type: application/json\r\ntransfer-encoding: chunked\r\n"
        head = f"{method} {url.raw_path.decode()} HTTP/1.1\r\nhost: {url.host}:{url.port}\r\n"
        self.socket.sendall((head + (body if method == "POST" else "") + "\r\n").encode())

    def send(self, piece: bytes) -> None:
        """One chunk of the body."""
        self.socket.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))

    def end(self) -> None:
        self.socket.sendall(b"0\r\n\r\n")

    def head(self) -> str:
        """The head of the answer."""
        while b"\r\n\r\n" not in self._buffer:
            self._more()
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        return head.decode()

    def chunk(self) -> bytes:
        """The next chunk of the answer; empty at its end."""
        while b"\r\n" not in self._buffer:
            self._more()
        size, _, rest = self._buffer.partition(b"\r\n")
        wanted = int(size, 16)
        self._buffer = rest
        while len(self._buffer) < wanted + 2:
            self._more()
        found, self._buffer = self._buffer[:wanted], self._buffer[wanted + 2 :]
        return found

    def rest(self) -> bytes:
        """All chunks up to the end of the answer."""
        found = b""
        while piece := self.chunk():
            found += piece
        return found

    def close(self) -> None:
        self.socket.close()

    def _more(self) -> None:
        piece = self.socket.recv(65536)
        assert piece, f"the connection ended after {self._buffer[-200:]!r}"
        self._buffer += piece

    def __enter__(self) -> "OpenRequest":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
