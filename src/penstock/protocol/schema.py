"""The language in which messages are declared, and the class every message is.

    class FetchTopic(Struct):
        topic: str = string("0-12", ignorable=True)
        topic_id: bytes = uuid("13+", ignorable=True)
        partitions: list[FetchPartition] = array(FetchPartition, "0+")

A declaration is data: each function below only notes a field's kind and versions. The constructor
of a class and the codec of each version are generated when first used (`decoding`, `encoding`),
so importing hundreds of declarations costs milliseconds and a version nobody speaks costs nothing.
"""

from collections.abc import Callable, Sequence
from struct import error as StructError
from types import EllipsisType, MappingProxyType
from typing import (
    Any,
    ClassVar,
    Final,
    NoReturn,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    dataclass_transform,
)

from penstock.errors import UnsupportedVersion
from penstock.protocol.primitives import ZERO_UUID, MalformedMessage

T = TypeVar("T")

# Record batches. Decoding gives a memoryview of the frame, not a copy. Encoding takes any bytes,
# and `encode_parts` also anything with a length, such as a slice of a file, which it hands through.
RecordSet: TypeAlias = Any

VERSION_MAX = 0x7FFF
# What a function that reads bytes raises when they are no message.
UNREADABLE: Final = (StructError, IndexError, UnicodeDecodeError, MalformedMessage)


class Field:
    """What a declaration says about one field; the name is the attribute's."""

    __slots__ = ("default", "ignorable", "kind", "nullable", "of", "tag", "versions")

    def __init__(
        self,
        kind: str,
        of: Callable[..., object] | None,
        versions: str,
        nullable: bool | str,
        default: object,
        tag: int | None,
        ignorable: bool,
    ) -> None:
        self.kind = kind
        self.of = of  # What an array holds, or the class of a struct.
        self.versions = versions  # "3+", "0-2" or "1".
        self.nullable = nullable  # True: in every version. Or the versions, as above.
        self.default = default
        self.tag = tag  # None: the field stands in its place; else it travels as a tagged field.
        self.ignorable = ignorable  # Dropped silently where the version lacks it; else refused.

    def exists_in(self, version: int) -> bool:
        """Whether messages of this version have the field."""
        low, high = version_range(self.versions)
        return low <= version <= high

    def nullable_in(self, version: int) -> bool:
        """Whether the field may be None in messages of this version."""
        if isinstance(self.nullable, bool):
            return self.nullable
        low, high = version_range(self.nullable)
        return low <= version <= high


def version_range(text: str) -> tuple[int, int]:
    """The lowest and highest version of "3+", "0-2" or "1"."""
    if text.endswith("+"):
        return int(text[:-1]), VERSION_MAX
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def boolean(
    versions: str, *, default: bool = False, tag: int | None = None, ignorable: bool = False
) -> bool:
    """One byte, zero or one."""
    return cast(bool, Field("boolean", None, versions, False, default, tag, ignorable))


def int8(
    versions: str, *, default: int = 0, tag: int | None = None, ignorable: bool = False
) -> int:
    """A signed byte."""
    return cast(int, Field("int8", None, versions, False, default, tag, ignorable))


def int16(
    versions: str, *, default: int = 0, tag: int | None = None, ignorable: bool = False
) -> int:
    """Two bytes, signed."""
    return cast(int, Field("int16", None, versions, False, default, tag, ignorable))


def uint16(
    versions: str, *, default: int = 0, tag: int | None = None, ignorable: bool = False
) -> int:
    """Two bytes, unsigned: ports."""
    return cast(int, Field("uint16", None, versions, False, default, tag, ignorable))


def int32(
    versions: str, *, default: int = 0, tag: int | None = None, ignorable: bool = False
) -> int:
    """Four bytes, signed."""
    return cast(int, Field("int32", None, versions, False, default, tag, ignorable))


def int64(
    versions: str, *, default: int = 0, tag: int | None = None, ignorable: bool = False
) -> int:
    """Eight bytes, signed."""
    return cast(int, Field("int64", None, versions, False, default, tag, ignorable))


def float64(
    versions: str, *, default: float = 0.0, tag: int | None = None, ignorable: bool = False
) -> float:
    """An IEEE 754 double."""
    return cast(float, Field("float64", None, versions, False, default, tag, ignorable))


def uuid(
    versions: str, *, default: bytes = ZERO_UUID, tag: int | None = None, ignorable: bool = False
) -> bytes:
    """Sixteen raw bytes."""
    return cast(bytes, Field("uuid", None, versions, False, default, tag, ignorable))


def string(
    versions: str,
    *,
    nullable: bool | str = False,
    default: str | None = "",
    tag: int | None = None,
    ignorable: bool = False,
) -> str:
    """UTF-8 text with a length before it."""
    return cast(str, Field("string", None, versions, nullable, default, tag, ignorable))


