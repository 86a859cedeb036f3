"""All streams of a proxy: a feed for each topic that anybody streams, and what each reader lacks.

A reader that begins in the past reads slices by itself, at its own pace, until the feed of its
topic has kept everything that it lacks; from then on it lives on the feed.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from penstock.client.admin import Admin
from penstock.client.operations.offsets import OffsetSpec
from penstock.client.values import OffsetAndTimestamp, TopicPartition
from penstock.client.wire.raw_fetch import OffsetGone
from penstock.errors import PenstockError, ProtocolError
from penstock.rest.brokers import Brokers
from penstock.rest.errors import TooManyRequests
from penstock.rest.proxy import Proxy
from penstock.rest.v3.reading import ReadSlice, read_slice
from penstock.rest.v3.replicas import partitions_of, topic_of
from penstock.rest.v3.shown_records import RecordView
from penstock.rest.v3.streams.feed import TopicFeed
from penstock.rest.v3.streams.positions import positions_text
from penstock.rest.v3.streams.subscriber import StreamReader, Wish

log = logging.getLogger("penstock.rest")

Write = Callable[[bytes], Awaitable[None]]

_BEAT_S = 15.0
_FEEDS_MAX = 100
_SLICE_RECORDS = 500
_PAUSE_S = 0.1
_CUT_S = 30.0  # How long a reader that was cut may take to hear it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a stream begins: at a time in ms or an OffsetSpec, or at positions."""

    time: int = int(OffsetSpec.LATEST)
    positions: dict[int, int] | None = None  # Partitions that are not named: from their beginning.


@dataclass(slots=True)
class _Hold:
    """A feed, who follows it, and how many need it."""

    feed: TopicFeed
    following: "asyncio.Task[None]"
    users: int = 0
    idle_since_s: float = 0.0


@dataclass(slots=True, kw_only=True, eq=False)
class OpenStream:
    """A reader on its feed."""

    reader: StreamReader
    feed: TopicFeed
    task: "asyncio.Task[None] | None" = None
    cut_s: float | None = field(default=None)


