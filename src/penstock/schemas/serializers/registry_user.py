"""What serializers and deserializers of every language share: their registry and their settings."""

from collections.abc import Mapping

from penstock.errors import ConfigError
from penstock.schemas.registry_client import RegistryClient
from penstock.schemas.serializers.settings import SerializerSettings


class RegistryUser:
    """Configured by its own arguments, or by the client that it is given to.

    `settings` have Confluent's names and go before those of the client. By itself, without a
    client, it needs `registry` or `schema.registry.url` among its settings.
    """

    def __init__(
        self,
        registry: RegistryClient | None,
        settings: Mapping[str, object] | None,
        *,
        is_key: bool,
    ) -> None:
        self._registry = registry
        self._given = dict(settings or {})
        self._configured: SerializerSettings | None = None
        if registry is not None or "schema.registry.url" in self._given:
            self.configure({}, is_key=is_key)

    def configure(self, settings: Mapping[str, object], is_key: bool) -> None:
        """Take what the client's configuration says."""
        merged = {**settings, **self._given}
        self._configured = SerializerSettings.of(merged, is_key=is_key, registry=self._registry)
        self.take_settings(merged, "key" if is_key else "value")

    def take_settings(self, settings: Mapping[str, object], side: str) -> None:
        """Settings of one language; `side` is key or value."""

    @property
    def settings(self) -> SerializerSettings:
        """What was configured."""
        if self._configured is None:
            raise ConfigError(
                f"{type(self).__name__} has no schema registry: give registry=..., or "
                "schema.registry.url in the configuration of the client"
            )
        return self._configured