def blob(
    versions: str,
    *,
    nullable: bool | str = False,
    default: bytes | None = b"",
    tag: int | None = None,
    ignorable: bool = False,
) -> bytes:
    """Bytes with a length before them, copied out of the frame."""
    return cast(bytes, Field("blob", None, versions, nullable, default, tag, ignorable))


def record_set(
    versions: str, *, nullable: bool | str = False, default: bytes | None = b""
) -> RecordSet:
    """Record batches with a length before them; see `RecordSet`."""
    return cast(RecordSet, Field("record_set", None, versions, nullable, default, None, False))


def array(
    of: Callable[..., T],
    versions: str,
    *,
    nullable: bool | str = False,
    default: Sequence[T] | None = (),
    tag: int | None = None,
    ignorable: bool = False,
) -> list[T]:
    """A list, with its count before it, of structs or of a kind above: `array(int32, "0+")`."""
    return cast(list[T], Field("array", of, versions, nullable, default, tag, ignorable))


def struct(
    of: type[T],
    versions: str,
    *,
    nullable: bool | str = False,
    default: EllipsisType | None = ...,
    tag: int | None = None,
    ignorable: bool = False,
) -> T:
    """One structure inside another; unless None, its default is one with all its own defaults."""
    return cast(T, Field("struct", of, versions, nullable, default, tag, ignorable))


class _StructType(type):
    """Turns the declared fields of a class into its slots."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **keywords: Any
    ) -> "_StructType":
        fields = {key: value for key, value in namespace.items() if type(value) is Field}
        for key in fields:
            del namespace[key]
        namespace["__slots__"] = tuple(fields)
        namespace.setdefault("fields", MappingProxyType(fields))
        return super().__new__(mcs, name, bases, namespace, **keywords)


@dataclass_transform(kw_only_default=True)
class Struct(metaclass=_StructType):
    """A structure inside messages: plain attributes, made with keyword arguments."""

    fields: ClassVar[MappingProxyType[str, Field]]
    shared_default: ClassVar["Struct | None"] = None  # Filled in by `default_of`.

    def __init__(self, **values: object) -> None:
        # Only the first instance of a class comes here: its own constructor is generated now.
        kind = _declared(type(self))
        kind.__init__ = _constructor(kind)  # type: ignore[method-assign]
        kind.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Struct) or self.fields is not other.fields:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.fields)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.fields)
        return f"{_declared(type(self)).__name__}({values})"


class Message(Struct):
    """A structure with versions of its own: a request, a response, a stored record.

    `class Subscription(Message, versions="0-3", flexible="4+")` declares one. From its first
    flexible version on, a message has compact lengths and tagged fields (KIP-482).
    """

    versions: ClassVar[range] = range(0)
    flexible_from: ClassVar[int] = VERSION_MAX + 1
    # How many elements all lists together may have when decoded; None: as the bytes say.
    elements_max: ClassVar[int | None] = None
    _decoders: ClassVar[dict[int, Callable[[memoryview, int, int], tuple[Any, int]]]]
    _encoders: ClassVar[dict[int, Callable[[Any], bytes]]]
    _part_encoders: ClassVar[dict[int, Callable[[Any], list[object]]]]

    def __init_subclass__(cls, versions: str = "", flexible: str = "") -> None:
        if versions:
            low, high = version_range(versions)
            cls.versions = range(low, high + 1)
        if flexible:
            cls.flexible_from = version_range(flexible)[0]
        cls._decoders, cls._encoders, cls._part_encoders = {}, {}, {}

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        """Whether a version has compact lengths and tagged fields."""
        return version >= cls.flexible_from

    @classmethod
    def decode(cls, data: bytes | bytearray | memoryview, version: int, offset: int = 0) -> Self:
        """The message whose bytes run from an offset to the end of the data."""
        message, end = cls.decode_prefix(data, version, offset)
        if end != len(data):
            raise MalformedMessage(f"{len(data) - end} bytes follow the {cls.__name__}")
        return message

    @classmethod
    def decode_prefix(
        cls, data: bytes | bytearray | memoryview, version: int, offset: int = 0
    ) -> tuple[Self, int]:
        """The message at an offset and the position after it, where more may follow."""
        view = data if type(data) is memoryview else memoryview(data)
        decoder = cls._decoders.get(version) or _compile_decoder(cls, version)
        try:
            return decoder(view, offset, len(view))
        except (StructError, IndexError):
            reason = "the bytes end too early"
        except UnicodeDecodeError as error:
            reason = f"a string is not UTF-8 ({error.reason})"
        except MalformedMessage as error:
            reason = str(error)
        raise MalformedMessage(f"{cls.__name__} version {version}: {reason}")

    @classmethod
    def reader(cls, version: int) -> Callable[[memoryview, int, int], tuple[Any, int]]:
        """`read(data, at, end)`, for whoever reads many of a version.

        It raises UNREADABLE; `decode_prefix` says what is wrong with those bytes.
        """
        return cls._decoders.get(version) or _compile_decoder(cls, version)

    def encode(self, version: int) -> bytes:
        """The bytes of the message in a version; records must be bytes-like."""
        encoder = self._encoders.get(version) or _compile_encoder(type(self), version)
        try:
            return encoder(self)
        except (StructError, TypeError, AttributeError) as error:
            raise _not_encodable(self, version, error) from error

    @classmethod
    def part_writer(cls, version: int) -> Callable[[Any], list[Any]]:
        """`write(message)`, for whoever writes many of a version.

        It raises anything; `encode_parts` says what is wrong with the message.
        """
        return cls._part_encoders.get(version) or _compile_part_encoder(cls, version)

    def encode_parts(self, version: int) -> list[object]:
        """Like `encode`, but record sets that are no bytes stand in the list as they are."""
        encoder = self._part_encoders.get(version) or _compile_part_encoder(type(self), version)
        try:
            return encoder(self)
        except (StructError, TypeError, AttributeError) as error:
            raise _not_encodable(self, version, error) from error


def default_of(field: Field) -> object:
    """A field's default; a new list or struct each time, except where one can be shared safely."""
    if field.kind == "array" and field.default is not None:
        return list(cast(Sequence[object], field.default))
    if field.kind == "struct" and field.default is not None:
        return _default_struct(cast(type[Struct], field.of))
    return field.default


