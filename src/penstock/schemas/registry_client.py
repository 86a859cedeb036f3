"""A schema registry that speaks Confluent's HTTP interface: schemas found, and schemas registered.

A schema never changes under its id, and one that was registered stays so, so each is asked for once
per process; only which one is the latest is asked for again, as often as `latest_ttl_s` says.
Protobuf comes in its compiled form (`format=serialized`), so no compiler is needed here.
"""

import base64
import binascii
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from penstock.schemas.bounded_cache import BoundedCache
from penstock.schemas.errors import SchemaError, UnknownSchema
from penstock.schemas.lookup import SchemaKind, SchemaRule, StoredSchema
from penstock.schemas.protobuf import FileDescriptorProto, ParseError, files_of, joined
from penstock.schemas.registry_http import RegistryHttp, RegistryRefused, RegistryUnreachable

__all__ = [
    "NewSchema",
    "ReferencedVersion",
    "RegisteredSchema",
    "RegistryClient",
    "RegistryRefused",
    "RegistryUnreachable",
]
_REFERENCE_DEPTH_MAX = 64
_ENTRIES_MAX = 1_000
_UNNUMBERED = 0  # The id of a schema that is not registered yet; registries begin with 1.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencedVersion:
    """A schema of the registry that another refers to, by the name the other uses."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchema:
    """A schema to be registered or found."""

    kind: SchemaKind
    text: str  # Protobuf's may be the compiled file in base64.
    references: tuple[ReferencedVersion, ...] = ()

    def document(self) -> dict[str, Any]:
        """As the registry takes it."""
        made: dict[str, Any] = {"schema": self.text}
        if self.kind is not SchemaKind.AVRO:
            made["schemaType"] = self.kind.value
        if self.references:
            made["references"] = [
                {"name": one.name, "subject": one.subject, "version": one.version}
                for one in self.references
            ]
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """A version of a subject."""

    subject: str
    version: int
    schema_id: int


class RegistryClient:
    """Asks one of several registries: `RegistryClient("http://localhost:8081")`.

    `basic_auth` is `user:password`; written as `file:/path` or `env:NAME` it is read where the
    client runs, and does not travel with it; so is `bearer_token`. `latest_ttl_s` says how long
    the latest schema of a subject counts as the latest; None: as long as the client lives.
    """

    def __init__(
        self,
        urls: str,
        *,
        basic_auth: str | None = None,
        bearer_token: str | None = None,
        ca_location: str | None = None,
        timeout_s: float = 10.0,
        latest_ttl_s: float | None = None,
    ) -> None:
        self._http = RegistryHttp.of(
            urls,
            basic_auth=basic_auth,
            bearer_token=bearer_token,
            ca_location=ca_location,
            timeout_s=timeout_s,
        )
        self._latest_ttl_s = latest_ttl_s
        self._forget()

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of the registries."""
        return self._http.urls

    def __getstate__(self) -> dict[str, Any]:
        return {"_http": self._http, "_latest_ttl_s": self._latest_ttl_s}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def _forget(self) -> None:
        self._by_id: BoundedCache[int, StoredSchema] = BoundedCache(_ENTRIES_MAX)
        self._by_version: BoundedCache[tuple[str, int], StoredSchema] = BoundedCache(_ENTRIES_MAX)
        self._ids: BoundedCache[Any, int] = BoundedCache(_ENTRIES_MAX)
        self._found: BoundedCache[Any, RegisteredSchema] = BoundedCache(_ENTRIES_MAX)
        self._latest: BoundedCache[Any, tuple[float, StoredSchema]] = BoundedCache(_ENTRIES_MAX)

    def by_id(self, schema_id: int) -> StoredSchema:
        """The schema of this id."""
        return self._by_id.get_or_make(schema_id, lambda: self._ask_by_id(schema_id))

    def by_version(self, subject: str, version: int) -> StoredSchema:
        """A version of a subject, deleted or not: what another schema refers to."""
        return self._version(subject, version, 0)

    def latest(self, subject: str, metadata: Mapping[str, str] | None = None) -> StoredSchema:
        """The latest version of a subject; with metadata, the latest that has these properties."""
        key = (subject, tuple(sorted((metadata or {}).items())))
        known = self._latest.get(key)
        now_s = time.monotonic()
        if known is not None and (self._latest_ttl_s is None or now_s < known[0]):
            return known[1]
        path = f"/subjects/{_quoted(subject)}/versions/latest?format=serialized"
        if metadata:
            pairs = [(which, word) for one in metadata.items() for which, word in _pair(one)]
            query = urlencode([*pairs, ("format", "serialized")])
            path = f"/subjects/{_quoted(subject)}/metadata?{query}"
        answer = self._http.get(path)
        found = self._stored(_number(answer, "id"), answer, 0)
        self._latest.put(key, (now_s + (self._latest_ttl_s or 0), found))
        return found

    def register(self, subject: str, schema: NewSchema, *, normalize: bool = False) -> int:
        """The id of a schema under a subject; it is registered if it is not there."""
        path = f"/subjects/{_quoted(subject)}/versions{_normalized(normalize)}"
        return self._ids.get_or_make(
            (subject, schema, normalize),
            lambda: _number(self._http.post(path, schema.document()), "id"),
        )

    def find(self, subject: str, schema: NewSchema, *, normalize: bool = False) -> RegisteredSchema:
        """The version that a schema is under a subject; RegistryRefused if it is none."""
        return self._found.get_or_make(
            (subject, schema, normalize), lambda: self._ask_for(subject, schema, normalize)
        )

    def subjects_of(self, schema_id: int) -> list[str] | None:
        """The subjects that have the schema of this id; None: the registry does not know it."""
        try:
            subjects = self._http.ask_once("GET", f"/schemas/ids/{schema_id}/subjects", None)
        except RegistryRefused as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None
        if not isinstance(subjects, list):
            raise RegistryUnreachable(f"{self.urls[0]} does not answer like a schema registry")
        return subjects

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """For whoever administers a registry: the document of an answer, None for an empty one.

        It is asked once: what one has taken and not answered may have been done.
        """
        return self._http.ask_once(method, path, body)

    def resolved(self, schema: NewSchema) -> StoredSchema:
        """A schema that may not be registered yet, with those that it refers to."""
        return self._stored(_UNNUMBERED, schema.document(), 0)

    def _ask_for(self, subject: str, schema: NewSchema, normalize: bool) -> RegisteredSchema:
        path = f"/subjects/{_quoted(subject)}{_normalized(normalize)}"
        answer = self._http.post(path, schema.document())
        version, schema_id = _number(answer, "version"), _number(answer, "id")
        return RegisteredSchema(subject=subject, version=version, schema_id=schema_id)

    def _ask_by_id(self, schema_id: int) -> StoredSchema:
        try:
            answer = self._http.get(f"/schemas/ids/{schema_id}?format=serialized")
        except RegistryRefused as error:
            raise UnknownSchema(schema_id, f"the schema registry {self.urls[0]}") from error
        return self._stored(schema_id, answer, 0)

    def _version(self, subject: str, version: int, depth: int) -> StoredSchema:
        if depth > _REFERENCE_DEPTH_MAX:
            raise SchemaError(f"version {version} of {subject} refers to others without end")
        return self._by_version.get_or_make(
            (subject, version), lambda: self._ask_version(subject, version, depth)
        )

    def _ask_version(self, subject: str, version: int, depth: int) -> StoredSchema:
        path = f"/subjects/{_quoted(subject)}/versions/{version}?format=serialized&deleted=true"
        answer = self._http.get(path)
        return self._stored(_number(answer, "id"), answer, depth)

    def _stored(self, schema_id: int, answer: Mapping[str, Any], depth: int) -> StoredSchema:
        what = f"schema {schema_id}" if schema_id else "the schema"
        try:
            kind = SchemaKind(answer.get("schemaType") or SchemaKind.AVRO)
            text = str(answer["schema"])
        except (KeyError, ValueError) as error:
            raise SchemaError(f"{what} came in a form not known: {error}") from error
        named = list(answer.get("references") or ())
        references = tuple(self._reference(what, one, depth + 1) for one in named)
        rules = tuple(_rules(answer.get("ruleSet")))
        if kind is SchemaKind.PROTOBUF:
            compiled = _compile(what, text, references)
            return StoredSchema(
                schema_id=schema_id, kind=kind, descriptor_set=compiled, rules=rules
            )
        flat = tuple(dict.fromkeys(r for one in references for r in (*one.references, one)))
        return StoredSchema(schema_id=schema_id, kind=kind, text=text, references=flat, rules=rules)

    def _reference(self, what: str, one: Mapping[str, Any], depth: int) -> StoredSchema:
        subject, version = str(one["subject"]), _number(one, "version")
        try:
            found = self._version(subject, version, depth)
        except RegistryRefused as error:
            raise SchemaError(
                f"{what} refers to version {version} of {subject}, which the registry does not have"
            ) from error
        return replace(found, name=str(one.get("name") or ""))


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _pair(one: tuple[str, str]) -> Iterable[tuple[str, str]]:
    """A property as the query has it: its name and its value one after the other."""
    return (("key", one[0]), ("value", one[1]))


