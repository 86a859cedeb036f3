"""Registering a schema, looking one up, and asking whether it could be registered.

A decision reads the state and returns the records to write. Whoever calls it writes them, waits
until the reader has passed them, and answers then; two decisions of one context must not overlap.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from penstock.registry import errors
from penstock.registry.records import StoreRecord, context_record, schema_record
from penstock.registry.schema import (
    JsonObject,
    SchemaContent,
    SchemaReference,
    SchemaVersion,
    checked_metadata,
    checked_rule_set,
    merged_metadata,
    merged_rule_set,
)
from penstock.registry.settings import (
    RegistryMode,
    aliased,
    check_writable,
    config_in_scope,
    level_in_scope,
    mode_in_scope,
)
from penstock.registry.state import RegistryState, reference_subject
from penstock.registry.subjects import DEFAULT_CONTEXT, checked_subject, qualify
from penstock.schemas.compatibility.levels import CompatibilityLevel, Earlier, reasons
from penstock.schemas.definitions.definition import NamedText, SchemaDefinition
from penstock.schemas.errors import SchemaError
from penstock.schemas.lookup import SchemaKind

ParseDefinition: TypeAlias = Callable[[SchemaKind, str, Sequence[NamedText]], SchemaDefinition]
VERSION_MAX = (1 << 31) - 1
REFERENCES_MAX = 1_000
REFERENCE_DEPTH_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRequest:
    """What a client sends to register or look up."""

    text: str
    kind: SchemaKind = SchemaKind.AVRO
    references: tuple[SchemaReference, ...] = ()
    metadata: JsonObject | None = None
    rule_set: JsonObject | None = None
    version: int | None = None  # None: the next one.
    schema_id: int | None = None  # None: the registry gives one.
    normalize: bool = False

    @classmethod
    def of(cls, body: JsonObject, *, normalize: bool = False) -> "SchemaRequest":
        """From the JSON of a request."""
        kind = body.get("schemaType") or SchemaKind.AVRO.value
        if kind not in SchemaKind.__members__:
            raise errors.invalid_schema(f"Invalid schema type {kind}")
        text = body.get("schema")
        if not isinstance(text, str) or not text:
            raise errors.invalid_schema("Empty schema")
        references = body.get("references") or []
        if not isinstance(references, list) or not all(isinstance(r, dict) for r in references):
            raise errors.invalid_schema("references is no list of objects")
        return cls(
            text=text,
            kind=SchemaKind(kind),
            references=tuple(SchemaReference.of(one) for one in references),
            metadata=checked_metadata(body.get("metadata")),
            rule_set=checked_rule_set(body.get("ruleSet")),
            version=_given(body, "version", least=1),
            schema_id=_given(body, "id", least=0),
            normalize=normalize,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistration:
    """What to write, and the version that the schema has then."""

    records: tuple[StoreRecord, ...]  # Empty: it was registered before.
    version: SchemaVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatibilityVerdict:
    """Whether a schema may follow, and if not, why."""

    is_compatible: bool
    messages: tuple[str, ...]


def register(
    state: RegistryState, name: str, request: SchemaRequest, parse: ParseDefinition
) -> SchemaRegistration:
    """Give a schema an id and a version; one that the subject has already keeps both."""
    subject = _meant(state, name)
    definition, content = _understood(state, subject, request, parse)
    known = _registered(state, subject, content, request)
    if known is not None:
        return SchemaRegistration(records=(), version=known)
    _check_mode(state, subject, request)
    if mode_in_scope(state, subject) is not RegistryMode.IMPORT:
        messages = _reasons(state, subject, definition, content, state.live(subject), parse)
        if messages:
            raise errors.incompatible(subject, messages)
    made = SchemaVersion(
        subject=subject,
        version=_new_version(state, subject, request),
        schema_id=_new_id(state, subject, content, request),
        content=content,
    )
    return SchemaRegistration(records=_written(state, made), version=made)


def look_up(
    state: RegistryState,
    name: str,
    request: SchemaRequest,
    parse: ParseDefinition,
    *,
    deleted: bool = False,
) -> SchemaVersion:
    """The version under which a subject has a schema."""
    subject = _meant(state, name)
    versions = state.versions(subject)
    if not versions or (not deleted and not state.live(subject)):
        raise errors.subject_not_found(name)
    _, content = _understood(state, subject, request, parse)
    plain = replace(content, metadata=request.metadata, rule_set=request.rule_set)
    for wanted in (content, plain):
        for one in reversed(versions.values()):
            same = one.content.fingerprint == wanted.fingerprint
            if same and (deleted or not one.deleted):
                return one
    raise errors.schema_not_found()


def check_compatibility(
    state: RegistryState,
    name: str,
    request: SchemaRequest,
    parse: ParseDefinition,
    *,
    version: str | None = None,
) -> CompatibilityVerdict:
    """Whether a schema could follow a version, or (None) the subject's history by its level."""
    subject = _meant(state, name)
    history = state.live(subject)
    if version is not None:
        history = [find_version(state, subject, version)]
    definition, content = _understood(state, subject, request, parse)
    messages = _reasons(state, subject, definition, content, history, parse)
    return CompatibilityVerdict(is_compatible=not messages, messages=tuple(messages))


