"""Connectors at work in the worker's own process: made, started, asked for their tasks, stopped."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from penstock.connect.errors.kinds import ConnectError
from penstock.connect.plugins.contract import SinkConnector, SourceConnector
from penstock.connect.plugins.lookup import PluginKind, find_plugin
from penstock.connect.providers.resolving import ConfigProviders

log = logging.getLogger("penstock.connect")


class HostedConnector:
    """One connector; its context asks the herder."""

    def __init__(
        self,
        config: Mapping[str, str],
        worker: Mapping[str, str],
        on_reconfigure: Callable[[], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        plugin = find_plugin(PluginKind.CONNECTOR, config["connector.class"])
        self._written = config
        providers = ConfigProviders.of(worker)
        self._config = providers.resolved(config)
        providers.close()
        self._task_class = f"{plugin.name.removesuffix('Connector')}Task"
        self._on_reconfigure = on_reconfigure
        self._on_error = on_error
        self.kind: Any = plugin.load()
        self._connector: SourceConnector | SinkConnector = self.kind()
        self._connector.initialize(self)

    def start(self) -> None:
        """Raises what the connector raises."""
        self._connector.start(self._config)

    def task_configs(self) -> list[dict[str, str]]:
        """The configurations of its tasks, with the class that Connect names in them."""
        wanted = int(self._config.get("tasks.max", "1"))
        made = self._connector.task_configs(wanted)
        is_enforced = self._config.get("tasks.max.enforce", "true").lower() != "false"
        if len(made) > wanted and is_enforced:
            raise ConnectError(
                f"The connector {self._config['name']} has generated {len(made)} tasks, which is"
                f" greater than {wanted}, the maximum number of tasks it is configured to create."
            )
        return [{**self._hidden(config), "task.class": self._task_class} for config in made]

    def _hidden(self, config: Mapping[str, str]) -> dict[str, str]:
        """A task's configuration as it may be written: what was resolved is only named again."""
        return {
            name: self._written[name] if self._config.get(name) == value else value
            for name, value in config.items()
        }

    def stop(self) -> None:
        """End it, whatever it raises."""
        try:
            self._connector.stop()
        except Exception:
            log.exception("The connector %s did not stop in good order", self._config["name"])

    # A ConnectorContext ----------------------------------------------------------------------

    def request_task_reconfiguration(self) -> None:
        """Have its tasks made anew."""
        self._on_reconfigure()

    def raise_error(self, error: Exception) -> None:
        """Fail it."""
        self._on_error(error)


def reload_ms(
    config: Mapping[str, str], written: Mapping[str, str], worker: Mapping[str, str], now_ms: int
) -> int | None:
    """When what runs with these settings must be restarted, because its secrets expire then.

    None: never, or the connector's `config.action.reload` says that it goes on.
    """
    if config.get("config.action.reload", "restart").lower() != "restart":
        return None
    if not worker.get("config.providers"):
        return None
    providers = ConfigProviders.of(worker)
    ttl_ms = providers.ttl_ms(written)
    providers.close()
    return None if ttl_ms is None else now_ms + ttl_ms


def kind_of(config: Mapping[str, str]) -> str:
    """source or sink; unknown where the class is not there."""
    with suppress(ConnectError, KeyError):
        kind = find_plugin(PluginKind.CONNECTOR, config["connector.class"]).load()
        return "source" if issubclass(kind, SourceConnector) else "sink"
    return "unknown"


def version_of(config: Mapping[str, str]) -> str | None:
    """The connector's version; None where the class is not there."""
    with suppress(ConnectError, KeyError):
        found = find_plugin(PluginKind.CONNECTOR, config["connector.class"]).load()
        return str(found.version())
    return None
