"""Avro's rules of schema resolution: can a reader's schema read what a writer's wrote.

The walk follows Apache Avro's own check, so kinds, paths and details are the ones its users know.
Schemas come as `definitions.avro` resolves them: full names, named types by reference, a table of
names beside them. A pair that is met again while it is being compared is taken as fitting, which
is what makes recursive types end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, TypeAlias

from penstock.schemas.compatibility.difference import Difference
from penstock.schemas.errors import SchemaError

Node: TypeAlias = Any  # A name, a list (union) or a mapping, with full names.
STEPS_MAX = 50_000  # Unions of records of unions could be compared for hours.
_PROMOTIONS = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "bytes": {"string"},
    "string": {"bytes"},
}
_SENTENCES = {
    "NAME_MISMATCH": "The name of the schema has changed (path '{path}')",
    "FIXED_SIZE_MISMATCH": (
        "The size of FIXED type field at path '{path}' in the {{0}} schema does not match with "
        "the {{1}} schema"
    ),
    "TYPE_MISMATCH": (
        "The type (path '{path}') of a field in the {{0}} schema does not match with the {{1}} "
        "schema"
    ),
    "MISSING_ENUM_SYMBOLS": (
        "The {{0}} schema is missing enum symbols '{detail}' at path '{path}' in the {{1}} schema"
    ),
    "MISSING_UNION_BRANCH": (
        "The {{0}} schema is missing a type inside a union field at path '{path}' in the {{1}} "
        "schema"
    ),
    "READER_FIELD_MISSING_DEFAULT_VALUE": (
        "The field '{detail}' at path '{path}' in the {{0}} schema has no default value and is "
        "missing in the {{1}} schema"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedAvro:
    """A schema and the named types that it mentions."""

    root: Node
    named: Mapping[str, Node]

    def follow(self, node: Node) -> Node:
        """The type behind a name, or the node itself."""
        while isinstance(node, str) and node in self.named:
            node = self.named[node]
        if isinstance(node, dict) and isinstance(node["type"], dict | list):
            return self.follow(node["type"])
        return node


def differences(reader: ResolvedAvro, writer: ResolvedAvro) -> list[Difference]:
    """All that keeps the reader from reading what the writer wrote, in the order of its text."""
    return _Walk(reader=reader, writer=writer).compare(reader.root, writer.root, ())


@dataclass(slots=True, kw_only=True)
class _Walk:
    reader: ResolvedAvro
    writer: ResolvedAvro
    seen: dict[tuple[str, str], list[Difference]] = field(default_factory=dict)
    steps: int = 0

    def compare(self, reader: Node, writer: Node, path: tuple[str, ...]) -> list[Difference]:
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise SchemaError("the schemas are too large to be compared")
        reader, writer = self.reader.follow(reader), self.writer.follow(writer)
        if not (_is_named(reader) and _is_named(writer)):
            return self._decide(reader, writer, path)
        pair = (reader["name"], writer["name"])
        if pair not in self.seen:
            self.seen[pair] = []
            found = self._decide(reader, writer, path)
            if found:
                self._forget_after(pair)
            self.seen[pair] = found
        return self.seen[pair]

    def _forget_after(self, failed: tuple[str, str]) -> None:
        """Pairs inside the failed one may have been taken as fitting because it was."""
        inside = takewhile(lambda pair: pair != failed, reversed(self.seen))
        for pair in [pair for pair in inside if not self.seen[pair]]:
            del self.seen[pair]

    def _decide(self, reader: Node, writer: Node, path: tuple[str, ...]) -> list[Difference]:
        to, of = type_name(reader), type_name(writer)
        if to == of:
            return self._same_type(to, reader, writer, path)
        if of == "union":
            return [d for branch in writer for d in self.compare(reader, branch, path)]
        if to == "union":
            return self._any_branch(reader, writer, path)
        if of in _PROMOTIONS.get(to, ()):
            return []
        detail = f"reader type: {to.upper()} not compatible with writer type: {of.upper()}"
        return [_difference("TYPE_MISMATCH", path, detail)]

    def _same_type(
        self, kind: str, reader: Node, writer: Node, path: tuple[str, ...]
    ) -> list[Difference]:
        match kind:
            case "record" | "error":
                return _names(reader, writer, path) + self._fields(reader, writer, path)
            case "enum":
                return _names(reader, writer, path) + _symbols(reader, writer, path)
            case "fixed":
                return _names(reader, writer, path) + _sizes(reader, writer, path)
            case "array":
                return self.compare(reader["items"], writer["items"], (*path, "items"))
            case "map":
                return self.compare(reader["values"], writer["values"], (*path, "values"))
            case "union":
                return self._unions(reader, writer, path)
            case _:
                return []

    def _fields(self, reader: Node, writer: Node, path: tuple[str, ...]) -> list[Difference]:
        written = {one["name"]: one for one in writer["fields"]}
        found: list[Difference] = []
        for place, wanted in enumerate(reader["fields"]):
            here = (*path, "fields", str(place))
            names = [wanted["name"], *wanted.get("aliases", ())]
            source = next((written[name] for name in names if name in written), None)
            if source is not None:
                found += self.compare(wanted["type"], source["type"], (*here, "type"))
            elif "default" not in wanted:
                found.append(
                    _difference("READER_FIELD_MISSING_DEFAULT_VALUE", here, wanted["name"])
                )
        return found

    def _unions(
        self, reader: Sequence[Node], writer: Sequence[Node], path: tuple[str, ...]
    ) -> list[Difference]:
        found: list[Difference] = []
        for place, branch in enumerate(writer):
            if self._fits_one(reader, branch, path):
                continue
            name = type_name(self.writer.follow(branch)).upper()
            detail = f"reader union lacking writer type: {name}"
            found.append(_difference("MISSING_UNION_BRANCH", (*path, str(place)), detail))
        return found

    def _any_branch(
        self, reader: Sequence[Node], writer: Node, path: tuple[str, ...]
    ) -> list[Difference]:
        if self._fits_one(reader, writer, path):
            return []
        detail = f"reader union lacking writer type: {type_name(writer).upper()}"
        return [_difference("MISSING_UNION_BRANCH", path, detail)]

    def _fits_one(self, branches: Sequence[Node], writer: Node, path: tuple[str, ...]) -> bool:
        return any(not self.compare(branch, writer, path) for branch in branches)


def type_name(node: Node) -> str:
    """`union`, `record`, `int` and so on, of a node that is no reference."""
    if isinstance(node, list):
        return "union"
    return str(node["type"] if isinstance(node, dict) else node)


def _is_named(node: Node) -> bool:
    return isinstance(node, dict) and node["type"] in ("record", "error", "enum", "fixed")


def _names(reader: Node, writer: Node, path: tuple[str, ...]) -> list[Difference]:
    """Namespaces may differ; a name may only where the reader knows the old one as an alias."""
    if _short(reader) == _short(writer) or writer["name"] in reader.get("aliases", ()):
        return []
    return [_difference("NAME_MISMATCH", (*path, "name"), f"expected: {writer['name']}")]


def _short(node: Node) -> str:
    return str(node["name"].rpartition(".")[2])


def _symbols(reader: Node, writer: Node, path: tuple[str, ...]) -> list[Difference]:
    missing = sorted(set(writer["symbols"]) - set(reader["symbols"]))
    if not missing or "default" in reader:
        return []
    return [_difference("MISSING_ENUM_SYMBOLS", (*path, "symbols"), f"[{', '.join(missing)}]")]


def _sizes(reader: Node, writer: Node, path: tuple[str, ...]) -> list[Difference]:
    if reader["size"] == writer["size"]:
        return []
    detail = f"expected: {writer['size']}, found: {reader['size']}"
    return [_difference("FIXED_SIZE_MISMATCH", (*path, "size"), detail)]


def _difference(kind: str, path: tuple[str, ...], detail: str) -> Difference:
    where = "/" + "/".join(path)
    sentence = _SENTENCES[kind].format(path=where, detail=detail)
    return Difference(kind=kind, path=where, sentence=sentence, detail=detail)
