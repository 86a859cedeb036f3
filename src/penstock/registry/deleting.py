"""Deleting versions and subjects: softly first, for good only after that.

What others refer to cannot be deleted. A soft deletion keeps id and number; a hard one gives up
the number, and never the id: ids are in messages that may outlive the schema.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.registry import errors
from penstock.registry.records import (
    StoreRecord,
    config_record,
    context_record,
    delete_subject_record,
    mode_record,
    schema_record,
    tombstone,
)
from penstock.registry.registering import parse_version
from penstock.registry.schema import SchemaVersion
from penstock.registry.settings import aliased, check_writable
from penstock.registry.state import RegistryState
from penstock.registry.subjects import DEFAULT_CONTEXT, qualify


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What to write, and the versions that are gone then."""

    records: tuple[StoreRecord, ...]
    versions: tuple[int, ...]


def delete_subject(state: RegistryState, name: str, *, permanent: bool = False) -> Deletion:
    """Delete all versions of a subject."""
    subject = aliased(state, name)
    check_writable(state, subject)
    versions = list(state.versions(subject).values())
    if not versions:
        raise errors.subject_not_found(name)
    live = state.live(subject)
    if permanent and live:
        raise errors.subject_not_soft_deleted(name)
    if not permanent and not live:
        raise errors.subject_soft_deleted(name)
    gone = versions if permanent else live
    for one in gone:
        _check_unreferenced(state, one)
    if permanent:
        records = _hard(state, gone)
    else:
        records = (delete_subject_record(subject, gone[-1].version), *_reset(state, subject))
    return Deletion(records=records, versions=tuple(one.version for one in gone))


def delete_version(
    state: RegistryState, name: str, version: str, *, permanent: bool = False
) -> Deletion:
    """Delete one version."""
    subject = aliased(state, name)
    check_writable(state, subject)
    one = _deletable(state, name, subject, version, permanent)
    _check_unreferenced(state, one)
    if permanent:
        records = _hard(state, [one])
    else:
        last = len(state.live(subject)) == 1
        records = (schema_record(one.soft_deleted()), *(_reset(state, subject) if last else ()))
    return Deletion(records=records, versions=(one.version,))


def delete_context(state: RegistryState, name: str) -> Deletion:
    """Delete a context that has no schemas left, with its settings; its ids stay given."""
    context = name.removeprefix(":").removesuffix(":")
    if context == DEFAULT_CONTEXT:
        raise errors.not_permitted("The default context cannot be deleted")
    if any(qualify(subject).context == context for subject in state.subjects):
        raise errors.context_not_empty(context)
    if context not in state.contexts:
        raise errors.context_not_found(context)
    check_writable(state, f":{context}:")
    settings: list[StoreRecord] = []
    for subject in {*state.configs, *state.modes}:
        if subject is not None and qualify(subject).context == context:
            settings += _reset(state, subject)
    gone = context_record(context, state.highest_ids.get(context), deleted=True)
    return Deletion(records=(*sorted(settings, key=lambda one: one.key), gone), versions=())


def _deletable(
    state: RegistryState, name: str, subject: str, version: str, permanent: bool
) -> SchemaVersion:
    number = parse_version(version)
    versions = state.versions(subject)
    if not versions:
        raise errors.subject_not_found(name)
    if number is None:
        shown = list(versions.values()) if permanent else state.live(subject)
        if not shown:
            raise errors.subject_not_found(name)
        number = shown[-1].version
    one = versions.get(number)
    if one is None:
        raise errors.version_not_found(number)
    if permanent and not one.deleted:
        raise errors.version_not_soft_deleted(name, number)
    if not permanent and one.deleted:
        raise errors.version_soft_deleted(name, number)
    return one


def _check_unreferenced(state: RegistryState, one: SchemaVersion) -> None:
    if next(state.referrers(one.subject, one.version), None) is not None:
        raise errors.reference_exists(one.subject, one.version)


def _hard(state: RegistryState, gone: Sequence[SchemaVersion]) -> tuple[StoreRecord, ...]:
    """Tombstones, and before them the highest id, which they might be the last to tell."""
    context = qualify(gone[0].subject).context
    highest = state.highest_ids[context]
    told = any(one.schema_id == highest for one in gone)
    kept = (context_record(context, highest),) if told else ()
    return (*kept, *(tombstone(one.subject, one.version) for one in gone))


def _reset(state: RegistryState, subject: str) -> tuple[StoreRecord, ...]:
    """A subject that comes back later starts without its old settings."""
    records: list[StoreRecord] = []
    if subject in state.modes:
        records.append(mode_record(subject, None))
    if subject in state.configs:
        records.append(config_record(subject, None))
    return tuple(records)
