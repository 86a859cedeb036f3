"""Records become rows: the value's fields as columns, the record's own data beside them.

A row has the value's fields (or `value` itself if it is not taken apart), then `key`, `topic`,
`partition`, `offset` and `timestamp` of the record. A field of the value with one of those names is
called `value_NAME`, so that no message can hide where a row is from.
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
from penstock.lake.json_values import GrowingJson
from penstock.lake.ranges import records_of
from penstock.lake.spec import Decoding, TableSpec
from penstock.spark.formats.format import Decoder, Failure, Format

RECORD_COLUMNS = ("key", "topic", "partition", "offset", "timestamp", "headers")
UNDECODED = "value_undecoded"  # The bytes of a value that is not what its format says.

VALUE_FORMATS = ("raw", "string", "json", "described")  # The last: a Format was given.
KEY_FORMATS = ("raw", "string")
ON_ERROR = ("fail", "null")


class RowMaker(Protocol):
    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows for the table, from what Spark gives."""


def row_maker(spec: TableSpec) -> RowMaker:
    """What the spec asks for."""
    return RowsAsTheyAre() if spec.decoding is None else RecordsAsRows(spec, spec.decoding)


class RowsAsTheyAre:
    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches


class RecordsAsRows:
    """Rows of records as the source gives them, with their values decoded."""

    def __init__(self, spec: TableSpec, decoding: Decoding) -> None:
        self._decoding = decoding
        self._json = GrowingJson(known_fields(spec)) if decoding.value_format == "json" else None
        self._described = _described(decoding)

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        source = self._decoding.source
        records = batches if source is None else records_of(source, batches)
        for batch in records:
            if batch.num_rows:
                yield self._row_batch(batch)

    def _row_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = self._value_columns(batch)
        for name in RECORD_COLUMNS:
            if name in batch.schema.names:
                columns[name] = batch.column(name)
        if self._decoding.key_format == "string":
            columns["key"] = _text(batch, "key")
        return pa.RecordBatch.from_pydict(columns)

    def _value_columns(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        if self._json is not None:
            return self._json_columns(self._json, batch)
        if self._described is not None:
            return self._described_columns(self._described, batch)
        if self._decoding.value_format == "string":
            return {"value": _text(batch, "value")}
        return {"value": batch.column("value")}

    def _json_columns(self, decoder: GrowingJson, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        values = batch.column("value")
        bad = None
        if self._decoding.on_error == "null":
            values, bad = decoder.without_undecodable(values)
        struct = decoder.decode(values, lambda at, reason: undecodable(batch, at, reason))
        return _spread(struct) | _undecoded(batch, bad)

    def _described_columns(self, decoder: Decoder, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        array, failures = decoder.decode(batch.column("value"))
        if failures and self._decoding.on_error == "fail":
            first = min(failures, key=lambda failure: failure.row)
            raise undecodable(batch, first.row, first.reason)
        return _spread(array) | _undecoded(batch, _rows_of(failures, batch.num_rows))


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


def _undecoded(batch: pa.RecordBatch, bad: pa.BooleanArray | None) -> dict[str, pa.Array]:
    if bad is None or not bad.true_count:
        return {}
    nothing = pa.scalar(None, pa.binary())
    return {UNDECODED: pc.if_else(bad, batch.column("value"), nothing)}


def _rows_of(failures: list[Failure], count: int) -> pa.BooleanArray:
    failed = {failure.row for failure in failures}
    return pa.array([row in failed for row in range(count)]) if failed else None


def _field_name(column: str) -> str:
    name = column.removeprefix("value_")
    return name if name in RECORD_COLUMNS else column


def _text(batch: pa.RecordBatch, column: str) -> pa.Array:
    array = batch.column(column)
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        for at, value in enumerate(array.to_pylist()):
            try:
                (value or b"").decode()
            except UnicodeDecodeError as error:
                raise undecodable(batch, at, f"its {column} is not UTF-8: {error}") from None
        raise