def find_version(
    state: RegistryState, name: str, version: str, *, deleted: bool = False
) -> SchemaVersion:
    """A version by its number or as `latest`."""
    subject = aliased(state, name)
    number = parse_version(version)
    versions = state.versions(subject)
    shown = [one for one in versions.values() if deleted or not one.deleted]
    if not shown:
        raise errors.subject_not_found(name)
    if number is None:
        return shown[-1]
    found = versions.get(number)
    if found is None or (found.deleted and not deleted):
        raise errors.version_not_found(number)
    return found


def parse_version(version: str) -> int | None:
    """A version's number; None is the latest."""
    if version in ("latest", "-1"):
        return None
    if not version.isascii() or not version.isdecimal() or len(version) > 10:
        raise errors.invalid_version(version)
    if not 1 <= int(version) <= VERSION_MAX:
        raise errors.invalid_version(version)
    return int(version)


def resolve_references(
    state: RegistryState, subject: str, references: Sequence[SchemaReference]
) -> list[NamedText]:
    """All texts that references lead to, each once, in the order in which they must be read."""
    found: dict[str, NamedText] = {}
    _collect(state, qualify(subject).context, references, found, ())
    return list(found.values())


def _collect(
    state: RegistryState,
    context: str,
    references: Sequence[SchemaReference],
    found: dict[str, NamedText],
    above: tuple[str, ...],
) -> None:
    for reference in references:
        if reference.name in found or reference.name in above:
            continue
        if len(above) > REFERENCE_DEPTH_MAX:
            raise errors.invalid_schema(f"References nest more than {REFERENCE_DEPTH_MAX} deep.")
        if len(found) >= REFERENCES_MAX:
            raise errors.invalid_schema(f"A schema may lead to {REFERENCES_MAX} references.")
        subject = reference_subject(context, reference.subject)
        versions = state.versions(subject)
        number = reference.version
        live = state.live(subject)
        target = versions.get(number) if number != -1 else (live[-1] if live else None)
        if target is None:
            raise errors.invalid_schema(
                f'No schema reference found for subject "{reference.subject}" and version {number}'
            )
        inner = qualify(subject).context
        _collect(state, inner, target.content.references, found, (*above, reference.name))
        found[reference.name] = NamedText(name=reference.name, text=target.content.text)


def _meant(state: RegistryState, name: str) -> str:
    """The subject behind a name that a schema may have."""
    checked_subject(name)
    return aliased(state, name)


def _given(body: JsonObject, name: str, *, least: int) -> int | None:
    """A number of a request; Java clients send 0 or -1 for none."""
    value: Any = body.get(name)
    if value is None or (isinstance(value, int) and value < least):
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value > VERSION_MAX:
        raise errors.invalid_schema(f"{name} is no number")
    return value


def _understood(
    state: RegistryState, subject: str, request: SchemaRequest, parse: ParseDefinition
) -> tuple[SchemaDefinition, SchemaContent]:
    """The parsed schema, and the content that is stored: canonical text, merged metadata."""
    config = config_in_scope(state, subject)
    try:
        definition = parse(
            request.kind, request.text, resolve_references(state, subject, request.references)
        )
    except SchemaError as error:
        raise errors.invalid_schema(_told(subject, request, str(error))) from error
    normalize = request.normalize or config.get("normalize") is True
    text = definition.normalised() if normalize else definition.canonical()
    latest = next(reversed(state.live(subject)), None)
    metadata = request.metadata
    rule_set = request.rule_set
    if latest is not None:  # A version without metadata goes on with the last one's.
        metadata = latest.content.metadata if metadata is None else metadata
        rule_set = latest.content.rule_set if rule_set is None else rule_set
    content = SchemaContent(
        text=text,
        kind=request.kind,
        references=request.references,
        metadata=merged_metadata(
            config.get("defaultMetadata"), metadata, config.get("overrideMetadata")
        ),
        rule_set=merged_rule_set(
            config.get("defaultRuleSet"), rule_set, config.get("overrideRuleSet")
        ),
    )
    return definition, content


def _told(subject: str, request: SchemaRequest, why: str) -> str:
    text = request.text if len(request.text) <= 1_000 else request.text[:1_000] + "..."
    return (
        f"Invalid schema {{subject={subject},version={request.version or 0},"
        f"id={-1 if request.schema_id is None else request.schema_id},"
        f"schemaType={request.kind.value},references={[r.json() for r in request.references]},"
        f"metadata={request.metadata or 'null'},ruleSet={request.rule_set or 'null'},"
        f"schema={text}}}, details: {why}"
    )


