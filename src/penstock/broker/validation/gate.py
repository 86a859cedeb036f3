"""The gate before the log of a topic that checks schemas.

Two ways in. `check_at_once` is for the event loop: it lets a batch through whose ids are all known
to be right, which is nearly every batch, and otherwise says TakesLong. Then the batch is copied and
everything that the client sent after it waits (`_append_later` in handlers/produce.py), and `check`
asks the registry, has records decoded, and does with the bad ones what the topic's settings say.
A batch that the log has already is let through: the log answers it with its first offsets.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from penstock.broker.context import Broker
from penstock.broker.incoming import AT_ONCE_BYTES_MAX, Batches, TakesLong
from penstock.broker.validation.dead_letters import send_letters
from penstock.broker.validation.port import OpenValidator, Validator
from penstock.errors import CorruptRecord, InvalidRecord, RequestTimedOut
from penstock.records.batch import (
    CODEC_BITS,
    HEADER_BYTES,
    BatchHeader,
    Record,
    check_batch,
    read_records,
    view_payload,
)
from penstock.records.compression import DECOMPRESSED_BYTES_MAX, Codec
from penstock.records.gaps import leave_out
from penstock.records.schema_check import RecordFlaw, SchemasAway, SchemaScope
from penstock.records.schema_ids import NO_HEADER, read_schema_ids
from penstock.records.validate import RecordError, RecordsRejected
from penstock.replica.partition import Partition
from penstock.storage.log.config import LogConfig
from penstock.storage.producers.producers import ProducerUpdate
from penstock.telemetry.metrics import Gauge

log = logging.getLogger("penstock.validation")

AT_ONCE_RECORDS_MAX: Final = 2_000  # Looking at the ids of so many takes one or two milliseconds.
_PLAIN_BYTES_MAX: Final = 2 << 20  # Uncompressed; it is copied.
_UNPACKED_BYTES_MAX: Final = 256 << 10  # A millisecond, or two where it was gzip.
_ERRORS_MAX: Final = 10_000  # The answer must stay small.
_WARN_EVERY_S: Final = 10.0
_NO_HEADER_CLASS: Final = "penstock.errors.InvalidRecord"


class ValidationGate:
    """Opens the validator when a topic first asks for it."""

    def __init__(self, broker: Broker, open_validator: OpenValidator | None) -> None:
        self._broker = broker
        self._open_validator = open_validator
        self._validator: Validator | None = None  # None: no topic has asked yet.
        self._opening = asyncio.Lock()
        self._warned_s: dict[str, float] = {}  # When a topic was last warned of.

    # On the event loop

    def check_at_once(self, partition: Partition, batches: Batches) -> None:
        """Return if the batches may be appended; raises TakesLong where that is not plain."""
        validator, checks = self._validator, partition.log.config.schema_checks
        if validator is None or any(check.decodes for check in checks):
            raise TakesLong
        began_s = time.perf_counter()
        topic, count = partition.topic, 0
        for header, batch in batches:
            if _is_in_log(partition, header):
                continue
            payload = _small_payload(header, batch)
            count += header.record_count
            for is_key, strategy, _ in checks:
                ids = _ids_at_once(payload, header, is_key)
                if not ids <= validator.good_ids(SchemaScope(topic, is_key, strategy)):
                    raise TakesLong
        self._count(topic, count, began_s)

    # Beside it

    async def check(self, partition: Partition, batches: Batches) -> Batches:
        """The batches to append; raises what the producer is to be told."""
        began_s = time.perf_counter()
        passed: list[tuple[BatchHeader, memoryview]] = []
        count = 0
        try:
            for header, batch in batches:
                if _is_in_log(partition, header):
                    passed.append((header, batch))
                    continue
                count += header.record_count
                passed.append(await self._check_one(partition, header, batch))
        finally:
            self._count(partition.topic, count, began_s)
        return passed

    async def close(self) -> None:
        validator, self._validator = self._validator, None
        self._open_validator = None
        if validator is not None:
            await validator.close()

    def gauges(self) -> Iterator[Gauge]:
        """What a scrape sees."""
        if self._validator is not None:
            for name, value in self._validator.gauges().items():
                yield Gauge(f"penstock_validation_{name}", {}, value)

    async def _check_one(
        self, partition: Partition, header: BatchHeader, batch: memoryview
    ) -> tuple[BatchHeader, memoryview]:
        config = partition.log.config
        try:
            flaws = await self._flaws(partition, header, batch)
        except SchemasAway as error:
            self._note_away(partition, header, config, error)
            return header, batch
        except CorruptRecord as error:
            raise InvalidRecord(str(error)) from error
        if not flaws:
            return header, batch
        if config.penstock_validation_action == "warn":
            self._warn(partition.topic, f"{len(flaws)} records of a batch fail", flaws[0].reason)
            self._broker.metrics.topic(partition.topic).validation_warned += len(flaws)
            return header, batch
        if config.penstock_validation_action == "dlq":
            return await self._without(partition, header, batch, flaws)
        self._broker.metrics.topic(partition.topic).validation_refused += len(flaws)
        raise rejection(flaws)

    async def _flaws(
        self, partition: Partition, header: BatchHeader, batch: memoryview
    ) -> list[RecordFlaw]:
        validator = await self._opened()
        checks = partition.log.config.schema_checks
        found: dict[int, RecordFlaw] = {}
        payload = await self._broker.slow_lane.run(
            lambda: bytes(view_payload(header, batch, bytes_max=DECOMPRESSED_BYTES_MAX))
        )
        for is_key, strategy, _ in checks:
            scope = SchemaScope(partition.topic, is_key, strategy)
            read = partial(read_schema_ids, payload, header.record_count, is_key=is_key)
            ids = await self._broker.slow_lane.run(read)
            unknown = set(ids) - validator.good_ids(scope) - {NO_HEADER}
            refused = await validator.refusals(unknown, scope) if unknown else {}
            for flaw in id_flaws(ids, refused, scope):
                found.setdefault(flaw.batch_index, flaw)
        sides = [check.is_key for check in checks if check.decodes]
        if sides and len(found) < header.record_count:
            for flaw in await validator.undecodable(batch, sides, sorted(found)):
                found.setdefault(flaw.batch_index, flaw)
        return [found[index] for index in sorted(found)]

    async def _opened(self) -> Validator:
        """Importing what it needs takes long, so a thread does it."""
        async with self._opening:
            if self._validator is None:
                config, opening = self._broker.config, self._open_validator
                if opening is None or not config.confluent_schema_registry_url:
                    raise SchemasAway("confluent.schema.registry.url is not set on this broker")
                self._validator = await self._broker.slow_lane.run(partial(opening, config))
            return self._validator

    def _note_away(
        self, partition: Partition, header: BatchHeader, config: LogConfig, error: SchemasAway
    ) -> None:
        """Raises what the producer is told, unless the topic takes records unseen."""
        if config.penstock_validation_when_away != "accept":
            raise RequestTimedOut(f"the records could not be checked: {error}") from error
        self._broker.metrics.topic(partition.topic).validation_unchecked += header.record_count
        self._warn(partition.topic, "records are appended unchecked", str(error))

    def _warn(self, topic: str, what: str, reason: str) -> None:
        """Now and then: a topic may have a thousand bad records a second."""
        now_s = time.monotonic()
        if now_s - self._warned_s.get(topic, -_WARN_EVERY_S) >= _WARN_EVERY_S:
            self._warned_s[topic] = now_s
            log.warning("Topic %s: %s, such as: %s", topic, what, reason)

    def _count(self, topic: str, records: int, began_s: float) -> None:
        metrics = self._broker.metrics.topic(topic)
        metrics.validation_checked += records
        metrics.validation_seconds += time.perf_counter() - began_s

    # Dead letters

    async def _without(
        self, partition: Partition, header: BatchHeader, batch: memoryview, flaws: list[RecordFlaw]
    ) -> tuple[BatchHeader, memoryview]:
        """The batch without the records that fail, which are in the dead letter topic by now."""
        _check_next(partition, header)
        broker, topic, config = self._broker, partition.topic, partition.log.config
        where = config.penstock_validation_dlq_topic or f"{topic}.dlq"
        letters = await broker.slow_lane.run(lambda: list(self._letters(partition, batch, flaws)))
        await send_letters(broker, where, partition.partition, letters)
        broker.metrics.topic(topic).validation_dead_letters += len(letters)
        self._warn(topic, f"{len(letters)} records went to {where}", flaws[0].reason)
        dropped = {flaw.batch_index for flaw in flaws}
        level = _level(header.codec, config)
        left = await broker.slow_lane.run(partial(leave_out, batch, dropped, level=level))
        return check_batch(memoryview(left)), memoryview(left)

    def _letters(
        self, partition: Partition, batch: memoryview, flaws: Iterable[RecordFlaw]
    ) -> Iterator[Record]:
        validator = self._validator
        assert validator is not None
        by_index = {flaw.batch_index: flaw for flaw in flaws}
        for index, record in enumerate(read_records(batch)):
            if index in by_index:
                cause = validator.dead_letter_headers(
                    by_index[index],
                    topic=partition.topic,
                    partition=partition.partition,
                    timestamp_ms=record.timestamp,
                )
                yield record._replace(headers=(*record.headers, *cause))


def id_flaws(ids: list[int], refused: dict[int, str], scope: SchemaScope) -> Iterator[RecordFlaw]:
    """The records whose id is refused, or that name none."""
    if not refused and NO_HEADER not in ids:
        return
    nameless = f"the {scope.side} does not begin with a zero byte and a schema id"
    for index, schema_id in enumerate(ids):
        reason = nameless if schema_id == NO_HEADER else refused.get(schema_id)
        if reason is not None:
            yield RecordFlaw(index, scope.is_key, reason, _NO_HEADER_CLASS)


def rejection(flaws: list[RecordFlaw]) -> RecordsRejected:
    """What a producer is told of a batch that is refused whole."""
    errors = [RecordError(flaw.batch_index, flaw.reason) for flaw in flaws[:_ERRORS_MAX]]
    return RecordsRejected(errors, len(flaws))


def _small_payload(header: BatchHeader, batch: memoryview) -> bytes:
    if header.record_count > AT_ONCE_RECORDS_MAX or len(batch) > _PLAIN_BYTES_MAX:
        raise TakesLong
    if not header.attributes & CODEC_BITS:
        return bytes(batch[HEADER_BYTES:])
    if len(batch) > AT_ONCE_BYTES_MAX:
        raise TakesLong
    try:
        return bytes(view_payload(header, batch, bytes_max=_UNPACKED_BYTES_MAX))
    except CorruptRecord:
        raise TakesLong from None  # Damaged, or only larger than this bound: a thread finds out.


def _ids_at_once(payload: bytes, header: BatchHeader, is_key: bool) -> set[int]:
    try:
        return set(read_schema_ids(payload, header.record_count, is_key=is_key))
    except CorruptRecord:
        raise TakesLong from None  # Refused in one place, and that is not here.


def _is_in_log(partition: Partition, header: BatchHeader) -> bool:
    """Whether it was taken before: then nothing about it is decided again."""
    if header.producer_id < 0:
        return False
    update = ProducerUpdate(partition.log.producer_state.table)
    return update.duplicate_of(header) is not None


def _check_next(partition: Partition, header: BatchHeader) -> None:
    """Refuse a batch that the log would refuse, before its dead letters are out."""
    partition.check_leader()
    if header.producer_id >= 0:
        update = ProducerUpdate(partition.log.producer_state.table)
        end = partition.log.log_end_offset
        update.add(header, end, header.max_timestamp, is_sequence_checked=True)


def _level(codec: Codec, config: LogConfig) -> int | None:
    return getattr(config, f"compression_{codec.name.lower()}_level", None)
