"""An Avro schema as a registry keeps it: names resolved, checked, printed as Apache Avro prints it.

fastavro parses for values and forgives much (a field twice, a union in a union). A registry must
not: what it accepts, the strictest client has to parse. So the rules of the specification are
checked here, and the printed form has Apache Avro's order of attributes.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from penstock.schemas.avro import NAMED, PRIMITIVES
from penstock.schemas.compatibility import avro as rules
from penstock.schemas.compatibility.avro import Node, ResolvedAvro, type_name
from penstock.schemas.compatibility.difference import Difference
from penstock.schemas.definitions.definition import (
    NamedText,
    check_references,
    dump_json,
    load_json,
)
from penstock.schemas.errors import SchemaError
from penstock.schemas.lookup import SchemaKind

SYMBOLS_MAX = 50_000
NODES_MAX = 100_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN_FIELD_KEYS = ("name", "type", "doc", "default", "order", "aliases")
_OWN_TYPE_KEYS = {
    "record": ("type", "name", "namespace", "doc", "fields", "aliases"),
    "error": ("type", "name", "namespace", "doc", "fields", "aliases"),
    "enum": ("type", "name", "namespace", "doc", "symbols", "default", "aliases"),
    "fixed": ("type", "name", "namespace", "doc", "size", "aliases"),
    "array": ("type", "items"),
    "map": ("type", "values"),
}


@dataclass(frozen=True, kw_only=True)
class AvroDefinition:
    """An Avro schema, understood."""

    resolved: ResolvedAvro
    borrowed: frozenset[str]  # Names that references declare; they are printed as names.
    kind = SchemaKind.AVRO

    @classmethod
    def parse(cls, text: str, references: Sequence[NamedText] = ()) -> "AvroDefinition":
        """A text with those that it refers to, in the order in which they must be read."""
        check_references(references)
        resolver = _Resolver()
        for reference in references:
            resolver.resolve(load_json(reference.text), "")
        borrowed = frozenset(resolver.named)
        root = resolver.resolve(_lenient(text), "")
        resolver.check_defaults()
        return cls(
            resolved=ResolvedAvro(root=root, named=resolver.named),
            borrowed=borrowed,
        )

    @cached_property
    def record_name(self) -> str | None:
        """The full name of the outermost type, where it has one."""
        root = self.resolved.follow(self.resolved.root)
        return root.get("name") if isinstance(root, dict) else None

    def canonical(self) -> str:
        """As Apache Avro prints a schema."""
        printer = _Printer(printed=set(self.borrowed), full_names=False)
        return dump_json(printer.print(self.resolved.root, ""))

    def normalised(self) -> str:
        """With full names and further attributes in order."""
        printer = _Printer(printed=set(self.borrowed), full_names=True)
        return dump_json(printer.print(self.resolved.root, ""))

    def inlined(self) -> str:
        """As `canonical`, with what references declare written out where it is met first."""
        printer = _Printer(printed=set(), full_names=False, named=self.resolved.named)
        try:
            return dump_json(printer.print(self.resolved.root, ""))
        except RecursionError:
            raise SchemaError("the schema and its references are nested too deeply") from None

    def top_level_fields(self) -> frozenset[str]:
        """The fields of the outermost record."""
        root = self.resolved.follow(self.resolved.root)
        fields = root.get("fields", ()) if isinstance(root, dict) else ()
        return frozenset(one["name"] for one in fields)

    def differences(self, writer: "AvroDefinition") -> list[Difference]:
        """What keeps this schema from reading what the other wrote."""
        try:
            return rules.differences(self.resolved, writer.resolved)
        except RecursionError:
            raise SchemaError("the schemas are nested too deeply to be compared") from None


def _lenient(text: str) -> Any:
    """A bare name such as `string` is a schema, too."""
    bare = text.strip()
    return bare if bare in PRIMITIVES else load_json(text)


@dataclass(slots=True)
class _Resolver:
    """Gives every named type its full name, and checks what the specification demands."""

    named: dict[str, Node] = field(default_factory=dict)
    nodes: int = 0
    defaults: list[tuple[Node, str]] = field(default_factory=list)

    def resolve(self, node: Any, space: str) -> Node:
        self.nodes += 1
        if self.nodes > NODES_MAX:
            raise SchemaError(f"a schema may have {NODES_MAX} types")
        if isinstance(node, str):
            return self._reference(node, space)
        if isinstance(node, list):
            return self._union(node, space)
        if not isinstance(node, dict):
            raise SchemaError(f"No type: {dump_json(node)}")
        return self._complex(node, space)

    def _reference(self, name: str, space: str) -> Node:
        if name in PRIMITIVES:
            return name
        full = _full_name(name, space)
        for candidate in (full, name):
            if candidate in self.named:
                return candidate
        raise SchemaError(f'Undefined name: "{name}"')

    def _union(self, branches: list[Any], space: str) -> Node:
        resolved = [self.resolve(branch, space) for branch in branches]
        seen: set[str] = set()
        for branch in resolved:
            name = branch if isinstance(branch, str) else type_name(branch)
            if name in NAMED:
                name = branch["name"]
            if name == "union":
                raise SchemaError("Nested union: " + dump_json(branches))
            if name in seen:
                raise SchemaError(f"Duplicate in union: {name}")
            seen.add(name)
        return resolved

    def _complex(self, node: dict[str, Any], space: str) -> Node:
        kind = node.get("type")
        if isinstance(kind, dict | list):
            return self.resolve(kind, space)
        if not isinstance(kind, str):
            raise SchemaError(f"No type: {dump_json(node)}")
        if kind in NAMED:
            return self._named(kind, node, space)
        if kind == "array":
            return {**node, "items": self.resolve(_part(node, "items"), space)}
        if kind == "map":
            return {**node, "values": self.resolve(_part(node, "values"), space)}
        if kind in PRIMITIVES:
            return dict(node) if len(node) > 1 else kind
        return self._reference(kind, space)

    def _named(self, kind: str, node: dict[str, Any], space: str) -> Node:
        full, space = _declared_name(node, space)
        if full in self.named:
            raise SchemaError(f"Can't redefine: {full}")
        made: dict[str, Any] = {key: node[key] for key in node if key != "namespace"}
        made["name"] = full
        if "aliases" in node:
            made["aliases"] = [_full_name(alias, space) for alias in _texts(node, "aliases")]
        self.named[full] = made  # Before the fields: a record may hold itself.
        match kind:
            case "enum":
                _check_enum(node)
            case "fixed":
                _check_size(node)
            case _:
                made["fields"] = self._fields(_part(node, "fields"), full, space)
        return made

    def _fields(self, fields: Any, record: str, space: str) -> list[Node]:
        if not isinstance(fields, list):
            raise SchemaError(f"Record has no fields: {record}")
        made: list[Node] = []
        names: set[str] = set()
        for one in fields:
            if not isinstance(one, dict):
                raise SchemaError(f"No field name: {dump_json(one)}")
            name = _checked_name(one.get("name"))
            if name in names:
                raise SchemaError(f"Duplicate field {name} in record {record}")
            names.add(name)
            made.append({**one, "type": self.resolve(_part(one, "type"), space)})
            if "aliases" in one:
                made[-1]["aliases"] = [_checked_name(alias) for alias in _texts(one, "aliases")]
            if "default" in one:
                self.defaults.append((made[-1], record))
        return made

    def check_defaults(self) -> None:
        """After all names are known, since a default may be of a type declared later."""
        table = ResolvedAvro(root="null", named=self.named)
        for one, record in self.defaults:
            if not _is_of(one["default"], one["type"], table):
                raise SchemaError(
                    f"Invalid default for field {one['name']}: {dump_json(one['default'])} not a "
                    f"{dump_json(_short_form(one['type']))} in record {record}"
                )


def _short_form(node: Node) -> Node:
    return node if isinstance(node, str) else type_name(node)


def _part(node: Mapping[str, Any], key: str) -> Any:
    if key not in node:
        raise SchemaError(f"No {key}: {dump_json(node)}")
    return node[key]


def _texts(node: Mapping[str, Any], key: str) -> list[str]:
    texts = node[key]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise SchemaError(f"{key} is no list of names: {dump_json(texts)}")
    return texts


def _checked_name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SchemaError(f"Illegal character or no name: {dump_json(name)}")
    return name


def _full_name(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _declared_name(node: Mapping[str, Any], space: str) -> tuple[str, str]:
    """The full name, and the namespace for what is declared inside."""
    name = node.get("name")
    if not isinstance(name, str) or not name:
        raise SchemaError(f"No name in schema: {dump_json(node)[:200]}")
    if "." in name:
        space, _, name = name.rpartition(".")
    elif isinstance(node.get("namespace"), str):
        space = node["namespace"]
    for part in (*filter(None, space.split(".")), name):
        _checked_name(part)
    if not space and name in PRIMITIVES:
        raise SchemaError(f"Schemas may not be named after primitives: {name}")
    return (f"{space}.{name}" if space else name), space


def _check_enum(node: Mapping[str, Any]) -> None:
    symbols = _texts(node, "symbols") if "symbols" in node else _part(node, "symbols")
    if len(symbols) > SYMBOLS_MAX:
        raise SchemaError(f"an enum may have {SYMBOLS_MAX} symbols")
    for symbol in symbols:
        _checked_name(symbol)
    if len(set(symbols)) < len(symbols):
        raise SchemaError("Duplicate enum symbol")
    if "default" in node and node["default"] not in symbols:
        raise SchemaError(f"The Enum Default: {node['default']} is not in the enum symbol set")


def _check_size(node: Mapping[str, Any]) -> None:
    size = node.get("size")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise SchemaError(f"Invalid or no size: {dump_json(size)}")


def _is_of(value: Any, node: Node, table: ResolvedAvro) -> bool:
    """Whether a default in JSON is a value of the type; a union's is of any of its branches."""
    node = table.follow(node)
    match type_name(node):
        case "union":
            return any(_is_of(value, branch, table) for branch in node)
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int":
            return _is_whole(value, 31)
        case "long":
            return _is_whole(value, 63)
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string" | "bytes" | "fixed":
            return isinstance(value, str)
        case "enum":
            return value in node["symbols"]
        case "array":
            return isinstance(value, list) and all(_is_of(v, node["items"], table) for v in value)
        case "map":
            items = value.values() if isinstance(value, dict) else None
            return items is not None and all(_is_of(v, node["values"], table) for v in items)
        case _:
            return isinstance(value, dict) and all(
                _is_of(value[one["name"]], one["type"], table)
                if one["name"] in value
                else "default" in one
                for one in node["fields"]
            )


