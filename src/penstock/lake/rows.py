"""Records become rows: the value's fields as columns, the record's own data beside them.

A row has the value's fields (or `value` itself if it is not taken apart), then `key`, `topic`,
`partition`, `offset` and `timestamp` of the record. A field of the value with one of those names is
called `value_NAME`, so that no message can hide where a row is from.

A record that cannot be decoded ends the query, or keeps its bytes in a row of nulls, or is set
aside as a dead letter, for the sink to write to a topic.
"""

import base64
import pickle
from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from penstock.lake.commit import known_schema
from penstock.lake.errors import LakeError, UndecodableRecord
from penstock.lake.files import rows_schema
from penstock.lake.json_values import GrowingJson, undecodable_rows
from penstock.lake.ranges import records_of
from penstock.lake.spec import Decoding, TableSpec
from penstock.spark.formats.dead_letter_rows import DeadLetter
from penstock.spark.formats.decoding import dead_letter_array
from penstock.spark.formats.format import Decoder, Failure, Format

RECORD_COLUMNS = ("key", "topic", "partition", "offset", "timestamp", "headers")
UNDECODED = "value_undecoded"  # The bytes of a value that is not what its format says.

VALUE_FORMATS = ("raw", "string", "json", "described")  # The last: a Format was given.
KEY_FORMATS = ("raw", "string")
ON_ERROR = ("fail", "null", "dead-letter")

_Failures = dict[int, tuple[str, Failure]]  # By row: the column, and what is wrong with it.


