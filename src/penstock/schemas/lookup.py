"""Schemas by id: what the five-byte header asks for, and a folder that answers.

A lookup travels to Spark's workers, so it can be pickled. `registry_client` has the one that asks
a schema registry; a registry of our own only has to give out a `SchemaLookup`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from penstock.schemas.errors import SchemaError, UnknownSchema


class SchemaKind(StrEnum):
    """The languages that schemas are written in, under the names registries use."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSchema:
    """A schema as it is stored, with those that it refers to."""

    schema_id: int
    kind: SchemaKind
    text: str = ""  # Empty for Protobuf.
    descriptor_set: bytes = b""  # Protobuf's compiled form; the last file is the schema's own.
    references: tuple["StoredSchema", ...] = ()  # In the order in which they must be read.
    name: str = ""  # Of one that another refers to: the name that the other uses.

    def expect(self, kind: SchemaKind) -> "StoredSchema":
        """Itself, if it is of this kind."""
        if self.kind is not kind:
            raise SchemaError(f"schema {self.schema_id} is {self.kind}, not {kind}")
        return self


@runtime_checkable
class SchemaLookup(Protocol):
    """Finds schemas by id. Implementations can be pickled and remember what they found."""

    def by_id(self, schema_id: int) -> StoredSchema:
        """The schema of this id; raises UnknownSchema."""


_KIND_BY_SUFFIX = {
    ".avsc": SchemaKind.AVRO,
    ".json": SchemaKind.JSON,
    ".desc": SchemaKind.PROTOBUF,
    ".pb": SchemaKind.PROTOBUF,
}


class SchemaDirectory:
    """A folder with one file per schema, named by its id.

    `7.avsc` is Avro, `7.json` is JSON Schema, `7.desc` or `7.pb` is what
    `protoc --include_imports --descriptor_set_out` writes.
    """

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        if not self.directory.is_dir():
            raise SchemaError(f"{self.directory} is not a directory of schemas")
        self._found: dict[int, StoredSchema] = {}

    def __reduce__(self) -> tuple[type["SchemaDirectory"], tuple[str]]:
        return type(self), (str(self.directory),)

    def by_id(self, schema_id: int) -> StoredSchema:
        """The schema in the file of this number."""
        if schema_id not in self._found:
            self._found[schema_id] = self._read(schema_id)
        return self._found[schema_id]

    def ids(self) -> list[int]:
        """The ids there are files for."""
        return sorted(
            int(path.stem)
            for path in self.directory.iterdir()
            if path.suffix in _KIND_BY_SUFFIX and path.stem.isdecimal()
        )

    def _read(self, schema_id: int) -> StoredSchema:
        files = [path for path in self._files(schema_id) if path.is_file()]
        if not files:
            raise UnknownSchema(schema_id, str(self.directory))
        if len(files) > 1:
            names = ", ".join(path.name for path in files)
            raise SchemaError(f"schema {schema_id} is there more than once: {names}")
        kind = _KIND_BY_SUFFIX[files[0].suffix]
        if kind is SchemaKind.PROTOBUF:
            data = files[0].read_bytes()
            return StoredSchema(schema_id=schema_id, kind=kind, descriptor_set=data)
        return StoredSchema(schema_id=schema_id, kind=kind, text=files[0].read_text("utf-8"))

    def _files(self, schema_id: int) -> Iterator[Path]:
        return (self.directory / f"{schema_id}{suffix}" for suffix in _KIND_BY_SUFFIX)
