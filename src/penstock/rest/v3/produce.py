"""Producing: a stream of records in a body without end, a stream of receipts in the answer.

Two sides of one request run beside each other. One reads the body, cuts records out of it and
hands them to the producer; the other waits for what became of them and writes a receipt for each,
in order. Between them is a queue of a few pieces: a client that does not read its receipts soon is
not read from either.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

from penstock.client.errors import BrokerUnreachableError
from penstock.errors import PenstockError
from penstock.http.errors import HttpError
from penstock.http.handlers import Receive, Request, Response, Route, Scope, Send
from penstock.rest.errors import BadRequest, UnprocessableRequest, translate
from penstock.rest.json_text import loads
from penstock.rest.payloads.plain import load_json
from penstock.rest.producing import Outcome, Outgoing, StoredAt
from penstock.rest.proxy import Proxy
from penstock.rest.v3.asking import links_of, objects, segment
from penstock.rest.v3.bodies import answer, check_media, read_document
from penstock.rest.v3.links import Document
from penstock.rest.v3.sent_records import (
    Receipts,
    RecordReader,
    SchemaNeeded,
    SentRecord,
    failed,
)
from penstock.rest.v3.splitter import JsonSplitter
from penstock.schemas.errors import SchemaError

_TOPIC = "/v3/clusters/{cluster:segment}/topics/{topic:segment}"
_PIECES_MAX = 8  # Pieces of the body whose records may be under way.
_LOOKUPS_MAX = 4  # A schema for the key, one for the value, and each may just have grown old.
_ENTRIES_MAX = 10_000
_ID_LENGTH_MAX = 80


class StreamedProduce:
    """Handlers for one proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._open: set[asyncio.Task[None]] = set()

    def routes(self) -> list[Route]:
        return [
            Route(f"{_TOPIC}/records", self._produce, methods=["POST"]),
            Route(f"{_TOPIC}/records:batch", self._produce_batch, methods=["POST"]),
        ]

    def end(self) -> None:
        """Read no more from anybody; what was read is stored and told."""
        for reading in self._open:
            reading.cancel()

    async def _produce(self, request: Request) -> Response:
        check_media(request)
        links, topic = await links_of(self._proxy, request), segment(request, "topic")
        receipts = Receipts(links.cluster_id, topic)
        return _ReceiptStream(self, request, _Sender(self._proxy, topic), receipts)

    async def _produce_batch(self, request: Request) -> Response:
        links, topic = await links_of(self._proxy, request), segment(request, "topic")
        entries = batch_entries(await read_document(request))
        under_way = await _Sender(self._proxy, topic).send_documents(entries)
        receipts = await under_way.told(Receipts(links.cluster_id, topic))
        successes: list[Document] = []
        failures: list[Document] = []
        for entry, receipt in zip(entries, receipts, strict=True):
            said = {"id": entry["id"], **loads(receipt)}
            is_stored = said["error_code"] == 200
            (successes if is_stored else failures).append(said)
            if is_stored:
                del said["error_code"]
        return answer(request, {"successes": successes, "failures": failures}, status=207)

    async def run(
        self,
        start: Document,
        pieces: AsyncIterator[bytes],
        sender: "_Sender",
        receipts: Receipts,
        send: Send,
    ) -> None:
        """Both sides of a request, until the body or the client has ended."""
        under_way: asyncio.Queue[_UnderWay | None] = asyncio.Queue(_PIECES_MAX)
        reading = asyncio.create_task(_read(pieces, sender, under_way), name="produce body")
        self._open.add(reading)
        await asyncio.sleep(0)  # Whoever waits to be told to go on is told by the first read.
        try:
            await send(start)
            await _write(under_way, receipts, send)
            if not reading.cancelled():
                await reading  # It raises that the client has gone.
        finally:
            self._open.discard(reading)
            reading.cancel()


class _ReceiptStream(Response):
    """The answer to a stream of records; it begins before the body has ended."""

    def __init__(
        self, produce: StreamedProduce, request: Request, sender: "_Sender", receipts: Receipts
    ) -> None:
        super().__init__(media_type="application/json")
        del self.headers["content-length"]
        self._produce = produce
        self._request = request
        self._sender = sender
        self._receipts = receipts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        pieces = self._request.stream()
        await self._produce.run(start, pieces, self._sender, self._receipts, send)
        await send({"type": "http.response.body", "body": b""})


class _UnderWay(NamedTuple):
    """Some records on their way to the brokers."""

    records: Sequence[SentRecord | HttpError]  # An error: it was not sent at all.
    outcomes: "asyncio.Future[Sequence[Outcome]]"  # Of those that were sent.

    async def told(self, receipts: Receipts) -> list[bytes]:
        """What became of them, in their order, as soon as that is known of all."""
        outcomes = iter(await self.outcomes)
        return [
            _refusal(one) if isinstance(one, HttpError) else _told(one, next(outcomes), receipts)
            for one in self.records
        ]


