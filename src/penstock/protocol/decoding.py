"""Writes the function that reads one message in one version, as straight Python.

Neighbouring fields of fixed size, together with the length or count that follows them, become one
`unpack_from`; nested structs become nested loops, so no call is made per field. Whatever the bytes
say, a list grows only to a count that the remaining bytes can hold, and all lists of a request
together to the count that a broker has memory for.
"""

from collections.abc import Callable
from struct import Struct as Layout
from struct import unpack_from
from typing import Any, cast

from penstock.protocol.primitives import decode_long_uvarint, decode_uvarint, malformed
from penstock.protocol.schema import Field, Message, Struct, default_of, is_shared
from penstock.protocol.source import (
    FORMATS,
    SIZES,
    FunctionSource,
    absent_fields,
    body_fields,
    tagged_fields,
)

# Short arrays of numbers (replicas, partitions) are the rule: their layouts are ready.
_READY_COUNT = 16
# A number in a list takes about so much less memory than a string or a struct.
_NUMBERS_PER_ELEMENT = 8
_READY: dict[str, tuple[Callable[..., tuple[Any, ...]], ...]] = {}

_NAMES: dict[str, object] = {
    "new": object.__new__,
    "malformed": malformed,
    "uvarint": decode_uvarint,
    "long_uvarint": decode_long_uvarint,
    "unpack_from": unpack_from,
}


def compile_decoder(
    kind: type[Message], version: int
) -> Callable[[memoryview, int, int], tuple[Any, int]]:
    """`decode(data, at, end) -> (message, position after it)` for one version."""
    writer = _Decoder(version, kind.is_flexible(version), kind.elements_max)
    target = writer.struct(kind)
    writer.source.line(f"return {target}, p")
    return writer.source.function("decode(data, p, end)", f"{kind.__name__} {version} decode")


