"""What a format of objects does: it writes values one by one into a file, and reads them back.

A format is found by the end of its class name, which Confluent's connectors of all stores share:
`io.confluent.connect.s3.format.parquet.ParquetFormat` is `ParquetFormat`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, Protocol

from penstock.connect.columnar.contract import SchemaAndColumn
from penstock.connect.plugins.contract import SchemaAndValue
from penstock.connect.values.schema import Schema


class ValueWriter(Protocol):
    """One file that is being written."""

    def write(self, value: Any) -> None:
        """Add a value; DataError for one that cannot be written, and nothing of it is there."""

    def write_columns(self, values: Any) -> bool:
        """Add an Arrow array of values without nulls. False: it has to be written one by one."""

    def finish(self) -> None:
        """Write what is left; the file stays open."""


class ObjectFormat(Protocol):
    """One format with its settings."""

    @property
    def extension(self) -> str:
        """How names of objects end, with the dot."""

    def writer(self, file: IO[bytes], schema: Schema | None) -> ValueWriter:
        """Begin a file of values of this schema; DataError for a schema it cannot have."""

    def read(self, file: IO[bytes]) -> Iterator[SchemaAndValue]:
        """The values of a file; DataError where it is none of this format."""

    def read_columns(self, file: IO[bytes], skipped: int) -> Iterator[SchemaAndColumn] | None:
        """The values behind the first so many, as Arrow arrays; None: it has records alone."""


FormatMaker = Callable[[Mapping[str, Any]], ObjectFormat]
FORMATS = ("JsonFormat", "AvroFormat", "ParquetFormat", "ByteArrayFormat")


def format_word(class_name: str) -> str:
    """The end of a class name."""
    return class_name.rpartition(".")[2]


def object_format(config: Mapping[str, Any]) -> ObjectFormat:
    """The format of `format.class`; its library is imported only if it is used."""
    word = format_word(config["format.class"])
    if word == "AvroFormat":
        from penstock.connect.connectors.objects.formats.avro_container import AvroContainer

        return AvroContainer(config["avro.codec"])
    if word == "ParquetFormat":
        from penstock.connect.connectors.objects.formats.parquet import ParquetObjects

        return ParquetObjects(config["parquet.codec"])
    if word == "ByteArrayFormat":
        from penstock.connect.connectors.objects.formats.raw_bytes import RawBytes

        return RawBytes(config["format.bytearray.extension"], config["format.bytearray.separator"])
    from penstock.connect.connectors.objects.formats.json_lines import JsonLines

    return JsonLines(config["json.decimal.format"])
