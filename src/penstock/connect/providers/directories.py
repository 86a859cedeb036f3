"""DirectoryConfigProvider: `${directory:/run/secrets:name}`, each file a secret."""

from collections.abc import Mapping

from penstock.config.settings import Password
from penstock.connect.providers.allowed_paths import AllowedPaths, read_small
from penstock.connect.providers.contract import ConfigProvider
from penstock.errors import ConfigError

_FILES_MAX = 10_000


class DirectoryConfigProvider(ConfigProvider):
    """Files of a folder, by their names."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        super().__init__(settings)
        self._allowed = AllowedPaths(settings)

    def read(self, path: str) -> dict[str, Password]:
        """The files of a folder; folders in it are left out."""
        if not path:
            return {}
        folder = self._allowed.checked(path)
        if not folder.is_dir():
            raise ConfigError(f"the config provider finds no directory {path}")
        files = sorted(one for one in folder.iterdir() if one.is_file())[:_FILES_MAX]
        return {one.name: Password(_text(read_small(one), one.name)) for one in files}


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"the secret {name} is not UTF-8") from None
