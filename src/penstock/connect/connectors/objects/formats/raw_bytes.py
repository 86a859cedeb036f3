"""ByteArrayFormat: the bytes of values one after the other, with a separator behind each.

A value that has the separator in it is read back as two: choose one that no value has.
"""

from collections.abc import Iterator
from typing import IO, Any

import pyarrow as pa

from penstock.connect.columnar.contract import COLUMN_BYTES, SchemaAndColumn
from penstock.connect.columnar.text_lines import joined_lines
from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.contract import SchemaAndValue
from penstock.connect.values.schema import BYTES_SCHEMA, Schema

_CHUNK_BYTES = 1 << 20
_ROWS_MAX = 100_000  # Of one column.


class RawBytes:
    """Values that are bytes, which the ByteArrayConverter brings."""

    def __init__(self, extension: str = ".bin", separator: str | None = None) -> None:
        self.extension = extension
        self._separator = (separator or "\n").encode()

    def writer(self, file: IO[bytes], schema: Schema | None) -> "_BytesWriter":
        return _BytesWriter(file, self._separator)

    def read(self, file: IO[bytes]) -> Iterator[SchemaAndValue]:
        rest = b""
        while chunk := file.read(_CHUNK_BYTES):
            *whole, rest = (rest + chunk).split(self._separator)
            for value in whole:
                yield BYTES_SCHEMA, value
        if rest:
            yield BYTES_SCHEMA, rest

    def read_columns(self, file: IO[bytes], skipped: int) -> Iterator[SchemaAndColumn]:
        found: list[bytes] = []
        size = 0
        for number, (_, value) in enumerate(self.read(file)):
            if number < skipped:
                continue
            found.append(value)
            size += len(value)
            if size >= COLUMN_BYTES or len(found) == _ROWS_MAX:
                yield SchemaAndColumn(BYTES_SCHEMA, pa.array(found, pa.binary()))
                found, size = [], 0
        if found:
            yield SchemaAndColumn(BYTES_SCHEMA, pa.array(found, pa.binary()))


class _BytesWriter:
    def __init__(self, file: IO[bytes], separator: bytes) -> None:
        self._file = file
        self._separator = separator

    def write(self, value: Any) -> None:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise DataError(
                f"ByteArrayFormat takes bytes, and the value is a {type(value).__name__}: "
                "use the ByteArrayConverter"
            )
        self._file.write(bytes(value) + self._separator)

    def write_columns(self, values: Any) -> bool:
        if not pa.types.is_binary(values.type):
            return False
        self._file.write(bytes(joined_lines(values, self._separator)))
        return True

    def finish(self) -> None:
        return
