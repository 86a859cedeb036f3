"""Secrets by name: a setting says where its value is, and only the process that needs it looks.

`sasl.password=env:KAFKA_PASSWORD` or `sasl.password=file:/run/secrets/kafka`: plans, logs and
process lists then hold the name alone. A file's last line break is no part of the secret. Where a
setting names a file anyway (`ssl.ca.location`), `file:/path` is the path itself.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from penstock.errors import ConfigError

_FILE, _ENVIRONMENT = "file:", "env:"
_PATH_SUFFIX = ".location"
_SECRET_SUFFIXES = (
    "password",
    "sasl.jaas.config",
    "ssl.key.pem",
    "ssl.keystore.key",
    "user.info",
    ".secret",
    ".token",
)


def resolve_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings with every `file:` and `env:` replaced by what it names."""
    return {key: _resolved(key, value) for key, value in settings.items()}


def without_written_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """For what is shown or kept: names of secrets stay, secrets themselves go."""
    return {
        key: value
        for key, value in settings.items()
        if not key.endswith(_SECRET_SUFFIXES) or value.startswith((_FILE, _ENVIRONMENT))
    }


def resolve_any(settings: Mapping[str, object]) -> dict[str, object]:
    """The same for settings that may also hold numbers, classes and functions."""
    return {
        key: _resolved(key, value) if isinstance(value, str) else value
        for key, value in settings.items()
    }


def _resolved(key: str, value: str) -> str:
    if value.startswith(_FILE):
        path = Path(value.removeprefix(_FILE).removeprefix("//"))  # file:///path is the same.
        return str(path) if key.endswith(_PATH_SUFFIX) else _read(key, path)
    if value.startswith(_ENVIRONMENT):
        return _look_up(key, value.removeprefix(_ENVIRONMENT))
    return value


def _read(key: str, path: Path) -> str:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{key}: cannot read the file {path} that holds it: {reason}") from None
    return text.removesuffix("\n").removesuffix("\r")


def _look_up(key: str, name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ConfigError(f"{key}: the environment variable {name} that holds it is not set")
    return value
