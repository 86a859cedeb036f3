"""AvroFormat: Avro's object container files, with the schema that AvroConverter would register.

Blocks are put together here, not by fastavro's writer: a value that cannot be encoded then leaves
nothing behind, and the same values always make the same bytes, so a replay changes nothing.
"""

import hashlib
import json
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import IO, Any

import fastavro

from penstock.connect.converters.avro import avro_value, connect_value
from penstock.connect.converters.avro_schemas import avro_of, connect_of
from penstock.connect.errors.kinds import DataError
from penstock.connect.plugins.contract import SchemaAndValue
from penstock.connect.values.schema import Schema
from penstock.connect.values.struct import check_value
from penstock.schemas.avro import parse
from penstock.schemas.errors import SchemaError

CODECS = ("null", "deflate")
_MAGIC = b"Obj\x01"
_HEADER = {"type": "map", "values": "bytes"}
_BLOCK_BYTES = 64_000


class AvroContainer:
    """Container files; what is read back has the schema of the file."""

    extension = ".avro"

    def __init__(self, codec: str = "null") -> None:
        self._codec = codec

    def writer(self, file: IO[bytes], schema: Schema | None) -> "_BlockWriter":
        if schema is None:
            raise DataError("AvroFormat cannot write a value that has no schema")
        return _BlockWriter(file, schema, self._codec)

    def read(self, file: IO[bytes]) -> Iterator[SchemaAndValue]:
        try:
            found = fastavro.reader(file)
            schema = connect_of(parse(found.metadata["avro.schema"]))
            for value in found:
                yield schema, connect_value(schema, value)
        except DataError:
            raise
        except (SchemaError, ValueError, KeyError, EOFError, TypeError, IndexError) as error:
            raise DataError(f"this is not an Avro container: {error}") from error

    def read_columns(self, file: IO[bytes], skipped: int) -> None:
        return None


class _BlockWriter:
    def __init__(self, file: IO[bytes], schema: Schema, codec: str) -> None:
        avro = avro_of(schema)
        text = json.dumps(avro)
        self._file = file
        self._schema = schema
        self._codec = codec
        self._avro = fastavro.parse_schema(avro)
        self._block = BytesIO()
        self._count = 0
        self._sync = hashlib.md5(text.encode(), usedforsecurity=False).digest()
        file.write(_MAGIC)
        header = {"avro.schema": text.encode(), "avro.codec": codec.encode()}
        fastavro.schemaless_writer(file, _HEADER, header)
        file.write(self._sync)

    def write(self, value: Any) -> None:
        check_value(self._schema, value)
        start = self._block.tell()
        try:
            fastavro.schemaless_writer(self._block, self._avro, avro_value(self._schema, value))
        except (ValueError, TypeError, KeyError, OverflowError, AttributeError) as error:
            self._block.seek(start)
            self._block.truncate()
            raise DataError(f"the value cannot be written as Avro: {error}") from error
        self._count += 1
        if self._block.tell() >= _BLOCK_BYTES:
            self.finish()

    def write_columns(self, values: Any) -> bool:
        return False

    def finish(self) -> None:
        if not self._count:
            return
        content = self._block.getvalue()
        if self._codec == "deflate":
            content = zlib.compress(content)[2:-4]  # Avro has deflate without zlib's frame.
        for number in (self._count, len(content)):
            fastavro.schemaless_writer(self._file, "long", number)
        self._file.write(content + self._sync)
        self._block, self._count = BytesIO(), 0
