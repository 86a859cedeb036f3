"""The socket that messages come to, and the thread that reads it into a bounded queue.

A queue that is full holds senders back over TCP; over UDP the system drops what comes meanwhile.
"""

import contextlib
import queue
import selectors
import socket
import threading
from dataclasses import dataclass

from penstock.connect.connectors.syslog.frames import SyslogFrames
from penstock.connect.errors.kinds import ConnectError

_CONNECTIONS_MAX = 1000
_READ_BYTES = 1 << 16
_WAKE_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class SyslogDatagram:
    """A message, and who sent it."""

    data: bytes
    address: str


class SyslogListener:
    """Listens from `open` to `close`."""

    def __init__(
        self, address: str, port: int, *, is_tcp: bool, size_max: int, queue_max: int
    ) -> None:
        self._is_tcp = is_tcp
        self._size_max = size_max
        self._heard: queue.Queue[SyslogDatagram] = queue.Queue(queue_max)
        self._closing = threading.Event()
        self._selector = selectors.DefaultSelector()
        self._failure: BaseException | None = None
        self._frames: dict[socket.socket, tuple[str, SyslogFrames]] = {}
        self._socket = _bound(address, port, is_tcp=is_tcp)
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._run, name="syslog", daemon=True)

    def open(self) -> None:
        """Begin to read."""
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._thread.start()

    def messages(self, count_max: int, wait_s: float) -> list[SyslogDatagram]:
        """What has come, after a short wait."""
        if self._failure is not None:
            raise ConnectError(f"The listener failed: {self._failure!r}")
        found: list[SyslogDatagram] = []
        with contextlib.suppress(queue.Empty):
            found.append(self._heard.get(timeout=wait_s))
            while len(found) < count_max:
                found.append(self._heard.get_nowait())
        return found

    def close(self) -> None:
        """Stop listening, and hang up on all."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(5)
        for one in [self._socket, *self._frames]:
            one.close()
        self._selector.close()

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                for key, _ in self._selector.select(_WAKE_S):
                    self._serve(key.fileobj)  # type: ignore[arg-type]
        except OSError as error:
            if not self._closing.is_set():
                self._failure = error

    def _serve(self, ready: socket.socket) -> None:
        if ready is not self._socket:
            self._read(ready)
        elif self._is_tcp:
            self._accept()
        else:
            data, sender = ready.recvfrom(_READ_BYTES)
            self._put(data[: self._size_max].rstrip(b"\r\n\0"), sender[0])

    def _accept(self) -> None:
        try:
            connection, sender = self._socket.accept()
        except OSError:
            return  # It hung up before we answered.
        if len(self._frames) >= _CONNECTIONS_MAX:
            connection.close()
            return
        connection.setblocking(False)
        self._frames[connection] = (sender[0], SyslogFrames(self._size_max))
        self._selector.register(connection, selectors.EVENT_READ)

    def _read(self, connection: socket.socket) -> None:
        address, frames = self._frames[connection]
        try:
            data = connection.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        for message in frames.feed(data) if data else frames.end():
            self._put(message, address)
        if not data:
            self._selector.unregister(connection)
            del self._frames[connection]
            connection.close()

    def _put(self, data: bytes, address: str) -> None:
        while data and not self._closing.is_set():
            try:
                self._heard.put(SyslogDatagram(data=data, address=address), timeout=_WAKE_S)
            except queue.Full:
                continue
            return


def _bound(address: str, port: int, *, is_tcp: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM if is_tcp else socket.SOCK_DGRAM)
    try:
        if is_tcp:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address, port))
        if is_tcp:
            made.listen(128)
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise ConnectError(f"The port {address}:{port} cannot be used: {error}") from error
    return made
