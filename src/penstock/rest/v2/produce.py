"""Producing: the records of a request, encoded and handed to the producer in one go.

A request is stored as far as it can be: what became of each record stands in the answer, and its
status is 200 unless the broker does not know or does not allow the proxy. A request whose records
cannot be encoded is refused whole, before anything is sent.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.client.errors import AuthenticationError
from penstock.errors import (
    ClusterAuthorization,
    InvalidTopic,
    PenstockError,
    RetriableError,
    SaslAuthentication,
    TopicAuthorization,
    UnknownTopicOrPartition,
)
from penstock.http.bodies import read_body
from penstock.http.errors import UnsupportedMedia
from penstock.http.handlers import Request, Response, Route
from penstock.rest.errors import (
    ConversionFailed,
    KeySchemaMissing,
    PartitionNotFound,
    TopicNotFound,
    UnprocessableRequest,
    ValueSchemaMissing,
)
from penstock.rest.payloads.formats import EmbeddedFormat
from penstock.rest.payloads.plain import ENCODERS, Encode
from penstock.rest.producing import Outcome, Outgoing, StoredAt
from penstock.rest.proxy import Proxy
from penstock.rest.v2.bodies import UNSUPPORTED, answer, parse_document
from penstock.rest.v2.media import sent_format
from penstock.rest.v2.requests import (
    RECORD_FIELDS,
    ProduceRequest,
    SentSchema,
    path_number,
    produce_request,
    record_partition,
)
from penstock.rest.v2.schemas import Schemas
from penstock.rest.v2.topics import topic_of
from penstock.schemas.errors import FormatError

if TYPE_CHECKING:
    from penstock.rest.payloads.schema_finder import FoundSchema

_ANY_PARTITION = -1
_SLICE = 2_000  # Records that are encoded before others get a turn.
_NOT_PROVEN, _NOT_ALLOWED, _FAILED, _RETRIABLE = 40101, 40301, 50002, 50003
_STATUS = {_NOT_PROVEN: 401, _NOT_ALLOWED: 403}
_CONVERSION = {
    EmbeddedFormat.AVRO: "Conversion of JSON to Avro failed: ",
    EmbeddedFormat.JSONSCHEMA: "Conversion of JSON to JSON Schema failed: ",
    EmbeddedFormat.PROTOBUF: "Conversion of JSON to Protobuf failed: ",
}


class ProduceRoutes:
    """Handlers that send records."""

    def __init__(self, proxy: Proxy, schemas: Schemas) -> None:
        self._brokers = proxy.brokers
        self._producer = proxy.producer
        self._schemas = schemas

    def routes(self) -> list[Route]:
        one = "/topics/{topic:segment}/partitions/{partition:segment}"
        return [
            Route("/topics/{topic:segment}", self._produce, methods=["POST"]),
            Route(one, self._produce_to_partition, methods=["POST"]),
        ]

    async def _produce(self, request: Request) -> Response:
        return await self._store(request, None)

    async def _produce_to_partition(self, request: Request) -> Response:
        number = path_number(request.path_params["partition"])
        count = await self._partition_count(topic_of(request))
        if number is None or number >= count:
            raise PartitionNotFound
        return await self._store(request, number)

    async def _store(self, request: Request, partition: int | None) -> Response:
        format_ = sent_format(request.headers.get("content-type"))
        if format_ is None:
            raise UnsupportedMedia(UNSUPPORTED)
        sent = produce_request(parse_document(await read_body(request)))
        topic = topic_of(request)
        key = await self._schema(topic, format_, sent, is_key=True)
        value = await self._schema(topic, format_, sent, is_key=False)
        encode_key = _encoder(format_, key, KeySchemaMissing)
        encode_value = _encoder(format_, value, ValueSchemaMissing)
        records = await _encode(topic, partition, sent.records, format_, encode_key, encode_value)
        await self._partition_count(topic)  # It may create the topic, so it comes last.
        outcomes = await self._producer.send(records)
        return _answer(request, outcomes, key, value)

    async def _partition_count(self, topic: str) -> int:
        try:
            return await self._brokers.partition_count(topic)
        except (UnknownTopicOrPartition, InvalidTopic):
            raise TopicNotFound from None

    async def _schema(
        self, topic: str, format_: EmbeddedFormat, sent: ProduceRequest, *, is_key: bool
    ) -> "FoundSchema | None":
        given: SentSchema = sent.key_schema if is_key else sent.value_schema
        if format_.kind is None or not given.is_given:
            return None
        return await self._schemas.find(given.choice(topic, format_, is_key=is_key))


def _encoder(
    format_: EmbeddedFormat, schema: "FoundSchema | None", missing: Callable[[], Exception]
) -> Encode:
    if format_.kind is None:
        return ENCODERS[format_]
    if schema is None:
        return lambda value: _refuse(value, missing)
    encode = schema.codec.encode
    return lambda value: None if value is None else encode(value)


def _refuse(value: Any, missing: Callable[[], Exception]) -> None:
    if value is not None:
        raise missing()


async def _encode(
    topic: str,
    partition: int | None,
    records: Sequence[Any],
    format_: EmbeddedFormat,
    key: Encode,
    value: Encode,
) -> list[Outgoing]:
    """All records as bytes; many of them in slices."""
    made: list[Outgoing] = []
    for start in range(0, len(records), _SLICE):
        if start:
            await asyncio.sleep(0)
        try:
            made += [
                _outgoing(topic, partition, record, key, value)
                for record in records[start : start + _SLICE]
            ]
        except FormatError as error:
            if format_.kind is None:
                raise UnprocessableRequest(str(error)) from None
            raise ConversionFailed(f"{_CONVERSION[format_]}{error}") from None
    return made


def _outgoing(
    topic: str, partition: int | None, record: Any, key: Encode, value: Encode
) -> Outgoing:
    if not isinstance(record, dict):
        raise UnprocessableRequest("a record must be an object")
    if not RECORD_FIELDS.issuperset(record):
        name = next(name for name in record if name not in RECORD_FIELDS)
        raise UnprocessableRequest(f"Unrecognized field: {name[:100]}")
    number = partition
    if "partition" in record:
        if partition is not None:
            raise UnprocessableRequest("Unrecognized field: partition")
        number = record_partition(record)
    return Outgoing(
        topic,
        value(record.get("value")),
        key(record.get("key")),
        _ANY_PARTITION if number is None else number,
    )


def _answer(
    request: Request,
    outcomes: Sequence[Outcome],
    key: "FoundSchema | None",
    value: "FoundSchema | None",
) -> Response:
    offsets = [_outcome_document(one) for one in outcomes]
    document = {
        "offsets": offsets,
        "key_schema_id": None if key is None else key.codec.schema_id,
        "value_schema_id": None if value is None else value.codec.schema_id,
    }
    codes = (one["error_code"] for one in offsets)
    status = next((_STATUS[code] for code in codes if code in _STATUS), 200)
    return answer(request, document, status=status)


def _outcome_document(outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, StoredAt):
        partition, offset, _ = outcome
        return {"partition": partition, "offset": offset, "error_code": None, "error": None}
    code = error_code(outcome)
    return {"partition": None, "offset": None, "error_code": code, "error": str(outcome)}


def error_code(error: PenstockError) -> int:
    """What kept one record from being stored, in four classes."""
    if isinstance(error, AuthenticationError | SaslAuthentication):
        return _NOT_PROVEN
    if isinstance(error, TopicAuthorization | ClusterAuthorization):
        return _NOT_ALLOWED
    return _RETRIABLE if isinstance(error, RetriableError | TimeoutError) else _FAILED
