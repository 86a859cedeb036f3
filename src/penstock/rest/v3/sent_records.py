"""The records of a produce request: what each says, as the bytes to store and as its receipt.

Pure but for the schemas that are at hand. A schema that has to be asked for raises `SchemaNeeded`;
whoever can wait asks for it and comes back.
"""

import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeAlias

from penstock.client.producer.polled import ANY_PARTITION, NOW
from penstock.rest.errors import (
    BadRequest,
    ConversionFailed,
    PartitionNotFound,
    UnprocessableRequest,
)
from penstock.rest.json_text import dumps
from penstock.rest.payloads.formats import EmbeddedFormat, format_of
from penstock.rest.payloads.plain import ENCODERS
from penstock.rest.payloads.schema_choice import SchemaChoice
from penstock.rest.producing import Outgoing, StoredAt
from penstock.schemas.errors import FormatError, SchemaError
from penstock.schemas.lookup import SchemaKind
from penstock.schemas.subject_names import record_name, topic_name, topic_record_name

Headers: TypeAlias = list[tuple[str, bytes | None]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_STRATEGIES = {
    "TOPIC_NAME": topic_name,
    "RECORD_NAME": record_name,
    "TOPIC_RECORD_NAME": topic_record_name,
}
_PARTITION_MAX = 2**31 - 1
_PLAIN = {one.value: (one, ENCODERS[one]) for one in ENCODERS}


class KnownSchema(Protocol):
    """What a schema at hand is used for."""

    @property
    def kind(self) -> SchemaKind: ...
    @property
    def subject(self) -> str: ...
    @property
    def version(self) -> int | None: ...
    @property
    def codec(self) -> Any: ...


class SchemaNeeded(Exception):
    """The schema is not at hand."""

    def __init__(self, choice: SchemaChoice) -> None:
        self.choice = choice
        super().__init__(choice.topic)


@dataclass(frozen=True, slots=True)
class SentRecord:
    """A record to store, and what its receipt says of key and value."""

    outgoing: Outgoing
    sides: bytes  # The end of the receipt: `,"key":{...},"value":{...}`.


class RecordReader:
    """Reads the records of requests to one topic."""

    def __init__(
        self, topic: str, known: Callable[[SchemaChoice], KnownSchema | None] | None
    ) -> None:
        self._topic = topic
        self._known = known  # None: there is no registry.

    def read(self, record: Any) -> SentRecord:
        """A record out of its document; raises HttpError for what is wrong with it."""
        if type(record) is not dict:
            raise BadRequest("A record is not an object.")
        get = record.get
        key, key_part = self._side(get("key"), True)
        value, value_part = self._side(get("value"), False)
        headers, timestamp = get("headers"), get("timestamp")
        partition = get("partition_id")
        outgoing = Outgoing(
            self._topic,
            value,
            key,
            ANY_PARTITION if partition is None else _partition(partition),
            NOW if timestamp is None else timestamp_ms(timestamp),
            _headers(headers) if headers else (),
        )
        return SentRecord(outgoing, key_part + value_part)

    def _side(self, given: Any, is_key: bool) -> tuple[bytes | None, bytes]:
        if given is None:
            return None, b""
        if type(given) is not dict:
            raise BadRequest(f"The {_side_name(is_key)} is not an object with type and data.")
        word = given.get("type")
        plain = _PLAIN.get(word) if type(word) is str else None
        if plain is None:
            return self._with_schema(given, is_key)
        format_, encode = plain
        try:
            data = encode(given.get("data"))
        except FormatError as error:
            raise UnprocessableRequest(f"The {_side_name(is_key)}: {error}.") from None
        form = b',"key":{"type":"%b","size":%d}' if is_key else b',"value":{"type":"%b","size":%d}'
        return data, form % (format_.value.encode(), 0 if data is None else len(data))

    def _with_schema(self, given: Mapping[str, Any], is_key: bool) -> tuple[bytes | None, bytes]:
        choice = schema_choice(self._topic, given, is_key=is_key)
        if self._known is None:
            raise UnprocessableRequest(
                "Schemas cannot be used: this proxy has no schema registry; set schema.registry.url"
            )
        schema = self._known(choice)
        if schema is None:
            raise SchemaNeeded(choice)
        document, data = given.get("data"), None
        try:
            data = None if document is None else schema.codec.encode(document)
        except FormatError as error:
            raise ConversionFailed(f"The {_side_name(is_key)}: {error}") from None
        said = {
            "type": format_of(schema.kind).value,
            "subject": schema.subject,
            "schema_id": schema.codec.schema_id,
            "schema_version": schema.version,
            "size": 0 if data is None else len(data),
        }
        return data, b',"%b":%b' % (_side_name(is_key).encode(), dumps(said))


class Receipts:
    """Writes the receipts of one topic."""

    def __init__(self, cluster_id: str, topic: str) -> None:
        head = {"error_code": 200, "cluster_id": cluster_id, "topic_name": topic}
        self._head = dumps(head)[:-1].replace(b"%", b"%%")
        self._form = self._head + b',"partition_id":%d,"offset":%d,"timestamp":"%b"%b}\r\n'
        self._last: tuple[int, bytes] = (0, b"")

    def stored(self, at: StoredAt, sides: bytes) -> bytes:
        """That a record was stored, and where."""
        time_ms = at.timestamp_ms
        if self._last[0] != time_ms:  # Records of a batch are of the same moment.
            self._last = (time_ms, (timestamp_text(time_ms) or "").encode())
        return self._form % (at.partition, at.offset, self._last[1], sides)


def failed(code: int, message: str) -> bytes:
    """That a record was not stored, and why."""
    return dumps({"error_code": code, "message": message}) + b"\r\n"


def schema_choice(topic: str, given: Mapping[str, Any], *, is_key: bool) -> SchemaChoice:
    """The schema that one side of a record names."""
    word = given.get("type")
    kind = None
    if word is not None:
        if not isinstance(word, str) or word not in EmbeddedFormat.__members__:
            raise BadRequest(f"type {word!r} is not one of {', '.join(EmbeddedFormat)}.")
        kind = EmbeddedFormat(word).kind
    strategy = _typed(given, "subject_name_strategy", str) or "TOPIC_NAME"
    if strategy not in _STRATEGIES:
        raise BadRequest(f"subject_name_strategy is not one of {', '.join(_STRATEGIES)}.")
    try:
        return SchemaChoice(
            topic=topic,
            is_key=is_key,
            kind=kind,
            schema_id=_typed(given, "schema_id", int),
            version=_typed(given, "schema_version", int),
            text=_typed(given, "schema", str),
            subject=_typed(given, "subject", str),
            strategy=_STRATEGIES[strategy],
        )
    except SchemaError as error:
        raise BadRequest(str(error)) from None


def timestamp_ms(text: Any) -> int:
    """Milliseconds since 1970 of a time as ISO 8601 writes it."""
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise BadRequest("timestamp is not a time such as 2021-02-05T19:14:42Z.") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    found = (moment - _EPOCH) // _MILLISECOND
    if found < 1:
        raise BadRequest("timestamp is not after 1970-01-01T00:00:00Z.")
    return found


def timestamp_text(time_ms: int) -> str | None:
    """The time that milliseconds since 1970 stand for; None: no calendar of ours has it."""
    try:
        moment = _EPOCH + time_ms * _MILLISECOND
    except OverflowError:
        return None
    text = moment.isoformat(timespec="milliseconds" if time_ms % 1000 else "seconds")
    return text.removesuffix("+00:00") + "Z"


def _partition(given: Any) -> int:
    if type(given) is not int:
        raise BadRequest("partition_id is not a whole number.")
    if not 0 <= given <= _PARTITION_MAX:
        raise PartitionNotFound
    return given


def _headers(given: Any) -> Headers:
    if not isinstance(given, list):
        raise BadRequest("headers is not a list of objects with name and value.")
    return [_header(one) for one in given]


def _header(given: Any) -> tuple[str, bytes | None]:
    if not isinstance(given, dict) or not isinstance(given.get("name"), str):
        raise BadRequest("A header has no name.")
    value = given.get("value")
    if value is None:
        return given["name"], None
    try:
        return given["name"], binascii.a2b_base64(value, strict_mode=True)
    except (TypeError, ValueError):
        raise BadRequest(f"The header {given['name'][:100]} is not base64.") from None


def _typed(given: Mapping[str, Any], name: str, kind: type) -> Any:
    value = given.get(name)
    if value is not None and type(value) is not kind:
        raise BadRequest(f"{name} is not a {'number' if kind is int else 'string'}.")
    return value


def _side_name(is_key: bool) -> str:
    return "key" if is_key else "value"
