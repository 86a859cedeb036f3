"""One topic, read once, for all who stream it.

A feed reads from where the topic ended when it began. Each record is put into each form that
anybody wants once, however many read it. The last records are kept, so that whoever comes back
after a broken connection, or has read up to there by himself, goes on without a gap.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from penstock.client.aio import AsyncConsumer
from penstock.client.values import ConsumerRecords, TopicPartition
from penstock.records.record import Record
from penstock.rest.v3.shown_records import RecordView, ShownFormats
from penstock.rest.v3.streams.frames import Framing
from penstock.rest.v3.streams.positions import positions_text
from penstock.rest.v3.streams.subscriber import StreamReader

if TYPE_CHECKING:
    from penstock.rest.payloads.schema_finder import SchemaFinder

_KEPT_BYTES = 128 << 10
_KEPT_RECORDS = 1_000
_ENVELOPE_BYTES = 200  # What a record takes beside its key and value.
_EACH_ID_PARTITIONS_MAX = 8  # With more, only the last record of several says where to resume.
_POLL_S = 1.0


class LiveRecord(NamedTuple):
    """A record and where a reader is after it."""

    partition: int
    record: Record
    position: str


class Form(NamedTuple):
    """What readers share who want the same."""

    framing: Framing
    formats: ShownFormats


class TopicFeed:
    """The live end of a topic and its readers."""

    def __init__(
        self,
        topic: str,
        consumer: AsyncConsumer[bytes, bytes],
        positions: dict[int, int],
        schemas: "SchemaFinder | None",
    ) -> None:
        self.topic = topic
        self.positions = positions  # The next offset to read, by partition.
        self._consumer = consumer
        self._schemas = schemas
        self._kept: deque[LiveRecord] = deque()
        self._kept_bytes = 0
        self._kept_from = dict(positions)  # From where on all records are kept.
        self._readers: dict[Form, set[StreamReader]] = {}
        self._views: dict[ShownFormats, RecordView] = {}

    @property
    def readers(self) -> list[StreamReader]:
        """All of them."""
        return [reader for group in self._readers.values() for reader in group]

    @classmethod
    async def open(
        cls,
        topic: str,
        settings: Mapping[str, str],
        positions: dict[int, int],
        schemas: "SchemaFinder | None",
    ) -> "TopicFeed":
        """A feed from these positions on."""
        consumer: AsyncConsumer[bytes, bytes] = AsyncConsumer(_consumer_settings(settings))
        feed = cls(topic, consumer, positions, schemas)
        await feed._assign(positions)
        return feed

    async def close(self) -> None:
        """Read no more."""
        await self._consumer.close()

    async def follow(self) -> None:
        """Read and share out, until cancelled."""
        while True:
            polled = await self._consumer.poll(_POLL_S)
            if len(polled):
                await self._share(self._taken_in(polled))

    async def extend(self, positions: Mapping[int, int]) -> None:
        """Read partitions too that are new."""
        new = {one: at for one, at in positions.items() if one not in self.positions}
        if new:
            self.positions.update(new)
            self._kept_from.update(new)
            await self._assign(new)

    def behind(self, reader: StreamReader) -> int | None:
        """A partition of which the next record for a reader is not kept; None: there is none."""
        for partition, at in self.positions.items():
            if reader.positions.setdefault(partition, at) < self._kept_from[partition]:
                return partition
        return None

    async def prepare(self, reader: StreamReader) -> None:
        """Have at hand what it takes to show what is kept; `join` cannot wait for a registry."""
        kept = list(self._kept)
        if self.view(reader.wish.formats).may_wait([one.record for one in kept]):
            await asyncio.to_thread(self._frames, _form(reader), kept)

    def join(self, reader: StreamReader) -> bool:
        """Let a reader live on the feed; False: it has to read on by itself first."""
        if self.behind(reader) is not None:
            return False
        missed = [one for one in self._kept if self._is_new_to(reader, one)]
        if missed:
            self._give(reader, missed, self._frames(_form(reader), missed))
        self._readers.setdefault(_form(reader), set()).add(reader)
        return True

    def leave(self, reader: StreamReader) -> None:
        """A reader has gone."""
        self._readers.get(_form(reader), set()).discard(reader)

    def view(self, formats: ShownFormats) -> RecordView:
        """What shows records in these formats."""
        if formats not in self._views:
            self._views[formats] = RecordView(formats, self._schemas)
        return self._views[formats]

    def _taken_in(self, polled: ConsumerRecords[bytes, bytes]) -> list[LiveRecord]:
        """Records with the position after each."""
        positions = dict(self.positions)
        is_each = len(positions) <= _EACH_ID_PARTITIONS_MAX
        found: list[LiveRecord] = []
        for one in polled:
            positions[one.partition] = one.offset + 1
            position = positions_text(positions) if is_each else ""
            record = Record(one.offset, one.timestamp_ms, one.key, one.value, tuple(one.headers))
            found.append(LiveRecord(one.partition, record, position))
        if not is_each:
            found[-1] = found[-1]._replace(position=positions_text(positions))
        return found

    async def _share(self, records: list[LiveRecord]) -> None:
        """Give records to all readers. They count as read, and are kept, in the same step."""
        frames: dict[Form, list[bytes]] = {}
        for form in [one for one, group in self._readers.items() if group]:
            frames[form] = await self._shown(form, records)
        self._keep(records)
        for form, group in self._readers.items():
            if group:
                # A form that somebody began to want while others were shown is made now.
                made = frames.get(form) or self._frames(form, records)
                self._give_all(group, records, made)

    async def _shown(self, form: Form, records: list[LiveRecord]) -> list[bytes]:
        """In a thread, where a registry may have to be asked."""
        if self.view(form.formats).may_wait([one.record for one in records]):
            return await asyncio.to_thread(self._frames, form, records)
        return self._frames(form, records)

    def _frames(self, form: Form, records: Iterable[LiveRecord]) -> list[bytes]:
        view = self.view(form.formats)
        frame = form.framing.record
        return [
            frame(view.text(one.partition, one.record), one.position or None) for one in records
        ]

    def _give_all(
        self, group: Iterable[StreamReader], records: Sequence[LiveRecord], frames: list[bytes]
    ) -> None:
        whole, position = b"".join(frames), records[-1].position
        firsts = _first_offsets(records)
        for reader in group:
            at = reader.positions
            if reader.wish.key is None and all(
                at.get(p, 0) <= first for p, first in firsts.items()
            ):
                reader.push(whole, position)
            else:
                self._give(reader, records, frames)

    def _give(
        self, reader: StreamReader, records: Sequence[LiveRecord], frames: list[bytes]
    ) -> None:
        """Those of the records that a reader wants and does not have yet."""
        wanted = reader.wish.key
        chosen = [
            frame
            for one, frame in zip(records, frames, strict=True)
            if self._is_new_to(reader, one) and wanted in (None, one.record.key)
        ]
        if chosen:
            reader.push(b"".join(chosen), positions_text(self.positions))

    def _is_new_to(self, reader: StreamReader, one: LiveRecord) -> bool:
        return one.record.offset >= reader.positions.get(one.partition, 0)

    def _keep(self, records: Iterable[LiveRecord]) -> None:
        for one in records:
            self._kept.append(one)
            self._kept_bytes += _size(one.record)
            self.positions[one.partition] = one.record.offset + 1
        while self._kept_bytes > _KEPT_BYTES or len(self._kept) > _KEPT_RECORDS:
            gone = self._kept.popleft()
            self._kept_bytes -= _size(gone.record)
            self._kept_from[gone.partition] = gone.record.offset + 1

    async def _assign(self, new: Mapping[int, int]) -> None:
        """Read all partitions, those that are new from these offsets on."""
        await self._consumer.assign([TopicPartition(self.topic, one) for one in self.positions])
        for partition, offset in new.items():
            await self._consumer.seek(TopicPartition(self.topic, partition), offset)


def _form(reader: StreamReader) -> Form:
    return Form(reader.wish.framing, reader.wish.formats)


def _first_offsets(records: Iterable[LiveRecord]) -> dict[int, int]:
    """By partition."""
    found: dict[int, int] = {}
    for one in records:
        found.setdefault(one.partition, one.record.offset)
    return found


def _wants_all(reader: StreamReader, firsts: Mapping[int, int]) -> bool:
    """Whether a reader has none of the records yet that begin at these offsets."""
    at = reader.positions
    return all(at.get(partition, 0) <= first for partition, first in firsts.items())


def _size(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"") + _ENVELOPE_BYTES


def _consumer_settings(settings: Mapping[str, str]) -> dict[str, str]:
    return {
        **settings,
        "auto.offset.reset": "earliest",  # Of a partition that was cut off beyond us.
        "enable.auto.commit": "false",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": "false",
        "max.poll.records": "2000",
        "statistics.interval.ms": "0",
        "queued.max.messages.kbytes": "8192",
    }
