"""The documents that version 2 takes, checked: what a wrong one is told is decided here.

Pure. Confluent's proxy refuses fields that it does not know, so that a word with a slip in it is
not a wish that is passed over.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.client.values import OffsetAndMetadata, TopicPartition
from penstock.rest.errors import InvalidConsumerConfig, RestError, UnprocessableRequest
from penstock.rest.payloads.formats import EmbeddedFormat
from penstock.rest.payloads.schema_choice import SchemaChoice

if TYPE_CHECKING:
    from penstock.schemas.registry_client import ReferencedVersion

PARTITION_MAX = 2**31 - 1
OFFSET_MAX = 2**63 - 2  # One more must still be an offset.
RECORD_FIELDS = frozenset({"key", "value", "partition"})
_SIDE_FIELDS = ("schema", "schema_id", "schema_references")
_CONSUMER_FIELDS = {
    "id",
    "name",
    "format",
    "auto.offset.reset",
    "auto.commit.enable",
    "fetch.min.bytes",
    "responseMinBytes",
    "consumer.request.timeout.ms",
    "requestWaitMs",
}
_CONSUMER_FORMATS = frozenset(EmbeddedFormat) - {EmbeddedFormat.STRING}
_RESETS = ("latest", "earliest", "none")
_MIN_BYTES_MAX = 10_000_000
_NAME_CHARACTERS_MAX = 249


class ConsumerConfigOutOfBounds(RestError):
    """A setting of a consumer instance that is a number, but not one that is allowed."""

    status, error_code = 422, 40001


@dataclass(frozen=True, slots=True, kw_only=True)
class SentSchema:
    """What a request says of the schema of its keys or values; None: it says nothing of it."""

    text: str | None = None
    schema_id: int | None = None
    references: tuple["ReferencedVersion", ...] = ()

    @property
    def is_given(self) -> bool:
        return self.text is not None or self.schema_id is not None

    def choice(self, topic: str, format_: EmbeddedFormat, *, is_key: bool) -> SchemaChoice:
        """The schema that is meant; an id counts before a text, as with Confluent."""
        by_text = self.schema_id is None
        return SchemaChoice(
            topic=topic,
            is_key=is_key,
            kind=format_.kind,
            schema_id=self.schema_id,
            text=self.text if by_text else None,
            references=self.references if by_text else (),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRequest:
    """Records to be stored, not yet looked at one by one."""

    records: Sequence[Any]
    key_schema: SentSchema
    value_schema: SentSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRequest:
    """A consumer instance that is wished for; None: as the proxy is set."""

    name: str | None = None
    format: EmbeddedFormat = EmbeddedFormat.BINARY
    offset_reset: str | None = None
    auto_commit: bool | None = None
    fetch_min_bytes: int | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRequest:
    """Topics by their names, or (None) all that match a pattern."""

    topics: tuple[str, ...] | None
    pattern: str = ""


def produce_request(document: Mapping[str, Any]) -> ProduceRequest:
    """The body of a produce request."""
    known = {f"{side}_{field}" for side in ("key", "value") for field in _SIDE_FIELDS}
    _check_fields(document, known | {"records"})
    records = document.get("records")
    if not isinstance(records, list) or not records:
        raise UnprocessableRequest("records must be a list that is not empty")
    return ProduceRequest(
        records=records,
        key_schema=_sent_schema(document, "key"),
        value_schema=_sent_schema(document, "value"),
    )


def record_partition(record: Mapping[str, Any]) -> int | None:
    """The partition that a record names."""
    number = record.get("partition")
    return None if number is None else _bounded(number, "partition", PARTITION_MAX)


def instance_request(document: Mapping[str, Any]) -> InstanceRequest:
    """The body of a request for a consumer."""
    _check_fields(document, _CONSUMER_FIELDS)
    name = _text_or_none(document, "id") or _text_or_none(document, "name")
    if name is not None and len(name) > _NAME_CHARACTERS_MAX:
        raise UnprocessableRequest(f"a name may have {_NAME_CHARACTERS_MAX} characters")
    return InstanceRequest(
        name=name,
        format=_consumer_format(document.get("format")),
        offset_reset=_offset_reset(document.get("auto.offset.reset")),
        auto_commit=_flag(document.get("auto.commit.enable")),
        fetch_min_bytes=_min_bytes(
            document.get("fetch.min.bytes", document.get("responseMinBytes"))
        ),
        timeout_s=_timeout_s(
            document.get("consumer.request.timeout.ms", document.get("requestWaitMs"))
        ),
    )


def subscription_request(document: Mapping[str, Any]) -> SubscriptionRequest:
    """The body of a subscription."""
    _check_fields(document, {"topics", "topic_pattern"})
    topics, pattern = document.get("topics"), document.get("topic_pattern")
    if topics is not None:
        if not isinstance(topics, list) or not all(isinstance(one, str) for one in topics):
            raise UnprocessableRequest("topics must be a list of names")
        return SubscriptionRequest(topics=tuple(dict.fromkeys(topics)))
    if not isinstance(pattern, str) or not pattern:
        raise UnprocessableRequest("a subscription has topics or a topic_pattern")
    return SubscriptionRequest(topics=None, pattern=pattern)


def partition_list(document: Mapping[str, Any]) -> list[TopicPartition]:
    """The partitions that a body names."""
    _check_fields(document, {"partitions"})
    return [_partition(one, ()) for one in _objects(document, "partitions")]


def offset_list(document: Mapping[str, Any]) -> dict[TopicPartition, OffsetAndMetadata]:
    """The offsets that a body names, as they stand there."""
    _check_fields(document, {"offsets"})
    found = {}
    for one in _objects(document, "offsets"):
        note = one.get("metadata")
        if note is not None and not isinstance(note, str):
            raise UnprocessableRequest("metadata must be a string")
        offset = _bounded(one.get("offset"), "offset", OFFSET_MAX)
        found[_partition(one, ("offset", "metadata"))] = OffsetAndMetadata(offset, note or "")
    return found


def path_number(text: str) -> int | None:
    """The number of a partition in a path; None: there can be no such partition."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(PARTITION_MAX))
    return int(text) if is_number and int(text) <= PARTITION_MAX else None


