"""Records become rows: the value's fields as columns, the record's own data beside them.

A row has the value's fields (or `value` itself if it is not taken apart), then `key`, `topic`,
`partition`, `offset` and `timestamp` of the record. A field of the value with one of those names,
or with that of a date the table is partitioned by, is called `value_NAME`, so that no message can
hide where a row is from.

A record that cannot be decoded or does not fit the table, and a batch of the topic that cannot be
read, end the query; or leave nulls where they do not fit, with their bytes beside them; or are set
aside as dead letters, for the sink to write to a topic.
"""

import base64
import pickle
from collections.abc import Iterator, Mapping
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from penstock.lake.columns.agreement import Agreement
from penstock.lake.columns.array_fitting import fit_arrays
from penstock.lake.columns.flaws import Flaw, error_of
from penstock.lake.columns.json_values import GrowingJson
from penstock.lake.columns.rules import KEY_UNDECODED, RECORD_COLUMNS, UNDECODED
from penstock.lake.errors import LakeError
from penstock.lake.spec import TableSpec, TopicDecoding
from penstock.lake.writing.ranges import records_of
from penstock.spark.formats.dead_letter_rows import DeadLetter
from penstock.spark.formats.decoding import batch_letters, dead_letter_array
from penstock.spark.formats.format import Format, ValueDecoder
from penstock.spark.source.unreadable import UnreadableBatch, marker_row

VALUE_FORMATS = ("raw", "string", "json", "described")  # The last: a Format was given.
KEY_FORMATS = ("raw", "string")
ON_ERROR = ("fail", "null", "dead-letter")

_Flaws = dict[int, Flaw]  # By row.