def is_shared(default: object) -> bool:
    """Whether a default may stand in any number of messages because nothing can change it."""
    if isinstance(default, Struct):
        return type(default).shared_default is default
    return not isinstance(default, list)


def _default_struct(kind: type[Struct]) -> Struct:
    # Responses carry several structs per partition that are nearly always at their defaults (the
    # leader of a partition that has not moved). One frozen instance stands for all of them.
    if kind.shared_default is None:
        defaults = {name: default_of(field) for name, field in kind.fields.items()}
        if not all(is_shared(value) for value in defaults.values()):
            return kind()
        kind.shared_default = _freeze(kind, defaults)
    return kind.shared_default


def _freeze(kind: type[Struct], values: dict[str, object]) -> Struct:
    namespace = {"__setattr__": _refuse_change, "__doc__": kind.__doc__, "fields": kind.fields}
    frozen = cast(type[Struct], _StructType(kind.__name__, (kind,), namespace))
    instance = object.__new__(frozen)
    for name, value in values.items():
        object.__setattr__(instance, name, value)
    return instance


def _refuse_change(self: Struct, name: str, _value: object) -> NoReturn:
    kind = _declared(type(self)).__name__
    raise AttributeError(f"cannot set {name} of a shared default; assign a new {kind} instead")


def _declared(kind: type[Struct]) -> type[Struct]:
    """The class as it was declared, also for a frozen default's."""
    return cast(type[Struct], kind.__base__) if "__setattr__" in vars(kind) else kind


def _constructor(kind: type[Struct]) -> Callable[..., None]:
    parameters, body = [], ["    pass"]
    names: dict[str, object] = {"unset": object(), "default_of": default_of}
    for index, (name, field) in enumerate(kind.fields.items()):
        default = default_of(field)
        if is_shared(default):
            names[f"d{index}"] = default
            parameters.append(f"{name}=d{index}")
            body.append(f"    self.{name} = {name}")
        else:
            names[f"f{index}"] = field
            parameters.append(f"{name}=unset")
            # Nearly always an empty list, which is cheaper written out than asked for.
            fresh = "[]" if default == [] else f"default_of(f{index})"
            body.append(f"    self.{name} = {fresh} if {name} is unset else {name}")
    star = ", *, " if parameters else ""
    source = f"def __init__(self{star}{', '.join(parameters)}):\n" + "\n".join(body)
    exec(source, names)
    return cast(Callable[..., None], names["__init__"])


def _compile_decoder(
    kind: type[Message], version: int
) -> Callable[[memoryview, int, int], tuple[Any, int]]:
    from penstock.protocol.codecs import decoder_for

    _check_version(kind, version)
    return kind._decoders.setdefault(version, decoder_for(kind, version))


def _compile_encoder(kind: type[Message], version: int) -> Callable[[Any], bytes]:
    from penstock.protocol.codecs import encoder_for

    _check_version(kind, version)
    return kind._encoders.setdefault(version, encoder_for(kind, version))


def _compile_part_encoder(kind: type[Message], version: int) -> Callable[[Any], list[object]]:
    from penstock.protocol.codecs import part_encoder_for

    _check_version(kind, version)
    return kind._part_encoders.setdefault(version, part_encoder_for(kind, version))


def _check_version(kind: type[Message], version: int) -> None:
    if version not in kind.versions:
        low, high = kind.versions[0], kind.versions[-1]
        name = kind.__name__
        raise UnsupportedVersion(f"{name} has versions {low} to {high}, not {version}")


def _not_encodable(message: Message, version: int, error: Exception) -> ValueError:
    name = type(message).__name__
    return ValueError(f"{name} cannot be written in version {version}: {error}")
