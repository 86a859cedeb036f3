"""CoAP spoken by a thread of its own, for a task that is no coroutine.

A resource is observed (RFC 7641) where its server can, and asked at intervals where it cannot. An
observation is asked for anew from time to time: a device that went away says nothing about it.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from penstock.connect.connectors.wiring.reach import ServerReach
from penstock.connect.errors.kinds import ConnectError, DataError, RetriableConnectError

LIBRARIES = {"aiocoap": "aiocoap"}
T = TypeVar("T")
_QUEUE_MAX = 10_000
_FULL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CoapSample:
    """What a resource was at a moment."""

    uri: str
    payload: bytes
    content_format: int | None


def wrong_uri(uri: str | None) -> str | None:
    """What is wrong with the URI of a resource; None: nothing."""
    try:
        parts = urlsplit(uri or "")
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme != "coap" or not parts.hostname or port == 0:
        return f"{uri} is not of the form coap://host/path"
    return None


class CoapClient:
    """A loop in a thread, with one context of aiocoap in it."""

    def __init__(self, *, timeout_s: float, refresh_s: float = 60.0) -> None:
        self._timeout_s = timeout_s
        self._refresh_s = refresh_s
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="coap", daemon=True)
        self._context: Any = None
        self._closing = False
        self._watches: list[asyncio.Task[None]] = []
        self._heard: queue.Queue[CoapSample] = queue.Queue(_QUEUE_MAX)
        self._failures: dict[str, ConnectError] = {}  # Of resources that do not answer now.

    def open(self) -> None:
        """Start."""
        import aiocoap

        self._thread.start()
        self._context = self._done(aiocoap.Context.create_client_context())

    def watch(self, uri: str) -> None:
        """Have its samples come to `samples` from now on."""

        async def begin() -> None:
            self._watches.append(asyncio.create_task(self._watch(uri)))

        self._done(begin())

    def samples(self, count_max: int, wait_s: float) -> list[CoapSample]:
        """What has come, after a short wait; ConnectError for a resource that is gone for long."""
        for failure in list(self._failures.values()):
            if not isinstance(failure, RetriableConnectError):
                raise failure
        found: list[CoapSample] = []
        try:
            found.append(self._heard.get(timeout=wait_s))
            while len(found) < count_max:
                found.append(self._heard.get_nowait())
        except queue.Empty:
            pass
        return found

    def send(self, method: str, uri: str, payload: bytes, content_format: int | None) -> None:
        """One request; TimeoutError or OSError where nobody answers, DataError where refused."""
        answer = self._done(self._requested(method, uri, payload, content_format))
        if not answer.code.is_successful():
            told = answer.payload[:200].decode(errors="replace")
            error = f"{uri} answers {answer.code} {told}".strip()
            is_server = int(answer.code) >= 160  # 5.00 and above: it may pass.
            raise OSError(error) if is_server else DataError(error)

    def close(self) -> None:
        """End the observations and the thread."""
        if not self._thread.is_alive():
            return
        self._closing = True
        if self._context is not None:
            with contextlib.suppress(asyncio.InvalidStateError):
                self._done(self._context.shutdown())  # Ends what the watches wait for.
        self._done(self._end_watches())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    async def _end_watches(self) -> None:
        for one in self._watches:
            one.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)

    def _done(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(self._timeout_s + 30)

    async def _requested(
        self, method: str, uri: str, payload: bytes, content_format: int | None
    ) -> Any:
        import aiocoap
        from aiocoap.error import Error

        code = getattr(aiocoap, method)
        message = aiocoap.Message(code=code, uri=uri, payload=payload)
        if content_format is not None:
            message.opt.content_format = content_format
        try:
            return await self._answered(self._context.request(message))
        except Error as error:
            raise OSError(f"{uri}: {error!r}") from error

    async def _answered(self, asked: Any) -> Any:
        """aiocoap ends what it waits for itself, so it must not be cancelled under its hands."""
        return await asyncio.wait_for(asyncio.shield(asked.response), self._timeout_s)

    async def _watch(self, uri: str) -> None:
        from aiocoap.error import Error

        reach = ServerReach(uri, self._timeout_s)
        last: list[CoapSample] = []

        async def take(sample: CoapSample) -> None:
            reach.answered()
            self._failures.pop(uri, None)
            if last != [sample]:  # Asking anew brings what is known already.
                last[:] = [sample]
                await self._put(sample)

        while not self._closing:
            try:
                await self._observe(uri, take)
            except (Error, OSError, TimeoutError) as error:
                self._failures[uri] = reach.failed(error)
                await asyncio.sleep(min(1.0, self._refresh_s))

    async def _observe(
        self, uri: str, take: Callable[[CoapSample], Coroutine[Any, Any, None]]
    ) -> None:
        """Until it must be asked for anew, or fails."""
        import aiocoap

        message = aiocoap.Message(code=aiocoap.GET, uri=uri, observe=0)
        asked = self._context.request(message)
        try:
            first = await self._answered(asked)
            await take(_sample(uri, first))
            if first.opt.observe is None:
                await asyncio.sleep(self._refresh_s)
                return
            notices = aiter(asked.observation)
            while True:
                try:
                    notice = await asyncio.wait_for(anext(notices), self._refresh_s)
                except (TimeoutError, StopAsyncIteration):
                    return
                await take(_sample(uri, notice))
        finally:
            is_open = asked.observation is not None and not asked.observation.cancelled
            if is_open and not self._closing:
                asked.observation.cancel()

    async def _put(self, sample: CoapSample) -> None:
        while True:
            try:
                self._heard.put_nowait(sample)
            except queue.Full:
                await asyncio.sleep(_FULL_S)
            else:
                return


def _sample(uri: str, answer: Any) -> CoapSample:
    if not answer.code.is_successful():
        raise OSError(f"{uri} answers {answer.code}")
    given = answer.opt.content_format
    return CoapSample(
        uri=uri,
        payload=bytes(answer.payload),
        content_format=None if given is None else int(given),
    )
