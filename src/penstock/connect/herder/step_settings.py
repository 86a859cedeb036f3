"""Settings of what stands between connector and topics: transforms, predicates and converters.

Their definitions belong to the classes that a configuration names, so which settings there are
depends on it. Each is shown under its whole name, with its own errors, as Apache's worker does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from penstock.connect.errors.kinds import ConnectError
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    CheckedValue,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
    InvalidValue,
    Proposed,
    Width,
    shown,
)
from penstock.connect.plugins.lookup import PluginKind, load_plugin, plugins

_VERSION = "4.3.1"
_NOTHING = CheckedConfig(values=(), groups=())
_IMPORTANCES = tuple(Importance)
_LISTS = (
    ("transforms", "Transform", "Transformation", PluginKind.TRANSFORM),
    ("predicates", "Predicate", "Predicate", PluginKind.PREDICATE),
)
_CONVERTERS = (
    ("key", PluginKind.CONVERTER),
    ("value", PluginKind.CONVERTER),
    ("header", PluginKind.HEADER_CONVERTER),
)
_BEHIND_PREDICATE = (
    ConfigEntry("negate", ConfigType.BOOLEAN, False, Importance.MEDIUM,
                "Whether the transform is for the records that the predicate is not true of."),
    ConfigEntry("predicate", ConfigType.STRING, None, Importance.MEDIUM,
                "The name of the predicate that chooses records for this transform."),
)  # fmt: skip


def checked_steps(config: Mapping[str, str]) -> CheckedConfig:
    """The settings of all transforms and predicates that a configuration lists."""
    found = _NOTHING
    for list_name, word, long_word, kind in _LISTS:
        for alias in dict.fromkeys(_aliases(config, list_name)):
            found += _checked_step(config, f"{list_name}.{alias}.", f"{word}s: {alias}",
                                   f"{long_word} {{}} for {alias}", kind)  # fmt: skip
    return found


def doubled_aliases(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The lists that name something twice, each with what is to be said of it."""
    for list_name, *_ in _LISTS:
        aliases = _aliases(config, list_name)
        if len(set(aliases)) < len(aliases):
            yield list_name, str(InvalidValue(list_name, aliases, "Duplicate alias provided."))


def checked_converters(config: Mapping[str, str]) -> CheckedConfig:
    """The settings of the converters that a configuration names for itself."""
    found = _NOTHING
    for side, kind in _CONVERTERS:
        name = f"{side}.converter"
        if name not in config or (definition := _definition(kind, config[name])) is None:
            continue
        own = {"converter.type": side, **_below(config, f"{name}.")}
        checked = definition.validate(own)
        values = tuple(
            replace(one, entry=replace(one.entry, name=f"{name}.{one.entry.name}"))
            for one in checked.values
            if one.entry.name != "plugin.version"
        )
        found += CheckedConfig(values=values, groups=checked.groups)
    return found


def without_unknown_converters(checked: CheckedConfig) -> CheckedConfig:
    """The same settings, with an error where a converter's class is not to be had."""
    kinds = {f"{side}.converter": kind for side, kind in _CONVERTERS}
    values = tuple(_known(one, kinds.get(one.entry.name)) for one in checked.values)
    return replace(checked, values=values)


def _known(checked: CheckedValue, kind: PluginKind | None) -> CheckedValue:
    name = checked.value
    if kind is None or name is None or _definition(kind, name) is not None:
        return checked
    return replace(checked, value=None, errors=(*checked.errors, _missing(checked.entry, name)))


def _missing(entry: ConfigEntry, name: str) -> str:
    return str(InvalidValue(entry.name, name, f"Class {shown(name)} could not be found."))


def _aliases(config: Mapping[str, str], list_name: str) -> list[str]:
    return [word for part in config.get(list_name, "").split(",") if (word := part.strip())]


def _below(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {k.removeprefix(prefix): v for k, v in config.items() if k.startswith(prefix)}


def _definition(kind: PluginKind, name: str) -> ConfigDef | None:
    """What a class takes; None: there is no such class."""
    try:
        found: ConfigDef = load_plugin(kind, name).config_def()
    except ConnectError:
        return None
    return found


def _checked_step(
    config: Mapping[str, str], prefix: str, group: str, display: str, kind: PluginKind
) -> CheckedConfig:
    name = config.get(f"{prefix}type")
    definition = None if name is None else _definition(kind, name)
    entries = [*_class_entries(display, kind, None if definition is None else _VERSION)]
    entries += _in_order(definition, kind)
    named = [
        replace(
            one,
            name=f"{prefix}{one.name}",
            group=group,
            order=number,
            display_name=one.display_name or one.name,
            dependents=tuple(f"{prefix}{other}" for other in one.dependents),
        )
        for number, one in enumerate(entries)
    ]
    checked = ConfigDef(*named).validate(config)
    if name is None or definition is not None:
        return checked
    (first, *others) = checked.values
    refused = replace(first, value=None, errors=(_missing(first.entry, name),))
    return replace(checked, values=(refused, *others))


def _class_entries(
    display: str, kind: PluginKind, version: str | None
) -> tuple[ConfigEntry, ConfigEntry]:
    known: list[Any] = [one.name for one in plugins(kind)]
    versions: list[Any] = [] if version is None else [version]
    return (
        ConfigEntry("type", ConfigType.CLASS, NO_DEFAULT, Importance.HIGH, "The class.",
                    display_name=display.format("type"), width=Width.LONG,
                    recommender=Proposed(known)),
        ConfigEntry("plugin.version", ConfigType.STRING, version, Importance.HIGH,
                    "The version of the class.", display_name=display.format("version"),
                    width=Width.LONG, recommender=Proposed(versions)),
    )  # fmt: skip


def _in_order(definition: ConfigDef | None, kind: PluginKind) -> list[ConfigEntry]:
    """What must be given first, then what is important, then by name."""
    if definition is None:
        return []
    also = _BEHIND_PREDICATE if kind is PluginKind.TRANSFORM else ()
    return sorted(
        (*definition, *also),
        key=lambda one: (not one.required, _IMPORTANCES.index(one.importance), one.name),
    )
