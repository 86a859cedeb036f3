"""What the registry tells without writing: subjects, versions, schemas by id and by guid.

An id is looked for in the context of the subject that comes with it, and in the default context
where none does.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.registry import errors
from penstock.registry.registering import find_version
from penstock.registry.schema import SchemaContent, SchemaVersion
from penstock.registry.settings import aliased
from penstock.registry.state import RegistryState
from penstock.registry.subjects import DEFAULT_CONTEXT, qualify


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Which versions a listing tells: the live ones unless it is asked for others."""

    deleted: bool = False  # Also those that are soft deleted.
    deleted_only: bool = False

    def has(self, one: SchemaVersion) -> bool:
        """Whether the listing tells this version."""
        return one.deleted if self.deleted_only else self.deleted or not one.deleted


LIVE = Shown()


def list_subjects(state: RegistryState, prefix: str = "", shown: Shown = LIVE) -> list[str]:
    """Names in order; the prefix `:*:` means all contexts, none means the default one."""
    found = []
    for name, versions in state.subjects.items():
        if not _starts(name, prefix):
            continue
        has_live = any(not one.deleted for one in versions.values())
        # A subject counts as deleted when nothing of it is left alive.
        told = not has_live if shown.deleted_only else has_live or shown.deleted
        if told:
            found.append(name)
    return sorted(found)


def list_versions(state: RegistryState, name: str, shown: Shown = LIVE) -> list[int]:
    """The numbers of a subject's versions."""
    versions = state.versions(aliased(state, name)).values()
    found = [one.version for one in versions if shown.has(one)]
    if not found:
        raise errors.subject_not_found(name)
    return found


def list_schemas(
    state: RegistryState, prefix: str = "", shown: Shown = LIVE, *, latest_only: bool = False
) -> list[SchemaVersion]:
    """All versions of the subjects that begin so, in order."""
    found: list[SchemaVersion] = []
    for name in sorted(name for name in state.subjects if _starts(name, prefix)):
        told = [one for one in state.versions(name).values() if shown.has(one)]
        found += told[-1:] if latest_only else told
    return found


def list_contexts(state: RegistryState) -> list[str]:
    """The contexts that were used; the default one always is."""
    return sorted({DEFAULT_CONTEXT, *state.contexts})


def find_latest_with(
    state: RegistryState, name: str, properties: dict[str, str], *, deleted: bool = False
) -> SchemaVersion:
    """The newest version whose metadata has all of these properties."""
    versions = state.versions(aliased(state, name))
    for one in reversed(versions.values()):
        if one.deleted and not deleted:
            continue
        if all(one.content.property(key) == value for key, value in properties.items()):
            return one
    raise errors.subject_not_found(name) if not versions else errors.schema_not_found()


def find_schema(state: RegistryState, schema_id: int, subject: str | None = None) -> SchemaContent:
    """The schema of an id."""
    found = state.by_id(_context(subject), schema_id)
    if found is None:
        raise errors.schema_not_found(schema_id)
    return found


def list_places(
    state: RegistryState, schema_id: int, subject: str | None = None, *, deleted: bool = False
) -> list[SchemaVersion]:
    """The subjects and versions that have an id."""
    wanted = None if subject is None or not qualify(subject).subject else qualify(subject).name
    places = state.places_of(_context(subject), schema_id)
    if not places:
        raise errors.schema_not_found(schema_id)
    return [
        one
        for one in places
        if (deleted or not one.deleted) and (wanted is None or one.subject == wanted)
    ]


def find_guid(state: RegistryState, guid: str) -> SchemaContent:
    """The schema of a guid, from whichever context has it."""
    for context, schema_id in state.by_guid(guid):
        for one in state.places_of(context, schema_id):
            if one.content.guid == guid:
                return one.content
    raise errors.schema_not_found(guid)


def list_guid_ids(state: RegistryState, guid: str) -> list[tuple[str, int]]:
    """The contexts that have a guid, with the id it has there."""
    found = state.by_guid(guid)
    if not found:
        raise errors.schema_not_found(guid)
    return found


def list_referrers(state: RegistryState, name: str, version: str) -> list[int]:
    """The ids of the schemas that refer to a version."""
    target = find_version(state, name, version, deleted=True)
    return sorted({one.schema_id for one in state.referrers(target.subject, target.version)})


def find_highest_id(state: RegistryState, contexts: Iterable[str] = (DEFAULT_CONTEXT,)) -> int:
    """The highest id that was given in any of the contexts."""
    return max((state.highest_ids.get(context, 0) for context in contexts), default=0)


def _context(subject: str | None) -> str:
    return DEFAULT_CONTEXT if subject is None else qualify(subject).context


def _starts(name: str, prefix: str) -> bool:
    if prefix.startswith(":*:"):
        return qualify(name).subject.startswith(prefix.removeprefix(":*:"))
    wanted, given = qualify(prefix), qualify(name)
    return wanted.context == given.context and given.subject.startswith(wanted.subject)
