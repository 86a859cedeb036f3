"""What connectors check beyond single settings: settings together, and settings of others."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.connect.plugins.config_def import CheckedConfig, CheckedValue

_PROVIDED = "${"


def with_errors(checked: CheckedConfig, found: Iterable[tuple[str, str]]) -> CheckedConfig:
    """The same, with more errors: names of settings with sentences."""
    more: dict[str, list[str]] = {}
    for name, sentence in found:
        more.setdefault(name, []).append(sentence)

    def told(one: CheckedValue) -> CheckedValue:
        return replace(one, errors=(*one.errors, *more.get(one.entry.name, ())))

    return replace(checked, values=tuple(told(one) for one in checked.values))


def is_resolved(config: Mapping[str, str]) -> bool:
    """Whether no value waits for a config provider, so that a connection can be tried."""
    return not any(_PROVIDED in text for text in config.values())


def unserved_settings(config: Mapping[str, str], known: Mapping[str, str]) -> list[str]:
    """A sentence for each setting that is given, that nothing here obeys, and that would matter.

    `known` has such settings of the connector whose names are used here, with the value that
    changes nothing.
    """
    return [
        f"The setting {name} is not served here; take it out."
        for name, harmless in known.items()
        if config.get(name, harmless).strip().lower() not in ("", harmless.lower())
    ]
