"""Writes the function that turns one message into the bytes of one version, as straight Python.

The mirror of `decoding`: runs of fixed-size fields become one `pack`, nested structs nested loops.
The pieces go into a list and are joined once. A value that the version has no place for is refused
unless its field is declared ignorable, so nothing is lost silently.
"""

from collections.abc import Callable, Sequence
from struct import Struct as Layout
from struct import pack
from typing import Any, NoReturn, cast

from penstock.errors import UnsupportedVersion
from penstock.protocol.primitives import SHORT_UVARINTS, encode_uvarint
from penstock.protocol.schema import Field, Message, Struct, default_of, is_shared
from penstock.protocol.source import (
    FORMATS,
    FunctionSource,
    absent_fields,
    body_fields,
    tagged_fields,
)

_READY_COUNT = 16
_READY: dict[str, tuple[Callable[..., bytes], ...]] = {}


def compile_encoder(kind: type[Message], version: int) -> Callable[[Any], bytes]:
    """`encode(message) -> bytes` for one version."""
    writer = _Encoder(version, kind.is_flexible(version), parts=False)
    return writer.function(kind)


def compile_part_encoder(kind: type[Message], version: int) -> Callable[[Any], list[object]]:
    """`encode(message) -> parts` for one version."""
    writer = _Encoder(version, kind.is_flexible(version), parts=True)
    return writer.function(kind)


def _refuse(value: Struct, version: int) -> NoReturn:
    for name, field in absent_fields(type(value), version):
        if not field.ignorable and getattr(value, name) != default_of(field):
            kind = type(value).__name__
            raise UnsupportedVersion(f"{kind}.{name} cannot be sent in version {version}")
    raise AssertionError("an encoder refused a value without a reason")


def _refuse_id(value: object) -> NoReturn:
    raise TypeError(f"an id has 16 bytes, not {value!r}")


def _long_array(prefix: str, code: str, flexible: bool, values: Sequence[float]) -> bytes:
    if flexible:
        return encode_uvarint(len(values) + 1) + pack(f">{len(values)}{code}", *values)
    return pack(f">{prefix}{len(values)}{code}", len(values), *values)


_NAMES: dict[str, object] = {
    "join": b"".join,
    "short": SHORT_UVARINTS,
    "uvarint": encode_uvarint,
    "refuse": _refuse,
    "refuse_id": _refuse_id,
    "bytes_like": (bytes, bytearray, memoryview),
    "long_array": _long_array,
}


