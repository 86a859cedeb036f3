"""What the records of `_schemas` add up to.

`apply` is called for each record in the order of the topic, by its reader and nobody else. The same
records give the same state, and so do the same records after compaction: nothing here depends on
records that a later one of the same key replaces. The highest id is the one thing that a deletion
would lose, so a hard deletion writes it beside the context (see `deleting`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from penstock.registry.records import (
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DamagedRecord,
    DeleteSubjectKey,
    ModeKey,
    OtherKey,
    SchemaKey,
    decode_key,
    decode_object,
    decode_schema,
)
from penstock.registry.schema import (
    JsonObject,
    SchemaContent,
    SchemaVersion,
    fingerprint_of,
)
from penstock.registry.subjects import DEFAULT_CONTEXT, context_of, qualify
from penstock.schemas.compatibility.levels import CompatibilityLevel

K = TypeVar("K")
Place = tuple[str, int]  # A subject and a version.


@dataclass(slots=True)
class RegistryState:
    """All subjects, ids and settings."""

    default_level: CompatibilityLevel = CompatibilityLevel.BACKWARD  # Where no record sets one.
    subjects: dict[str, dict[int, SchemaVersion]] = field(default_factory=dict)
    configs: dict[str | None, JsonObject] = field(default_factory=dict)
    modes: dict[str | None, str] = field(default_factory=dict)
    contexts: set[str] = field(default_factory=set)
    highest_ids: dict[str, int] = field(default_factory=dict)  # By context.
    _holders: dict[tuple[str, int], dict[Place, SchemaContent]] = field(default_factory=dict)
    _ids: dict[tuple[str, bytes], dict[int, int]] = field(default_factory=dict)
    _guids: dict[bytes, dict[tuple[str, int], int]] = field(default_factory=dict)
    _referrers: dict[Place, set[Place]] = field(default_factory=dict)

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Take in one record; DamagedRecord leaves the state as it was."""
        match decode_key(key):
            case SchemaKey(subject=subject, version=version):
                made = None if value is None else decode_schema(value)
                if made is not None and (made.subject, made.version) != (subject, version):
                    raise DamagedRecord("key and value name different versions")
                self._put(subject, version, made)
            case ConfigKey(subject=subject):
                _store(self.configs, subject, value)
            case ModeKey(subject=subject):
                self._put_mode(subject, value)
            case DeleteSubjectKey(subject=subject):
                self._delete_up_to(subject, value)
            case ClearSubjectKey(subject=subject):
                for version in list(self.subjects.get(subject, ())):
                    self._put(subject, version, None)
            case ContextKey(context=context):
                self._put_context(context, value)
            case OtherKey():
                pass

    def versions(self, subject: str) -> dict[int, SchemaVersion]:
        """All versions of a subject in order, the deleted ones too."""
        return self.subjects.get(subject, {})

    def live(self, subject: str) -> list[SchemaVersion]:
        """The versions that are not deleted, oldest first."""
        return [one for one in self.versions(subject).values() if not one.deleted]

    def id_of(self, context: str, content: SchemaContent) -> int | None:
        """The id that this content has in a context."""
        return min(self._ids.get((context, content.fingerprint), {}), default=None)

    def by_id(self, context: str, schema_id: int) -> SchemaContent | None:
        """The content of an id."""
        holders = self._holders.get((context, schema_id))
        return None if not holders else holders[min(holders)]

    def places_of(self, context: str, schema_id: int) -> list[SchemaVersion]:
        """The versions that have an id, by subject and version."""
        holders = self._holders.get((context, schema_id), {})
        return [self.subjects[subject][version] for subject, version in sorted(holders)]

    def by_guid(self, guid: str) -> list[tuple[str, int]]:
        """The contexts and ids of a guid."""
        return sorted(self._guids.get(fingerprint_of(guid), ()))

    def referrers(self, subject: str, version: int) -> Iterator[SchemaVersion]:
        """The versions that refer to one, without the deleted."""
        for at_subject, at_version in sorted(self._referrers.get((subject, version), ())):
            found = self.subjects[at_subject][at_version]
            if not found.deleted:
                yield found

    def next_id(self, context: str) -> int:
        """An id that was never given in this context."""
        return self.highest_ids.get(context, 0) + 1

    def _put(self, subject: str, version: int, made: SchemaVersion | None) -> None:
        versions = self.subjects.setdefault(subject, {})
        if version in versions:
            self._unlink(versions[version])
        if made is None:
            versions.pop(version, None)
        else:
            newest = not versions or version > next(reversed(versions))
            versions[version] = made
            if not newest:  # Versions of an import may come in any order.
                self.subjects[subject] = dict(sorted(versions.items()))
            self._link(made)
        if not self.subjects[subject]:
            del self.subjects[subject]

    def _link(self, made: SchemaVersion) -> None:
        context = context_of(made.subject)
        place, at = (made.subject, made.version), (context, made.schema_id)
        content = made.content
        self._holders.setdefault(at, {})[place] = content
        _count_up(self._ids.setdefault((context, content.fingerprint), {}), made.schema_id)
        _count_up(self._guids.setdefault(content.fingerprint, {}), at)
        self.highest_ids[context] = max(self.highest_ids.get(context, 0), made.schema_id)
        for target in _targets(made):
            self._referrers.setdefault(target, set()).add(place)

    def _unlink(self, gone: SchemaVersion) -> None:
        context = context_of(gone.subject)
        place, at = (gone.subject, gone.version), (context, gone.schema_id)
        fingerprint = (context, gone.content.fingerprint)
        del self._holders[at][place]
        _count_down(self._ids[fingerprint], gone.schema_id)
        _count_down(self._guids[gone.content.fingerprint], at)
        for target in _targets(gone):
            self._referrers[target].discard(place)
            if not self._referrers[target]:
                del self._referrers[target]
        if not self._holders[at]:
            del self._holders[at]
        if not self._ids[fingerprint]:
            del self._ids[fingerprint]
        if not self._guids[gone.content.fingerprint]:
            del self._guids[gone.content.fingerprint]

    def _put_mode(self, subject: str | None, value: bytes | None) -> None:
        if value is None:
            self.modes.pop(subject, None)
            return
        mode = decode_object(value).get("mode")
        if not isinstance(mode, str):
            raise DamagedRecord("the mode is no text")
        self.modes[subject] = mode

    def _delete_up_to(self, subject: str, value: bytes | None) -> None:
        last = None if value is None else decode_object(value).get("version")
        if not isinstance(last, int):
            return  # The deletion itself was taken back or says nothing.
        for one in list(self.versions(subject).values()):
            if one.version <= last and not one.deleted:
                self.subjects[subject][one.version] = one.soft_deleted()

    def _put_context(self, context: str, value: bytes | None) -> None:
        if value is None:
            self.contexts.discard(context)
            return
        fields = decode_object(value)
        highest = fields.get("maxId")
        if fields.get("deleted") is True:
            self.contexts.discard(context)
        elif context != DEFAULT_CONTEXT:
            self.contexts.add(context)
        if isinstance(highest, int):
            self.highest_ids[context] = max(self.highest_ids.get(context, 0), highest)


def _targets(version: SchemaVersion) -> list[Place]:
    """What a version refers to; names without a context mean its own."""
    if not version.content.references:
        return []
    context = context_of(version.subject)
    return [
        (reference_subject(context, one.subject), one.version) for one in version.content.references
    ]


def reference_subject(context: str, name: str) -> str:
    """The subject that a reference means, seen from a context."""
    if name.startswith(":.") or context == DEFAULT_CONTEXT:
        return qualify(name).name
    return f":{context}:{name}"


def _store(table: dict[str | None, JsonObject], subject: str | None, value: bytes | None) -> None:
    if value is None:
        table.pop(subject, None)
        return
    table[subject] = {k: v for k, v in decode_object(value).items() if k != "subject"}


def _count_up(counts: dict[K, int], key: K) -> None:
    counts[key] = counts.get(key, 0) + 1


def _count_down(counts: dict[K, int], key: K) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
