"""EnvVarConfigProvider: `${env:NAME}`."""

import os
import re
from collections.abc import Mapping

from penstock.config.settings import Password
from penstock.connect.providers.contract import ConfigProvider
from penstock.errors import ConfigError

_SETTING = "allowlist.pattern"


class EnvVarConfigProvider(ConfigProvider):
    """The environment of the worker, as far as `allowlist.pattern` allows."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__(settings)
        try:
            self._allowed = re.compile(settings.get(_SETTING, ".*"), re.DOTALL)
        except re.error as error:
            raise ConfigError(f"{_SETTING} is no regular expression: {error}") from None

    def read(self, path: str) -> dict[str, Password]:
        """All variables that are allowed; the environment has no paths."""
        if path:
            raise ConfigError("Path is not supported for EnvVarConfigProvider: write ${env:NAME}")
        names = (name for name in os.environ if self._allowed.fullmatch(name))
        return {name: Password(os.environ[name]) for name in names}
