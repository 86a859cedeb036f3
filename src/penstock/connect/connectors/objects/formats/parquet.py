"""ParquetFormat: structs as rows of a table, a row group at a time."""

from collections.abc import Iterator
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connect.columnar.arrow_schemas import (
    arrow_schema_of,
    arrow_value,
    connect_schema_of,
    connect_value_of,
)
from penstock.connect.columnar.contract import SchemaAndColumn, in_pieces
from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.contract import SchemaAndValue
from penstock.connect.values.schema import Schema
from penstock.connect.values.struct import check_value

CODECS = ("none", "snappy", "gzip", "lz4", "zstd", "brotli")
_ROWS_MAX = 20_000  # Of a row group, which is what a task holds of a file in memory.
_READ_ROWS = 1_000


class ParquetObjects:
    """Tables; what is read back has a struct of the file's columns."""

    def __init__(self, codec: str = "snappy") -> None:
        self._codec = codec

    @property
    def extension(self) -> str:
        """As Confluent names it: with the codec in front."""
        word = {"none": "", "gzip": ".gz"}.get(self._codec, f".{self._codec}")
        return f"{word}.parquet"

    def writer(self, file: IO[bytes], schema: Schema | None) -> "_RowWriter":
        if schema is None:
            raise DataError("ParquetFormat cannot write a value that has no schema")
        return _RowWriter(file, schema, self._codec)

    def read(self, file: IO[bytes]) -> Iterator[SchemaAndValue]:
        for schema, batch in self._batches(file, _READ_ROWS):
            for row in batch.to_pylist():
                yield schema, connect_value_of(schema, row)

    def read_columns(self, file: IO[bytes], skipped: int) -> Iterator[SchemaAndColumn]:
        for schema, batch in self._batches(file, _ROWS_MAX):
            passed = min(skipped, batch.num_rows)
            skipped -= passed
            if passed < batch.num_rows:
                rows = batch.slice(passed)
                structs = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))
                for piece in in_pieces(structs):
                    yield SchemaAndColumn(schema, piece)

    def _batches(self, file: IO[bytes], rows_max: int) -> Iterator[tuple[Schema, Any]]:
        """Rows in the types that the schema has."""
        try:
            table = pq.ParquetFile(file)
            schema = connect_schema_of(table.schema_arrow)
            columns = arrow_schema_of(schema)
            for batch in table.iter_batches(batch_size=rows_max):
                yield schema, batch.cast(columns, safe=False)
        except pa.ArrowException as error:
            raise DataError(f"this is not a Parquet file that can be read: {error}") from error


class _RowWriter:
    def __init__(self, file: IO[bytes], schema: Schema, codec: str) -> None:
        self._schema = schema
        self._columns = arrow_schema_of(schema)
        self._writer = pq.ParquetWriter(
            pa.PythonFile(_KeptOpen(file), mode="w"), self._columns, compression=codec
        )
        self._rows: list[dict[str, Any]] = []
        self._gathered: list[Any] = []  # Batches of rows that came before those.
        self._count = 0  # Of the rows in them.

    def write(self, value: Any) -> None:
        check_value(self._schema, value)
        self._rows.append(arrow_value(self._schema, value))
        if self._count + len(self._rows) >= _ROWS_MAX:
            self._write_group()

    def write_columns(self, values: Any) -> bool:
        if not pa.types.is_struct(values.type):
            return False
        rows = pa.RecordBatch.from_arrays(values.flatten(), schema=self._columns)
        while rows.num_rows:
            self._gather()
            part = rows.slice(0, _ROWS_MAX - self._count)
            self._gathered.append(part)
            self._count += part.num_rows
            rows = rows.slice(part.num_rows)
            if self._count >= _ROWS_MAX:
                self._write_group()
        return True

    def finish(self) -> None:
        self._write_group()
        self._writer.close()

    def _gather(self) -> None:
        """Single rows as a batch behind those before them."""
        if self._rows:
            self._gathered.append(pa.RecordBatch.from_pylist(self._rows, schema=self._columns))
            self._count += len(self._rows)
            self._rows = []

    def _write_group(self) -> None:
        self._gather()
        if self._count:
            table = pa.Table.from_batches(self._gathered, schema=self._columns)
            self._writer.write_table(table.combine_chunks(), row_group_size=_ROWS_MAX)
            self._gathered, self._count = [], 0


class _KeptOpen:
    """A file that Arrow may close, and that stays open; what was discarded takes anything."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.tell = file.tell
        self.flush = file.flush

    def write(self, data: bytes) -> int:
        return len(data) if self._file.closed else self._file.write(data)

    def close(self) -> None:
        return
