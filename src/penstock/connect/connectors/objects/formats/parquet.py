"""ParquetFormat: structs as rows of a table, a row group at a time."""

from collections.abc import Iterator
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connect.connectors.objects.formats.arrow_schemas import (
    arrow_schema_of,
    arrow_value,
    connect_schema_of,
    connect_value_of,
)
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
        try:
            table = pq.ParquetFile(file)
            schema = connect_schema_of(table.schema_arrow)
            columns = arrow_schema_of(schema)
            for batch in table.iter_batches(batch_size=_READ_ROWS):
                for row in batch.cast(columns, safe=False).to_pylist():
                    yield schema, connect_value_of(schema, row)
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

    def write(self, value: Any) -> None:
        check_value(self._schema, value)
        self._rows.append(arrow_value(self._schema, value))
        if len(self._rows) >= _ROWS_MAX:
            self._write_group()

    def finish(self) -> None:
        self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        if self._rows:
            self._writer.write_batch(pa.RecordBatch.from_pylist(self._rows, schema=self._columns))
            self._rows = []


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
