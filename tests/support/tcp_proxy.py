"""A network between a client and a server that a test can break, and can listen to."""

import contextlib
import socket
import threading
from typing import Self

from tests.support.processes import HOST


class TcpProxy:
    """Passes bytes between its own port and a server's, as long as it is told to.

    `heard` has what passed, where that is wanted: a piece for each direction of each connection.
    """

    def __init__(self, target_port: int, *, is_recording: bool = False) -> None:
        self._target_port = target_port
        self._is_recording = is_recording
        self.heard: list[bytearray] = []
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self._is_cut = threading.Event()
        self._is_mute = threading.Event()
        self._open: set[socket.socket] = set()
        self.accepted = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def mute(self) -> None:
        """From now on the server's answers are swallowed; what the client says still arrives."""
        self._is_mute.set()

    def cut(self) -> None:
        """End all connections, and each new one as soon as it is made."""
        self._is_cut.set()
        self._end_all()

    def heal(self) -> None:
        self._is_mute.clear()
        self._is_cut.clear()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # The listener is closed.
            while True:
                client, _ = self._listener.accept()
                self._serve(client)
                self.accepted += 1  # Now: who waits for one to cut must find it.

    def _serve(self, client: socket.socket) -> None:
        if self._is_cut.is_set():
            client.close()
            return
        try:
            server = socket.create_connection((HOST, self._target_port))
        except OSError:
            client.close()
            return
        self._open |= {client, server}
        if self._is_cut.is_set():  # Cut meanwhile, perhaps before these were known.
            self._end_all()
        for source, target, is_answer in ((client, server, False), (server, client, True)):
            arguments = (source, target, is_answer)
            threading.Thread(target=self._pass, args=arguments, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        heard = bytearray()
        if self._is_recording:
            self.heard.append(heard)
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self._is_recording:
                    heard += data
                if not (is_answer and self._is_mute.is_set()):
                    target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._open -= {source, target}

    def _end_all(self) -> None:
        for end in tuple(self._open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._is_cut.set()
        self._end_all()
