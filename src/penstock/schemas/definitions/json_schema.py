"""A JSON schema as a registry keeps it, built into the tree that the comparison walks.

Drafts 4 to 2020-12 are read into one form: a boolean `exclusiveMaximum` becomes a number,
`prefixItems` a tuple, `const` an enum of one. A schema that constrains several things at once
becomes an `allOf` of schemas that constrain one each. Keywords that are not understood part by part
are compared whole, so that a change in them is a difference and never a surprise.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urljoin

from penstock.schemas.compatibility import json_schema as rules
from penstock.schemas.compatibility.difference import Difference
from penstock.schemas.compatibility.json_schema import JsonNode
from penstock.schemas.definitions.definition import (
    NamedText,
    check_references,
    dump_json,
    load_json,
)
from penstock.schemas.errors import SchemaError
from penstock.schemas.lookup import SchemaKind

NODES_MAX = 20_000
_INDEX = re.compile("[0-9]{1,9}")
_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_WORDS = {
    "object": ("maxProperties", "minProperties", "required"),
    "array": ("maxItems", "minItems", "uniqueItems"),
    "string": ("maxLength", "minLength", "pattern"),
    "number": ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"),
}
_PARTS = {
    "object": (
        "properties",
        "patternProperties",
        "additionalProperties",
        "propertyNames",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
    ),
    "array": ("items", "prefixItems", "additionalItems", "contains"),
    "string": (),
    "number": (),
}
_WHOLE = (
    "if",
    "then",
    "else",
    "unevaluatedProperties",
    "unevaluatedItems",
    "minContains",
    "maxContains",
    "$dynamicRef",
    "$recursiveRef",
)
_COUNTS = {"maxProperties", "minProperties", "maxItems", "minItems", "maxLength", "minLength"}


@dataclass(frozen=True, kw_only=True)
class JsonDefinition:
    """A JSON schema, understood."""

    raw: Any
    references: tuple[NamedText, ...]
    kind = SchemaKind.JSON

    @classmethod
    def parse(cls, text: str, references: Sequence[NamedText] = ()) -> "JsonDefinition":
        """A text with those that it refers to."""
        check_references(references)
        made = cls(raw=load_json(text), references=tuple(references))
        made.tree  # noqa: B018  Built at once, so that what is wrong is told at once.
        return made

    @cached_property
    def tree(self) -> JsonNode:
        """The schema as the comparison walks it."""
        documents = {one.name: load_json(one.text) for one in self.references}
        try:
            return _Builder(documents=documents).build(self.raw, self.raw)
        except RecursionError:
            raise SchemaError("the references of the schema are nested too deeply") from None

    def canonical(self) -> str:
        """The text without spaces; the order of names stays."""
        return dump_json(self.raw)

    def normalised(self) -> str:
        """With names in order."""
        return json.dumps(self.raw, separators=(",", ":"), ensure_ascii=False, sort_keys=True)

    def top_level_fields(self) -> frozenset[str]:
        """The properties of the outermost object."""
        return frozenset(self.tree.properties)

    def differences(self, writer: "JsonDefinition") -> list[Difference]:
        """What this schema refuses of what the other let through."""
        try:
            return rules.differences(self.tree, writer.tree)
        except RecursionError:
            raise SchemaError("the schemas are nested too deeply to be compared") from None


_UNKNOWN = JsonNode(kind="true")  # Stands for a reference that is being followed.


@dataclass(slots=True, kw_only=True)
class _Builder:
    documents: Mapping[str, Any]
    built: dict[int, JsonNode] = field(default_factory=dict)  # By the identity of the JSON.
    kept: list[Any] = field(default_factory=list)

    def build(self, schema: Any, root: Any) -> JsonNode:
        """The node of a schema inside the document `root`."""
        if schema is True or schema == {}:
            return JsonNode(kind="true")
        if schema is False:
            return JsonNode(kind="false")
        if not isinstance(schema, dict):
            raise SchemaError(f"a schema is an object or a boolean, not {dump_json(schema)[:100]}")
        if "$ref" in schema and "default" not in schema:
            return self._followed(schema, root)
        if id(schema) not in self.built:
            if len(self.built) >= NODES_MAX:
                raise SchemaError(f"a schema may have {NODES_MAX} parts")
            node = JsonNode(kind="true")
            self.built[id(schema)] = node
            self.kept.append(schema)
            self._fill(node, schema, root)
        return self.built[id(schema)]

    def _followed(self, schema: dict[str, Any], root: Any) -> JsonNode:
        """The node at the end of a chain of references."""
        met: list[dict[str, Any]] = []
        here, home = schema, root
        while isinstance(here, dict) and "$ref" in here and "default" not in here:
            if id(here) in self.built:
                break
            self.built[id(here)] = _UNKNOWN
            self.kept.append(here)
            met.append(here)
            here, home = self._resolve(here["$ref"], home)
        node = self.built[id(here)] if id(here) in self.built else self.build(here, home)
        if node is _UNKNOWN:
            raise SchemaError(f"{schema['$ref']} refers to itself")
        self.built.update({id(one): node for one in met})
        return node

    def _fill(self, node: JsonNode, schema: dict[str, Any], root: Any) -> None:
        """A node is made before its parts, because they may lead back to it."""
        if "$ref" in schema:
            target, home = self._resolve(schema["$ref"], root)
            if target is schema:
                raise SchemaError(f"{schema['$ref']} refers to itself")
            _become(node, [self.build(target, home)])
        else:
            _become(node, self._constraints(schema, root))
        node.default = "default" in schema

    def _constraints(self, schema: dict[str, Any], root: Any) -> list[JsonNode]:
        found = self._typed(schema, root)
        for keyword in ("allOf", "anyOf", "oneOf"):
            if keyword in schema:
                inner = schema[keyword]
                if not isinstance(inner, list) or not inner:
                    raise SchemaError(f"{keyword} is no list of schemas")
                branches = [self.build(one, root) for one in inner]
                found.append(JsonNode(kind=keyword, branches=branches))
        if "not" in schema:
            found.append(JsonNode(kind="not", inner={"not": self.build(schema["not"], root)}))
        whole = {key: dump_json(schema[key]) for key in _WHOLE if key in schema}
        if whole:
            found.append(JsonNode(kind="other", words=whole))
        return found

    def _typed(self, schema: dict[str, Any], root: Any) -> list[JsonNode]:
        types = schema.get("type")
        names = [types] if isinstance(types, str) else types
        if names is not None and (
            not isinstance(names, list) or not names or any(name not in _TYPES for name in names)
        ):
            raise SchemaError(f"type is not one of {', '.join(_TYPES)}: {dump_json(types)[:100]}")
        values = _enum_values(schema)
        enum = [] if values is None else [JsonNode(kind="enum", words={"enum": _texts(values)})]
        if names is None:
            groups = [group for group in _WORDS if _speaks_of(schema, group)]
            return [self._one(schema, group, root, bound=False) for group in groups] + enum
        if values is not None and _says_all(schema, names, values):
            return enum
        nodes = [self._one(schema, name, root, bound=True) for name in names]
        typed = nodes[0] if len(nodes) == 1 else JsonNode(kind="anyOf", branches=nodes)
        return [typed, *enum]

    def _one(self, schema: dict[str, Any], name: str, root: Any, *, bound: bool) -> JsonNode:
        """The constraints of one type; not `bound`: values of other types pass."""
        group = "number" if name == "integer" else name
        words = {key: schema[key] for key in _WORDS.get(group, ()) if key in schema}
        node = JsonNode(kind=group, words=_checked_words(words))
        if name == "integer":
            node.words = {**node.words, "integer": True}
        if not bound:
            node.words = {**node.words, "untyped": True}
        if group == "object":
            self._fill_object(node, schema, root)
        if group == "array":
            self._fill_array(node, schema, root)
        return node

    def _fill_object(self, node: JsonNode, schema: dict[str, Any], root: Any) -> None:
        node.properties = self._named(schema, "properties", root)
        node.patterns = self._named(schema, "patternProperties", root)
        for keyword in ("additionalProperties", "propertyNames"):
            if keyword in schema and schema[keyword] is not True:
                node.inner[keyword] = self.build(schema[keyword], root)
        self._fill_dependencies(node, schema, root)

    def _fill_dependencies(self, node: JsonNode, schema: dict[str, Any], root: Any) -> None:
        """Names that a property needs, and schemas that it brings."""
        given = _mapping(schema, "dependencies")
        names = {key: one for key, one in given.items() if isinstance(one, list)}
        names |= _mapping(schema, "dependentRequired")
        if names:
            lists = {key: _names(one, "dependencies") for key, one in names.items()}
            node.words = {**node.words, "dependencies": lists}
        schemas = {key: one for key, one in given.items() if key not in names}
        schemas |= _mapping(schema, "dependentSchemas")
        node.dependents = {key: self.build(one, root) for key, one in schemas.items()}

    def _fill_array(self, node: JsonNode, schema: dict[str, Any], root: Any) -> None:
        items, prefix = schema.get("items"), schema.get("prefixItems")
        rest = schema.get("additionalItems")
        if prefix is not None:
            items, rest = prefix, items
        if isinstance(items, list):
            node.items = [self.build(one, root) for one in items]
            if rest is not None and rest is not True:
                node.inner["additionalItems"] = self.build(rest, root)
        elif items is not None and items is not True:
            node.inner["items"] = self.build(items, root)
        if "contains" in schema:
            node.inner["contains"] = self.build(schema["contains"], root)

    def _named(self, schema: dict[str, Any], keyword: str, root: Any) -> dict[str, JsonNode]:
        return {name: self.build(one, root) for name, one in _mapping(schema, keyword).items()}

    def _resolve(self, reference: Any, root: Any) -> tuple[Any, Any]:
        """What a `$ref` means, and the document it stands in."""
        if not isinstance(reference, str):
            raise SchemaError("$ref is no text")
        address, _, fragment = reference.partition("#")
        home = self._document(address, root) if address else root
        if not fragment or fragment.startswith("/"):
            return _pointed(home, fragment, reference), home
        for part in _parts(home):
            if fragment == part.get("$anchor") or f"#{fragment}" in (
                part.get("$id"),
                part.get("id"),
            ):
                return part, home
        raise SchemaError(f"{reference} is not there")

    def _document(self, address: str, root: Any) -> Any:
        base = root.get("$id", "") if isinstance(root, dict) else ""
        try:
            absolute = urljoin(base if isinstance(base, str) else "", address)
        except ValueError as error:
            raise SchemaError(f"{address} is no address: {error}") from None
        for name in (address, absolute):
            if name in self.documents:
                return self.documents[name]
        for document in (root, *self.documents.values()):
            for part in _parts(document):
                if part.get("$id") in (address, absolute):
                    return part
        raise SchemaError(f"the schema refers to {address}, which is not among its references")


def _become(node: JsonNode, constraints: list[JsonNode]) -> None:
    """Take over the one constraint, or hold them all."""
    if not constraints:
        return
    if len(constraints) > 1 or constraints[0] is node or constraints[0].kind == "true":
        node.kind, node.branches = "allOf", constraints
        return
    one = constraints[0]
    node.kind, node.words, node.branches = one.kind, one.words, one.branches
    node.properties, node.patterns = one.properties, one.patterns
    node.inner, node.items, node.dependents = one.inner, one.items, one.dependents


def _speaks_of(schema: dict[str, Any], group: str) -> bool:
    return any(key in schema for key in (*_WORDS[group], *_PARTS[group]))


def _enum_values(schema: dict[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    if values is not None and (not isinstance(values, list) or not values):
        raise SchemaError("enum is no list of values")
    return values


def _texts(values: list[Any]) -> list[str]:
    """Values as texts, because Python takes true for 1."""
    return [json.dumps(_plain(value), sort_keys=True) for value in values]


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _says_all(schema: dict[str, Any], names: list[str], values: list[Any]) -> bool:
    """Whether the values alone say all that the types and their keywords do."""
    constrained = any(_speaks_of(schema, group) for group in _WORDS)
    return not constrained and all(any(_is_of(value, name) for name in names) for value in values)


def _is_of(value: Any, name: str) -> bool:
    match name:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case _:
            return isinstance(value, int | float) and not isinstance(value, bool)


def _checked_words(words: dict[str, Any]) -> dict[str, Any]:
    for key, value in words.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if key in _COUNTS and not (number and value >= 0 and value == int(value)):
            raise SchemaError(f"{key} is no count")
        if key in ("maximum", "minimum", "multipleOf") and not number:
            raise SchemaError(f"{key} is no number")
        if key.startswith("exclusive") and not (number or isinstance(value, bool)):
            raise SchemaError(f"{key} is no number")
        if key == "multipleOf" and value <= 0:
            raise SchemaError("multipleOf is not above 0")
        if key == "pattern" and not isinstance(value, str):
            raise SchemaError("pattern is no text")
    for side in ("Maximum", "Minimum"):
        _settle_exclusive(words, f"exclusive{side}", side.lower())
    if "multipleOf" in words:
        words["multipleOf"] = Fraction(str(words["multipleOf"]))
    if isinstance(words.get("required"), bool):
        del words["required"]  # Draft 3's, beside a property.
    _names(words.get("required", []), "required")
    return words


def _settle_exclusive(words: dict[str, Any], exclusive: str, plain: str) -> None:
    """Draft 4 says with a boolean that the bound itself is outside."""
    if exclusive not in words or not isinstance(words[exclusive], bool):
        return
    if words.pop(exclusive) and plain in words:
        words[exclusive] = words.pop(plain)


def _mapping(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    value = schema.get(keyword, {})
    if not isinstance(value, dict):
        raise SchemaError(f"{keyword} is no object")
    return value


def _names(value: Any, keyword: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise SchemaError(f"{keyword} is no list of names")
    return value


def _pointed(document: Any, pointer: str, reference: str) -> Any:
    here = document
    for part in pointer.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(here, dict) and key in here:
            here = here[key]
        elif isinstance(here, list) and _INDEX.fullmatch(key) and int(key) < len(here):
            here = here[int(key)]
        else:
            raise SchemaError(f"{reference} is not there")
    return here


def _parts(document: Any) -> list[dict[str, Any]]:
    """Every object of a document."""
    found: list[dict[str, Any]] = []
    waiting = [document]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            found.append(one)
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return found
