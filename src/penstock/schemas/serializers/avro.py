"""Avro for producers and consumers, under the header of a schema registry.

    Producer({..., "schema.registry.url": url}, value=AvroSerializer(schema))

Values are what fastavro takes and gives: dictionaries, and dates, decimals and UUIDs as Python's.
A field that the schema does not have is refused, one that is left out gets its default.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import fastavro

from penstock.client.settings import as_bool
from penstock.schemas.avro import (
    NAMED,
    AvroReader,
    AvroWriter,
    is_bytes,
    may_grow_without_bytes,
    parse_compact,
    self_contained,
)
from penstock.schemas.bounded_cache import BoundedCache
from penstock.schemas.documents.avro import avro_check
from penstock.schemas.errors import EncodeError
from penstock.schemas.lookup import SchemaKind, StoredSchema
from penstock.schemas.registry_client import NewSchema, ReferencedVersion, RegistryClient
from penstock.schemas.serializers.chosen_schema import (
    MIGRATING,
    READING,
    choose_schema,
    refuse_rules,
)
from penstock.schemas.serializers.registry_user import RegistryUser
from penstock.schemas.wire_header import HEADER_BYTES, read_header, write_header

AvroText: TypeAlias = str | Mapping[str, Any] | Sequence[Any]
_ENTRIES_MAX = 1_000


class AvroSerializer(RegistryUser):
    """Writes values as Avro and registers their schema.

    `schema` is its text, or what `json.loads` makes of it; without one, `value.schema` of the
    configuration is taken, or `use.latest.version` or `use.schema.id` find one. `references` are
    schemas of the registry whose types it uses. `to_dict` turns an object of the program into
    what the schema describes.
    """

    def __init__(
        self,
        schema: AvroText | None = None,
        *,
        registry: RegistryClient | None = None,
        references: Sequence[ReferencedVersion] = (),
        to_dict: Callable[[Any], Any] | None = None,
        settings: Mapping[str, object] | None = None,
        is_key: bool = False,
    ) -> None:
        self._own = None if schema is None else new_avro(schema, references)
        self._to_dict = to_dict
        self._strict = True
        self._by_topic: BoundedCache[str, _FramedWriter] = BoundedCache(_ENTRIES_MAX)
        self._by_id: BoundedCache[int, _FramedWriter] = BoundedCache(_ENTRIES_MAX)
        self._parsed: BoundedCache[NewSchema, _OwnAvro] = BoundedCache(1)
        super().__init__(registry, settings, is_key=is_key)

    def take_settings(self, settings: Mapping[str, object], side: str) -> None:
        """The schema in words, and whether unknown fields are refused."""
        text = settings.get(f"{side}.schema")
        if self._own is None and text is not None:
            self._own = new_avro(str(text), ())
        name = "validate.strict.allow.default"
        self._strict = as_bool(name, settings.get(name, True))

    def serialize(self, topic: str, value: Any, /) -> bytes | None:
        """The bytes of a value; None stays null."""
        if value is None:
            return None
        return self._writer(topic).encode(value if self._to_dict is None else self._to_dict(value))

    def _writer(self, topic: str) -> "_FramedWriter":
        if self.settings.wants_latest:  # The registry's client knows how long it is the latest.
            return self._chosen(topic)
        return self._by_topic.get_or_make(topic, lambda: self._chosen(topic))

    def _chosen(self, topic: str) -> "_FramedWriter":
        own = None if self._own is None else self._parsed_own(self._own)
        record = None if own is None else own.record
        chosen = choose_schema(self.settings, topic, self._own, record)
        under = chosen.stored if own is None else chosen.stored or own.stored
        assert under is not None
        return self._by_id.get_or_make(
            chosen.schema_id, lambda: _FramedWriter.of(under, chosen.schema_id, self._strict)
        )

    def _parsed_own(self, own: NewSchema) -> "_OwnAvro":
        registry = self.settings.registry
        return self._parsed.get_or_make(own, lambda: _OwnAvro.of(registry.resolved(own)))


class AvroDeserializer(RegistryUser):
    """Reads Avro values by the schema they were written with, as another wants them.

    `schema` is the reader's; without one, values come as they were written, or, with
    `use.latest.version`, as the latest schema of the subject says. `from_dict` makes objects of
    the program of them.
    """

    def __init__(
        self,
        schema: AvroText | None = None,
        *,
        registry: RegistryClient | None = None,
        references: Sequence[ReferencedVersion] = (),
        from_dict: Callable[[Any], Any] | None = None,
        settings: Mapping[str, object] | None = None,
        is_key: bool = False,
    ) -> None:
        self._own = None if schema is None else new_avro(schema, references)
        self._from_dict = from_dict
        self._readers: BoundedCache[tuple[int, int], _FramedReader] = BoundedCache(_ENTRIES_MAX)
        self._records: BoundedCache[int, str] = BoundedCache(_ENTRIES_MAX)
        super().__init__(registry, settings, is_key=is_key)

    def deserialize(self, topic: str, data: bytes | None, /) -> Any:
        """The value of some bytes; null stays None."""
        if data is None:
            return None
        value = self._reader(topic, read_header(data)).decode(data)
        return value if self._from_dict is None else self._from_dict(value)

    def _reader(self, topic: str, schema_id: int) -> "_FramedReader":
        latest = self._latest(topic, schema_id) if self.settings.wants_latest else None
        key = (schema_id, 0 if latest is None else latest.schema_id)
        return self._readers.get_or_make(key, lambda: self._made(schema_id, latest))

    def _made(self, schema_id: int, latest: StoredSchema | None) -> "_FramedReader":
        registry = self.settings.registry
        written = refuse_rules(registry.by_id(schema_id), READING)
        own = None if self._own is None else registry.resolved(self._own)
        return _FramedReader.of(written, latest or own)

    def _latest(self, topic: str, schema_id: int) -> StoredSchema:
        """The latest schema of the subject that the value's own schema belongs to."""
        settings = self.settings
        record = self._records.get_or_make(
            schema_id, lambda: avro_record_name(settings.registry.by_id(schema_id)) or ""
        )
        subject = settings.subject(topic, record or None)
        latest = settings.registry.latest(subject, settings.latest_metadata)
        return refuse_rules(latest, READING | MIGRATING)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OwnAvro:
    """The serializer's own schema, with the texts of what it refers to."""

    stored: StoredSchema
    record: str | None

    @classmethod
    def of(cls, stored: StoredSchema) -> "_OwnAvro":
        return cls(stored=stored, record=avro_record_name(stored))