class _Decoder:
    """In the text it writes, `p` is the position in `data`, and `end` where the data end."""

    def __init__(self, version: int, flexible: bool, elements_max: int | None) -> None:
        self.version = version
        self.flexible = flexible
        self.elements_max = elements_max
        self.source = FunctionSource(_NAMES)
        if elements_max is not None:
            self.source.line(f"left = {elements_max}")
        self.run: list[tuple[str, str]] = []  # Format codes and the targets they are read into.

    def struct(self, kind: type[Struct]) -> str:
        """Reads a struct; the name of the variable that holds it."""
        target = self.source.fresh("o")
        self.source.line(f"{target} = new({self.source.constant('c', kind)})")
        for name, field in absent_fields(kind, self.version):
            self.default(f"{target}.{name}", field)
        for name, field in body_fields(kind, self.version):
            self.field(f"{target}.{name}", field)
        if self.flexible:
            self.tags(kind, target)
        self.flush()
        return target

    def default(self, target: str, field: Field) -> None:
        value = default_of(field)
        if value is None or isinstance(value, bool | int | str | bytes):
            self.source.line(f"{target} = {value!r}")
        elif value == []:
            self.source.line(f"{target} = []")
        elif is_shared(value):
            self.source.line(f"{target} = {self.source.constant('d', value)}")
        else:
            self.source.names["default_of"] = default_of
            self.source.line(f"{target} = default_of({self.source.constant('f', field)})")

    def field(self, target: str, field: Field) -> None:
        nullable = field.nullable_in(self.version)
        if field.kind == "array":
            self.array(target, field, nullable)
        elif field.kind == "struct":
            self.nested(target, cast(type[Struct], field.of), nullable)
        else:
            self.value(target, field.kind, nullable)

    def value(self, target: str, kind: str, nullable: bool) -> None:
        """Reads a number, string or bytes."""
        if kind in FORMATS:
            self.run.append((FORMATS[kind], target))
            return
        length = self.prefix("h" if kind == "string" else "i")
        if nullable:
            self.source.line(f"if {length} < 0: {target} = None")
            with self.source.block("else:"):
                self.content(target, kind, length)
        else:
            self.source.line(f"if {length} < 0: malformed('null where a value is needed')")
            self.content(target, kind, length)

    def content(self, target: str, kind: str, length: str) -> None:
        stop = self.source.fresh("q")
        self.source.line(f"{stop} = p + {length}")
        self.source.line(f"if {stop} > end: malformed('a length runs past the end')")
        reads = {
            "string": f"str(data[p:{stop}], 'utf-8')",
            "blob": f"data[p:{stop}].tobytes()",
            "record_set": f"data[p:{stop}]",
        }
        self.source.line(f"{target} = {reads[kind]}")
        self.source.line(f"p = {stop}")

    def prefix(self, code: str) -> str:
        """Reads a length or count, together with the fixed fields before it; -1 is null."""
        length = self.source.fresh("n")
        if not self.flexible:
            self.run.append((code, length))
            self.flush()
            return length
        self.run.append(("B", length))
        self.flush()
        self.source.line(f"if {length} > 127: {length}, p = long_uvarint(data, p, {length})")
        self.source.line(f"{length} -= 1")
        return length

    def flush(self) -> None:
        """Reads the fixed fields gathered so far with one `unpack_from`."""
        if not self.run:
            return
        codes = "".join(code for code, _ in self.run)
        targets = ", ".join(target for _, target in self.run)
        if codes == "B":
            self.source.line(f"{targets} = data[p]; p += 1")
        else:
            name, size = self.source.layout("unpack", codes)
            self.source.line(f"{targets}, = {name}(data, p); p += {size}")
        self.run.clear()

    def nested(
        self, target: str, kind: type[Struct], nullable: bool, *, null_max: int = -1
    ) -> None:
        if not nullable:
            self.flush()
            self.source.line(f"{target} = {self.struct(kind)}")
            return
        marker = self.source.fresh("m")
        self.run.append(("b", marker))
        self.flush()
        self.source.line(f"if {marker} <= {null_max}: {target} = None")
        with self.source.block("else:"):
            self.source.line(f"{target} = {self.struct(kind)}")

    def array(self, target: str, field: Field, nullable: bool) -> None:
        count = self.prefix("i")
        of = field.of
        if nullable:
            self.source.line(f"if {count} < 0: {target} = None")
            with self.source.block("else:"):
                self.elements(target, of, count)
        else:
            self.source.line(f"if {count} < 0: malformed('null where a list is needed')")
            self.elements(target, of, count)

    def elements(self, target: str, of: object, count: str) -> None:
        size = element_size_min(of, self.version, self.flexible)
        self.source.line(f"if {count} * {size} > end - p: malformed('a count exceeds the data')")
        if isinstance(of, type) and issubclass(of, Struct):
            self.allow(count)
            self.loop(target, count, lambda: self.struct(of))
        elif (kind := cast(Any, of).__name__) in FORMATS and kind != "uuid":
            self.allow(f"{count} // {_NUMBERS_PER_ELEMENT}")
            self.numbers(target, kind, count)
        else:
            self.allow(count)
            self.loop(target, count, lambda: self.single(kind))

    def allow(self, count: str) -> None:
        """Counts elements before there is memory for them."""
        if self.elements_max is not None:
            reason = f"its lists have more than {self.elements_max:,} elements"
            self.source.line(f"left -= {count}")
            self.source.line(f"if left < 0: malformed({reason!r})")

    def loop(self, target: str, count: str, read: Callable[[], str]) -> None:
        items = self.source.fresh("a")
        self.source.line(f"{target} = {items} = []")
        with self.source.block(f"for _ in range({count}):"):
            self.source.line(f"{items}.append({read()})")

    def single(self, kind: str) -> str:
        value = self.source.fresh("v")
        self.value(value, kind, nullable=False)
        self.flush()
        return value

    def numbers(self, target: str, kind: str, count: str) -> None:
        code = FORMATS[kind]
        ready = self.source.constant("ready", _ready(code))
        self.source.line(
            f"{target} = list({ready}[{count}](data, p) if {count} < {_READY_COUNT}"
            f" else unpack_from(f'>{{{count}}}{code}', data, p))"
        )
        self.source.line(f"p += {count} * {SIZES[kind]}")

    def tags(self, kind: type[Struct], target: str) -> None:
        """Reads the tagged fields that end a struct of a flexible version."""
        known = tagged_fields(kind, self.version)
        count = self.source.fresh("t")
        self.run.append(("B", count))
        self.flush()
        for name, field in known:
            self.default(f"{target}.{name}", field)
        with self.source.block(f"if {count}:"):
            self.source.line(f"if {count} > 127: {count}, p = long_uvarint(data, p, {count})")
            with self.source.block(f"for _ in range({count}):"):
                self.tag(known, target)

    def tag(self, known: list[tuple[str, Field]], target: str) -> None:
        tag, stop = self.source.fresh("tag"), self.source.fresh("q")
        self.source.line(f"{tag}, p = uvarint(data, p)")
        self.source.line(f"{stop}, p = uvarint(data, p)")
        self.source.line(f"{stop} += p")
        self.source.line(f"if {stop} > end: malformed('a tagged field runs past the end')")
        for name, field in known:
            with self.source.block(f"if {tag} == {field.tag}:"):
                self.tagged_field(f"{target}.{name}", field)
                self.flush()
                self.source.line(f"if p != {stop}: malformed('a tagged field has a wrong size')")
        self.source.line(f"p = {stop}")  # Also steps over a field that only newer versions know.

    def tagged_field(self, target: str, field: Field) -> None:
        """A field as ever, but a struct behind a tag says by a uvarint whether it is there."""
        if field.kind == "struct" and field.nullable_in(self.version):
            self.nested(target, cast(type[Struct], field.of), nullable=True, null_max=0)
        else:
            self.field(target, field)


def element_size_min(of: object, version: int, is_flexible: bool) -> int:
    """The fewest bytes one element of an array can take."""
    if isinstance(of, type) and issubclass(of, Struct):
        sizes = (_size_min(f, version, is_flexible) for _, f in body_fields(of, version))
        return max(1, sum(sizes) + is_flexible)
    kind = cast(Any, of).__name__
    return SIZES.get(kind) or _prefix_size(kind, is_flexible)


def _size_min(field: Field, version: int, is_flexible: bool) -> int:
    if field.kind == "struct":
        nullable = field.nullable_in(version)
        return 1 if nullable else element_size_min(field.of, version, is_flexible)
    return SIZES.get(field.kind) or _prefix_size(field.kind, is_flexible)


def _prefix_size(kind: str, is_flexible: bool) -> int:
    if is_flexible:
        return 1
    return 2 if kind == "string" else 4


def _ready(code: str) -> tuple[Callable[..., tuple[Any, ...]], ...]:
    if code not in _READY:
        layouts = [Layout(f">{count}{code}") for count in range(_READY_COUNT)]
        _READY[code] = tuple(layout.unpack_from for layout in layouts)
    return _READY[code]
