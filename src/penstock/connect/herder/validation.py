"""Configurations of connectors looked at before anything is written: all errors at once."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.connect.errors.kinds import ConnectError
from penstock.connect.herder.definitions import connector_def, refused_sentence
from penstock.connect.herder.refusals import RequestRefused
from penstock.connect.herder.step_settings import (
    checked_converters,
    checked_steps,
    doubled_aliases,
    without_unknown_converters,
)
from penstock.connect.plugins.config_def import (
    CheckedConfig,
    CheckedValue,
    ConfigEntry,
    ConfigType,
    Importance,
    shown,
)
from penstock.connect.plugins.contract import ExactlyOnceSupport, SourceConnector
from penstock.connect.plugins.libraries import missing_libraries
from penstock.connect.plugins.lookup import PluginKind, find_plugin, load_plugin
from penstock.connect.plugins.versions import BadVersionRange, unmet_range
from penstock.connect.providers.resolving import ConfigProviders
from penstock.connect.running.topic_creation import GROUPS, topic_rules
from penstock.connect.settings import LANE, WorkerSettings
from penstock.errors import ConfigError


class ConnectorChecks:
    """What a worker with these settings takes."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings

    def connector(self, config: Mapping[str, str]) -> Any:
        """A connector of the class that is named, not started."""
        return self._kind(config)()

    def ensure_valid(self, config: Mapping[str, str]) -> None:
        """RequestRefused tells all that is wrong."""
        sentence = refused_sentence(self.checked(config))
        if sentence is not None:
            raise RequestRefused(400, sentence)

    def resolved(self, config: Mapping[str, str]) -> Mapping[str, str]:
        """A configuration with what its config providers say, as the connector is to see it."""
        providers = ConfigProviders.of(self._settings.given)
        try:
            return providers.resolved(config)
        finally:
            providers.close()

    def checked(self, config: Mapping[str, str]) -> CheckedConfig:
        """Every setting, with its errors; no secret is in the answer."""
        resolved = self.resolved(config)
        return _as_written(self._checked(resolved), config, resolved)

    def _checked(self, config: Mapping[str, str]) -> CheckedConfig:
        kind = self._kind(config)
        is_source = issubclass(kind, SourceConnector)
        shared = connector_def(
            is_source=is_source, worker=self._settings.given, version=str(kind.version())
        ).validate(config)
        found: CheckedConfig = without_unknown_converters(shared) + checked_steps(config)
        found += kind.validate(config)
        found += checked_converters(config)
        extra = self._source(kind, config) if is_source else _topics(config)
        absent = [("connector.class", sentence) for sentence in missing_libraries(kind)]
        wrong = [*absent, *extra, *doubled_aliases(config), *_other_versions(found, config)]
        for name, sentence in wrong:
            found = found.with_error(name, sentence)
        own = (*self._refused_overrides(config), *self._lane(kind, config))
        return found + CheckedConfig(values=own, groups=())

    def document(self, plugin: str, config: Mapping[str, str]) -> dict[str, Any]:
        """What `PUT /connector-plugins/x/config/validate` answers."""
        named = config.get("connector.class")
        if named is not None and not _is_same(named, plugin):
            raise RequestRefused(
                400, f"Included connector type {named} does not match request type {plugin}"
            )
        given = {"connector.class": plugin, **config}
        return self.checked(given).document(str(given["connector.class"]))

    def definitions(self, plugin: str, version: str | None = None) -> list[dict[str, Any]]:
        """What `GET /connector-plugins/x/config` answers, perhaps for one version of it."""
        for kind in PluginKind:
            try:
                named = find_plugin(kind, plugin)
                found = named.load()
            except ConnectError:
                continue
            refused = _other_version(named.name, version, named.document()["version"])
            if refused is not None:
                raise RequestRefused(400, refused)
            entries: list[dict[str, Any]] = found.config_def().documents()
            if kind is PluginKind.CONNECTOR:
                is_source = issubclass(found, SourceConnector)
                shared = connector_def(
                    is_source=is_source, worker=None, version=str(found.version())
                )
                return [*entries, *shared.documents()]
            return entries
        raise RequestRefused(404, f"Unknown plugin {plugin}.")

    def _kind(self, config: Mapping[str, str]) -> Any:
        if not config.get("connector.class"):
            shown = ", ".join(f"{name}={text}" for name, text in sorted(config.items()))
            raise RequestRefused(400, f"Connector config {{{shown}}} contains no connector type")
        return load_plugin(PluginKind.CONNECTOR, config["connector.class"])

    def _refused_overrides(self, config: Mapping[str, str]) -> tuple[CheckedValue, ...]:
        """Settings of clients that the worker does not let a connector change."""
        return tuple(
            CheckedValue(entry=_override(name), value=text, errors=(sentence,))
            for name, text in config.items()
            if (sentence := self._settings.refused_override(name)) is not None
        )

    def _lane(self, kind: Any, config: Mapping[str, str]) -> tuple[CheckedValue, ...]:
        """The lane, where one is asked for: Apache's definitions do not have the setting."""
        if LANE not in config:
            return ()
        from penstock.connect.columnar.lane import takes_columns

        is_source = issubclass(kind, SourceConnector)
        role = "producer" if is_source else "consumer"
        errors: tuple[str, ...] = ()
        try:
            takes_columns(
                kind.task_class(),
                config,
                self._settings.client_for(role, config, role),
                exactly_once=is_source and self._settings.exactly_once_sources,
            )
        except ConfigError as error:
            errors = (str(error),)
        entry = ConfigEntry(
            LANE, ConfigType.STRING, "auto", Importance.LOW, "auto, columnar or ordinary."
        )
        return (CheckedValue(entry=entry, value=config[LANE], errors=errors),)

    def _source(self, kind: Any, config: Mapping[str, str]) -> list[tuple[str, str]]:
        found = self._exactly_once(kind, config)
        try:
            topic_rules(config)
        except ConfigError as error:
            found.append((GROUPS, str(error)))
        return found

    def _exactly_once(self, kind: Any, config: Mapping[str, str]) -> list[tuple[str, str]]:
        name = "exactly.once.support"
        if config.get(name, "requested").lower() != "required":
            return []
        if not self._settings.exactly_once_sources:
            return [(name, "This worker does not have exactly-once source support enabled.")]
        try:
            support = kind().exactly_once_support(config)
        except (ConfigError, ConnectError):
            return []  # Its settings are wrong, which is told with them.
        if support is ExactlyOnceSupport.SUPPORTED:
            return []
        return [(name, "The connector does not support exactly-once with this configuration.")]


