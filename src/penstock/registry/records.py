"""The records of `_schemas`, in Confluent's format.

Compaction compares keys byte for byte, so the order of a key's fields and the absence of spaces
are part of the format. Kinds of keys that are not known here are kept as they are and mean nothing;
a record that is damaged is told apart from them, and never stops the reader.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from penstock.errors import PenstockError
from penstock.registry.errors import RegistryError
from penstock.registry.schema import JsonObject, SchemaContent, SchemaReference, SchemaVersion
from penstock.registry.subjects import stored_name
from penstock.schemas.lookup import SchemaKind

_CONTROL = re.compile(r"\\u00[0-9a-f]{2}")
_SCHEMA_FIELDS = {
    "subject",
    "version",
    "id",
    "schemaType",
    "references",
    "metadata",
    "ruleSet",
    "schema",
    "deleted",
}
TENANT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreRecord:
    """What goes to the topic."""

    key: bytes
    value: bytes | None  # None: the key is gone.


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaKey:
    """A version of a subject."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """The settings of a subject, a context, or (None) the registry."""

    subject: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeKey:
    """The mode of a subject, a context, or (None) the registry."""

    subject: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSubjectKey:
    """Up to the value's version, all of the subject is soft deleted."""

    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearSubjectKey:
    """All of the subject is gone."""

    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextKey:
    """A context that was used."""

    context: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherKey:
    """A kind that means nothing here, such as NOOP."""

    keytype: str


StoreKey: TypeAlias = (
    SchemaKey | ConfigKey | ModeKey | DeleteSubjectKey | ClearSubjectKey | ContextKey | OtherKey
)


class DamagedRecord(PenstockError):
    """A record that is not of the format; the reader counts it and goes on."""


def encode_json(value: Any) -> bytes:
    """JSON as Jackson writes it: no spaces, capital hex digits, letters as they are."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return _CONTROL.sub(_upper_hex, text).encode()


def _upper_hex(found: re.Match[str]) -> str:
    return "\\u" + found.group()[2:].upper()


def encode_key(key: StoreKey) -> bytes:
    """A key's bytes, which compaction compares."""
    match key:
        case SchemaKey():
            fields = {"keytype": "SCHEMA", "subject": key.subject, "version": key.version}
            return encode_json(fields | {"magic": 1})
        case ConfigKey():
            return encode_json({"keytype": "CONFIG", "subject": key.subject, "magic": 0})
        case ModeKey():
            return encode_json({"keytype": "MODE", "subject": key.subject, "magic": 0})
        case DeleteSubjectKey():
            return encode_json({"keytype": "DELETE_SUBJECT", "subject": key.subject, "magic": 0})
        case ClearSubjectKey():
            return encode_json({"keytype": "CLEAR_SUBJECT", "subject": key.subject, "magic": 0})
        case ContextKey():
            fields = {"keytype": "CONTEXT", "tenant": TENANT, "context": key.context}
            return encode_json(fields | {"magic": 0})
        case OtherKey():
            return encode_json({"keytype": key.keytype, "magic": 0})


NOOP = StoreRecord(key=encode_key(OtherKey(keytype="NOOP")), value=None)


def decode_key(data: bytes | None) -> StoreKey:
    """A key from the topic; fields may come in any order."""
    fields = _object(data, "key")
    keytype = fields.get("keytype")
    if not isinstance(keytype, str):
        raise DamagedRecord("the key has no keytype")
    subject = fields.get("subject")
    match keytype:
        case "SCHEMA":
            version = _whole(fields, "version")
            return SchemaKey(subject=_stored_subject(fields), version=version)
        case "CONFIG" | "MODE":
            if subject is not None and not isinstance(subject, str):
                raise DamagedRecord("the subject is no text")
            name = subject or None
            return ConfigKey(subject=name) if keytype == "CONFIG" else ModeKey(subject=name)
        case "DELETE_SUBJECT":
            return DeleteSubjectKey(subject=_stored_subject(fields))
        case "CLEAR_SUBJECT":
            return ClearSubjectKey(subject=_stored_subject(fields))
        case "CONTEXT":
            return ContextKey(context=_text(fields, "context"))
        case _:
            return OtherKey(keytype=keytype)