class StreamHub:
    """The streams of one proxy."""

    def __init__(self, proxy: Proxy, readers: Brokers) -> None:
        self._proxy = proxy
        self._readers = readers
        self._feeds: dict[str, _Hold] = {}
        self._opening = asyncio.Lock()
        self._streams: set[OpenStream] = set()

    @classmethod
    @asynccontextmanager
    async def open(cls, proxy: Proxy, readers: Brokers) -> AsyncIterator["StreamHub"]:
        """A hub; at the end its feeds are closed."""
        hub = cls(proxy, readers)
        beating = asyncio.create_task(hub._beat_on(), name="stream beats")
        try:
            yield hub
        finally:
            beating.cancel()
            for topic in list(hub._feeds):
                await hub._close(topic)

    def end(self) -> None:
        """The proxy stops: end all streams."""
        for stream in self._streams:
            stream.reader.end("stopping")

    async def begin(self, wish: Wish, start: Start) -> OpenStream:
        """A stream that is ready to run; raises where the topic or the room for it is not there."""
        if len(self._streams) >= self._proxy.config.streams_max:
            raise TooManyRequests
        hold = await self._hold(wish.topic)
        hold.users += 1
        try:
            positions = await self._positions(hold.feed, start)
            reader = StreamReader(wish, positions, self._proxy.config.stream_buffer_bytes)
            stream = OpenStream(reader=reader, feed=hold.feed)
        except BaseException:
            hold.users -= 1
            raise
        self._streams.add(stream)
        return stream

    async def run(self, stream: OpenStream, write: Write) -> None:
        """Give a reader all it wants, until it is cut, has gone, or the proxy stops."""
        reader = stream.reader
        stream.task = asyncio.current_task()
        try:
            await self._catch_up(stream, write)
            while (frames := await reader.take()) is not None:
                await write(frames)
                reader.note_sent()
            said = {"reason": _REASONS.get(reader.end_reason or "", ""), "next": reader.told}
            await write(reader.wish.framing.notice(reader.end_reason or "end", said))
        finally:
            self._leave(stream)

    async def _catch_up(self, stream: OpenStream, write: Write) -> None:
        feed, reader = stream.feed, stream.reader
        await feed.prepare(reader)
        while reader.end_reason is None and not feed.join(reader):
            partition = feed.behind(reader)
            if partition is None:
                continue
            before = reader.positions[partition]
            await write(await self._missed(reader, feed.view(reader.wish.formats), partition))
            reader.told = positions_text(reader.positions)
            if reader.positions[partition] == before:
                await asyncio.sleep(_PAUSE_S)

    async def _missed(self, reader: StreamReader, view: RecordView, partition: int) -> bytes:
        """Frames of the next records of a partition; its position moves on."""
        at = TopicPartition(reader.wish.topic, partition)
        offset = reader.positions[partition]
        try:
            found = await self._readers.ask(
                lambda admin: read_slice(admin, at, offset, records_max=_SLICE_RECORDS)
            )
        except OffsetGone as gone:
            reader.positions[partition] = gone.start or 0
            said = {"partition_id": partition, "from": offset, "to": reader.positions[partition]}
            return reader.wish.framing.notice("gap", said)
        if view.may_wait(found.records):
            return await asyncio.to_thread(_past_frames, reader, view, partition, found)
        return _past_frames(reader, view, partition, found)

    async def _hold(self, topic: str) -> _Hold:
        async with self._opening:
            held = self._feeds.get(topic)
            if held is not None:
                if not held.following.done():
                    return held
                await self._close(topic)  # It failed; whoever comes now may have more luck.
            if len(self._feeds) >= _FEEDS_MAX:
                raise TooManyRequests
            ends = await self._readers.ask(lambda admin: _offsets(admin, topic, OffsetSpec.LATEST))
            feed = await TopicFeed.open(
                topic, self._proxy.config.consumer, ends, self._proxy.schemas
            )
            following = asyncio.create_task(self._follow(feed), name=f"feed of {topic}")
            self._feeds[topic] = hold = _Hold(feed, following)
            return hold

    async def _follow(self, feed: TopicFeed) -> None:
        try:
            await feed.follow()
        except PenstockError as error:
            log.warning("Reading topic %s failed: %s", feed.topic, error)
        finally:
            for reader in feed.readers:
                reader.end("failed")

    async def _positions(self, feed: TopicFeed, start: Start) -> dict[int, int]:
        now = dict(feed.positions)
        if start.positions is None and start.time == OffsetSpec.LATEST:
            return now
        time = OffsetSpec.EARLIEST if start.positions is not None else start.time
        found = await self._readers.ask(lambda admin: _offsets(admin, feed.topic, time))
        given = start.positions or {}
        # Nobody can have read beyond the end: the topic was made anew, or the text is wrong.
        return {
            one: min(given.get(one, found.get(one, end)), max(end, found.get(one, end)))
            for one, end in feed.positions.items()
        }

    def _leave(self, stream: OpenStream) -> None:
        self._streams.discard(stream)
        stream.feed.leave(stream.reader)
        hold = self._feeds.get(stream.feed.topic)
        if hold is not None and hold.feed is stream.feed:
            hold.users -= 1
            hold.idle_since_s = asyncio.get_running_loop().time()

    async def _beat_on(self) -> None:
        while True:
            await asyncio.sleep(_BEAT_S)
            for stream in list(self._streams):
                self._beat(stream)
            for topic in list(self._feeds):
                try:
                    await self._look_after(topic)
                except PenstockError as error:  # Brokers that are away are looked for again.
                    log.debug("Looking after topic %s failed: %s", topic, error)

    def _beat(self, stream: OpenStream) -> None:
        now_s = asyncio.get_running_loop().time()
        if stream.reader.end_reason is None:
            stream.reader.beat()
        elif stream.cut_s is None:
            stream.cut_s = now_s
        elif now_s - stream.cut_s > _CUT_S and stream.task is not None:
            stream.task.cancel()  # It does not even read that it was cut.

    async def _look_after(self, topic: str) -> None:
        """Close a feed that nobody needs; read partitions that are new; end with the topic."""
        hold = self._feeds.get(topic)
        if hold is None:
            return
        idle_s = asyncio.get_running_loop().time() - hold.idle_since_s
        if not hold.users and idle_s > _BEAT_S:
            await self._close(topic)
            return
        try:
            count = await self._readers.partition_count(topic, may_create=False)
        except ProtocolError:
            for reader in hold.feed.readers:
                reader.end("gone")
            return
        await hold.feed.extend(dict.fromkeys(range(count), 0))

    async def _close(self, topic: str) -> None:
        hold = self._feeds.pop(topic)
        hold.following.cancel()
        await asyncio.wait([hold.following])
        await hold.feed.close()


_REASONS = {
    "slow": "The reader did not keep up.",
    "stopping": "The proxy stops.",
    "failed": "The topic cannot be read now.",
    "gone": "The topic does not exist any more.",
}


def _offsets(admin: Admin, topic: str, time: int) -> dict[int, int]:
    """The offset at a time or OffsetSpec in every partition; the end where none is that late."""
    partitions = [
        TopicPartition(topic, one.partition_index) for one in partitions_of(topic_of(admin, topic))
    ]
    found = admin.list_offsets(dict.fromkeys(partitions, time), read_committed=True)
    late = [at for at in partitions if found.get(at) is None]
    if late and time >= 0:
        found |= admin.list_offsets(
            dict.fromkeys(late, int(OffsetSpec.LATEST)), read_committed=True
        )
    return {at.partition: _offset(found.get(at)) for at in partitions}


def _offset(found: OffsetAndTimestamp | ProtocolError | None) -> int:
    if isinstance(found, ProtocolError):
        raise found
    return 0 if found is None else found.offset


def _past_frames(reader: StreamReader, view: RecordView, partition: int, found: ReadSlice) -> bytes:
    """What was read for one reader alone, each with where it is after that."""
    wish, frames = reader.wish, []
    for record in found.records:
        reader.positions[partition] = record.offset + 1
        if wish.key in (None, record.key):
            text = view.text(partition, record)
            frames.append(wish.framing.record(text, positions_text(reader.positions)))
    reader.positions[partition] = found.next_offset
    return b"".join(frames)
