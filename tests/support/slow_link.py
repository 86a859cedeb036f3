"""A way to a broker on which some requests take their time.

It reads the length and the kind of each request and passes it on when it is told to; whatever comes
behind it on the same connection waits too, as with a busy broker. Answers pass at once.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Self

from tests.support.processes import HOST

START = struct.Struct(">ih")  # How many bytes follow the first four, and the api key.
Passing = Callable[[socket.socket, socket.socket], None]


class SlowLink:
    """Passes requests between its own port and a broker's, each when `hold` of its key returns."""

    def __init__(self, target_port: int, hold: Callable[[int], None]) -> None:
        self._target_port = target_port
        self._hold = hold
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # The listener is closed.
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection((HOST, self._target_port))
        except OSError:
            client.close()
            return
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open |= {client, server}
        for work in (self._pass_requests, self._pass_answers):
            threading.Thread(target=self._pass, args=(work, client, server), daemon=True).start()

    def _pass(self, work: Passing, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            work(client, server)
        for end in (client, server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._open -= {client, server}

    def _pass_requests(self, client: socket.socket, server: socket.socket) -> None:
        with client.makefile("rb") as requests:
            while len(start := requests.read(START.size)) == START.size:
                size_bytes, api_key = START.unpack(start)
                rest = requests.read(size_bytes - (START.size - 4))
                self._hold(api_key)
                server.sendall(start + rest)

    def _pass_answers(self, client: socket.socket, server: socket.socket) -> None:
        while data := server.recv(65536):
            client.sendall(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for end in tuple(self._open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
