"""A device that speaks CoAP, in a thread: resources with values that can be observed and put."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import aiocoap
import aiocoap.resource
from aiocoap.numbers.codes import CHANGED, UNPROCESSABLE_ENTITY
from tests.support.processes import HOST, free_port

POISON = b"poison"


class _Lamp(aiocoap.resource.ObservableResource):  # type: ignore[misc]
    """Has a state; refuses poison."""

    def __init__(self) -> None:
        super().__init__()
        self.state = b"off"
        self.puts: list[bytes] = []

    async def render_get(self, request: Any) -> Any:
        return aiocoap.Message(payload=self.state, content_format=0)

    async def render_put(self, request: Any) -> Any:
        if request.payload == POISON:
            return aiocoap.Message(code=UNPROCESSABLE_ENTITY, payload=b"no thanks")
        self.puts.append(request.payload)
        self.state = request.payload
        self.updated_state()
        return aiocoap.Message(code=CHANGED)


class _Meter(aiocoap.resource.Resource):  # type: ignore[misc]
    """Can be asked, and not observed: each answer is one more."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    async def render_get(self, request: Any) -> Any:
        self.count += 1
        return aiocoap.Message(payload=str(self.count).encode())


class CoapDevice:
    """A lamp at /lamp and a meter at /meter."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.lamp, self.meter = _Lamp(), _Meter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._context: Any = None

    @property
    def uri(self) -> str:
        return f"coap://{HOST}:{self.port}"

    def start(self) -> None:
        self._thread.start()
        site = aiocoap.resource.Site()
        site.add_resource(["lamp"], self.lamp)
        site.add_resource(["meter"], self.meter)
        making = aiocoap.Context.create_server_context(site, bind=(HOST, self.port))
        self._context = self._done(making)

    def switch(self, state: bytes) -> None:
        """As if somebody pressed the button."""

        async def change() -> None:
            self.lamp.state = state
            self.lamp.updated_state()

        self._done(change())

    def stop(self) -> None:
        self._done(self._context.shutdown())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    def _done(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)


@contextmanager
def coap_device(port: int | None = None) -> Iterator[CoapDevice]:
    """A device that answers."""
    device = CoapDevice(port or free_port())
    device.start()
    try:
        yield device
    finally:
        device.stop()
