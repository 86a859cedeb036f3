"""What a sink sends for a record: bytes and texts as they are, everything else as JSON."""

from collections.abc import Callable
from typing import Any

from penstock.connect.converters.json import JsonConverter
from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.contract import SinkTaskContext
from penstock.connect.records import SinkRecord
from penstock.connect.values.schema import Schema

_JSON = JsonConverter({"schemas.enable": "false"}, is_key=False)


def payload_of(schema: Schema | None, value: Any) -> bytes | None:
    """The bytes of a value; None: it is null. DataError for one that JSON cannot have."""
    if value is None:
        return None
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    return _JSON.from_connect("", schema, value)


def text_of(schema: Schema | None, value: Any) -> str:
    """The same as text; a null is empty. DataError for bytes that are none."""
    try:
        return (payload_of(schema, value) or b"").decode()
    except UnicodeDecodeError as error:
        raise DataError(f"the bytes are no text: {error}") from error


def filled(template: str, record: SinkRecord) -> str:
    """A template with ${topic} and ${key} of a record in it."""
    made = template.replace("${topic}", record.topic)
    if "${key}" not in made:
        return made
    key = text_of(record.key_schema, record.key)
    if not key:
        raise DataError("the record has no key")
    return made.replace("${key}", key)


def each_or_aside(
    context: SinkTaskContext, records: list[SinkRecord], take: Callable[[SinkRecord], None]
) -> None:
    """Give every record to `take`; one that it cannot use is put aside, or ends the task."""
    for record in records:
        try:
            take(record)
        except DataError as error:
            put_aside(context, record, error)


def put_aside(context: SinkTaskContext, record: SinkRecord, error: Exception) -> None:
    """To the dead letters, where records are tolerated; otherwise the task ends, by its place."""
    reporter = context.errant_record_reporter
    if reporter is None:
        place = f"{record.topic}-{record.partition}@{record.offset}"
        raise DataError(f"The record {place} cannot be sent: {error}") from error
    reporter.report(record, error)
