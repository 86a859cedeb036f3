"""Keys and values to bytes and back: the formats Kafka ships, custom ones, Java's names for both.

A serializer is an object with `serialize(topic, value)`, or a plain function of the value. It may
have `configure(settings, is_key)` and `close()`. Configurations may name one by its Java class
(`org.apache.kafka.common.serialization.LongSerializer`), by a short word (`long`, `json`) or by the
place of a Python class (`shop.serde.PriceSerializer`). Those that work with a schema registry have
words (`avro`, `json-schema`, `protobuf`) and Confluent's class names; they are plug-ins like any
other, loaded when a configuration names them.
"""

import json
import struct
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from penstock.client.errors import SerializationError
from penstock.client.plugins import close, configure, load
from penstock.errors import ConfigError

T_contra = TypeVar("T_contra", contravariant=True)
T_co = TypeVar("T_co", covariant=True)


@runtime_checkable
class Serializer(Protocol[T_contra]):
    """Turns a key or value into bytes; None stays null."""

    def serialize(self, topic: str, value: T_contra | None, /) -> bytes | None:
        """The bytes of a value."""


@runtime_checkable
class Deserializer(Protocol[T_co]):
    """Turns bytes into a key or value; null stays None."""

    def deserialize(self, topic: str, data: bytes | None, /) -> T_co | None:
        """The value of some bytes."""


AnySerializer: TypeAlias = Serializer[Any] | Callable[[Any], bytes | None] | str | type
AnyDeserializer: TypeAlias = Deserializer[Any] | Callable[[bytes], Any] | str | type

# The short words by the Python type they stand for, and what shows its type by itself.
BytesWord: TypeAlias = Literal["bytes", "bytearray", "bytebuffer"]
StringWord: TypeAlias = Literal["string"]
IntWord: TypeAlias = Literal["short", "integer", "long"]
_T = TypeVar("_T")
SerializerOf: TypeAlias = (
    Serializer[_T] | type[Serializer[_T]] | Callable[[_T], bytes | None] | BytesWord | None
)
DeserializerOf: TypeAlias = (
    Deserializer[_T] | type[Deserializer[_T]] | Callable[[bytes], _T] | BytesWord | None
)

_JAVA_PACKAGE = "org.apache.kafka.common.serialization."
_CONFLUENT_PACKAGE = "io.confluent.kafka.serializers."
# By word or class name, without what tells a serializer from a deserializer.
_WITH_REGISTRY = {
    "avro": "Avro",
    "json-schema": "JsonSchema",
    "protobuf": "Protobuf",
    f"{_CONFLUENT_PACKAGE}KafkaAvro": "Avro",
    f"{_CONFLUENT_PACKAGE}json.KafkaJsonSchema": "JsonSchema",
    f"{_CONFLUENT_PACKAGE}protobuf.KafkaProtobuf": "Protobuf",
}


class ReadySerializer:
    """A serializer made ready: called with topic and value, it fails with a clear error."""

    def __init__(
        self, given: AnySerializer | None, settings: Mapping[str, object], what: str
    ) -> None:
        self._what = what  # "key" or "value".
        self._plugin, self._call = _resolve(given, "serialize", settings, what)

    def __call__(self, topic: str, value: object) -> bytes | None:
        try:
            return self._call(topic, value)  # type: ignore[no-any-return]
        except Exception as error:
            kind = type(value).__name__
            raise SerializationError(
                f"The {self._what} of type {kind} for topic {topic} cannot be serialized: {error}"
            ) from error

    def close(self) -> None:
        """Give the plug-in a chance to clean up."""
        close(self._plugin)


class ReadyDeserializer:
    """A deserializer made ready: called with topic and bytes, it fails with a clear error."""

    def __init__(
        self, given: AnyDeserializer | None, settings: Mapping[str, object], what: str
    ) -> None:
        self._what = what
        self._plugin, self._call = _resolve(given, "deserialize", settings, what)
        self.is_identity = given is None  # Callers may skip a call that does nothing.

    def __call__(self, topic: str, data: bytes | None) -> Any:
        try:
            return self._call(topic, data)
        except Exception as error:
            raise SerializationError(
                f"The {self._what} of a record of topic {topic} cannot be deserialized: {error}"
            ) from error

    def close(self) -> None:
        """Give the plug-in a chance to clean up."""
        close(self._plugin)


