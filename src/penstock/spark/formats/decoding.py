"""Columns of bytes into columns of values, and what becomes of records that cannot be decoded.

A batch of Arrow at a time on the workers. A bad record fails the query with a sentence that names
it, or leaves null, or becomes a dead letter: a row whose value is null and whose column
`dead_letter` holds the record to write elsewhere (`dead_letter_rows` takes it from there). So does
a row that stands for a batch the source could not read (`onUnreadableBatch=null`), which is known
by its headers.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from penstock.schemas.dead_letters import Cause, FailureStage, cause_of
from penstock.schemas.errors import DecodeError, SchemaError
from penstock.spark.formats.dead_letter_rows import DEAD_LETTER, DEAD_LETTER_TYPE, DeadLetter
from penstock.spark.formats.format import DecodeFailure, Format, ValueDecoder, arrow_type

OnError: TypeAlias = Literal["fail", "dead-letter", "null"]
_STAGES = {"key": FailureStage.KEY_CONVERTER, "value": FailureStage.VALUE_CONVERTER}
_BYTES = (t.BinaryType, t.StringType)


def decode(
    frame: DataFrame,
    format: Format,  # noqa: A002  (the word users know from Spark)
    *,
    column: str = "value",
    key: Format | None = None,
    on_error: OnError = "fail",
    dead_letter: DeadLetter | None = None,
) -> DataFrame:
    """The frame with `column` decoded, and the column `key` too if a format for it is given.

    `on_error="fail"` ends the query at a record that cannot be decoded; `"null"` leaves null;
    `"dead-letter"` adds the column `dead_letter`, which `good` and `with_dead_letters` split.
    """
    _check_choice(on_error, dead_letter)
    formats = {"key": key, column: format} if key is not None else {column: format}
    if key is not None and column == "key":
        raise SchemaError("give the format of the key once: as `key` or with column='key'")
    keeps_bytes = [*formats, *(("key", "value") if dead_letter else ())]
    ready = _with_bytes(frame, keeps_bytes, formats)
    bound = {name: one.bound(ready, name) for name, one in formats.items()}
    decoding = ColumnDecoding(formats=bound, on_error=on_error, dead_letter=dead_letter)
    return ready.mapInArrow(decoding.run, decoding.schema(ready.schema))


def _check_choice(on_error: str, dead_letter: DeadLetter | None) -> None:
    if on_error not in get_args(OnError):
        choices = ", ".join(get_args(OnError))
        raise SchemaError(f"on_error is {on_error!r}; it is one of {choices}")
    if (on_error == "dead-letter") != (dead_letter is not None):
        raise SchemaError(
            "on_error='dead-letter' and dead_letter=DeadLetter(topic) belong together"
        )


def _with_bytes(frame: DataFrame, names: list[str], wanted: Mapping[str, Format]) -> DataFrame:
    """Text columns as bytes; anything else cannot be decoded, or has been already."""
    for name in dict.fromkeys(names):
        if name not in frame.columns:
            if name in wanted:
                raise SchemaError(
                    f"there is no column {name}; there are {', '.join(frame.columns)}"
                )
            continue
        kind = frame.schema[name].dataType
        if not isinstance(kind, _BYTES):
            raise SchemaError(
                f"the column {name} is {kind.simpleString()}, not binary. To decode key and value "
                "and keep dead letters as they were, do both in one call: decode(..., key=...)"
            )
        if isinstance(kind, t.StringType):
            frame = frame.withColumn(name, f.col(name).cast("binary"))
    if DEAD_LETTER in frame.columns:
        raise SchemaError(f"there is a column {DEAD_LETTER} already")
    return frame


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDecoding:
    """What the workers do with every batch."""

    formats: Mapping[str, Format]
    on_error: OnError
    dead_letter: DeadLetter | None

    def schema(self, given: t.StructType) -> t.StructType:
        """The columns that come out."""
        fields = [
            t.StructField(field.name, self.formats[field.name].spark_type())
            if field.name in self.formats
            else field
            for field in given.fields
        ]
        if self.dead_letter is not None:
            fields.append(t.StructField(DEAD_LETTER, DEAD_LETTER_TYPE))
        return t.StructType(fields)

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode the batches of one task."""
        decoders = {name: one.decoder() for name, one in self.formats.items()}
        for batch in batches:
            yield self.decoded(batch, decoders)

    def decoded(
        self, batch: pa.RecordBatch, decoders: Mapping[str, ValueDecoder]
    ) -> pa.RecordBatch:
        """One batch."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        failures: dict[int, tuple[str, DecodeFailure]] = {}
        for name, decoder in decoders.items():
            columns[name], failed = decoder.decode(batch.column(name))
            for failure in failed:
                failures.setdefault(failure.row, (name, failure))
        if failures and self.on_error == "fail":
            first = min(failures)
            raise self._error(batch, *failures[first])
        if self.dead_letter is not None:
            columns.update(self._without_failed(columns, failures))
            unread = _unread_batches(batch)
            columns[DEAD_LETTER] = dead_letter_array(batch, failures, self.dead_letter, unread)
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _error(self, batch: pa.RecordBatch, name: str, failure: DecodeFailure) -> DecodeError:
        cause = _cause(batch, name, failure, None)
        what = "record" if cause.topic is not None else f"row {failure.row} of a batch"
        where = f" {cause.origin}" if cause.topic is not None else ""
        return DecodeError(
            f"the {name} of {what}{where} cannot be decoded as {self.formats[name].name}: "
            f"{failure.reason}"
        )

    def _without_failed(
        self, columns: Mapping[str, pa.Array], failures: Mapping[int, tuple[str, DecodeFailure]]
    ) -> dict[str, pa.Array]:
        """A record of which one part is bad has no good part."""
        if not failures or len(self.formats) == 1:
            return {}
        kept = pa.array([row not in failures for row in range(len(columns[next(iter(columns))]))])
        return {name: _masked(columns[name], kept) for name in self.formats}


def dead_letter_array(
    batch: pa.RecordBatch,
    failures: Mapping[int, tuple[str, DecodeFailure]],
    letter: DeadLetter,
    unread: Mapping[int, Cause] = MappingProxyType({}),
) -> pa.Array:
    """For each row null, or the dead letter it becomes: by row the bad column and the reason.

    `unread` are the rows that stand for whole batches.
    """
    kind = arrow_type(DEAD_LETTER_TYPE)
    if not failures and not unread:
        return pa.nulls(batch.num_rows, kind)
    rows: list[Any] = [None] * batch.num_rows
    for row, cause in unread.items():
        rows[row] = _batch_letter(cause, letter)
    for row, (name, failure) in failures.items():
        cause = _cause(batch, name, failure, letter.pipeline)
        headers = [(one["key"], one["value"]) for one in _at(batch, "headers", row) or ()]
        rows[row] = {
            "topic": letter.topic,
            "key": _at(batch, "key", row),
            "value": _at(batch, "value", row),
            "headers": [{"key": k, "value": v} for k, v in [*headers, *cause.headers()]],
        }
    return pa.array(rows, kind)


def batch_letters(causes: Iterable[Cause], letter: DeadLetter) -> pa.Array:
    """Dead letters for batches that cannot be read."""
    rows = [_batch_letter(cause, letter) for cause in causes]
    return pa.array(rows, arrow_type(DEAD_LETTER_TYPE))


def _batch_letter(cause: Cause, letter: DeadLetter) -> dict[str, Any]:
    told = replace(cause, pipeline=letter.pipeline).headers()
    return {
        "topic": letter.topic,
        "key": None,
        "value": None,
        "headers": [{"key": name, "value": value} for name, value in told],
    }


def _unread_batches(batch: pa.RecordBatch) -> dict[int, Cause]:
    """The rows that the source has put in the place of batches, by what their headers say.

    A record of a dead-letter topic may have such headers too, but they name another place.
    """
    names = batch.schema.names
    if not {"value", "headers", "topic", "partition", "offset"} <= set(names):
        return {}
    if not batch.column("value").null_count:
        return {}
    found: dict[int, Cause] = {}
    for row, is_null in enumerate(batch.column("value").is_null().to_pylist()):
        if is_null:
            cause = cause_of((one["key"], one["value"]) for one in _at(batch, "headers", row) or ())
            place = tuple(_at(batch, name, row) for name in ("topic", "partition", "offset"))
            told = (cause.topic, cause.partition, cause.offset)
            if cause.last_offset is not None and told == place:
                found[row] = cause
    return found


def _masked(array: pa.Array, kept: pa.Array) -> pa.Array:
    positions = pa.compute.if_else(kept, pa.array(range(len(array)), pa.int64()), None)
    return array.take(positions)


def _cause(batch: pa.RecordBatch, name: str, failure: DecodeFailure, pipeline: str | None) -> Cause:
    row = failure.row
    timestamp = None
    if "timestamp" in batch.schema.names and pa.types.is_timestamp(batch["timestamp"].type):
        micros = batch["timestamp"][row].cast(pa.timestamp("us", "UTC")).value
        timestamp = None if micros is None else micros // 1000
    return Cause(
        topic=_at(batch, "topic", row),
        partition=_at(batch, "partition", row),
        offset=_at(batch, "offset", row),
        timestamp_ms=timestamp,
        pipeline=pipeline,
        stage=_STAGES.get(name, name),
        error_class=failure.error_class,
        message=failure.reason,
    )


def _at(batch: pa.RecordBatch, name: str, row: int) -> Any:
    return batch.column(name)[row].as_py() if name in batch.schema.names else None
