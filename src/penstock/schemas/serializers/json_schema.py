"""JSON for producers and consumers, checked by a JSON Schema and under a registry's header.

    Producer({..., "schema.registry.url": url}, value=JsonSchemaSerializer(schema))

Values are what Python's `json` takes and gives. A value that its schema does not allow is neither
written nor read; `json.fail.invalid.schema=false` leaves the check out.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from penstock.client.settings import as_bool
from penstock.schemas.bounded_cache import BoundedCache
from penstock.schemas.documents.json_schema import (
    first_error,
    json_validator,
    read_json,
    write_json,
)
from penstock.schemas.errors import DecodeError, EncodeError, SchemaError
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

JsonSchemaText: TypeAlias = str | Mapping[str, Any]
_ENTRIES_MAX = 1_000
_CHECKS = "json.fail.invalid.schema"


class JsonSchemaSerializer(RegistryUser):
    """Writes values as JSON and registers their schema.

    `schema` is its text, or what `json.loads` makes of it; without one, `value.schema` of the
    configuration is taken, or `use.latest.version` or `use.schema.id` find one. `to_dict` turns an
    object of the program into what the schema describes.
    """

    def __init__(
        self,
        schema: JsonSchemaText | None = None,
        *,
        registry: RegistryClient | None = None,
        references: Sequence[ReferencedVersion] = (),
        to_dict: Callable[[Any], Any] | None = None,
        settings: Mapping[str, object] | None = None,
        is_key: bool = False,
    ) -> None:
        self._own = None if schema is None else new_json_schema(schema, references)
        self._to_dict = to_dict
        self._checks = True
        self._by_topic: BoundedCache[str, _FramedJson] = BoundedCache(_ENTRIES_MAX)
        self._by_id: BoundedCache[int, _FramedJson] = BoundedCache(_ENTRIES_MAX)
        super().__init__(registry, settings, is_key=is_key)

    def take_settings(self, settings: Mapping[str, object], side: str) -> None:
        """The schema in words, and whether values are checked."""
        text = settings.get(f"{side}.schema")
        if self._own is None and text is not None:
            self._own = new_json_schema(str(text), ())
        self._checks = as_bool(_CHECKS, settings.get(_CHECKS, True))

    def serialize(self, topic: str, value: Any, /) -> bytes | None:
        """The bytes of a value; None stays null."""
        if value is None:
            return None
        document = value if self._to_dict is None else self._to_dict(value)
        return self._writer(topic).encode(document)

    def _writer(self, topic: str) -> "_FramedJson":
        if self.settings.wants_latest:  # The registry's client knows how long it is the latest.
            return self._chosen(topic)
        return self._by_topic.get_or_make(topic, lambda: self._chosen(topic))

    def _chosen(self, topic: str) -> "_FramedJson":
        own = self._own
        record = None if own is None else json_title(own.text)
        chosen = choose_schema(self.settings, topic, own, record)

        def make() -> _FramedJson:
            under = chosen.stored
            if under is None:
                assert own is not None
                under = self.settings.registry.resolved(own)
            return _FramedJson.of(under, chosen.schema_id, checks=self._checks)

        return self._by_id.get_or_make(chosen.schema_id, make)


class JsonSchemaDeserializer(RegistryUser):
    """Reads JSON values and checks them.

    They are checked by `schema`, else, with `use.latest.version`, by the latest schema of the
    subject, else by the schema they were written with.
    """

    def __init__(
        self,
        schema: JsonSchemaText | None = None,
        *,
        registry: RegistryClient | None = None,
        references: Sequence[ReferencedVersion] = (),
        from_dict: Callable[[Any], Any] | None = None,
        settings: Mapping[str, object] | None = None,
        is_key: bool = False,
    ) -> None:
        self._own = None if schema is None else new_json_schema(schema, references)
        self._from_dict = from_dict
        self._checks = True
        self._readers: BoundedCache[tuple[int, int], _FramedJson] = BoundedCache(_ENTRIES_MAX)
        super().__init__(registry, settings, is_key=is_key)

    def take_settings(self, settings: Mapping[str, object], side: str) -> None:
        """Whether values are checked."""
        self._checks = as_bool(_CHECKS, settings.get(_CHECKS, True))

    def deserialize(self, topic: str, data: bytes | None, /) -> Any:
        """The value of some bytes; null stays None."""
        if data is None:
            return None
        document = self._reader(topic, read_header(data)).decode(data)
        return document if self._from_dict is None else self._from_dict(document)

    def _reader(self, topic: str, schema_id: int) -> "_FramedJson":
        latest = self._latest(topic, schema_id) if self.settings.wants_latest else None
        key = (schema_id, 0 if latest is None else latest.schema_id)
        return self._readers.get_or_make(key, lambda: self._made(schema_id, latest))

    def _made(self, schema_id: int, latest: StoredSchema | None) -> "_FramedJson":
        registry = self.settings.registry
        written = refuse_rules(registry.by_id(schema_id), READING).expect(SchemaKind.JSON)
        own = None if self._own is None else registry.resolved(self._own)
        return _FramedJson.of(latest or own or written, schema_id, checks=self._checks)

    def _latest(self, topic: str, schema_id: int) -> StoredSchema:
        settings = self.settings
        record = json_title(settings.registry.by_id(schema_id).text)
        latest = settings.registry.latest(settings.subject(topic, record), settings.latest_metadata)
        return refuse_rules(latest, READING | MIGRATING)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FramedJson:
    """Writes and reads values with their header."""

    header: bytes
    validator: Any | None  # None: values are not checked.

    @classmethod
    def of(cls, stored: StoredSchema, schema_id: int, *, checks: bool) -> "_FramedJson":
        stored.expect(SchemaKind.JSON)
        validator = json_validator(stored) if checks else None
        return cls(header=write_header(schema_id), validator=validator)

    def encode(self, document: Any) -> bytes:
        wrong = self._wrong(document)
        if wrong is not None:
            raise EncodeError(f"the value is not of the JSON schema: {wrong}")
        return self.header + write_json(document)

    def decode(self, data: bytes) -> Any:
        document = read_json(data[HEADER_BYTES:])
        wrong = self._wrong(document)
        if wrong is not None:
            raise DecodeError(f"the value is not of the JSON schema: {wrong}")
        return document

    def _wrong(self, document: Any) -> str | None:
        return None if self.validator is None else first_error(self.validator, document)


def new_json_schema(schema: JsonSchemaText, references: Sequence[ReferencedVersion]) -> NewSchema:
    """A schema as it is registered."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    json_title(text)  # A text that is no JSON is refused before anybody is asked.
    return NewSchema(kind=SchemaKind.JSON, text=text, references=tuple(references))


def json_title(text: str) -> str | None:
    """What subjects are named by that are named after the record."""
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"this is not a JSON schema: {error}") from error
    title = schema.get("title") if isinstance(schema, dict) else None
    return title if isinstance(title, str) else None