class BuiltInFormat(NamedTuple):
    """A built-in format; neither side is called with None."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def _packed(layout: str) -> BuiltInFormat:
    form = struct.Struct(layout)
    return BuiltInFormat(form.pack, lambda data: form.unpack(data)[0])


def _text(encoding: str) -> BuiltInFormat:
    return BuiltInFormat(lambda value: value.encode(encoding), lambda data: data.decode(encoding))


def _to_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _nothing(_: object) -> Any:
    raise ValueError("only None is allowed here")


_BYTES = BuiltInFormat(bytes, lambda data: data)
FORMATS = {
    "string": _text("utf-8"),
    "bytearray": _BYTES,
    "bytebuffer": _BYTES,
    "bytes": _BYTES,
    "short": _packed(">h"),
    "integer": _packed(">i"),
    "long": _packed(">q"),
    "float": _packed(">f"),
    "double": _packed(">d"),
    "boolean": _packed(">?"),
    "uuid": BuiltInFormat(lambda value: str(value).encode(), lambda data: uuid.UUID(data.decode())),
    "void": BuiltInFormat(_nothing, _nothing),
    "json": BuiltInFormat(_to_json, json.loads),
}


def _resolve(
    given: object, method: str, settings: Mapping[str, object], what: str
) -> tuple[object, Callable[[str, Any], Any]]:
    """The plug-in itself, for closing, and what to call with topic and value."""
    if given is None:
        return None, _as_is if method == "serialize" else _untouched
    if isinstance(given, str):
        builtin = _builtin(given, method, settings, what)
        if builtin is not None:
            return None, builtin
        given = load(_place(given, method))
    if isinstance(given, type):
        given = given()
    configure(given, settings, is_key=what == "key")
    bound = getattr(given, method, None)
    if bound is not None:
        return given, bound
    if callable(given):
        function = given
        return given, lambda _, value: None if value is None else function(value)
    raise ConfigError(f"the {what} {method[:-1]}er {given!r} has no method {method}")


def _place(name: str, method: str) -> str:
    """Where the class of a name is that is no built-in format."""
    kind = _kind(method)
    found = _WITH_REGISTRY.get(name.removesuffix(kind))
    if found is not None:
        return f"penstock.schemas.serializers.{found}{kind}"
    if name.startswith(_CONFLUENT_PACKAGE):
        known = ", ".join(f"{one}{kind}" for one in _WITH_REGISTRY if "." in one)
        raise ConfigError(f"{name} has no counterpart here: choose from {known}")
    return name


def _kind(method: str) -> str:
    return "Serializer" if method == "serialize" else "Deserializer"


def _builtin(
    name: str, method: str, settings: Mapping[str, object], what: str
) -> Callable[[str, Any], Any] | None:
    """The built-in format of a Java class name or a short word; None for another class."""
    simple = name.removeprefix(_JAVA_PACKAGE)
    kind = _kind(method)
    other = "Deserializer" if method == "serialize" else "Serializer"
    if simple.endswith(other) and not simple.endswith(kind):
        raise ConfigError(f"{name} is a {other.lower()}; here a {kind.lower()} is wanted")
    form = FORMATS.get(simple.removesuffix(kind).lower())
    if form is None:
        if name.startswith(_JAVA_PACKAGE):
            raise ConfigError(f"{name} has no counterpart here: choose from {', '.join(FORMATS)}")
        if "." not in name and ":" not in name and name not in _WITH_REGISTRY:
            words = ", ".join((*FORMATS, *(one for one in _WITH_REGISTRY if "." not in one)))
            raise ConfigError(
                f"{name!r} is no format: choose from {words}, "
                "or name a class as package.module.ClassName"
            )
        return None
    if simple.removesuffix(kind).lower() == "string":
        form = _text(_encoding(method, settings, what))
    call = form.encode if method == "serialize" else form.decode
    return lambda _, value: None if value is None else call(value)


def _encoding(method: str, settings: Mapping[str, object], what: str) -> str:
    """`key.serializer.encoding`, else `serializer.encoding`, else UTF-8, as in Kafka."""
    word = f"{method[:-1]}er.encoding"
    encoding = str(settings.get(f"{what}.{word}") or settings.get(word) or "utf-8")
    try:
        "".encode(encoding)
    except LookupError:
        raise ConfigError(f"{word}={encoding} is not a known encoding") from None
    return encoding


def _as_is(_: str, value: object) -> bytes | None:
    """Without a serializer bytes pass, and text as UTF-8."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise TypeError("without a serializer only bytes, str and None can be sent")


def _untouched(_: str, data: bytes | None) -> bytes | None:
    return data


def chosen_format(
    what: str, short: object, long: object, config: Mapping[str, object], kind: str
) -> object:
    """What `value=` or `value_serializer=` say; refuses two answers to one question."""
    if short is None:
        return long
    name = f"{what}.{kind}"
    if long is not None or config.get(name) is not None:
        raise ConfigError(f"{what}= and {name} say the same: give one of them")
    return short
