"""Which function reads or writes a message in a version: the native one where it can be had.

The generated Python (`decoding`, `encoding`) is the truth, and the native codec asks it whenever
something is unusual. Where the codec is there, the Python is generated only when it is first asked.
"""

from collections.abc import Callable
from typing import Any, Final, cast

from penstock.native import NATIVE, NativeCodec, NativeModule
from penstock.protocol.decoding import compile_decoder, element_size_min
from penstock.protocol.encoding import compile_encoder, compile_part_encoder
from penstock.protocol.schema import Field, Message, Struct, default_of, is_shared
from penstock.protocol.source import absent_fields, body_fields, tagged_fields

# In the order of codec.c.
_KINDS: Final = (
    "boolean",
    "int8",
    "int16",
    "uint16",
    "int32",
    "int64",
    "float64",
    "uuid",
    "string",
    "blob",
    "record_set",
    "array",
    "struct",
)
_NUMBER_OF: Final = {kind: number for number, kind in enumerate(_KINDS)}
_NO_BOUND: Final = (1 << 31) - 1


class _Twin:
    """Generated Python, from its first call on."""

    __slots__ = ("_compile", "_function", "_kind", "_version")

    def __init__(
        self,
        compile_it: Callable[[type[Message], int], Callable[..., Any]],
        kind: type[Message],
        version: int,
    ) -> None:
        self._compile = compile_it
        self._kind = kind
        self._version = version
        self._function: Callable[..., Any] | None = None  # None: it was not called yet.

    def __call__(self, *args: Any) -> Any:
        if self._function is None:
            self._function = self._compile(self._kind, self._version)
        return self._function(*args)


def decoder_for(
    kind: type[Message], version: int, native: NativeModule | None = NATIVE
) -> Callable[[memoryview, int, int], tuple[Any, int]]:
    """`decode(data, at, end) -> (message, position after it)`."""
    codec = _codec(kind, version, native)
    if codec is None:
        return compile_decoder(kind, version)
    most = _NO_BOUND if kind.elements_max is None else kind.elements_max
    return codec.decoder(_Twin(compile_decoder, kind, version), most)


def encoder_for(
    kind: type[Message], version: int, native: NativeModule | None = NATIVE
) -> Callable[[Any], bytes]:
    """`encode(message) -> bytes`."""
    codec = _codec(kind, version, native)
    if codec is None:
        return compile_encoder(kind, version)
    return codec.encoder(_Twin(compile_encoder, kind, version))


def part_encoder_for(
    kind: type[Message], version: int, native: NativeModule | None = NATIVE
) -> Callable[[Any], list[object]]:
    """`encode(message) -> parts`."""
    codec = _codec(kind, version, native)
    if codec is None:
        return compile_part_encoder(kind, version)
    return codec.part_encoder(_Twin(compile_part_encoder, kind, version))


def _codec(kind: type[Message], version: int, native: NativeModule | None) -> NativeCodec | None:
    """The native codec of a message; None: there is none, or it has a default it cannot make."""
    if native is None:
        return None
    return _Declared(native, version, kind.is_flexible(version)).codec(kind)


class _Declared:
    """Declarations of one version, as codec.c takes them."""

    def __init__(self, native: NativeModule, version: int, is_flexible: bool) -> None:
        self._native = native
        self._version = version
        self._is_flexible = is_flexible

    def codec(self, kind: type[Struct]) -> NativeCodec | None:
        absent, tagged = absent_fields(kind, self._version), tagged_fields(kind, self._version)
        if not self._is_flexible:
            tagged = []
        body: list[Any] = []
        for name, field in body_fields(kind, self._version):
            inner = self._inner(field)
            if inner is None and _struct_of(field) is not None:
                return None
            body.append(self._field(name, field, inner))
        presets = {name: default_of(field) for name, field in (*absent, *tagged)}
        if not all(is_shared(value) or value == [] for value in presets.values()):
            return None
        still = [(name, presets[name], not field.ignorable) for name, field in absent]
        still += [(name, presets[name], True) for name, _ in tagged]
        return self._native.Codec(kind, self._is_flexible, body, still)

    def _inner(self, field: Field) -> NativeCodec | None:
        kind = _struct_of(field)
        return None if kind is None else self.codec(kind)

    def _field(self, name: str, field: Field, inner: NativeCodec | None) -> tuple[Any, ...]:
        number, of, size_min = _NUMBER_OF[field.kind], 0, 1
        if field.kind == "array":
            of = _NUMBER_OF["struct" if inner else cast(Any, field.of).__name__]
            size_min = element_size_min(field.of, self._version, self._is_flexible)
        return name, number, of, field.nullable_in(self._version), inner, size_min


def _struct_of(field: Field) -> type[Struct] | None:
    """The class inside a struct or a list of them; None: it is neither."""
    if isinstance(field.of, type) and issubclass(field.of, Struct):
        return field.of
    return None
