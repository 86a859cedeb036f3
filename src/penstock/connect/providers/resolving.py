"""Settings with what they name put in: `${provider:path:key}` and `${provider:key}`.

As in Kafka, a value may hold several, what was put in is not looked at again, and what names no
provider or no key stays as it is written. A value that had a secret put in is a `Password`, so
whoever prints or refuses it shows `[hidden]`.
"""

import re
from collections.abc import Mapping
from typing import Any

from penstock.config.settings import Password
from penstock.connect.plugins.lookup import PluginKind, load_plugin
from penstock.connect.providers.contract import ConfigProvider
from penstock.errors import ConfigError

_NAMED = re.compile(r"\$\{([^}]*?):(([^}]*?):)?([^}]*?)\}")


class ConfigProviders:
    """The providers of a worker: `config.providers=file,env`, `config.providers.file.class=...`."""

    def __init__(self, providers: Mapping[str, ConfigProvider]) -> None:
        self._providers = dict(providers)

    @classmethod
    def of(cls, worker: Mapping[str, str]) -> "ConfigProviders":
        """Those that a worker's settings name."""
        names = [w.strip() for w in worker.get("config.providers", "").split(",") if w.strip()]
        return cls({name: _made(worker, name) for name in names})

    def resolved(self, settings: Mapping[str, str]) -> dict[str, str]:
        """The settings with their secrets; each path is read once."""
        seen: dict[tuple[str, str], dict[str, Password]] = {}
        return {name: self._value(value, seen) for name, value in settings.items()}

    def ttl_ms(self, settings: Mapping[str, str]) -> int | None:
        """When the first of the secrets in the settings expires; None: none of them does."""
        texts = [value for value in settings.values() if isinstance(value, str)]
        named = {(match[1], match[3] or "") for text in texts for match in _NAMED.finditer(text)}
        known = [(self._providers[name], path) for name, path in named if name in self._providers]
        times = [provider.ttl_ms(path) for provider, path in known]
        return min((one for one in times if one is not None), default=None)

    def _value(self, value: Any, seen: dict[tuple[str, str], dict[str, Password]]) -> Any:
        if not isinstance(value, str) or "${" not in value:
            return value

        def put_in(match: re.Match[str]) -> str:
            provider, path, key = match[1], match[3] or "", match[4]
            if provider not in self._providers:
                return match[0]
            if (provider, path) not in seen:
                seen[provider, path] = self._providers[provider].read(path)
            found = seen[provider, path].get(key)
            return match[0] if found is None else str.__str__(found)

        made = _NAMED.sub(put_in, value)
        return value if made == value else Password(made)

    def close(self) -> None:
        """End them."""
        for one in self._providers.values():
            one.close()

    def __repr__(self) -> str:
        return f"ConfigProviders({', '.join(sorted(self._providers))})"


def unresolved(settings: Mapping[str, str]) -> list[str]:
    """The settings that still name something: a provider or a key that is not there."""
    return [name for name, value in settings.items() if _NAMED.search(str(value))]


def _made(worker: Mapping[str, str], name: str) -> ConfigProvider:
    prefix = f"config.providers.{name}."
    wanted = worker.get(f"{prefix}class")
    if not wanted:
        raise ConfigError(f"{prefix}class is missing: config.providers names {name}")
    param = f"{prefix}param."
    settings = {k.removeprefix(param): v for k, v in worker.items() if k.startswith(param)}
    made = load_plugin(PluginKind.CONFIG_PROVIDER, wanted)(settings)
    assert isinstance(made, ConfigProvider)
    return made
