"""Which files a provider may read: `allowed.paths`, with no way out of them."""

from collections.abc import Mapping
from pathlib import Path

from penstock.errors import ConfigError

SETTING = "allowed.paths"
BYTES_MAX = 1 << 20  # A file of secrets is small; another is not meant.


class AllowedPaths:
    """The paths of the setting; without it, all."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        text = settings.get(SETTING, "").strip()
        self._roots = [Path(word.strip()) for word in text.split(",")] if text else None
        for root in self._roots or ():
            if not root.is_absolute():
                raise ConfigError(f"Path {root} is not absolute")
            if not root.exists():
                raise ConfigError(f"Path {root} does not exist")

    def checked(self, path: str) -> Path:
        """The path; ConfigError where it leads out of what is allowed."""
        resolved = Path(path).resolve()
        if self._roots is not None and not any(
            resolved.is_relative_to(root.resolve()) for root in self._roots
        ):
            raise ConfigError(f"The path {path} is not permitted by {SETTING}")
        return resolved


def read_small(path: Path) -> bytes:
    """The bytes of a file of secrets."""
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(f"cannot read the file {path} of a config provider: {reason}") from error
    if len(data) > BYTES_MAX:
        raise ConfigError(f"the file {path} of a config provider is larger than {BYTES_MAX} bytes")
    return data
