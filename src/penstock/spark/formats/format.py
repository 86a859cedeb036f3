"""What every format offers: the type of its columns, and ways from bytes to them and back.

A format is a small description that travels to the workers; there it makes a decoder or encoder,
once per task, which works on whole Arrow arrays. A value that cannot be decoded is a
`DecodeFailure` in the answer, never an exception: what becomes of it is the user's choice
(`decoding`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_type

from penstock.schemas.errors import DecodeError, FormatError, SchemaError


class DecodeFailure(NamedTuple):
    """A value that could not be decoded: which of the batch, and why."""

    row: int
    error_class: str
    reason: str

    @classmethod
    def of(cls, row: int, error: Exception) -> "DecodeFailure":
        """From the error that came up."""
        kind = type(error)
        return cls(row, f"{kind.__module__}.{kind.__qualname__}", str(error))


class DecodedValues(NamedTuple):
    """Values of a batch in their Arrow type; null where they were null or failed."""

    array: pa.Array
    failures: list[DecodeFailure]


class ValueDecoder(Protocol):
    """Turns binary values into typed ones."""

    def decode(self, values: pa.Array) -> DecodedValues:
        """All values of a batch; null stays null."""


class ValueEncoder(Protocol):
    """Turns typed values into binary ones."""

    def encode(self, values: pa.Array) -> pa.Array:
        """All values of a batch; null stays null. Raises EncodeError."""


class Format(ABC):
    """A way to write values as bytes."""

    name: str  # As messages call it.

    @abstractmethod
    def spark_type(self) -> t.DataType:
        """The type of a decoded value."""

    @abstractmethod
    def decoder(self) -> ValueDecoder:
        """A decoder for one task."""

    def bound(self, frame: DataFrame, column: str) -> "Format":
        """The format with what only the driver can find out: what a schema in words means, or
        what the data look like."""
        return self

    def for_writing(self, spark_type: t.DataType, topic: str | None, *, is_key: bool) -> "Format":
        """The format with what must be done once, on the driver, before values of this type are
        written: their schema is registered. None: the topic is not known yet."""
        return self

    def expression(self, value: Column, spark_type: t.DataType) -> Column | None:
        """How Spark itself encodes it; None: `encoder` does."""
        return None

    def encoder(self, spark_type: t.DataType) -> ValueEncoder:
        """An encoder for one task and values of this type."""
        raise SchemaError(f"{self.name} values of type {spark_type.simpleString()} have no encoder")


def arrow_type(spark_type: t.DataType) -> pa.DataType:
    """The Arrow type that Spark expects for one of its own."""
    return to_arrow_type(spark_type, timezone="UTC")


def spark_type_of(schema: t.DataType | str) -> t.DataType:
    """A type, or its words: `id long, name string` is a struct, `array<int>` an array."""
    if isinstance(schema, t.DataType):
        return schema
    try:
        return t.DataType.fromDDL(schema)
    except ParseException as error:
        raise SchemaError(f"{schema!r} is not a schema in Spark's words: {error}") from error


def decode_each(
    values: pa.Array,
    decode: Callable[[bytes], object],
    stored: pa.DataType,
    target: pa.DataType,
) -> DecodedValues:
    """Decode value by value."""
    out: list[Any] = []
    failures: list[DecodeFailure] = []
    for row, data in enumerate(values.to_pylist()):
        value = None
        if data is not None:
            try:
                value = decode(data)
            except FormatError as error:
                failures.append(DecodeFailure.of(row, error))
        out.append(value)
    array = _array(out, stored, target, failures)
    return DecodedValues(array, sorted(failures))


def encode_each(values: Iterable[object], encode: Callable[[Any], bytes]) -> pa.Array:
    """Encode value by value."""
    return pa.array([None if v is None else encode(v) for v in values], pa.binary())


def _array(
    values: list[Any], stored: pa.DataType, target: pa.DataType, failures: list[DecodeFailure]
) -> pa.Array:
    """All at once; only if that fails is the value looked for that has no place in the type."""
    try:
        return pa.array(values, stored).cast(target)
    except (ValueError, TypeError, OverflowError, AttributeError):
        for row, value in enumerate(values):
            try:
                pa.array([value], stored).cast(target)
            except (ValueError, TypeError, OverflowError, AttributeError) as error:
                reason = f"a value does not fit its column: {error}"
                failures.append(DecodeFailure.of(row, DecodeError(reason)))
                values[row] = None
        return pa.array(values, stored).cast(target)


def rows_of(values: pa.Array) -> list[Any]:
    """Arrow values as Python's, structs and maps as dictionaries.

    Column by column inside structs, which is several times faster than pyarrow's value by value.
    """
    kind = values.type
    if pa.types.is_struct(kind):
        names = [kind.field(number).name for number in range(kind.num_fields)]
        columns = [rows_of(values.field(number)) for number in range(kind.num_fields)]
        found = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    elif pa.types.is_map(kind):
        keys, items = rows_of(values.keys), rows_of(values.items)
        found = [dict(zip(keys[a:b], items[a:b], strict=True)) for a, b in _bounds(values)]
    elif pa.types.is_list(kind):
        inner = rows_of(values.values)
        found = [inner[a:b] for a, b in _bounds(values)]  # type: ignore[misc]
    elif values.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return values.to_numpy().tolist()  # type: ignore[no-any-return]
    else:
        return values.to_pylist()  # type: ignore[no-any-return]
    if values.null_count == 0:
        return found
    return [row if there else None for row, there in zip(found, _valid(values), strict=True)]


def _bounds(values: pa.Array) -> Iterator[tuple[int, int]]:
    return pairwise(values.offsets.to_numpy().tolist())


def _valid(values: pa.Array) -> list[bool]:
    return values.is_valid().to_numpy(zero_copy_only=False).tolist()  # type: ignore[no-any-return]
