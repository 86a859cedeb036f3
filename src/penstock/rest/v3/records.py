"""Our addition to version 3: the records of a partition by offset, without a consumer.

    GET /v3/clusters/{c}/topics/{t}/partitions/{p}/records?offset=42&limit=100&timeout=1000

`metadata.next` is where to go on, also when nothing has come yet.
"""

import asyncio

from penstock.client.operations.offsets import OffsetSpec
from penstock.client.values import TopicPartition
from penstock.client.wire.raw_fetch import OffsetGone
from penstock.errors import UnknownTopicOrPartition
from penstock.http.errors import HttpError
from penstock.http.handlers import Request, Response, Route
from penstock.records.record import Record
from penstock.rest.brokers import Brokers
from penstock.rest.errors import BadRequest
from penstock.rest.payloads.plain import dump_json
from penstock.rest.proxy import Proxy
from penstock.rest.v3.asking import links_of, number, segment
from penstock.rest.v3.bodies import media_of
from penstock.rest.v3.links import Document, Links, with_query
from penstock.rest.v3.reading import ReadSlice, find_offset, read_slice
from penstock.rest.v3.shown_records import RecordView, ShownFormats

_PATH = (
    "/v3/clusters/{cluster:segment}/topics/{topic:segment}/partitions/{partition:segment}/records"
)
_LIMIT, _LIMIT_MAX = 100, 10_000
_TIMEOUT_MS_MAX = 30_000
_OFFSET_MAX = 2**63 - 1
_EDGES = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST}
_STEP_MS = 500


class NoSuchOffset(HttpError):
    """The partition begins later or ends before."""

    status = 416


class PartitionRecords:
    """Handlers for one proxy; what waits for records has threads of its own."""

    def __init__(self, proxy: Proxy, readers: Brokers) -> None:
        self._proxy = proxy
        self._readers = readers

    def routes(self) -> list[Route]:
        return [Route(_PATH, self._read, methods=["GET"])]

    async def _read(self, request: Request) -> Response:
        links = await links_of(self._proxy, request)
        at = TopicPartition(segment(request, "topic"), number(request, "partition"))
        asked = request.query_params
        limit = whole(asked.get("limit"), "limit", default=_LIMIT, most=_LIMIT_MAX, least=1)
        wait_ms = whole(asked.get("timeout"), "timeout", default=0, most=_TIMEOUT_MS_MAX)
        formats = ShownFormats.of(asked.get("key_format"), asked.get("value_format"))
        if at.partition >= await self._proxy.brokers.partition_count(at.topic, may_create=False):
            raise UnknownTopicOrPartition(f"Partition {at} does not exist.")
        offset = await self._offset(at, asked.get("offset", "earliest"))
        found = await self._wait(at, offset, limit, wait_ms)
        data = await show(RecordView(formats, self._proxy.schemas), at.partition, found.records)
        document = _page(links, at, dict(asked), found, data)
        return Response(dump_json(document), media_type=media_of(request))

    async def _offset(self, at: TopicPartition, text: str) -> int:
        if text not in _EDGES:
            return whole(text, "offset", default=0, most=_OFFSET_MAX)
        return await self._readers.ask(lambda admin: find_offset(admin, at, int(_EDGES[text])))

    async def _wait(self, at: TopicPartition, offset: int, limit: int, wait_ms: int) -> ReadSlice:
        """What there is, or what comes within the time."""
        clock = asyncio.get_running_loop().time
        deadline_s = clock() + wait_ms / 1000
        while True:
            left_ms = max(0, int((deadline_s - clock()) * 1000))
            found = await self._slice(at, offset, limit, min(left_ms, _STEP_MS))
            if found.records or not left_ms or self._proxy.stopping.is_set():
                return found
            offset = found.next_offset

    async def _slice(self, at: TopicPartition, offset: int, limit: int, wait_ms: int) -> ReadSlice:
        try:
            return await self._readers.ask(
                lambda admin: read_slice(admin, at, offset, records_max=limit, wait_ms=wait_ms)
            )
        except OffsetGone as gone:
            raise NoSuchOffset(str(gone)) from None


async def show(view: RecordView, partition: int, records: list[Record]) -> list[Document]:
    """Records as documents; in a thread, where a registry may have to be asked."""
    if view.may_wait(records):
        return await asyncio.to_thread(_documents, view, partition, records)
    return _documents(view, partition, records)


def whole(text: str | None, name: str, *, default: int, most: int, least: int = 0) -> int:
    """A parameter that is a whole number within bounds."""
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        raise BadRequest(f"{name}={text[:50]} is not a whole number.")
    if not least <= int(text) <= most:
        raise BadRequest(f"{name}={text} is not between {least} and {most}.")
    return int(text)


def _documents(view: RecordView, partition: int, records: list[Record]) -> list[Document]:
    return [view.document(partition, record) for record in records]


def _page(
    links: Links, at: TopicPartition, asked: dict[str, str], found: ReadSlice, data: list[Document]
) -> Document:
    place = links.to("topics", at.topic, "partitions", at.partition, "records")
    following = with_query(place, asked | {"offset": str(found.next_offset)})
    return {
        "kind": "KafkaRecordList",
        "metadata": {"self": with_query(place, asked), "next": following},
        "cluster_id": links.cluster_id,
        "topic_name": at.topic,
        "partition_id": at.partition,
        "next_offset": found.next_offset,
        "end_offset": found.end_offset,
        "data": data,
    }
