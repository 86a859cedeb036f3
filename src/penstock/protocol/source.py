"""Python source in the making: indented lines, named constants, runs of fixed-size fields.

Both code generators (`decoding`, `encoding`) write through this. It knows Python and `struct`
formats; what a message looks like is theirs.
"""

from collections.abc import Callable
from struct import Struct as Layout
from typing import Any

from penstock.protocol.schema import Field, Struct

# The `struct` format of every kind with a fixed size, and that size.
FORMATS = {
    "boolean": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
SIZES = {kind: Layout(">" + code).size for kind, code in FORMATS.items()}


class FunctionSource:
    """The text of one generated function, and the objects it refers to by name."""

    def __init__(self, names: dict[str, object]) -> None:
        self.lines: list[str] = []
        self.names = dict(names)
        self._depth = 1
        self._serial = 0

    def line(self, text: str) -> None:
        """One line at the present indentation."""
        self.lines.append("    " * self._depth + text)

    def block(self, text: str) -> "FunctionSource":
        """A line that opens a block: `with source.block("if x:"):`."""
        self.line(text)
        return self

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1

    def fresh(self, prefix: str) -> str:
        """A variable name not used before; blocks may nest without clashes."""
        self._serial += 1
        return f"{prefix}{self._serial}"

    def constant(self, prefix: str, value: object) -> str:
        """A name for an object that the source cannot spell."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def layout(self, prefix: str, codes: str) -> tuple[str, int]:
        """A name for a `struct` layout's pack or unpack_from, and its size in bytes."""
        layout = Layout(">" + codes)
        name = f"{prefix}_{codes}".replace("?", "t")
        self.names.setdefault(name, layout.pack if prefix == "pack" else layout.unpack_from)
        return name, layout.size

    def function(self, signature: str, title: str) -> Callable[..., Any]:
        """The finished function."""
        text = "\n".join([f"def {signature}:", *self.lines])
        exec(compile(text, f"<{title}>", "exec"), self.names)
        function: Callable[..., Any] = self.names[signature.partition("(")[0]]  # type: ignore[assignment]
        return function


def body_fields(kind: type[Struct], version: int) -> list[tuple[str, Field]]:
    """The fields that stand in their place in a version, in order."""
    fields = kind.fields.items()
    return [(name, f) for name, f in fields if f.exists_in(version) and f.tag is None]


def tagged_fields(kind: type[Struct], version: int) -> list[tuple[str, Field]]:
    """The tagged fields of a version, in the order of their tags."""
    fields = kind.fields.items()
    found = [(name, f) for name, f in fields if f.exists_in(version) and f.tag is not None]
    return sorted(found, key=lambda item: item[1].tag or 0)


def absent_fields(kind: type[Struct], version: int) -> list[tuple[str, Field]]:
    """The fields that only other versions have."""
    return [(name, f) for name, f in kind.fields.items() if not f.exists_in(version)]
