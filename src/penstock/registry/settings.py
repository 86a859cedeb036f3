"""Levels, modes and what else a subject, a context or the whole registry is set to.

A subject without settings of its own has its context's, and a context the registry's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from penstock.registry.errors import (
    invalid_level,
    invalid_mode,
    no_subject_compatibility,
    no_subject_mode,
    not_permitted,
    subject_not_found,
)
from penstock.registry.records import StoreRecord, config_record, mode_record
from penstock.registry.schema import (
    JsonObject,
    checked_metadata,
    checked_rule_set,
)
from penstock.registry.state import RegistryState
from penstock.registry.subjects import qualify, settings_name
from penstock.schemas.compatibility.levels import CompatibilityLevel

_CHECKED = {
    "defaultMetadata": checked_metadata,
    "overrideMetadata": checked_metadata,
    "defaultRuleSet": checked_rule_set,
    "overrideRuleSet": checked_rule_set,
}
_FIELDS = (
    "alias",
    "normalize",
    "validateFields",
    "validateRules",
    "compatibilityLevel",
    "compatibilityPolicy",
    "compatibilityGroup",
    "defaultMetadata",
    "overrideMetadata",
    "defaultRuleSet",
    "overrideRuleSet",
)


class RegistryMode(StrEnum):
    """What may be written."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"  # Of the registry; no subject's own mode counts.
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def is_read_only(self) -> bool:
        """Whether nothing may be written."""
        return self in (RegistryMode.READONLY, RegistryMode.READONLY_OVERRIDE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChange:
    """What to write, and what stands afterwards (or stood before a deletion)."""

    records: tuple[StoreRecord, ...]
    answer: JsonObject


def config_in_scope(state: RegistryState, subject: str | None) -> JsonObject:
    """The settings that apply: the nearest ones; a level they lack comes from further out."""
    layers = [state.configs[name] for name in _scopes(subject) if name in state.configs]
    nearest = dict(layers[0]) if layers else {}
    levels = [layer["compatibilityLevel"] for layer in layers if layer.get("compatibilityLevel")]
    nearest["compatibilityLevel"] = levels[0] if levels else state.default_level.value
    return nearest


def level_in_scope(state: RegistryState, subject: str) -> CompatibilityLevel:
    """The level that applies to a subject; one that is not known here counts as the default."""
    name = str(config_in_scope(state, subject)["compatibilityLevel"]).upper()
    known = name in CompatibilityLevel.__members__
    return CompatibilityLevel(name) if known else state.default_level


def mode_in_scope(state: RegistryState, subject: str | None) -> RegistryMode:
    """The mode that applies."""
    if state.modes.get(None) == RegistryMode.READONLY_OVERRIDE:
        return RegistryMode.READONLY_OVERRIDE
    for name in _scopes(subject):
        if state.modes.get(name) in RegistryMode.__members__:
            return RegistryMode(state.modes[name])
    return RegistryMode.READWRITE


def check_writable(state: RegistryState, subject: str | None) -> None:
    """Refuse where the mode says that nothing may be written."""
    if mode_in_scope(state, subject).is_read_only:
        raise not_permitted(f"Subject {subject} is in read-only mode")


def config_of(state: RegistryState, subject: str | None, *, default_to_global: bool) -> JsonObject:
    """What GET /config answers."""
    name = settings_name(subject)
    if name is None or default_to_global:
        return config_in_scope(state, subject)
    if name not in state.configs:
        raise no_subject_compatibility(subject)
    return state.configs[name]


def mode_of(state: RegistryState, subject: str | None, *, default_to_global: bool) -> RegistryMode:
    """What GET /mode answers."""
    name = settings_name(subject)
    if name is not None and not default_to_global and name not in state.modes:
        raise no_subject_mode(subject)
    return mode_in_scope(state, subject)


def change_config(state: RegistryState, subject: str | None, changes: JsonObject) -> SettingsChange:
    """Set some of the settings; a null takes one away, what is not named stays."""
    name = settings_name(subject)
    check_writable(state, subject)
    merged = dict(state.configs.get(name, {}))
    for key, value in _checked_config(changes).items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    ordered = {key: merged[key] for key in _FIELDS if key in merged}
    ordered |= {key: value for key, value in merged.items() if key not in ordered}
    return SettingsChange(records=(config_record(name, ordered),), answer=ordered)


def delete_config(state: RegistryState, subject: str | None) -> SettingsChange:
    """Go back to the settings further out; the answer is what was set."""
    name = settings_name(subject)
    check_writable(state, subject)
    if name is not None and name not in state.configs:
        raise subject_not_found(str(subject))
    answer = state.configs.get(name) or config_in_scope(state, subject)
    records = (config_record(name, None),) if name in state.configs else ()
    return SettingsChange(records=records, answer=answer)


def change_mode(
    state: RegistryState, subject: str | None, mode: object, *, force: bool = False
) -> SettingsChange:
    """Set the mode. Importing needs an empty subject, context or registry, unless it is forced."""
    name = settings_name(subject)
    wanted = _checked_mode(mode)
    begins = wanted is RegistryMode.IMPORT is not mode_in_scope(state, subject)
    if begins and not force and _has_schemas(state, name):
        raise not_permitted("Cannot import since found existing subjects")
    return SettingsChange(records=(mode_record(name, wanted.value),), answer={"mode": wanted.value})


def delete_mode(state: RegistryState, subject: str | None) -> SettingsChange:
    """Go back to the mode further out; the answer is what was set."""
    name = settings_name(subject)
    if name not in state.modes:
        raise subject_not_found(str(subject))
    answer = {"mode": state.modes[name]}
    return SettingsChange(records=(mode_record(name, None),), answer=answer)


def aliased(state: RegistryState, subject: str) -> str:
    """The subject that a name stands for; one alias deep, so that none can chase another."""
    qualified = qualify(subject)
    alias = (state.configs.get(qualified.name) or {}).get("alias")
    if not isinstance(alias, str) or not alias:
        return qualified.name
    if alias.startswith(":."):
        return qualify(alias).name
    return f":{qualified.context}:{alias}" if qualified.context_name else alias


def _scopes(subject: str | None) -> Iterator[str | None]:
    """Where settings are looked for, nearest first."""
    if subject:
        qualified = qualify(subject)
        if qualified.subject:
            yield qualified.name
        if qualified.context_name:
            yield qualified.context_name
    yield None


def _checked_config(changes: JsonObject) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in changes.items():
        if key in ("compatibility", "compatibilityLevel"):
            made["compatibilityLevel"] = _checked_level(value)
        elif key in _CHECKED:
            made[key] = _CHECKED[key](value)
        elif key in _FIELDS:
            made[key] = value
    return made


def _checked_level(level: object) -> str | None:
    if level is None:
        return None
    if not isinstance(level, str) or level.upper() not in CompatibilityLevel.__members__:
        raise invalid_level()
    return level.upper()


def _checked_mode(mode: object) -> RegistryMode:
    if not isinstance(mode, str) or mode.upper() not in RegistryMode.__members__:
        raise invalid_mode()
    if mode.upper() == RegistryMode.FORWARD:
        raise invalid_mode()
    return RegistryMode(mode.upper())


def _has_schemas(state: RegistryState, name: str | None) -> bool:
    if name is None:
        return any(not qualify(subject).context_name for subject in state.subjects)
    qualified = qualify(name)
    if qualified.subject:
        return name in state.subjects
    return any(qualify(subject).context == qualified.context for subject in state.subjects)