@dataclass(frozen=True, slots=True, kw_only=True)
class _FramedWriter:
    """Writes values with their header."""

    header: bytes
    writer: AvroWriter
    bare: bool  # Nothing but bytes, which have no length in front.

    @classmethod
    def of(cls, stored: StoredSchema, schema_id: int, strict: bool) -> "_FramedWriter":
        root, named = parse_compact(stored)
        schema = fastavro.parse_schema(self_contained(root, named))
        return cls(
            header=write_header(schema_id),
            writer=AvroWriter(schema=schema, fills_defaults=True, strict=strict),
            bare=is_bytes(root),
        )

    def encode(self, value: Any) -> bytes:
        if not self.bare:
            return self.writer.encode(value, self.header)
        if not isinstance(value, bytes | bytearray):
            raise EncodeError("the Avro schema is bytes, and the value is none")
        return self.header + value


@dataclass(frozen=True, slots=True, kw_only=True)
class _FramedReader:
    """Reads values behind their header."""

    reader: AvroReader
    check: Callable[[bytes], None] | None  # None: their size bounds what they can become.
    bare: bool

    @classmethod
    def of(cls, written: StoredSchema, wanted: StoredSchema | None) -> "_FramedReader":
        root, named = parse_compact(written)
        writer = fastavro.parse_schema(self_contained(root, named))
        reader = None
        if wanted is not None:
            reader = fastavro.parse_schema(self_contained(*parse_compact(wanted)))
        return cls(
            reader=AvroReader(writer=writer, reader=reader, names_types=False),
            check=avro_check(root, named) if may_grow_without_bytes(root, named) else None,
            bare=is_bytes(root),
        )

    def decode(self, data: bytes) -> Any:
        if self.bare:
            return data[HEADER_BYTES:]
        if self.check is not None:
            self.check(data)
        return self.reader.decode(data, HEADER_BYTES)


def new_avro(schema: AvroText, references: Sequence[ReferencedVersion]) -> NewSchema:
    """A schema as it is registered; the bare name of a type becomes an object."""
    text = schema.strip() if isinstance(schema, str) else json.dumps(schema)
    if text[:1] not in ("{", "["):
        text = json.dumps({"type": text.strip('"')}, separators=(",", ":"))
    return NewSchema(kind=SchemaKind.AVRO, text=text, references=tuple(references))


def avro_record_name(stored: StoredSchema) -> str | None:
    """The full name of a schema's type, or its word; a union has none."""
    root, _ = parse_compact(stored)
    if isinstance(root, list):
        return None
    if isinstance(root, dict):
        return str(root["name"] if root["type"] in NAMED else root["type"])
    return str(root)