def _is_whole(value: Any, bits: int) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and -(1 << bits) <= value < 1 << bits


@dataclass(slots=True, kw_only=True)
class _Printer:
    """Writes each named type out where it is met first, and its name from then on."""

    printed: set[str]
    full_names: bool
    named: Mapping[str, Node] = field(default_factory=dict)  # Of what only names are met.

    def print(self, node: Node, space: str) -> Any:
        if isinstance(node, str):
            known = node in self.named and node not in self.printed
            return self.print(self.named[node], space) if known else self._name(node, space)
        if isinstance(node, list):
            return [self.print(branch, space) for branch in node]
        kind = type_name(node)
        if kind in NAMED:
            return self._named(kind, node, space)
        made: dict[str, Any] = {"type": kind}
        for inner in ("items", "values"):
            if kind in ("array", "map") and inner in _OWN_TYPE_KEYS[kind]:
                made[inner] = self.print(node[inner], space)
        return made | self._further(node, _OWN_TYPE_KEYS.get(kind, ("type",)))

    def _name(self, name: str, space: str) -> str:
        own_space, _, short = name.rpartition(".")
        if self.full_names or own_space != space or short in PRIMITIVES:
            return name
        return short

    def _named(self, kind: str, node: Node, space: str) -> Any:
        full = node["name"]
        if full in self.printed:
            return self._name(full, space)
        self.printed.add(full)
        own_space, _, short = full.rpartition(".")
        made: dict[str, Any] = {"type": kind, "name": full if self.full_names else short}
        if own_space != space and not self.full_names:
            made["namespace"] = own_space
        if "doc" in node:
            made["doc"] = node["doc"]
        match kind:
            case "enum":
                made["symbols"] = node["symbols"]
                made |= {key: node[key] for key in ("default",) if key in node}
            case "fixed":
                made["size"] = node["size"]
            case _:
                made["fields"] = [self._field(one, own_space) for one in node["fields"]]
        made |= self._further(node, _OWN_TYPE_KEYS[kind])
        if node.get("aliases"):
            made["aliases"] = [self._name(alias, own_space) for alias in node["aliases"]]
        return made

    def _field(self, one: Node, space: str) -> Any:
        made: dict[str, Any] = {"name": one["name"], "type": self.print(one["type"], space)}
        for key in ("doc", "default"):
            if key in one and (key == "default" or one[key] is not None):
                made[key] = one[key]
        if one.get("order", "ascending") != "ascending":
            made["order"] = one["order"]
        if one.get("aliases"):
            made["aliases"] = one["aliases"]
        return made | self._further(one, _OWN_FIELD_KEYS)

    def _further(self, node: Node, own: Sequence[str]) -> dict[str, Any]:
        keys = [key for key in node if key not in own]
        return {key: node[key] for key in (sorted(keys) if self.full_names else keys)}
