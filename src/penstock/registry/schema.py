"""A schema as the registry knows it: its text and all that belongs to its identity.

Two registrations are of the same schema when language, text, references, metadata and rule set are
the same; such a schema has one id in all subjects of a context.
"""

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

from penstock.registry.errors import invalid_rule_set, invalid_schema
from penstock.schemas.definitions.definition import dump_json
from penstock.schemas.lookup import SchemaKind

JsonObject: TypeAlias = Mapping[str, Any]
RULE_LISTS = ("migrationRules", "domainRules", "encodingRules")
METADATA_PARTS = ("tags", "properties", "sensitive")
_RULE_KINDS = {"TRANSFORM", "CONDITION"}
_MIGRATION_MODES = {"UPGRADE", "DOWNGRADE", "UPDOWN"}
_DOMAIN_MODES = {"WRITE", "READ", "WRITEREAD"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaReference:
    """A version of another subject, under the name by which the text mentions it."""

    name: str
    subject: str
    version: int

    @classmethod
    def of(cls, given: JsonObject) -> "SchemaReference":
        """From the JSON of a request or record."""
        name, subject, version = given.get("name"), given.get("subject"), given.get("version")
        if not isinstance(name, str) or not isinstance(subject, str):
            raise invalid_schema("A reference needs a name and a subject.")
        if not isinstance(version, int) or isinstance(version, bool):
            raise invalid_schema("A reference needs a version.")
        return cls(name=name, subject=subject, version=version)

    def json(self) -> dict[str, Any]:
        """As requests and records have it."""
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True, kw_only=True)
class SchemaContent:
    """All that makes up a schema's identity."""

    text: str
    kind: SchemaKind = SchemaKind.AVRO
    references: tuple[SchemaReference, ...] = ()
    metadata: JsonObject | None = None
    rule_set: JsonObject | None = None

    @cached_property
    def fingerprint(self) -> bytes:
        """The same for the same content, whatever order its maps were written in."""
        text = self.text.encode("utf-8", "surrogatepass")
        whole = b"%s %d %s" % (self.kind.value.encode(), len(text), text)
        if self.references or self.metadata or self.rule_set:
            further = [
                [reference.json() for reference in self.references],
                _sorted(self.metadata),
                _sorted(self.rule_set),
            ]
            whole += dump_json(further).encode("utf-8", "surrogatepass")
        return hashlib.md5(whole, usedforsecurity=False).digest()

    @cached_property
    def guid(self) -> str:
        """An id that is the same in every registry."""
        return str(uuid.UUID(bytes=self.fingerprint))

    def property(self, name: str) -> str | None:
        """A property of the metadata."""
        properties = (self.metadata or {}).get("properties") or {}
        found = properties.get(name)
        return found if isinstance(found, str) else None

    def json(self) -> dict[str, Any]:
        """As answers have it; what is empty or Avro's default is left out."""
        told: dict[str, Any] = {}
        if self.kind is not SchemaKind.AVRO:
            told["schemaType"] = self.kind.value
        if self.references:
            told["references"] = [reference.json() for reference in self.references]
        if self.metadata:
            told["metadata"] = self.metadata
        if self.rule_set:
            told["ruleSet"] = self.rule_set
        return told | {"schema": self.text}


@dataclass(frozen=True, kw_only=True)
class SchemaVersion:
    """One version of a subject."""

    subject: str
    version: int
    schema_id: int
    content: SchemaContent
    deleted: bool = False
    further: JsonObject = field(default_factory=dict)  # What other registries wrote beside it.

    def soft_deleted(self) -> "SchemaVersion":
        """The same version, deleted."""
        return replace(self, deleted=True)


def fingerprint_of(guid: str) -> bytes:
    """The fingerprint in a guid; empty for what is none."""
    try:
        found = uuid.UUID(guid)
    except ValueError:
        return b""
    return found.bytes if str(found) == guid else b""


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def merged_metadata(*layers: JsonObject | None) -> JsonObject | None:
    """Defaults, the schema's own, overrides: each layer adds to and replaces the one before."""
    given = [layer for layer in layers if layer]
    if not given:
        return None
    merged: dict[str, Any] = {}
    for part in ("tags", "properties"):
        joined: dict[str, Any] = {}
        for layer in given:
            for key, value in (layer.get(part) or {}).items():
                joined[key] = _joined_tags(joined.get(key), value) if part == "tags" else value
        if joined:
            merged[part] = joined
    sensitive = {name for layer in given for name in layer.get("sensitive") or ()}
    if sensitive:
        merged["sensitive"] = sorted(sensitive)
    return merged or None


def _joined_tags(earlier: list[str] | None, later: list[str]) -> list[str]:
    return sorted({*(earlier or ()), *later})


def merged_rule_set(*layers: JsonObject | None) -> JsonObject | None:
    """Rules by name: a later layer's rule replaces an earlier one's of the same name."""
    given = [layer for layer in layers if layer]
    merged: dict[str, Any] = {}
    for part in RULE_LISTS:
        rules: dict[str, JsonObject] = {}
        for layer in given:
            for rule in layer.get(part) or ():
                rules.pop(rule["name"], None)
                rules[rule["name"]] = rule
        if rules:
            merged[part] = list(rules.values())
    return merged or None


def checked_metadata(metadata: Any) -> JsonObject | None:
    """Metadata of a request: tags, properties and sensitive names of the right shape."""
    if metadata is None:
        return None
    if not isinstance(metadata, dict):
        raise invalid_schema("metadata is no object")
    tags = metadata.get("tags") or {}
    properties = metadata.get("properties") or {}
    sensitive = metadata.get("sensitive") or []
    if not isinstance(tags, dict) or not all(_is_texts(value) for value in tags.values()):
        raise invalid_schema("metadata tags are lists of words by path")
    if not isinstance(properties, dict) or not _is_texts(list(properties.values())):
        raise invalid_schema("metadata properties are words by name")
    if not _is_texts(sensitive):
        raise invalid_schema("metadata sensitive is a list of names")
    parts = {"tags": tags, "properties": properties, "sensitive": sensitive}
    return {name: value for name, value in parts.items() if value} or None


def _is_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def checked_rule_set(rule_set: Any) -> JsonObject | None:
    """The rule set of a request: rules with names of their own, kinds and modes that exist."""
    if rule_set is None:
        return None
    if not isinstance(rule_set, dict):
        raise invalid_rule_set("it is no object")
    kept: dict[str, Any] = {}
    for part in RULE_LISTS:
        rules = rule_set.get(part) or []
        if not isinstance(rules, list):
            raise invalid_rule_set(f"{part} is no list")
        for rule in rules:
            _check_rule(rule, part)
        names = [rule["name"] for rule in rules]
        if len(set(names)) < len(names):
            raise invalid_rule_set(f"{part} has two rules of one name")
        if rules:
            kept[part] = rules
    return kept or None


def _check_rule(rule: Any, part: str) -> None:
    if not isinstance(rule, dict) or not isinstance(rule.get("name"), str) or not rule["name"]:
        raise invalid_rule_set("a rule needs a name")
    name = rule["name"]
    if rule.get("kind", "TRANSFORM") not in _RULE_KINDS:
        raise invalid_rule_set(f"rule {name} is neither TRANSFORM nor CONDITION")
    modes = _MIGRATION_MODES if part == "migrationRules" else _DOMAIN_MODES
    if rule.get("mode") is not None and rule["mode"] not in modes:
        raise invalid_rule_set(f"rule {name} may not have mode {rule['mode']} in {part}")