def schema_record(version: SchemaVersion) -> StoreRecord:
    """A version, written out whole."""
    fields: dict[str, Any] = {
        "subject": version.subject,
        "version": version.version,
        "id": version.schema_id,
        **version.content.json(),
        "deleted": version.deleted,
        **version.further,
    }
    key = encode_key(SchemaKey(subject=version.subject, version=version.version))
    return StoreRecord(key=key, value=encode_json(fields))


def decode_schema(data: bytes) -> SchemaVersion:
    """A version from the topic."""
    fields = _object(data, "value")
    kind = fields.get("schemaType") or SchemaKind.AVRO
    if kind not in SchemaKind.__members__:
        raise DamagedRecord(f"schemas of type {kind} are not known")
    try:
        given = fields.get("references") or []
        references = tuple(SchemaReference.of(reference) for reference in given)
    except (RegistryError, AttributeError, TypeError) as error:
        raise DamagedRecord(f"the references are damaged: {error}") from None
    content = SchemaContent(
        text=_text(fields, "schema"),
        kind=SchemaKind(kind),
        references=references,
        metadata=_optional_object(fields, "metadata"),
        rule_set=_optional_object(fields, "ruleSet"),
    )
    return SchemaVersion(
        subject=_stored_subject(fields),
        version=_whole(fields, "version"),
        schema_id=_whole(fields, "id"),
        content=content,
        deleted=bool(fields.get("deleted", False)),
        further={key: value for key, value in fields.items() if key not in _SCHEMA_FIELDS},
    )


def config_record(subject: str | None, config: JsonObject | None) -> StoreRecord:
    """Settings; None takes them away."""
    key = encode_key(ConfigKey(subject=subject))
    return StoreRecord(key=key, value=_with_subject(subject, config))


def mode_record(subject: str | None, mode: str | None) -> StoreRecord:
    """A mode; None takes it away."""
    value = None if mode is None else {"mode": mode}
    return StoreRecord(
        key=encode_key(ModeKey(subject=subject)), value=_with_subject(subject, value)
    )


def delete_subject_record(subject: str, last_version: int) -> StoreRecord:
    """The soft deletion of all versions up to one."""
    value = encode_json({"subject": subject, "version": last_version})
    return StoreRecord(key=encode_key(DeleteSubjectKey(subject=subject)), value=value)


def tombstone(subject: str, version: int) -> StoreRecord:
    """The hard deletion of one version."""
    return StoreRecord(key=encode_key(SchemaKey(subject=subject, version=version)), value=None)


def context_record(
    context: str, highest_id: int | None = None, *, deleted: bool = False
) -> StoreRecord:
    """A context; with the highest id given in it, where no other record tells that any more.

    A deleted one whose ids are in messages stays as such: its name must not begin at 1 again.
    """
    if deleted and highest_id is None:
        return StoreRecord(key=encode_key(ContextKey(context=context)), value=None)
    value: dict[str, Any] = {"tenant": TENANT, "context": context}
    if highest_id is not None:
        value["maxId"] = highest_id
    if deleted:
        value["deleted"] = True
    return StoreRecord(key=encode_key(ContextKey(context=context)), value=encode_json(value))


def decode_object(data: bytes) -> JsonObject:
    """The fields of a value."""
    return _object(data, "value")


def _with_subject(subject: str | None, value: JsonObject | None) -> bytes | None:
    if value is None:
        return None
    return encode_json(({} if subject is None else {"subject": subject}) | dict(value))


def _object(data: bytes | None, what: str) -> dict[str, Any]:
    if data is None:
        raise DamagedRecord(f"the {what} is missing")
    try:
        fields = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise DamagedRecord(f"the {what} is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise DamagedRecord(f"the {what} is no JSON object")
    return fields


def _text(fields: Mapping[str, Any], name: str) -> str:
    if not isinstance(fields.get(name), str):
        raise DamagedRecord(f"{name} is no text")
    return str(fields[name])


def _whole(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 31:
        raise DamagedRecord(f"{name} is no number from 0 on")
    return value


def _stored_subject(fields: Mapping[str, Any]) -> str:
    return stored_name(_text(fields, "subject"))


def _optional_object(fields: Mapping[str, Any], name: str) -> JsonObject | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, dict):
        raise DamagedRecord(f"{name} is no object")
    return value or None
