"""A client of HTTP/2 that does what it likes, frame by frame."""

import json
import socket
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event


class RawHttp2:
    """A client that does what it likes."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._answers: dict[int, bytes] = {}
        self._events: list[Event] = []
        self.h2.initiate_connection()
        self.flush()

    def __enter__(self) -> "RawHttp2":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def flush(self) -> None:
        self.socket.sendall(self.h2.data_to_send())

    def ask(self, path: str, method: str = "GET", *, ends: bool = True) -> int:
        stream: int = self.h2.get_next_available_stream_id()
        head = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "x")]
        self.h2.send_headers(stream, head, end_stream=ends)
        self.flush()
        return stream

    def send(self, stream: int, document: Any) -> None:
        """A line of a body."""
        self.h2.send_data(stream, json.dumps(document).encode() + b"\n")
        self.flush()

    def line(self, stream: int) -> bytes:
        """The next line of an answer; those of other streams are kept."""
        while b"\n" not in self._answers.get(stream, b""):
            event = self.until(DataReceived)
            self._answers[event.stream_id] = self._answers.get(event.stream_id, b"") + event.data
        line, _, self._answers[stream] = self._answers[stream].partition(b"\n")
        return line

    def until(self, kind: type[Event]) -> Any:
        """The first event of a kind."""
        while True:
            while self._events:
                event = self._events.pop(0)
                if isinstance(event, kind):
                    return event
            data = self.socket.recv(65_536)
            assert data, f"the server closed, and there was no {kind.__name__}"
            self._events += self.h2.receive_data(data)

    def until_closed(self) -> None:
        """Take what comes until the server closes."""
        try:
            while self.socket.recv(65_536):
                pass
        except ConnectionResetError:
            pass  # It closed while we were still sending.
