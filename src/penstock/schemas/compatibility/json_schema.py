"""JSON Schema compared part by part: does a reader's schema take what a writer's let through.

The comparison is structural, a list of differences with a kind and a path each, of which some
kinds do no harm. Schemas come as `definitions.json_schema` builds them: a tree of `JsonNode` in
which each node is of one type, and several constraints at once are an `allOf`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import re2

from penstock.schemas.compatibility.difference import Difference
from penstock.schemas.compatibility.json_kinds import is_harmless, sentence_of
from penstock.schemas.errors import SchemaError

STEPS_MAX = 20_000


@dataclass(slots=True, kw_only=True, eq=False)
class JsonNode:
    """One schema. References make graphs of these, so nodes are compared by identity."""

    kind: str  # object array string number boolean null enum allOf anyOf oneOf not true false other
    words: Mapping[str, Any] = field(default_factory=dict)  # Its keywords that hold plain values.
    default: bool = False  # Whether a default is given.
    branches: list["JsonNode"] = field(default_factory=list)
    properties: dict[str, "JsonNode"] = field(default_factory=dict)
    patterns: dict[str, "JsonNode"] = field(default_factory=dict)
    inner: dict[str, "JsonNode"] = field(default_factory=dict)  # additionalProperties, items, not.
    items: list["JsonNode"] | None = None  # A tuple's.
    dependents: dict[str, "JsonNode"] = field(default_factory=dict)  # What a property brings.


@dataclass(frozen=True, slots=True)
class _Found:
    kind: str
    path: str


def differences(reader: JsonNode, writer: JsonNode) -> list[Difference]:
    """What the reader refuses of what the writer let through, by the parts of the text."""
    walk = _Walk()
    found = walk.compare(writer, reader, "#/")
    return [
        Difference(kind=one.kind, path=one.path, sentence=sentence_of(one.kind, one.path))
        for one in found
        if not is_harmless(one.kind)
    ]


def _at(path: str, *parts: str) -> str:
    return (path if path.endswith("/") else path + "/") + "/".join(parts)


@dataclass(slots=True)
class _Walk:
    """`old` is the writer's side, `new` the reader's."""

    open_pairs: set[tuple[int, int]] = field(default_factory=set)
    steps: int = 0

    def compare(self, old: JsonNode, new: JsonNode, path: str) -> list[_Found]:
        self._count(1)
        pair = (id(old), id(new))
        if old is new or pair in self.open_pairs:
            return []
        self.open_pairs.add(pair)
        try:
            return self._decide(old, new, path)
        finally:
            self.open_pairs.discard(pair)

    def fits(self, old: JsonNode, new: JsonNode, path: str) -> bool:
        return all(is_harmless(one.kind) for one in self.compare(old, new, path))

    def _decide(self, old: JsonNode, new: JsonNode, path: str) -> list[_Found]:
        if old.kind == "false" or new.kind == "true":
            return []
        combined_old, combined_new = bool(old.branches), bool(new.branches)
        if combined_new and not combined_old:
            found = self._into_combined(old, new, path)
            if found is not None:
                return found
        if combined_old and not combined_new:
            found = self._out_of_combined(old, new, path)
            if found is not None:
                return found
        if combined_old and combined_new:
            return self._combined(old, new, path)
        if old.kind == "enum" and _is_of_plain_type(old.words["enum"], new):
            return [_Found("TYPE_EXTENDED", path)]
        if old.kind != new.kind:
            return [_Found("TYPE_CHANGED", path)]
        if old.words.get("untyped", False) and not new.words.get("untyped", False):
            return [_Found("TYPE_NARROWED", path)]
        match old.kind:
            case "object":
                return self._object(old, new, path)
            case "array":
                return self._array(old, new, path)
            case "string":
                return _bounds(_STRING, old, new, path) + _pattern(old, new, path)
            case "number":
                return _numbers(old, new, path)
            case "enum":
                return _enum(old, new, path)
            case "not":
                inside = self.fits(new.inner["not"], old.inner["not"], path)
                return [_Found("NOT_TYPE_NARROWED" if inside else "NOT_TYPE_EXTENDED", path)]
            case "other":
                return [] if old.words == new.words else [_Found("COMBINED_TYPE_CHANGED", path)]
            case _:
                return []

    def _into_combined(self, old: JsonNode, new: JsonNode, path: str) -> list[_Found] | None:
        """One schema becomes several: fits if it fits all, or one of the alternatives."""
        if new.kind == "allOf":
            return _first_misfit(self.compare(old, branch, path) for branch in new.branches)
        for branch in new.branches:
            if self.fits(old, branch, path):
                return [_Found("SUM_TYPE_EXTENDED", path)]
        return None

    def _out_of_combined(self, old: JsonNode, new: JsonNode, path: str) -> list[_Found] | None:
        """Several become one: one of all must fit, or every alternative."""
        if old.kind == "allOf":
            fit = any(self.fits(branch, new, path) for branch in old.branches)
            return [_Found("PRODUCT_TYPE_NARROWED", path)] if fit else None
        if len(old.branches) == 1:
            return self.compare(old.branches[0], new, path)
        fit = all(self.fits(branch, new, path) for branch in old.branches)
        return [_Found("COMBINED_TYPE_EXTENDED", path)] if fit else None

    def _combined(self, old: JsonNode, new: JsonNode, path: str) -> list[_Found]:
        found: list[_Found] = []
        if old.kind != new.kind:
            softer = new.kind == "anyOf" or len(old.branches) == 1
            if not softer or (new.kind == "allOf" and len(new.branches) > 1):
                return [_Found("COMBINED_TYPE_CHANGED", path)]
            found.append(_Found("COMBINED_TYPE_EXTENDED", path))
        where = _at(path, new.kind)
        if new.kind == "allOf":
            return found + self._product(old, new, path)
        missing = [
            one for one in old.branches if not any(self.fits(one, b, where) for b in new.branches)
        ]
        if old.kind == "allOf":  # One value fits all of them, so one of them must go on.
            return found if len(missing) < len(old.branches) else [*found, _changed(path)]
        if len(old.branches) > len(new.branches) and missing:
            return [*found, _Found("SUM_TYPE_NARROWED", path)]
        if missing:
            return [*found, _changed(path)]
        if len(old.branches) < len(new.branches):
            found.append(_Found("SUM_TYPE_EXTENDED", path))
        return found

    def _product(self, old: JsonNode, new: JsonNode, path: str) -> list[_Found]:
        """Each demand of the new schema must follow from one of the old ones."""
        where = _at(path, "allOf")
        unmet = [
            one for one in new.branches if not any(self.fits(b, one, where) for b in old.branches)
        ]
        if unmet and len(new.branches) > len(old.branches):
            return [_Found("PRODUCT_TYPE_EXTENDED", path)]
        if unmet and len(old.branches) == len(new.branches) == 1:
            return self.compare(old.branches[0], new.branches[0], _at(where, "0"))
        if unmet:
            return [_changed(path)]
        narrower = len(old.branches) > len(new.branches)
        return [_Found("PRODUCT_TYPE_NARROWED", path)] if narrower else []

    def _object(self, old: JsonNode, new: JsonNode, path: str) -> list[_Found]:
        found = _bounds(_OBJECT, old, new, path) + _required(old, new, path)
        found += _dependencies(old, new, path) + self._dependents(old, new, path)
        found += self._rest(old, new, path, "additionalProperties", "ADDITIONAL_PROPERTIES")
        found += self._patterns(old, new, path)
        found += self._side(old, new, path, "propertyNames")
        for name in (*old.properties, *(n for n in new.properties if n not in old.properties)):
            where = _at(path, "properties", name)
            if name not in new.properties:
                found += self._removed(old.properties[name], new, name, where)
            elif name not in old.properties:
                found += self._added(old, new, name, where)
            else:
                found += self.compare(old.properties[name], new.properties[name], where)
        return found

    def _dependents(self, old: JsonNode, new: JsonNode, path: str) -> list[_Found]:
        found: list[_Found] = []
        for name in sorted({*old.dependents, *new.dependents}):
            where = _at(path, "dependencies", name)
            if name not in new.dependents:
                found.append(_Found("DEPENDENCY_SCHEMA_REMOVED", where))
            elif name not in old.dependents:
                found.append(_Found("DEPENDENCY_SCHEMA_ADDED", where))
            else:
                found += self.compare(old.dependents[name], new.dependents[name], where)
        return found

    def _removed(self, gone: JsonNode, new: JsonNode, name: str, where: str) -> list[_Found]:
        sure, unsure = self._patterns_for(new, name)
        rest = new.inner.get("additionalProperties")
        covering = [*sure, *unsure, *([] if sure or rest is None else [rest])]
        if not covering:
            return [_Found("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", where)]
        if any(one.kind == "false" for one in covering):
            false = gone.kind == "false"
            kind = "WITH_FALSE_REMOVED_FROM" if false else "REMOVED_FROM"
            return [_Found(f"PROPERTY_{kind}_CLOSED_CONTENT_MODEL", where)]
        fits = all(self.fits(gone, one, where) for one in covering)
        return [_Found(_covered("PROPERTY_REMOVED", fits), where)]

    def _added(self, old: JsonNode, new: JsonNode, name: str, where: str) -> list[_Found]:
        sure, unsure = self._patterns_for(old, name)
        rest = old.inner.get("additionalProperties")
        covering = sure or ([] if rest is None else [rest])
        added = new.properties[name]
        needed = name in new.words.get("required", ())
        if not covering and added.kind == "true" and not needed:
            return [_Found("PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", where)]
        how = "OPTIONAL_PROPERTY"
        if needed:
            how = "REQUIRED_PROPERTY_WITH_DEFAULT" if added.default else "REQUIRED_PROPERTY"
        model = "UNOPEN" if covering else "OPEN"
        found = [_Found(f"{how}_ADDED_TO_{model}_CONTENT_MODEL", where)]
        if unsure or (covering and not any(one.kind == "false" for one in covering)):
            fits = not unsure and any(self.fits(one, added, where) for one in covering)
            found.insert(0, _Found(_covered("PROPERTY_ADDED", fits), where))
        return found

    def _patterns_for(self, node: JsonNode, name: str) -> tuple[list[JsonNode], list[JsonNode]]:
        """What the patterns that match a name demand of it, and those that may match."""
        self._count(len(node.patterns))
        said = [(_matches(pattern, name), one) for pattern, one in node.patterns.items()]
        return [one for yes, one in said if yes], [one for yes, one in said if yes is None]

    def _count(self, steps: int) -> None:
        self.steps += steps
        if self.steps > STEPS_MAX:
            raise SchemaError("the schemas are too large to be compared")

    def _patterns(self, old: JsonNode, new: JsonNode, path: str) -> list[_Found]:
        """A pattern's schema may grow; a new pattern binds names that were free before."""
        found: list[_Found] = []
        for pattern, schema in new.patterns.items():
            where = _at(path, "patternProperties", pattern)
            if pattern in old.patterns:
                found += self.compare(old.patterns[pattern], schema, where)
            elif not self._bound_before(old, pattern, schema, where):
                found.append(_Found("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", where))
        for pattern, schema in old.patterns.items():
            rest = new.inner.get("additionalProperties")
            where = _at(path, "patternProperties", pattern)
            if pattern not in new.patterns and rest and not self.fits(schema, rest, where):
                found.append(_Found(_covered("PROPERTY_REMOVED", False), where))
        return found

    def _bound_before(self, old: JsonNode, pattern: str, schema: JsonNode, where: str) -> bool:
        """Whether every name that could match held values which fit anyway."""
        rest = old.inner.get("additionalProperties")
        self._count(len(old.properties))
        named = [
            one for name, one in old.properties.items() if _matches(pattern, name) is not False
        ]
        held = [*named, *old.patterns.values()]
        return rest is not None and all(self.fits(one, schema, where) for one in (rest, *held))

    def _rest(
        self, old: JsonNode, new: JsonNode, path: str, keyword: str, kind: str
    ) -> list[_Found]:
        """additionalProperties and additionalItems: absent is the same as true."""
        before, after = old.inner.get(keyword), new.inner.get(keyword)
        where = _at(path, keyword)
        if after is None:
            if before is None:
                return []
            closed = before.kind == "false"
            return [_Found(f"{kind}_{'ADDED' if closed else 'EXTENDED'}", where)]
        if before is None:
            closed = after.kind == "false"
            return [_Found(f"{kind}_{'REMOVED' if closed else 'NARROWED'}", where)]
        if after.kind == "false" and before.kind != "false":
            return [_Found(f"{kind}_REMOVED", where)]
        if before.kind == "false" and after.kind != "false":
            return [_Found(f"{kind}_ADDED", where)]
        return self.compare(before, after, where)

    def _side(self, old: JsonNode, new: JsonNode, path: str, keyword: str) -> list[_Found]:
        before, after = old.inner.get(keyword), new.inner.get(keyword)
        where = _at(path, keyword)
        if after is None:
            return [] if before is None else [_Found("SCHEMA_REMOVED", where)]
        if before is None:
            return [] if after.kind == "true" else [_Found("SCHEMA_ADDED", where)]
        return self.compare(before, after, where)

    def _array(self, old: JsonNode, new: JsonNode, path: str) -> list[_Found]:
        found = _bounds(_ARRAY, old, new, path)
        before, after = old.words.get("uniqueItems", False), new.words.get("uniqueItems", False)
        if before != after:
            kind = "UNIQUE_ITEMS_ADDED" if after else "UNIQUE_ITEMS_REMOVED"
            found.append(_Found(kind, _at(path, "uniqueItems")))
        found += self._side(old, new, path, "items") + self._side(old, new, path, "contains")
        found += self._rest(old, new, path, "additionalItems", "ADDITIONAL_ITEMS")
        return found + self._tuples(old, new, path)

    def _tuples(self, old: JsonNode, new: JsonNode, path: str) -> list[_Found]:
        found: list[_Found] = []
        ours, theirs = old.items or [], new.items or []
        for place in range(max(len(ours), len(theirs))):
            where = _at(path, "items", str(place))
            if place >= len(theirs):
                found.append(self._item_removed(ours[place], new, where))
            elif place >= len(ours):
                found.append(self._item_added(theirs[place], old, where))
            else:
                found += self.compare(ours[place], theirs[place], where)
        return found

    def _item_removed(self, gone: JsonNode, new: JsonNode, where: str) -> _Found:
        rest = new.inner.get("additionalItems") or new.inner.get("items")
        if rest is None:
            return _Found("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", where)
        if rest.kind == "false":
            kind = "WITH_FALSE_REMOVED_FROM" if gone.kind == "false" else "REMOVED_FROM"
            return _Found(f"ITEM_{kind}_CLOSED_CONTENT_MODEL", where)
        return _Found(_covered("ITEM_REMOVED", self.fits(gone, rest, where)), where)

    def _item_added(self, added: JsonNode, old: JsonNode, where: str) -> _Found:
        rest = old.inner.get("additionalItems") or old.inner.get("items")
        if rest is None:
            empty = "WITH_EMPTY_SCHEMA_ADDED" if added.kind == "true" else "ADDED"
            return _Found(f"ITEM_{empty}_TO_OPEN_CONTENT_MODEL", where)
        if rest.kind == "false":
            return _Found("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", where)
        return _Found(_covered("ITEM_ADDED", self.fits(rest, added, where)), where)


