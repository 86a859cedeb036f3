"""What a config provider is: it knows secrets by a path and a key."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from penstock.config.settings import Password


class ConfigProvider(ABC):
    """Made with its settings, `config.providers.NAME.param.*` without that prefix.

    Values are `Password`s: they compare as the text they are and never print it.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.settings = settings

    @abstractmethod
    def read(self, path: str) -> dict[str, Password]:
        """All keys of a path; ConfigError where it cannot be read, without a word of a value."""

    def ttl_ms(self, path: str) -> int | None:
        """How long what was read holds; None: until somebody restarts who has read it."""
        return None

    def close(self) -> None:
        """End."""
        return
