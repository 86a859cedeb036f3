"""One client's connection of HTTP/2: frames are h2's, requests are ASGI's, bounds are ours.

What a client may cost: as many streams at once as h2 allows by default (100), a head of 64 KiB, of
each body what the windows hold until the application takes it, and no more resets than answers
can explain. A client that does not read is not read from.
"""

import asyncio
import contextlib
import logging
from typing import Any, ClassVar, Final
from urllib.parse import unquote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import service_unavailable
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl
from uvicorn.server import ServerState

from penstock.http.http2.request import Http2Request

log = logging.getLogger("penstock.http")

_WINDOW_BYTES: Final = 1 << 20  # Of all bodies of a connection that nobody has taken yet.
# h2 waits for the end of a frame before it finds it too long; a head may be of several frames.
_FRAMES_BYTES_MAX: Final = 128 << 10
_FIRST_WINDOW_BYTES: Final = 65_535  # What RFC 9113 begins with.


class Http2Connection(asyncio.Protocol):
    """uvicorn creates it, adds it to what the server stops, and hands it bytes."""

    resets_max: ClassVar[int] = 200  # Beyond what was answered.
    late_body_s: ClassVar[float] = 2.0

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._config = config
        self._state = server_state
        self._app_state = app_state
        self._loop = _loop or asyncio.get_running_loop()
        self._requests: dict[int, Http2Request] = {}
        self._idle_timer: asyncio.TimerHandle | None = None
        self._is_stopping = False
        self._resets = self._answered = 0
        self._silent_bytes = 0  # Since the last frame that said something.
        self.is_write_paused = False
        # Headers are bytes on both sides: ASGI has them so.
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding=None))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's: tell the client what it may send."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._state.connections.add(self)  # type: ignore[arg-type]  # Whoever can be shut down.
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(_WINDOW_BYTES - _FIRST_WINDOW_BYTES)
        self.flush()
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's: nobody reads any more."""
        self._state.connections.discard(self)
        self._forget_timer()
        for request in list(self._requests.values()):
            request.leave()

    def data_received(self, data: bytes) -> None:
        """asyncio's: take the frames; one that breaks the rules ends the connection."""
        try:
            events = self.h2.receive_data(data)
            for event in events:
                self._handle(event)
        except ProtocolError as error:
            log.debug("A connection of HTTP/2 ends: %s", error)
            self._end()
            return
        self._silent_bytes = 0 if events else self._silent_bytes + len(data)
        if self._silent_bytes > _FRAMES_BYTES_MAX:
            self._end(ErrorCodes.FRAME_SIZE_ERROR)
        self.flush()

    def eof_received(self) -> None:
        """asyncio's: the client has gone."""

    def pause_writing(self) -> None:
        """asyncio's: the client does not read; its pings would want answers too."""
        self.is_write_paused = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        """asyncio's: it reads again."""
        self.is_write_paused = False
        self._transport.resume_reading()
        self._wake()

    def shutdown(self) -> None:
        """uvicorn's: the server stops; what is under way may end."""
        self._is_stopping = True
        if not self._requests:
            self._end()

    def flush(self) -> None:
        """Send the frames that wait."""
        data = self.h2.data_to_send()
        if data and not self._transport.is_closing():
            self._transport.write(data)

    def forget(self, stream_id: int) -> None:
        """A request is over."""
        if self._requests.pop(stream_id, None) is None:
            return
        self._answered += 1
        self._state.total_requests += 1
        if not self._requests and not self._transport.is_closing():
            if self._is_stopping:
                self._end()
            else:
                self._expect_request()

    def end_later(self, stream_id: int) -> None:
        """What still comes of an answered request's body is let in for a moment.

        Some clients read when all is sent; curl before version 8 takes an early end for an error.
        """
        self._loop.call_later(self.late_body_s, self._end_stream, stream_id)

    def _end_stream(self, stream_id: int) -> None:
        with contextlib.suppress(ProtocolError):  # It has ended by itself.
            self.h2.reset_stream(stream_id, ErrorCodes.NO_ERROR)
        self.flush()

    def _handle(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self._begin(event)
            case DataReceived():
                self._take(event)
            case StreamEnded() if event.stream_id in self._requests:
                self._requests[event.stream_id].end_body()
            case StreamReset():
                self._drop(event.stream_id)
            case WindowUpdated() | RemoteSettingsChanged():
                self._wake()
            case ConnectionTerminated():
                self.shutdown()
            case _:
                pass  # What h2 has answered by itself, and trailers, which nobody asks for.

    def _begin(self, event: RequestReceived) -> None:
        self._forget_timer()
        assert event.stream_id is not None
        request = Http2Request(self, event.stream_id, self._scope(event.headers or []))
        self._requests[event.stream_id] = request
        is_full = self._is_stopping or self._is_full()
        app: Any = service_unavailable if is_full else self._config.loaded_app
        task = self._loop.create_task(request.run(app), name="http2 request")
        self._state.tasks.add(task)
        task.add_done_callback(self._state.tasks.discard)

    def _is_full(self) -> bool:
        limit, state = self._config.limit_concurrency, self._state
        return limit is not None and max(len(state.connections), len(state.tasks)) >= limit

    def _scope(self, headers: list[Any]) -> dict[str, Any]:
        special = {bytes(name): bytes(value) for name, value in headers if name[:1] == b":"}
        plain = [(bytes(name), bytes(value)) for name, value in headers if name[:1] != b":"]
        if b":authority" in special and all(name != b"host" for name, _ in plain):
            plain.insert(0, (b"host", special[b":authority"]))
        raw_path, _, query = special.get(b":path", b"/").partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": self._config.asgi_version, "spec_version": "2.3"},
            "http_version": "2",
            "server": get_local_addr(self._transport),
            "client": get_remote_addr(self._transport),
            "scheme": "https" if is_ssl(self._transport) else "http",
            "method": special.get(b":method", b"").decode("ascii", "replace"),
            "root_path": self._config.root_path,
            "path": self._config.root_path + unquote(raw_path.decode("ascii", "replace")),
            "raw_path": self._config.root_path.encode() + raw_path,
            "query_string": query,
            "headers": plain,
            "state": dict(self._app_state),
        }

    def _take(self, event: DataReceived) -> None:
        assert event.stream_id is not None and event.flow_controlled_length is not None
        request = self._requests.get(event.stream_id)
        if request is None:  # It was answered before its body was there.
            self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        else:
            request.take(event.data or b"", event.flow_controlled_length)

    def _drop(self, stream_id: int | None) -> None:
        """The client wants no answer. One that only asks and takes back is sent away."""
        request = self._requests.get(stream_id or 0)
        if request is not None:
            request.leave()
        self._resets += 1
        if self._resets > self.resets_max + self._answered - self._resets:
            self._end(ErrorCodes.ENHANCE_YOUR_CALM)

    def _wake(self) -> None:
        for request in self._requests.values():
            request.wake()

    def _expect_request(self) -> None:
        self._forget_timer()
        self._idle_timer = self._loop.call_later(self._config.timeout_keep_alive, self._end)

    def _forget_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _end(self, code: ErrorCodes = ErrorCodes.NO_ERROR) -> None:
        """Say good-bye, and close."""
        if self._transport.is_closing():
            return
        with contextlib.suppress(ProtocolError):  # h2 has said it already, with the reason.
            self.h2.close_connection(code)
        self.flush()
        self._transport.close()
