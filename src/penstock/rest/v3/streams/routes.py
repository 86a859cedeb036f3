"""Our addition to version 3: the records of a topic as they come, over HTTP or a WebSocket.

    GET /v3/clusters/{c}/topics/{t}/records:stream?from=earliest&key=...

`Accept` chooses SSE or NDJSON. `from` is `earliest`, `latest`, a time, or positions as the ids of
events have them; `Last-Event-ID`, which browsers send by themselves, counts before it.
"""

import asyncio
import base64
from collections.abc import Mapping

from penstock.client.operations.offsets import OffsetSpec
from penstock.http.errors import HttpError, NotAcceptable
from penstock.http.handlers import (
    BaseRoute,
    Receive,
    Request,
    Response,
    Route,
    Scope,
    Send,
    WebSocket,
    WebSocketDisconnect,
    WebSocketRoute,
)
from penstock.http.negotiation import negotiated
from penstock.rest.errors import BadRequest, translate
from penstock.rest.json_text import dumps
from penstock.rest.proxy import Proxy
from penstock.rest.v3.asking import NotThere, links_of, segment
from penstock.rest.v3.sent_records import timestamp_ms
from penstock.rest.v3.shown_records import ShownFormats
from penstock.rest.v3.streams.frames import Framing
from penstock.rest.v3.streams.hub import OpenStream, Start, StreamHub
from penstock.rest.v3.streams.positions import parse_positions
from penstock.rest.v3.streams.subscriber import Wish

_PATH = "/v3/clusters/{cluster:segment}/topics/{topic:segment}/records:stream"
_OVER_HTTP = (Framing.SSE.value, Framing.NDJSON.value)
_EDGES = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST}
_RETRY_MS = 1000
_REFUSED, _ENDED, _LATER = 1008, 1000, 1013  # Codes with which a WebSocket closes.
_REASON_BYTES_MAX = 120


class StreamRoutes:
    """Handlers for one proxy."""

    def __init__(self, proxy: Proxy, hub: StreamHub) -> None:
        self._proxy = proxy
        self._hub = hub

    def routes(self) -> list[BaseRoute]:
        return [
            Route(_PATH, self._stream, methods=["GET"]),
            WebSocketRoute(_PATH, self._socket),
        ]

    async def _stream(self, request: Request) -> Response:
        await links_of(self._proxy, request)
        media = negotiated(request.headers.get("accept"), _OVER_HTTP)
        if media is None:
            raise NotAcceptable(f"Offered here are: {', '.join(_OVER_HTTP)}.")
        wish = wish_of(segment(request, "topic"), request.query_params, Framing(media))
        last = request.headers.get("last-event-id")
        stream = await self._hub.begin(wish, start_of(request.query_params, last))
        return _StreamAnswer(self._hub, stream)

    async def _socket(self, socket: WebSocket) -> None:
        await socket.accept()
        try:
            stream = await self._begin_socket(socket)
        except Exception as error:
            refused = translate(error)
            if refused is None:
                raise
            await _refuse(socket, refused)
            return
        await self._run_socket(socket, stream)

    async def _begin_socket(self, socket: WebSocket) -> OpenStream:
        cluster, topic = (str(socket.path_params[name]) for name in ("cluster", "topic"))
        if cluster != await self._proxy.brokers.cluster_id():
            raise NotThere(f"Cluster {cluster} cannot be found.")
        wish = wish_of(topic, socket.query_params, Framing.WEBSOCKET)
        last = socket.headers.get("last-event-id")
        return await self._hub.begin(wish, start_of(socket.query_params, last))

    async def _run_socket(self, socket: WebSocket, stream: OpenStream) -> None:
        async def write(frames: bytes) -> None:
            for text in filter(None, frames.split(b"\n")):
                await socket.send_text(text.decode())

        watching = asyncio.create_task(_until_closed(socket, stream), name="socket reader")
        try:
            await self._hub.run(stream, write)
            is_ours = stream.reader.end_reason != "left"
            if is_ours:
                await socket.close(_LATER if stream.reader.end_reason == "slow" else _ENDED)
        except (WebSocketDisconnect, RuntimeError):
            pass  # It was closed while we wrote.
        finally:
            watching.cancel()


class _StreamAnswer(Response):
    """An answer that ends when its client goes, is too slow, or the proxy stops."""

    def __init__(self, hub: StreamHub, stream: OpenStream) -> None:
        super().__init__(media_type=stream.reader.wish.framing.value)
        del self.headers["content-length"]
        self.headers["cache-control"] = "no-cache"
        self.headers["x-accel-buffering"] = "no"
        self._hub = hub
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reader = self._stream.reader

        async def write(frames: bytes) -> None:
            if frames:
                await send({"type": "http.response.body", "body": frames, "more_body": True})

        watching = asyncio.create_task(_until_gone(receive, self._stream), name="stream watch")
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            await send(start)
            if reader.wish.framing is Framing.SSE:
                await write(f"retry: {_RETRY_MS}\nid: {reader.told}\n\n".encode())
            await self._hub.run(self._stream, write)
            await send({"type": "http.response.body", "body": b""})
        finally:
            watching.cancel()


def wish_of(topic: str, asked: Mapping[str, str], framing: Framing) -> Wish:
    """What a request wants of a topic."""
    return Wish(
        topic=topic,
        framing=framing,
        formats=ShownFormats.of(asked.get("key_format"), asked.get("value_format")),
        key=_key(asked),
    )


def start_of(asked: Mapping[str, str], last_event_id: str | None) -> Start:
    """Where a request wants to begin."""
    if last_event_id:
        positions = parse_positions(last_event_id)
        if positions is None:
            raise BadRequest("Last-Event-ID is not such as 0-124,1-57.")
        return Start(positions=positions)
    text = asked.get("from", "latest")
    if text in _EDGES:
        return Start(time=int(_EDGES[text]))
    if text.isascii() and text.isdecimal() and len(text) <= 15:
        return Start(time=int(text))
    positions = parse_positions(text)
    return Start(positions=positions) if positions is not None else Start(time=timestamp_ms(text))


def _key(asked: Mapping[str, str]) -> bytes | None:
    text, encoded = asked.get("key"), asked.get("key_base64")
    if encoded is None:
        return None if text is None else text.encode()
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:
        raise BadRequest("key_base64 is not base64.") from None


async def _until_gone(receive: Receive, stream: OpenStream) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.reader.end("left")


async def _until_closed(socket: WebSocket, stream: OpenStream) -> None:
    """What a client says on its socket means nothing to us; that it closes does."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
    stream.reader.end("left")


async def _refuse(socket: WebSocket, error: HttpError) -> None:
    document = {"error_code": error.code, "message": str(error)}
    await socket.send_text(dumps(document).decode())
    await socket.close(_REFUSED, str(error).encode()[:_REASON_BYTES_MAX].decode(errors="ignore"))