def _sent_schema(document: Mapping[str, Any], side: str) -> SentSchema:
    schema_id = document.get(f"{side}_schema_id")
    if schema_id is not None:
        schema_id = _bounded(schema_id, f"{side}_schema_id", PARTITION_MAX)
    return SentSchema(
        text=_text_or_none(document, f"{side}_schema"),
        schema_id=schema_id,
        references=_references(document.get(f"{side}_schema_references") or []),
    )


def _references(given: Any) -> tuple["ReferencedVersion", ...]:
    if not isinstance(given, list):
        raise UnprocessableRequest("references must be a list")
    if not given:
        return ()
    from penstock.schemas.registry_client import ReferencedVersion  # It loads Protobuf.

    found = []
    for one in given:
        if not isinstance(one, dict) or not all(
            isinstance(one.get(field), str) for field in ("name", "subject")
        ):
            raise UnprocessableRequest("a reference has a name, a subject and a version")
        version = _bounded(one.get("version"), "version", PARTITION_MAX)
        found.append(ReferencedVersion(name=one["name"], subject=one["subject"], version=version))
    return tuple(found)


def _check_fields(document: Mapping[str, Any], known: Collection[str]) -> None:
    for name in document:
        if name not in known:
            raise UnprocessableRequest(f"Unrecognized field: {name[:100]}")


def _objects(document: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = document.get(name)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise UnprocessableRequest(f"{name} must be a list of objects")
    return found


def _partition(one: Mapping[str, Any], further: Collection[str]) -> TopicPartition:
    _check_fields(one, {"topic", "partition", *further})
    topic = one.get("topic")
    if not isinstance(topic, str) or not topic:
        raise UnprocessableRequest("topic must be the name of a topic")
    return TopicPartition(topic, _bounded(one.get("partition"), "partition", PARTITION_MAX))


def _bounded(number: Any, name: str, largest: int) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= largest:
        raise UnprocessableRequest(f"{name} must be a whole number from 0 to {largest}")
    return number


def _text_or_none(document: Mapping[str, Any], name: str) -> str | None:
    text = document.get(name)
    if text is not None and not isinstance(text, str):
        raise UnprocessableRequest(f"{name} must be a string")
    return text


def _consumer_format(word: Any) -> EmbeddedFormat:
    if word is None:
        return EmbeddedFormat.BINARY
    if not isinstance(word, str) or word.upper() not in _CONSUMER_FORMATS:
        raise UnprocessableRequest("Invalid format type.")
    return EmbeddedFormat(word.upper())


def _offset_reset(word: Any) -> str | None:
    if word is not None and word not in _RESETS:
        raise InvalidConsumerConfig(
            f"Invalid consumer configuration: Invalid value {word} for configuration "
            f"auto.offset.reset: String must be one of: {', '.join(_RESETS)}"
        )
    return None if word is None else str(word)


def _flag(word: Any) -> bool | None:
    if word is None or isinstance(word, bool):
        return word
    if not isinstance(word, str) or word.strip().lower() not in ("true", "false"):
        raise InvalidConsumerConfig(
            f"Invalid consumer configuration: Invalid value {word} for configuration "
            "enable.auto.commit: Expected value to be either true or false"
        )
    return word.strip().lower() == "true"


def _min_bytes(number: Any) -> int | None:
    if number is None:
        return None
    size = _whole(number, "fetch.min.bytes")
    if not -1 <= size <= _MIN_BYTES_MAX:
        raise ConsumerConfigOutOfBounds(
            "Invalid consumer configuration. It does not abide by the constraints: Invalid value "
            f"{size} for configuration fetch.min.bytes: Value must be from -1 to {_MIN_BYTES_MAX}"
        )
    return size


def _timeout_s(number: Any) -> float | None:
    if number is None:
        return None
    timeout_ms = _whole(number, "consumer.request.timeout.ms")
    if not 0 < timeout_ms <= PARTITION_MAX:
        raise InvalidConsumerConfig(
            f"Invalid consumer configuration: Invalid value {timeout_ms} for configuration "
            "consumer.request.timeout.ms: Value must be at least 1"
        )
    return timeout_ms / 1000


def _whole(number: Any, name: str) -> int:
    """A number, also one that is written as text, as other clients do."""
    if isinstance(number, str) and number.removeprefix("-").isdecimal() and len(number) < 20:
        return int(number)
    if not isinstance(number, int) or isinstance(number, bool):
        raise UnprocessableRequest(f"{name} must be a whole number")
    return number