class RowMaker(Protocol):
    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows for the table, from what Spark gives."""

    def dead_letters(self) -> Iterator[pa.RecordBatch]:
        """The records set aside since this was asked last: topic, key, value, headers."""


def row_maker(spec: TableSpec, agreement: Agreement) -> RowMaker:
    """What the spec asks for."""
    if spec.decoding is None:
        return RowsAsTheyAre()
    return RecordsAsRows(spec.decoding, agreement)


class RowsAsTheyAre:
    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches

    def dead_letters(self) -> Iterator[pa.RecordBatch]:
        return iter(())


class RecordsAsRows:
    """Rows of records as the source gives them, with their values decoded."""

    def __init__(self, decoding: TopicDecoding, agreement: Agreement) -> None:
        self._decoding = decoding
        self._agreement = agreement
        keeps_what_fits = decoding.on_error == "null"
        self._json = (
            GrowingJson(agreement, keeps_what_fits=keeps_what_fits)
            if decoding.value_format == "json"
            else None
        )
        self._described = _described(decoding)
        self._kept = [c for c in RECORD_COLUMNS if c != "headers" or decoding.keeps_headers]
        self._letters: list[pa.RecordBatch] = []

    def rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        source = self._decoding.source
        records = batches if source is None else records_of(source, batches)
        for batch in records:
            if isinstance(batch, UnreadableBatch):
                yield self._without_records(batch)
            elif batch.num_rows:
                yield self._row_batch(batch)

    def dead_letters(self) -> Iterator[pa.RecordBatch]:
        letters, self._letters = self._letters, []
        return iter(letters)

    def _row_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns, flaws = self._value_columns(batch)
        for name in self._kept:
            if name in batch.schema.names:
                columns[name] = batch.column(name)
        bad_keys: _Flaws = {}
        if self._decoding.key_format == "string":
            columns["key"], bad_keys = _text(batch, "key")
        if not flaws and not bad_keys:
            return pa.RecordBatch.from_pydict(columns)
        return self._aside(columns, batch, flaws, bad_keys)

    def _value_columns(self, batch: pa.RecordBatch) -> tuple[dict[str, pa.Array], _Flaws]:
        values = batch.column("value")
        if self._json is not None:
            found = self._json.decode(values)
            return dict(found.columns), found.flaws
        flaws: _Flaws = {}
        if self._described is not None:
            values, failures = self._described.decode(values)
            flaws = {f.row: Flaw(reason=f.reason, error_class=f.error_class) for f in failures}
        elif self._decoding.value_format == "string":
            values, flaws = _text(batch, "value")
        columns, misfits = fit_arrays(_spread(values), self._agreement)
        return columns, {**misfits, **flaws}

    def _aside(
        self, columns: dict[str, pa.Array], batch: pa.RecordBatch, flaws: _Flaws, bad_keys: _Flaws
    ) -> pa.RecordBatch:
        """What the user chose for records that do not become whole rows."""
        if self._decoding.on_error == "null":
            if flaws:
                columns[UNDECODED] = _only(batch.column("value"), set(flaws))
            if bad_keys:
                columns[KEY_UNDECODED] = _only(batch.column("key"), set(bad_keys))
            return pa.RecordBatch.from_pydict(columns)
        every = {**flaws, **bad_keys}
        if self._decoding.on_error == "fail":
            first = min(every)
            raise error_of(batch, first, every[first])
        return self._without_dead(pa.RecordBatch.from_pydict(columns), batch, every)

    def _without_dead(
        self, rows: pa.RecordBatch, batch: pa.RecordBatch, flaws: _Flaws
    ) -> pa.RecordBatch:
        failures = {row: (flaw.part, flaw.failure(row)) for row, flaw in flaws.items()}
        letters = dead_letter_array(batch, failures, self._letter())
        is_dead = letters.is_valid()
        self._letters.append(pa.RecordBatch.from_struct_array(letters.filter(is_dead)))
        return rows.filter(pc.invert(is_dead))

    def _without_records(self, found: UnreadableBatch) -> pa.RecordBatch:
        """A batch of the topic that cannot be read, in one dead letter or one row."""
        if self._decoding.on_error == "fail":
            raise found.error()
        if self._decoding.on_error == "dead-letter":
            letters = batch_letters([found.cause()], self._letter())
            self._letters.append(pa.RecordBatch.from_struct_array(letters))
            return pa.RecordBatch.from_pydict({})
        row = marker_row(found, self._kept)
        if self._decoding.key_format == "string":
            at = row.schema.get_field_index("key")
            row = row.set_column(at, "key", pa.nulls(1, pa.string()))
        return row.append_column(UNDECODED, pa.array([bytes(found.stored)], pa.binary()))

    def _letter(self) -> DeadLetter:
        topic = self._decoding.dead_letter_topic
        assert topic is not None, "checked with the other choices"
        return DeadLetter(topic)


def check_decoding(decoding: TopicDecoding) -> None:
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


def format_text(described: Format) -> str:
    """A format as it stands in a `TopicDecoding`."""
    return base64.b64encode(pickle.dumps(described)).decode()


def _described(decoding: TopicDecoding) -> ValueDecoder | None:
    if decoding.described is None:
        return None
    described: Format = pickle.loads(base64.b64decode(decoding.described))
    return described.decoder()


def _spread(values: pa.Array) -> Mapping[str, pa.Array]:
    """The fields of a struct as columns; anything else is one column."""
    if not pa.types.is_struct(values.type):
        return {"value": values}
    return dict(zip((field.name for field in values.type), values.flatten(), strict=True))


def _text(batch: pa.RecordBatch, column: str) -> tuple[pa.Array, _Flaws]:
    """Keys or values as text; null where they are none."""
    array = batch.column(column)
    try:
        return array.cast(pa.string()), {}
    except pa.ArrowInvalid:
        bad = _not_text(array, column)
    return _only(array, set(range(len(array))) - set(bad)).cast(pa.string()), bad


def _only(array: pa.Array, rows: set[int]) -> pa.Array:
    """Null in all other rows."""
    is_kept = pa.array([row in rows for row in range(len(array))])
    return pc.if_else(is_kept, array, pa.scalar(None, array.type))


def _not_text(array: pa.Array, column: str) -> _Flaws:
    """The values that are not UTF-8, and why."""
    bad: _Flaws = {}
    for at, value in enumerate(array.to_pylist()):
        try:
            (value or b"").decode()
        except UnicodeDecodeError as error:
            reason = f"its {column} is not UTF-8: {error}"
            bad[at] = Flaw(reason=reason, error_class="UnicodeDecodeError", part=column)
    return bad