class _Sender:
    """Turns the documents of one request into records and hands them over."""

    def __init__(self, proxy: Proxy, topic: str) -> None:
        self._proxy = proxy
        self._topic = topic
        schemas = proxy.schemas
        self._reader = RecordReader(topic, None if schemas is None else schemas.known)
        self.record_bytes_max = proxy.config.record_bytes_max

    async def send_texts(self, texts: Sequence[bytes], failure: str | None) -> "_UnderWay":
        """Hand over records that are still text; a failure comes after them."""
        refusal = await self._refusal()
        records = [await self._from_text(text) if refusal is None else refusal for text in texts]
        if failure is not None:
            records.append(BadRequest(failure))
        return await self._hand_over(records)

    async def send_documents(self, documents: Sequence[Document]) -> "_UnderWay":
        """Hand over records that were read already."""
        refusal = await self._refusal()
        records = [await self._from(one) if refusal is None else refusal for one in documents]
        return await self._hand_over(records)

    async def _refusal(self) -> HttpError | None:
        """Why no record can be stored in this topic."""
        try:
            await self._proxy.brokers.partition_count(self._topic)
        except PenstockError as error:
            return translate(error)
        return None

    async def _from_text(self, text: bytes) -> SentRecord | HttpError:
        try:
            return self._reader.read(load_json(text))
        except SchemaNeeded:
            return await self._from(load_json(text))
        except HttpError as error:
            return error
        except (ValueError, RecursionError) as error:
            return BadRequest(f"A record is not JSON: {error}")

    async def _from(self, document: Any) -> SentRecord | HttpError:
        for _ in range(_LOOKUPS_MAX):
            try:
                return self._reader.read(document)
            except HttpError as error:
                return error
            except SchemaNeeded as needed:
                refused = await self._find(needed)
                if refused is not None:
                    return refused
        return UnprocessableRequest("The schema registry is too slow.")

    async def _find(self, needed: SchemaNeeded) -> HttpError | None:
        """Have a schema at hand; why that cannot be."""
        assert self._proxy.schemas is not None
        try:
            await asyncio.to_thread(self._proxy.schemas.find, needed.choice)
        except (SchemaError, BrokerUnreachableError) as error:
            return UnprocessableRequest(f"Error when fetching a schema: {error}")
        return None

    async def _hand_over(self, records: Sequence[SentRecord | HttpError]) -> "_UnderWay":
        outgoing: list[Outgoing] = [one.outgoing for one in records if isinstance(one, SentRecord)]
        return _UnderWay(records, await self._proxy.producer.hand_over(outgoing))


def batch_entries(body: Document) -> list[Document]:
    """The entries of a batch, each with an id of its own."""
    entries = objects(body, "entries")
    if not entries:
        raise UnprocessableRequest("Batch must not be empty.")
    if len(entries) > _ENTRIES_MAX:
        raise UnprocessableRequest(f"Batch has more than {_ENTRIES_MAX} entries.")
    ids = [one.get("id") for one in entries]
    if not all(isinstance(one, str) and 0 < len(one) <= _ID_LENGTH_MAX for one in ids):
        raise UnprocessableRequest(f"An id is not a string of 1 to {_ID_LENGTH_MAX} characters.")
    if len(set(ids)) < len(ids):
        raise UnprocessableRequest("Batch ids are not distinct.")
    return entries


async def _read(
    pieces: AsyncIterator[bytes],
    sender: _Sender,
    under_way: "asyncio.Queue[_UnderWay | None]",
) -> None:
    """Hand over the records of a body as they come; at its end, None."""
    splitter = JsonSplitter(sender.record_bytes_max)
    try:
        async for piece in pieces:
            texts = splitter.feed(piece)
            if texts or splitter.failure:
                await under_way.put(await sender.send_texts(texts, splitter.failure))
            if splitter.failure:
                return  # Where the next record begins cannot be known.
        splitter.finish()
        if splitter.failure:
            await under_way.put(await sender.send_texts([], splitter.failure))
    finally:
        await under_way.put(None)


async def _write(
    under_way: "asyncio.Queue[_UnderWay | None]", receipts: Receipts, send: Send
) -> None:
    while (records := await under_way.get()) is not None:
        text = b"".join(await records.told(receipts))
        await send({"type": "http.response.body", "body": text, "more_body": True})


def _told(record: SentRecord, outcome: Outcome, receipts: Receipts) -> bytes:
    if isinstance(outcome, StoredAt):
        return receipts.stored(outcome, record.sides)
    return _refusal(translate(outcome) or BadRequest(str(outcome)))


def _refusal(error: HttpError) -> bytes:
    return failed(error.code, str(error))