def _other_versions(checked: CheckedConfig, config: Mapping[str, str]) -> list[tuple[str, str]]:
    """What asks for a version that its plug-in does not have; the default is the one it has."""
    found = []
    for one in checked.values:
        name, offered = one.entry.name, one.entry.default
        if not name.endswith("plugin.version") or not isinstance(offered, str):
            continue
        refused = _other_version(_plugin_of(name, config), config.get(name), offered)
        if refused is not None:
            found.append((name, refused))
    return found


def _plugin_of(name: str, config: Mapping[str, str]) -> str:
    """The class whose version a setting is about."""
    at = name.removesuffix("plugin.version")
    named = config.get(f"{at}class") or config.get(f"{at}type") or config.get(at[:-1]) or at[:-1]
    for kind in PluginKind:
        try:
            return find_plugin(kind, named).name
        except ConnectError:
            continue
    return named


def _other_version(plugin: str, wanted: str | None, offered: str) -> str | None:
    try:
        unmet = unmet_range(wanted, offered)
    except BadVersionRange as error:
        raise RequestRefused(400, str(error)) from None
    if unmet is None:
        return None
    return (
        f"Plugin {plugin} not found that matches the version range {unmet}, "
        f"available versions: [{offered}]"
    )


def _as_written(
    checked: CheckedConfig, written: Mapping[str, str], resolved: Mapping[str, str]
) -> CheckedConfig:
    """The same with `${provider:key}` as it was given, where a provider put something in."""
    secrets = {
        name: str.__str__(text) for name, text in resolved.items() if text is not written[name]
    }
    values = tuple(
        _hiding(one, written[one.entry.name], secrets[one.entry.name])
        if one.entry.name in secrets
        else one
        for one in checked.values
    )
    return replace(checked, values=values)


def _hiding(checked: CheckedValue, written: str, secret: str) -> CheckedValue:
    value: Any = [written] if checked.entry.type is ConfigType.LIST else written
    errors = checked.errors
    if secret:
        errors = tuple(one.replace(secret, written) for one in errors)
    return replace(checked, value=None if checked.value is None else value, errors=errors)


def _override(name: str) -> ConfigEntry:
    return ConfigEntry(name, ConfigType.STRING, None, Importance.LOW, "A setting of a client.")


def _topics(config: Mapping[str, str]) -> list[tuple[str, str]]:
    return [*_chosen_topics(config), *_read_letters(config)]


def _chosen_topics(config: Mapping[str, str]) -> list[tuple[str, str]]:
    has_names, has_pattern = bool(config.get("topics")), bool(config.get("topics.regex"))
    if has_names and has_pattern:
        sentence = "topics and topics.regex are mutually exclusive options, but both are set."
        return [("topics", sentence), ("topics.regex", sentence)]
    if not has_names and not has_pattern:
        sentence = "Must configure one of topics or topics.regex"
        return [("topics", sentence), ("topics.regex", sentence)]
    return []


def _read_letters(config: Mapping[str, str]) -> list[tuple[str, str]]:
    """Dead letters that the connector itself would read, and put aside again, for ever."""
    letters = config.get("errors.deadletterqueue.topic.name", "").strip()
    if not letters:
        return []
    found = []
    topics = [word.strip() for word in config.get("topics", "").split(",")]
    if letters in topics:
        found.append(
            (
                "topics",
                f"The DLQ topic '{letters}' may not be included in the list of"
                f" topics ('topics={shown(topics)}') consumed by the connector",
            )
        )
    pattern = config.get("topics.regex", "")
    if pattern and _matches(pattern, letters):
        found.append(
            (
                "topics.regex",
                f"The DLQ topic '{letters}' may not be matched by the regex"
                f" for the topics ('topics.regex={pattern}') consumed by the"
                " connector",
            )
        )
    return found  # fmt: skip


def _matches(pattern: str, topic: str) -> bool:
    try:
        return re.fullmatch(pattern, topic) is not None
    except re.error:
        return False  # Which is told of the pattern itself.


def _is_same(one: str, other: str) -> bool:
    """Whether two names mean one connector, or are the same text."""
    if one == other:
        return True
    try:
        return find_plugin(PluginKind.CONNECTOR, one) == find_plugin(PluginKind.CONNECTOR, other)
    except ConnectError:
        return False
