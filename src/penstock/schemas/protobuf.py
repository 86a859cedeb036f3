"""Protobuf: a message type out of a compiled descriptor set, by name or by its place in the file.

`protoc --include_imports --descriptor_set_out=shop.desc shop.proto` writes such a set; the modules
that protoc generates hold the same. Each schema has a pool of its own, so that two versions of a
file can live in one process.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, TypeAlias, cast

from google.protobuf import (  # type: ignore[import-untyped]
    descriptor,
    descriptor_pb2,
    descriptor_pool,
    message,
    message_factory,
)

from penstock.schemas.errors import DecodeError, SchemaError

Descriptor: TypeAlias = descriptor.Descriptor
FieldDescriptor: TypeAlias = descriptor.FieldDescriptor
FileDescriptor: TypeAlias = descriptor.FileDescriptor
FileDescriptorProto: TypeAlias = descriptor_pb2.FileDescriptorProto
Message: TypeAlias = message.Message
ParseError: TypeAlias = message.DecodeError
_WELL_KNOWN = "google/protobuf/"


@dataclass(frozen=True, kw_only=True)
class ProtobufSchema:
    """One message type of a descriptor set."""

    descriptor_set: bytes
    message: str  # Its full name, such as shop.Order.

    @classmethod
    def of(cls, descriptor_set: bytes, message: str | None = None) -> "ProtobufSchema":
        """A message by its name; without one, the first of the last file."""
        pool, names = load(descriptor_set)
        if message is None:
            return cls.at(descriptor_set, (0,))
        try:
            pool.FindMessageTypeByName(message)
        except KeyError:
            known = [m.full_name for n in names for m in _messages(pool.FindFileByName(n))]
            raise SchemaError(
                f"the descriptor set has no message {message}; it has {', '.join(known) or 'none'}"
            ) from None
        return cls(descriptor_set=descriptor_set, message=message)

    @classmethod
    def at(cls, descriptor_set: bytes, path: Sequence[int]) -> "ProtobufSchema":
        """A message by its place in the last file, as the wire header gives it."""
        pool, names = load(descriptor_set)
        here: Descriptor | FileDescriptor = pool.FindFileByName(names[-1])
        for index in path:
            inner = _declared(here)
            if index >= len(inner):
                raise SchemaError(f"{names[-1]} declares no message at {list(path)}")
            here = inner[index]
        return cls(descriptor_set=descriptor_set, message=here.full_name)

    @classmethod
    def of_class(cls, message_class: type[Message]) -> "ProtobufSchema":
        """The message of a class that protoc generated."""
        descriptor = message_class.DESCRIPTOR
        return cls(descriptor_set=descriptor_set_of(descriptor.file), message=descriptor.full_name)

    @cached_property
    def pool(self) -> descriptor_pool.DescriptorPool:
        """All types of the set, by name."""
        return load(self.descriptor_set)[0]

    @cached_property
    def descriptor(self) -> Descriptor:
        """The message's description."""
        return self.pool.FindMessageTypeByName(self.message)

    @cached_property
    def message_class(self) -> type[Message]:
        """The class whose objects are such messages."""
        return cast(type[Message], message_factory.GetMessageClass(self.descriptor))

    @cached_property
    def index_path(self) -> tuple[int, ...]:
        """Where in its file the message is declared."""
        return index_path(self.descriptor)

    def __getstate__(self) -> dict[str, Any]:
        return {"descriptor_set": self.descriptor_set, "message": self.message}

    def decode(self, data: bytes) -> Message:
        """The message in some bytes."""
        try:
            return self.message_class.FromString(data)
        except ParseError as error:
            raise DecodeError(f"the bytes are not a Protobuf message {self.message}") from error
        except RecursionError as error:
            raise DecodeError(f"the message {self.message} is nested too deeply") from error


def index_path(descriptor: Descriptor) -> tuple[int, ...]:
    """Where in its file a message is declared."""
    path: list[int] = []
    here = descriptor
    while True:
        around = here.containing_type or here.file
        names = [message.full_name for message in _declared(around)]
        path.insert(0, names.index(here.full_name))
        if around is here.file:
            return tuple(path)
        here = around


def load(descriptor_set: bytes) -> tuple[descriptor_pool.DescriptorPool, list[str]]:
    """A pool with the files of a set, and their names in order."""
    files = files_of(descriptor_set)
    pool = descriptor_pool.DescriptorPool()
    given = {file.name: file for file in files}
    for file in files:
        _add(pool, file, given, set())
    return pool, [file.name for file in files]


def files_of(descriptor_set: bytes) -> list[FileDescriptorProto]:
    """The files of a set, in order."""
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(descriptor_set)
    except ParseError as error:
        raise SchemaError(
            "these bytes are not a descriptor set as protoc --descriptor_set_out writes it"
        ) from error
    if not files.file:
        raise SchemaError("the descriptor set is empty")
    return list(files.file)


def descriptor_set_of(file: FileDescriptor) -> bytes:
    """The compiled form of a file and of all it imports, itself last."""
    files: dict[str, FileDescriptorProto] = {}

    def collect(one: FileDescriptor) -> None:
        if one.name in files:
            return
        for imported in one.dependencies:
            collect(imported)
        proto = FileDescriptorProto()
        one.CopyToProto(proto)
        files[one.name] = proto

    collect(file)
    return joined(files.values())


def joined(files: Iterable[FileDescriptorProto]) -> bytes:
    """Files as one descriptor set."""
    whole = descriptor_pb2.FileDescriptorSet(file=files)
    return bytes(whole.SerializeToString(deterministic=True))


def _add(
    pool: descriptor_pool.DescriptorPool,
    file: FileDescriptorProto,
    given: dict[str, FileDescriptorProto],
    above: set[str],
) -> None:
    if _has(pool, file.name):
        return
    if file.name in above:
        raise SchemaError(f"{file.name} imports itself")
    for name in file.dependency:
        imported = given.get(name) or _well_known(name)
        if imported is None:
            raise SchemaError(
                f"{file.name} imports {name}, which the descriptor set lacks; "
                "compile it with protoc --include_imports"
            )
        _add(pool, imported, given, above | {file.name})
    try:
        pool.Add(file)
        pool.FindFileByName(file.name)
    except (TypeError, KeyError) as error:
        raise SchemaError(f"{file.name} in the descriptor set is broken: {error}") from error


def _has(pool: descriptor_pool.DescriptorPool, name: str) -> bool:
    try:
        pool.FindFileByName(name)
    except KeyError:
        return False
    return True


def _well_known(name: str) -> FileDescriptorProto | None:
    """Google's own files, which everyone imports and nobody brings along."""
    if not name.startswith(_WELL_KNOWN):
        return None
    try:
        module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    except ModuleNotFoundError:
        return None
    proto = FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(proto)
    return proto


def _declared(where: Descriptor | FileDescriptor) -> list[Descriptor]:
    """The messages declared in a file or message, in the order of the text."""
    if hasattr(where, "message_types_by_name"):
        return list(where.message_types_by_name.values())
    return list(where.nested_types)


def _messages(file: FileDescriptor) -> list[Descriptor]:
    return list(file.message_types_by_name.values())