def _first_misfit(results: Any) -> list[_Found]:
    for found in results:
        if not all(is_harmless(one.kind) for one in found):
            return list(found)
    return []


def _changed(path: str) -> _Found:
    return _Found("COMBINED_TYPE_SUBSCHEMAS_CHANGED", path)


def _covered(what: str, fits: bool) -> str:
    return f"{what}_{'IS' if fits else 'NOT'}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"


def _matches(pattern: str, name: str) -> bool | None:
    """None: the pattern is in another dialect than RE2's, which alone ends in bounded time."""
    try:
        return _machine(pattern).search(name) is not None
    except re2.error:
        return None


@lru_cache(maxsize=1_000)
def _machine(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 4 << 20
    return re2.compile(pattern, options)


# By how a value begins in JSON; all others are numbers.
_TYPE_OF = {
    '"': "string",
    "{": "object",
    "[": "array",
    "t": "boolean",
    "f": "boolean",
    "n": "null",
}
# A keyword, and whether a larger value lets more through.
_STRING = (("maxLength", "MAX_LENGTH", True), ("minLength", "MIN_LENGTH", False))
_OBJECT = (("maxProperties", "MAX_PROPERTIES", True), ("minProperties", "MIN_PROPERTIES", False))
_ARRAY = (("maxItems", "MAX_ITEMS", True), ("minItems", "MIN_ITEMS", False))
_NUMBER = (
    ("maximum", "MAXIMUM", True),
    ("minimum", "MINIMUM", False),
    ("exclusiveMaximum", "EXCLUSIVE_MAXIMUM", True),
    ("exclusiveMinimum", "EXCLUSIVE_MINIMUM", False),
)


def _bounds(
    table: Sequence[tuple[str, str, bool]], old: JsonNode, new: JsonNode, path: str
) -> list[_Found]:
    found = []
    for keyword, kind, _ in table:
        before, after = old.words.get(keyword), new.words.get(keyword)
        if before == after:
            continue
        if before is None:
            change = "ADDED"
        elif after is None:
            change = "REMOVED"
        else:
            change = "INCREASED" if after > before else "DECREASED"
        found.append(_Found(f"{kind}_{change}", _at(path, keyword)))
    return found


def _pattern(old: JsonNode, new: JsonNode, path: str) -> list[_Found]:
    before, after = old.words.get("pattern"), new.words.get("pattern")
    if before == after:
        return []
    change = "ADDED" if before is None else "REMOVED" if after is None else "CHANGED"
    return [_Found(f"PATTERN_{change}", _at(path, "pattern"))]


def _numbers(old: JsonNode, new: JsonNode, path: str) -> list[_Found]:
    found = _bounds(_NUMBER, old, new, path)
    whole, whole_now = old.words.get("integer", False), new.words.get("integer", False)
    if whole != whole_now:
        found.append(_Found("TYPE_NARROWED" if whole_now else "TYPE_EXTENDED", path))
    before, after = old.words.get("multipleOf"), new.words.get("multipleOf")
    if before != after:
        found.append(_Found(f"MULTIPLE_OF_{_multiple(before, after)}", _at(path, "multipleOf")))
    return found


def _multiple(before: Any, after: Any) -> str:
    if before is None:
        return "ADDED"
    if after is None:
        return "REMOVED"
    if after and before % after == 0:
        return "REDUCED"
    return "EXPANDED" if before and after % before == 0 else "CHANGED"


def _enum(old: JsonNode, new: JsonNode, path: str) -> list[_Found]:
    before, after = set(old.words["enum"]), set(new.words["enum"])
    if before == after:
        return []
    change = "EXTENDED" if before < after else "NARROWED" if after < before else "CHANGED"
    return [_Found(f"ENUM_ARRAY_{change}", _at(path, "enum"))]


def _is_of_plain_type(values: Sequence[str], node: JsonNode) -> bool:
    """Whether a schema asks for a type alone, and all the values (JSON texts) are of it."""
    parts = (node.properties, node.patterns, node.inner, node.dependents, node.items)
    if any(parts) or set(node.words) - {"integer"}:
        return False
    if node.words.get("integer", False):
        return all(re.fullmatch("-?[0-9]+", text) for text in values)
    return all(_TYPE_OF.get(text[0], "number") == node.kind for text in values)


def _required(old: JsonNode, new: JsonNode, path: str) -> list[_Found]:
    """New properties that are required are told as additions, the others here."""
    before, after = set(old.words.get("required", ())), set(new.words.get("required", ()))
    found = []
    for name in sorted(before ^ after):
        where = _at(path, "required", name)
        if name in before:
            found.append(_Found("REQUIRED_ATTRIBUTE_REMOVED", where))
        elif name in old.properties or name not in new.properties:
            given = name in new.properties and new.properties[name].default
            kind = "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED" if given else "REQUIRED_ATTRIBUTE_ADDED"
            found.append(_Found(kind, where))
    return found


def _dependencies(old: JsonNode, new: JsonNode, path: str) -> list[_Found]:
    before, after = old.words.get("dependencies", {}), new.words.get("dependencies", {})
    found = []
    for name in sorted({*before, *after}):
        where = _at(path, "dependencies", name)
        if name not in after:
            found.append(_Found("DEPENDENCY_ARRAY_REMOVED", where))
        elif name not in before:
            found.append(_Found("DEPENDENCY_ARRAY_ADDED", where))
        elif set(before[name]) != set(after[name]):
            found.append(_Found(_dependency(set(before[name]), set(after[name])), where))
    return found


def _dependency(before: set[str], after: set[str]) -> str:
    change = "EXTENDED" if before < after else "NARROWED" if after < before else "CHANGED"
    return f"DEPENDENCY_ARRAY_{change}"