class RowMaker(Protocol):
    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows for the table, from what Spark gives."""

    def dead_letters(self) -> Iterator[pa.RecordBatch]:
        """The records set aside since this was asked last: topic, key, value, headers."""


def row_maker(spec: TableSpec) -> RowMaker:
    """What the spec asks for."""
    return RowsAsTheyAre() if spec.decoding is None else RecordsAsRows(spec, spec.decoding)


class RowsAsTheyAre:
    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches

    def dead_letters(self) -> Iterator[pa.RecordBatch]:
        return iter(())


class RecordsAsRows:
    """Rows of records as the source gives them, with their values decoded."""

    def __init__(self, spec: TableSpec, decoding: Decoding) -> None:
        self._decoding = decoding
        self._json = GrowingJson(known_fields(spec)) if decoding.value_format == "json" else None
        self._described = _described(decoding)
        self._kept = [c for c in RECORD_COLUMNS if c != "headers" or decoding.keeps_headers]
        self._letters: list[pa.RecordBatch] = []

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        source = self._decoding.source
        records = batches if source is None else records_of(source, batches)
        for batch in records:
            if batch.num_rows:
                yield self._row_batch(batch)

    def dead_letters(self) -> Iterator[pa.RecordBatch]:
        letters, self._letters = self._letters, []
        return iter(letters)

    def _row_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        failures: _Failures = {}
        columns = self._value_columns(batch, failures)
        for name in self._kept:
            if name in batch.schema.names:
                columns[name] = batch.column(name)
        if self._decoding.key_format == "string":
            columns["key"] = self._text(batch, "key", failures)
        rows = pa.RecordBatch.from_pydict(columns)
        return self._without_dead(rows, batch, failures) if failures else rows

    def _value_columns(self, batch: pa.RecordBatch, failures: _Failures) -> dict[str, pa.Array]:
        if self._json is not None:
            return self._json_columns(self._json, batch, failures)
        if self._described is not None:
            return self._described_columns(self._described, batch, failures)
        if self._decoding.value_format == "string":
            return {"value": self._text(batch, "value", failures)}
        return {"value": batch.column("value")}

    def _json_columns(
        self, decoder: GrowingJson, batch: pa.RecordBatch, failures: _Failures
    ) -> dict[str, pa.Array]:
        values = batch.column("value")

        def complain(at: int, reason: str) -> UndecodableRecord:
            return undecodable(batch, at, reason)

        try:
            return _spread(decoder.decode(values, complain))
        except UndecodableRecord:
            bad = undecodable_rows(values)
            if self._decoding.on_error == "fail" or not bad:
                raise
        is_bad = pa.array([row in bad for row in range(len(values))])
        struct = decoder.decode(pc.if_else(is_bad, pa.scalar(None, values.type), values), complain)
        found = [Failure(row, "json.JSONDecodeError", reason) for row, reason in bad.items()]
        return _spread(struct) | self._aside(batch, found, failures)

    def _described_columns(
        self, decoder: Decoder, batch: pa.RecordBatch, failures: _Failures
    ) -> dict[str, pa.Array]:
        array, found = decoder.decode(batch.column("value"))
        if found and self._decoding.on_error == "fail":
            first = min(found, key=lambda failure: failure.row)
            raise undecodable(batch, first.row, first.reason)
        return _spread(array) | self._aside(batch, found, failures)

    def _aside(
        self, batch: pa.RecordBatch, found: list[Failure], failures: _Failures
    ) -> dict[str, pa.Array]:
        """What is kept of values that could not be decoded: a column, or dead letters."""
        if not found:
            return {}
        if self._decoding.on_error == "dead-letter":
            failures.update({failure.row: ("value", failure) for failure in found})
            return {}
        bad = {failure.row for failure in found}
        is_bad = pa.array([row in bad for row in range(batch.num_rows)])
        nothing = pa.scalar(None, pa.binary())
        return {UNDECODED: pc.if_else(is_bad, batch.column("value"), nothing)}

    def _text(self, batch: pa.RecordBatch, column: str, failures: _Failures) -> pa.Array:
        array = batch.column(column)
        try:
            return array.cast(pa.string())
        except pa.ArrowInvalid:
            bad = _not_text(array)
            if self._decoding.on_error != "dead-letter":
                at = min(bad)
                raise undecodable(batch, at, f"its {column} is {bad[at]}") from None
        for row, reason in bad.items():
            failures[row] = (column, Failure(row, "UnicodeDecodeError", reason))
        is_bad = pa.array([row in bad for row in range(batch.num_rows)])
        return pc.if_else(is_bad, pa.scalar(None, array.type), array).cast(pa.string())

    def _without_dead(
        self, rows: pa.RecordBatch, batch: pa.RecordBatch, failures: _Failures
    ) -> pa.RecordBatch:
        topic = self._decoding.dead_letter_topic
        assert topic is not None, "checked with the other choices"
        letters = dead_letter_array(batch, failures, DeadLetter(topic))
        is_dead = letters.is_valid()
        self._letters.append(pa.RecordBatch.from_struct_array(letters.filter(is_dead)))
        return rows.filter(pc.invert(is_dead))


def value_column(name: str) -> str:
    """The column of a field of the value."""
    return f"value_{name}" if name in RECORD_COLUMNS else name


def check_decoding(decoding: Decoding) -> None:
    """LakeError for a choice there is not, before anything runs."""
    for name, value, allowed in (
        ("value_format", decoding.value_format, VALUE_FORMATS),
        ("key_format", decoding.key_format, KEY_FORMATS),
        ("on_error", decoding.on_error, ON_ERROR),
    ):
        if value not in allowed:
            raise LakeError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")
    if (decoding.on_error == "dead-letter") != (decoding.dead_letter_topic is not None):
        raise LakeError("on_error='dead-letter' and dead_letter_topic belong together")
    if decoding.dead_letter_topic and (decoding.value_format, decoding.key_format) == (
        "raw",
        "raw",
    ):
        raise LakeError(
            "dead_letter_topic is for records that cannot be decoded, but keys and values are "
            "kept as bytes: say what they are with value_format or key_format"
        )


def format_text(described: Format) -> str:
    """A format as it stands in a `Decoding`."""
    return base64.b64encode(pickle.dumps(described)).decode()


def known_fields(spec: TableSpec) -> pa.Schema:
    """The fields of values, as far as the table has them."""
    table = known_schema(spec)
    if table is None:
        return pa.schema([])
    ours = {*RECORD_COLUMNS, UNDECODED}
    return pa.schema(
        [
            field.with_name(_field_name(field.name))
            for field in rows_schema(spec, table)
            if field.name not in ours
        ]
    )


def undecodable(batch: pa.RecordBatch, at: int, reason: str) -> UndecodableRecord:
    """The error for one record of a batch."""
    topic, partition, offset = (
        batch.column(name)[at].as_py() for name in ("topic", "partition", "offset")
    )
    return UndecodableRecord(topic, partition, offset, reason)


def _described(decoding: Decoding) -> Decoder | None:
    if decoding.described is None:
        return None
    described: Format = pickle.loads(base64.b64decode(decoding.described))
    return described.decoder()


def _spread(values: pa.Array) -> dict[str, pa.Array]:
    """The fields of a struct as columns; anything else is one column."""
    if not pa.types.is_struct(values.type):
        return {"value": values}
    names = [value_column(field.name) for field in values.type]
    return dict(zip(names, values.flatten(), strict=True))


def _field_name(column: str) -> str:
    name = column.removeprefix("value_")
    return name if name in RECORD_COLUMNS else column


def _not_text(array: pa.Array) -> dict[int, str]:
    """The values that are not UTF-8, and why."""
    bad: dict[int, str] = {}
    for at, value in enumerate(array.to_pylist()):
        try:
            (value or b"").decode()
        except UnicodeDecodeError as error:
            bad[at] = f"not UTF-8: {error}"
    return bad