def _normalized(normalize: bool) -> str:
    return "?normalize=true" if normalize else ""


def _number(answer: Mapping[str, Any], name: str) -> int:
    value = answer.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RegistryUnreachable(
            f"the registry's answer has no {name}: {json.dumps(answer)[:200]}"
        )
    return value


def _rules(rule_set: Any) -> Iterable[SchemaRule]:
    """The rules that are switched on, of whatever phase."""
    lists = rule_set.values() if isinstance(rule_set, dict) else ()
    for one in (rule for rules in lists if isinstance(rules, list) for rule in rules):
        if isinstance(one, dict) and not one.get("disabled"):
            words = (str(one.get(key) or "") for key in ("name", "type", "mode"))
            name, kind, mode = words
            yield SchemaRule(name=name, kind=kind, mode=mode)


def _compile(what: str, text: str, references: tuple[StoredSchema, ...]) -> bytes:
    """A descriptor set of the schema's own file and of those that it imports."""
    own = FileDescriptorProto()
    try:
        own.ParseFromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ParseError) as error:
        raise SchemaError(
            f"{what} came as Protobuf text; this needs a registry that knows "
            "format=serialized, or a SchemaDirectory with what protoc compiled"
        ) from error
    own.name = own.name or "schema.proto"
    files: dict[str, FileDescriptorProto] = {}
    for reference in references:
        inner = files_of(reference.descriptor_set)
        inner[-1].name = reference.name  # It is imported under the name that the reference has.
        files.update({file.name: file for file in inner})
    return joined([*files.values(), own])
