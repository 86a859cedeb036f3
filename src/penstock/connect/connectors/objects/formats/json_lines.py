"""JsonFormat: a line of JSON for each value, without schemas, as the JSON converter writes it."""

from collections.abc import Iterator
from typing import IO, Any

from penstock.connect.columnar.json_columns import json_texts
from penstock.connect.columnar.text_lines import joined_lines
from penstock.connect.converters.json import JsonConverter
from penstock.connect.plugins.contract import SchemaAndValue
from penstock.connect.values.schema import Schema


class JsonLines:
    """Lines that end with \\n; what is read back has no schema."""

    extension = ".json"

    def __init__(self, decimals: str = "BASE64") -> None:
        config = {"schemas.enable": "false", "decimal.format": decimals}
        self._converter = JsonConverter(config, is_key=False)

    def writer(self, file: IO[bytes], schema: Schema | None) -> "_LineWriter":
        return _LineWriter(self._converter, file, schema)

    def read(self, file: IO[bytes]) -> Iterator[SchemaAndValue]:
        for line in file:
            if line.strip():
                yield self._converter.to_connect("", line)

    def read_columns(self, file: IO[bytes], skipped: int) -> None:
        return None  # What has no schema has no columns.


class _LineWriter:
    def __init__(self, converter: JsonConverter, file: IO[bytes], schema: Schema | None) -> None:
        self._converter = converter
        self._file = file
        self._schema = schema

    def write(self, value: Any) -> None:
        self._file.write((self._converter.from_connect("", self._schema, value) or b"null") + b"\n")

    def write_columns(self, values: Any) -> bool:
        if self._schema is None:
            return False
        texts = json_texts(self._converter.writer, self._schema, values)
        self._file.write(bytes(joined_lines(texts)))
        return True

    def finish(self) -> None:
        return