def _registered(
    state: RegistryState, subject: str, content: SchemaContent, request: SchemaRequest
) -> SchemaVersion | None:
    """The newest live version with this content, if it is what the request asks for."""
    for one in reversed(state.live(subject)):
        if one.content.fingerprint != content.fingerprint:
            continue
        if request.schema_id in (None, one.schema_id) and request.version in (None, one.version):
            return one
    return None


def _check_mode(state: RegistryState, subject: str, request: SchemaRequest) -> None:
    check_writable(state, subject)
    mode = mode_in_scope(state, subject)
    if request.schema_id is not None and mode is not RegistryMode.IMPORT:
        raise errors.not_permitted(f"Subject {subject} is not in import mode")
    if request.schema_id is None and mode is not RegistryMode.READWRITE:
        raise errors.not_permitted(f"Subject {subject} is not in read-write mode")


def _reasons(
    state: RegistryState,
    subject: str,
    definition: SchemaDefinition,
    content: SchemaContent,
    history: Sequence[SchemaVersion],
    parse: ParseDefinition,
) -> list[str]:
    """Why a schema may not follow the history."""
    config = config_in_scope(state, subject)
    level = level_in_scope(state, subject)
    validated = config.get("validateFields") is True
    messages = _reserved(definition, content, history) if validated else []
    if level is not CompatibilityLevel.NONE:
        peers = _same_group(content, history, config.get("compatibilityGroup"))
        counted = peers if level.is_transitive else peers[-1:]
        messages += _compared(level, definition, [_earlier(state, one, parse) for one in counted])
    if messages:
        told = "true" if validated else "false"
        messages.append(f"{{validateFields: '{told}', compatibility: '{level.value}'}}")
    return messages


def _compared(
    level: CompatibilityLevel, definition: SchemaDefinition, history: Sequence[Earlier]
) -> list[str]:
    """Schemas that are too large to be compared are refused like those that cannot be read."""
    try:
        return reasons(level, definition, history)
    except SchemaError as error:
        raise errors.invalid_schema(f"Invalid schema, details: {error}") from error


def _earlier(state: RegistryState, one: SchemaVersion, parse: ParseDefinition) -> Earlier:
    try:
        texts = resolve_references(state, one.subject, one.content.references)
        definition = parse(one.content.kind, one.content.text, texts)
    except SchemaError as error:
        raise errors.invalid_schema(
            f"Version {one.version} of subject {one.subject} cannot be read: {error}"
        ) from error
    return Earlier(version=one.version, definition=definition)


def _same_group(
    content: SchemaContent, history: Sequence[SchemaVersion], group: object
) -> list[SchemaVersion]:
    """The versions whose property of the group's name is the same."""
    if not isinstance(group, str) or not group:
        return list(history)
    wanted = content.property(group)
    return [one for one in history if one.content.property(group) == wanted]


def _reserved(
    definition: SchemaDefinition, content: SchemaContent, history: Sequence[SchemaVersion]
) -> list[str]:
    """Names that were given up for good, and must stay so."""
    now = _reserved_names(content)
    before = _reserved_names(history[-1].content) if history else set()
    messages = [
        f"The new schema has reserved field {name} removed from its metadata which is present in "
        "the old schema's metadata."
        for name in sorted(before - now)
    ]
    return messages + [
        f"The new schema has field that conflicts with the reserved field {name}."
        for name in sorted(now & definition.top_level_fields())
    ]


def _reserved_names(content: SchemaContent) -> set[str]:
    names = (content.property("confluent:reserved") or "").split(",")
    return {name.strip() for name in names if name.strip()}


def _new_version(state: RegistryState, subject: str, request: SchemaRequest) -> int:
    versions = state.versions(subject)
    following = max(versions, default=0) + 1
    if request.version is None:
        return following
    if mode_in_scope(state, subject) is not RegistryMode.IMPORT and request.version != following:
        raise errors.invalid_schema("Version is not one more than previous version")
    if request.version in versions:
        raise errors.not_permitted(
            f"Overwrite of version {request.version} of subject {subject} is not permitted."
        )
    return request.version


def _new_id(
    state: RegistryState, subject: str, content: SchemaContent, request: SchemaRequest
) -> int:
    context = qualify(subject).context
    if request.schema_id is None:
        known = state.id_of(context, content)
        return state.next_id(context) if known is None else known
    held = state.by_id(context, request.schema_id)
    if held is not None and held.fingerprint != content.fingerprint:
        raise errors.not_permitted(
            f"Overwrite new schema with id {request.schema_id} is not permitted."
        )
    return request.schema_id


def _written(state: RegistryState, made: SchemaVersion) -> tuple[StoreRecord, ...]:
    context = qualify(made.subject).context
    if context == DEFAULT_CONTEXT or context in state.contexts:
        return (schema_record(made),)
    # A context that was deleted and comes back still knows which ids it gave.
    return (context_record(context, state.highest_ids.get(context)), schema_record(made))
