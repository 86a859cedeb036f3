"""Protobuf for producers and consumers, under the header of a schema registry.

    Producer({..., "schema.registry.url": url}, value=ProtobufSerializer())

A message knows its own schema: its file is registered in the compiled form, after the files that
it imports, each under a subject of its own that has the file's name. Google's own files, which
every registry has, are left out.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from penstock.client.plugins import load
from penstock.client.settings import as_bool
from penstock.schemas.bounded_cache import BoundedCache
from penstock.schemas.errors import DecodeError, EncodeError
from penstock.schemas.lookup import SchemaKind
from penstock.schemas.protobuf import (
    Descriptor,
    FileDescriptor,
    Message,
    ProtobufSchema,
    index_path,
)
from penstock.schemas.registry_client import NewSchema, ReferencedVersion, RegistryClient
from penstock.schemas.serializers.chosen_schema import READING, choose_schema, refuse_rules
from penstock.schemas.serializers.registry_user import RegistryUser
from penstock.schemas.wire_header import (
    read_header,
    read_message_indexes,
    write_header,
    write_message_indexes,
)

_ENTRIES_MAX = 1_000
_KNOWN = ("google/protobuf/", "google/type/", "confluent/")
_SKIPS = "skip.known.types"


class ProtobufSerializer(RegistryUser):
    """Writes messages and registers their files.

    `message_type` is the class of the messages; without one, each message brings its own.
    `reference_subject` names the subject of an imported file by the file's name, which is the
    subject itself unless said otherwise.
    """

    def __init__(
        self,
        message_type: type[Message] | None = None,
        *,
        registry: RegistryClient | None = None,
        reference_subject: Callable[[str], str] | None = None,
        settings: Mapping[str, object] | None = None,
        is_key: bool = False,
    ) -> None:
        self._message_type = message_type
        self._reference_subject = reference_subject or str
        self._skips_known = True
        self._headers: BoundedCache[tuple[str, int], _MessageHeader] = BoundedCache(_ENTRIES_MAX)
        super().__init__(registry, settings, is_key=is_key)

    def take_settings(self, settings: Mapping[str, object], side: str) -> None:
        """Whether files that every registry has are left out."""
        self._skips_known = as_bool(_SKIPS, settings.get(_SKIPS, True))

    def serialize(self, topic: str, value: Any, /) -> bytes | None:
        """The bytes of a message; None stays null."""
        if value is None:
            return None
        if not isinstance(value, self._message_type or Message):
            wanted = "Protobuf message"
            if self._message_type is not None:
                wanted = self._message_type.DESCRIPTOR.full_name
            raise EncodeError(f"a value of type {type(value).__name__} is no {wanted}")
        header = self._header(topic, value.DESCRIPTOR)
        try:
            return header + bytes(value.SerializeToString())
        except Exception as error:
            raise EncodeError(f"the message cannot be written: {error}") from error

    def _header(self, topic: str, descriptor: Descriptor) -> bytes:
        if self.settings.wants_latest:
            return self._made(topic, descriptor)
        # By identity, for two versions of a message have one name; the entry keeps it alive.
        key = (topic, id(descriptor))
        found = self._headers.get_or_make(
            key, lambda: _MessageHeader(descriptor, self._made(topic, descriptor))
        )
        return found.data

    def _files(self) -> "ProtobufFiles":
        return ProtobufFiles(
            registry=self.settings.registry,
            auto_register=self.settings.auto_register,
            normalize=self.settings.normalize,
            skips_known=self._skips_known,
            reference_subject=self._reference_subject,
        )

    def _made(self, topic: str, descriptor: Descriptor) -> bytes:
        settings = self.settings
        registers = not settings.wants_latest and settings.schema_id is None
        own = self._files().new(descriptor.file) if registers else None
        chosen = choose_schema(settings, topic, own, descriptor.full_name)
        path = index_path(descriptor)
        if chosen.stored is not None:
            compiled = chosen.stored.expect(SchemaKind.PROTOBUF).descriptor_set
            path = ProtobufSchema.of(compiled, descriptor.full_name).index_path
        return write_header(chosen.schema_id) + write_message_indexes(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtobufFiles:
    """Registers files after those that they import."""

    registry: RegistryClient
    auto_register: bool = True  # Else they must be there.
    normalize: bool = False
    skips_known: bool = True
    reference_subject: Callable[[str], str] = str

    def new(self, file: FileDescriptor) -> NewSchema:
        """A file, ready to be registered once those that it imports are."""
        references = tuple(
            self._reference(imported)
            for imported in file.dependencies
            if not (self.skips_known and imported.name.startswith(_KNOWN))
        )
        text = base64.b64encode(file.serialized_pb).decode()
        return NewSchema(kind=SchemaKind.PROTOBUF, text=text, references=references)

    def _reference(self, file: FileDescriptor) -> ReferencedVersion:
        subject = self.reference_subject(file.name)
        new = self.new(file)
        if self.auto_register:
            self.registry.register(subject, new, normalize=self.normalize)
        found = self.registry.find(subject, new, normalize=self.normalize)
        return ReferencedVersion(name=file.name, subject=subject, version=found.version)


class ProtobufDeserializer(RegistryUser):
    """Reads messages: as `message_type`, or as what they were written as.

    `specific.protobuf.value.type` of the configuration names the class by its place, such as
    `shop_pb2.Order`.
    """

    def __init__(
        self,
        message_type: type[Message] | None = None,
        *,
        registry: RegistryClient | None = None,
        settings: Mapping[str, object] | None = None,
        is_key: bool = False,
    ) -> None:
        self._message_type = message_type
        self._written: BoundedCache[tuple[int, tuple[int, ...]], ProtobufSchema] = BoundedCache(
            _ENTRIES_MAX
        )
        super().__init__(registry, settings, is_key=is_key)

    def take_settings(self, settings: Mapping[str, object], side: str) -> None:
        """The class of the messages, by its place."""
        place = settings.get(f"specific.protobuf.{side}.type")
        if self._message_type is None and place is not None:
            self._message_type = cast(type[Message], load(str(place)))

    def deserialize(self, topic: str, data: bytes | None, /) -> Any:
        """The message in some bytes; null stays None."""
        if data is None:
            return None
        schema_id = read_header(data)
        path, at = read_message_indexes(data)
        key = (schema_id, path)
        written = self._written.get_or_make(key, lambda: self._found(schema_id, path))
        if self._message_type is None:
            return written.decode(data[at:])
        return _parsed(self._message_type, data[at:])

    def _found(self, schema_id: int, path: tuple[int, ...]) -> ProtobufSchema:
        stored = self.settings.registry.by_id(schema_id).expect(SchemaKind.PROTOBUF)
        refuse_rules(stored, READING)
        written = ProtobufSchema.at(stored.descriptor_set, path)
        if self._message_type is not None:
            wanted = self._message_type.DESCRIPTOR.full_name
            if written.message != wanted:
                raise DecodeError(
                    f"the value is a {written.message} (message {list(path)} of schema "
                    f"{schema_id}), not a {wanted}"
                )
        return written


@dataclass(frozen=True, slots=True)
class _MessageHeader:
    """The bytes in front of the messages of one type."""

    descriptor: Descriptor
    data: bytes


def _parsed(message_type: type[Message], data: bytes) -> Message:
    try:
        return message_type.FromString(data)
    except Exception as error:
        name = message_type.DESCRIPTOR.full_name
        raise DecodeError(f"the bytes are not a Protobuf message {name}") from error
