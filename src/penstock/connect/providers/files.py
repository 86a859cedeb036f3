"""FileConfigProvider: `${file:/path/to/secrets.properties:key}`."""

from collections.abc import Mapping

from penstock.config.properties import parse_properties
from penstock.config.settings import Password
from penstock.connect.providers.allowed_paths import AllowedPaths, read_small
from penstock.connect.providers.contract import ConfigProvider
from penstock.errors import ConfigError


class FileConfigProvider(ConfigProvider):
    """Keys of a properties file."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__(settings)
        self._allowed = AllowedPaths(settings)

    def read(self, path: str) -> dict[str, Password]:
        """The keys of a file; no path has none."""
        if not path:
            return {}
        data = read_small(self._allowed.checked(path))
        try:
            found = parse_properties(data.decode())
        except (UnicodeDecodeError, ConfigError):
            # The error would quote what it cannot read, which may be a secret.
            raise ConfigError(f"the file {path} is no properties file in UTF-8") from None
        return {key: Password(value) for key, value in found.items()}