class _Encoder:
    """In the text it writes, `w` appends to the pieces; within tagged fields another name does."""

    def __init__(self, version: int, flexible: bool, *, parts: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.parts = parts
        self.source = FunctionSource(_NAMES)
        self.append = "w"
        self.run: list[tuple[str, str]] = []  # Format codes and the values to pack.

    def function(self, kind: type[Message]) -> Callable[[Any], Any]:
        self.source.line("pieces = []; w = pieces.append")
        if self.parts:
            self.source.line("parts = []")
        self.struct(kind, "o")
        if self.parts:
            self.source.line("if pieces: parts.append(join(pieces))")
            self.source.line("return parts")
        else:
            self.source.line("return join(pieces)")
        return self.source.function("encode(o)", f"{kind.__name__} {self.version} encode")

    def struct(self, kind: type[Struct], value: str) -> None:
        self.refusals(kind, value)
        for name, field in body_fields(kind, self.version):
            self.field(f"{value}.{name}", field)
        if self.flexible:
            self.tags(kind, value)
        self.flush()

    def refusals(self, kind: type[Struct], value: str) -> None:
        absent = absent_fields(kind, self.version)
        tests = [self.differs(f"{value}.{name}", f) for name, f in absent if not f.ignorable]
        if tests:
            self.source.line(f"if {' or '.join(tests)}: refuse({value}, {self.version})")

    def differs(self, value: str, field: Field) -> str:
        """An expression that is true where a field is not at its default."""
        default = default_of(field)
        if default is None:
            return f"{value} is not None"
        if default == []:  # Any empty sequence counts.
            return f"({value} is None or {value})" if field.nullable else value
        if isinstance(default, Struct):
            if not is_shared(default):
                return f"{value} != {self.source.constant('d', default)}"
            name = self.source.constant("d", default)
            return f"({value} is not {name} and {value} != {name})"
        return f"{value} != {default!r}"

    def field(self, value: str, field: Field) -> None:
        nullable = field.nullable_in(self.version)
        if field.kind == "array":
            self.array(value, field.of, nullable)
        elif field.kind == "struct":
            self.nested(value, cast(type[Struct], field.of), nullable)
        else:
            self.value(value, field.kind, nullable)

    def value(self, value: str, kind: str, nullable: bool) -> None:
        if kind in FORMATS:
            if kind == "uuid":  # `pack` would pad or cut an id of the wrong length in silence.
                self.source.line(f"if len({value}) != 16: refuse_id({value})")
            self.run.append((FORMATS[kind], value))
        elif kind == "string":
            self.text(value, nullable)
        else:
            self.opaque(value, kind, nullable)

    def text(self, value: str, nullable: bool) -> None:
        encoded = self.source.fresh("b")
        if nullable:
            self.source.line(f"{encoded} = {value}")
            self.source.line(f"if {encoded} is not None: {encoded} = {encoded}.encode()")
        else:
            self.source.line(f"{encoded} = {value}.encode()")
        self.prefix(encoded, "h", nullable)
        self.source.line(f"if {encoded}: {self.append}({encoded})")

    def opaque(self, value: str, kind: str, nullable: bool) -> None:
        held = self.source.fresh("b")
        self.source.line(f"{held} = {value}")
        length = self.prefix(held, "i", nullable)
        if kind == "record_set" and self.parts:
            self.hand_over(held, length)
        else:
            unless_null = f"if {held} is not None: " if nullable else ""
            self.source.line(f"{unless_null}{self.append}({held})")

    def hand_over(self, held: str, length: str) -> None:
        """Bytes stay with their neighbours; anything else becomes a part of its own."""
        self.source.line(f"if isinstance({held}, bytes_like): w({held})")
        with self.source.block(f"elif {length} > {int(self.flexible)}:"):
            self.source.line("parts.append(join(pieces)); pieces.clear()")
            self.source.line(f"parts.append({held})")

    def prefix(self, held: str, code: str, nullable: bool) -> str:
        """Writes the length or count of what a variable holds, after the fixed fields before it."""
        length = self.source.fresh("n")
        null, measured = ("0", f"len({held}) + 1") if self.flexible else ("-1", f"len({held})")
        if nullable:
            measured = f"{null} if {held} is None else {measured}"
        self.source.line(f"{length} = {measured}")
        if not self.flexible:
            self.run.append((code, length))
            self.flush()
            return length
        fixed, self.run = self.run, []
        if not fixed:
            short = f"short[{length}]"
            long = f"uvarint({length})"
        else:
            short = self.packed([*fixed, ("B", length)])
            long = f"{self.packed(fixed)} + uvarint({length})"
        self.source.line(f"{self.append}({short} if {length} < 128 else {long})")
        return length

    def packed(self, run: list[tuple[str, str]]) -> str:
        name, _ = self.source.layout("pack", "".join(code for code, _ in run))
        return f"{name}({', '.join(value for _, value in run if value)})"

    def flush(self) -> None:
        """Writes the fixed fields gathered so far with one `pack`."""
        if self.run:
            self.source.line(f"{self.append}({self.packed(self.run)})")
            self.run.clear()

    def nested(
        self, value: str, kind: type[Struct], nullable: bool, *, null: bytes = b"\xff"
    ) -> None:
        held = self.source.fresh("o")
        self.source.line(f"{held} = {value}")
        self.flush()
        if not nullable:
            self.struct(kind, held)
            return
        self.source.line(f"if {held} is None: {self.append}({null!r})")
        with self.source.block("else:"):
            self.source.line(f"{self.append}(b'\\x01')")
            self.struct(kind, held)

    def array(self, value: str, of: object, nullable: bool) -> None:
        held = self.source.fresh("a")
        self.source.line(f"{held} = {value}")
        is_struct = isinstance(of, type) and issubclass(of, Struct)
        kind = "struct" if is_struct else cast(Any, of).__name__
        if kind in FORMATS and kind != "uuid":
            self.numbers(held, FORMATS[kind], nullable)
            return
        self.prefix(held, "i", nullable)
        item = self.source.fresh("o")
        each = f"{held} or ()" if nullable else held
        with self.source.block(f"for {item} in {each}:"):
            if is_struct:
                self.struct(cast(type[Struct], of), item)
            else:
                self.value(item, kind, nullable=False)
                self.flush()

    def numbers(self, held: str, code: str, nullable: bool) -> None:
        """Writes an array of numbers with its count as one piece."""
        self.flush()
        count = self.source.fresh("n")
        if nullable:
            null = "b'\\x00'" if self.flexible else "b'\\xff\\xff\\xff\\xff'"
            self.source.line(f"if {held} is None: {self.append}({null})")
            with self.source.block("else:"):
                self.counted_numbers(held, code, count)
        else:
            self.counted_numbers(held, code, count)

    def counted_numbers(self, held: str, code: str, count: str) -> None:
        prefix = "B" if self.flexible else "i"
        first = f"{count} + 1" if self.flexible else count
        ready = self.source.constant("ready", _ready(prefix + code))
        long = f"long_array({prefix!r}, {code!r}, {self.flexible}, {held})"
        self.source.line(f"{count} = len({held})")
        self.source.line(
            f"{self.append}({ready}[{count}]({first}, *{held}) if {count} < {_READY_COUNT}"
            f" else {long})"
        )

    def tags(self, kind: type[Struct], value: str) -> None:
        """Ends a struct of a flexible version: usually with the zero that says no tagged fields."""
        known = tagged_fields(kind, self.version)
        if not known:
            self.run.append(("x", ""))
            return
        tests = [self.differs(f"{value}.{name}", field) for name, field in known]
        fixed, self.run = self.run, []
        with self.source.block(f"if {' or '.join(tests)}:"):
            self.run = fixed[:]
            self.flush()
            self.tagged(known, tests, value)
        with self.source.block("else:"):
            self.run = [*fixed, ("x", "")]
            self.flush()

    def tagged(self, known: list[tuple[str, Field]], tests: list[str], value: str) -> None:
        outer, count, block = self.append, self.source.fresh("t"), self.source.fresh("block")
        self.source.line(f"{count} = 0; {block} = []")
        for test, (name, field) in zip(tests, known, strict=True):
            content = self.source.fresh("x")
            self.append = f"{content}.append"
            with self.source.block(f"if {test}:"):
                self.source.line(f"{count} += 1; {content} = []")
                self.tagged_field(f"{value}.{name}", field)
                self.flush()
                self.source.line(f"{content} = join({content})")
                size = f"uvarint(len({content}))"
                self.source.line(f"{block} += uvarint({field.tag}), {size}, {content}")
        self.append = outer
        self.source.line(f"{outer}(uvarint({count})); {outer}(join({block}))")

    def tagged_field(self, value: str, field: Field) -> None:
        """A field as ever, but a struct behind a tag says by a uvarint whether it is there."""
        if field.kind == "struct" and field.nullable_in(self.version):
            self.nested(value, cast(type[Struct], field.of), nullable=True, null=b"\x00")
        else:
            self.field(value, field)


def _ready(codes: str) -> tuple[Callable[..., bytes], ...]:
    if codes not in _READY:
        layouts = [Layout(f">{codes[0]}{count}{codes[1]}") for count in range(_READY_COUNT)]
        _READY[codes] = tuple(layout.pack for layout in layouts)
    return _READY[codes]
