"""An HTTP service on a port of its own, on an event loop in another thread."""

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.http.server import listen, serving

if TYPE_CHECKING:
    from starlette.types import ASGIApp


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]  # By names in small letters.
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class ServiceThread:
    """A service that runs until `stop`; its port is there when it is made.

    The options are those of `serving`.
    """

    def __init__(self, app: "ASGIApp", **options: Any) -> None:
        self._ready: Future[int] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(app, options)), name="service"
        )
        self._thread.start()
        self.port = self._ready.result(30)

    async def _serve(self, app: "ASGIApp", options: Mapping[str, Any]) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            async with serving(app, [listen("127.0.0.1", 0)], **options) as ports:
                self._ready.set_result(ports[0])
                await self._stop.wait()
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            raise

    def ask_to_stop(self) -> None:
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)

    def wait(self, timeout_s: float = 30) -> None:
        """Until it has stopped."""
        self._thread.join(timeout_s)
        assert not self._thread.is_alive(), "the service did not stop"

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, dict(headers or {}))
            got = connection.getresponse()
            named = {name.lower(): value for name, value in got.getheaders()}
            return Answer(status=got.status, headers=named, body=got.read())
        finally:
            connection.close()

    def connect(self) -> socket.socket:
        """For bytes that no client would send."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


@contextmanager
def running_service(app: "ASGIApp", **options: Any) -> Iterator[ServiceThread]:
    """A service for the time of a test."""
    service = ServiceThread(app, **options)
    try:
        yield service
    finally:
        service.ask_to_stop()
        service.wait()
