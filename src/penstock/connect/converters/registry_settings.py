"""The settings that converters with a schema registry share, under Confluent's names."""

from http import HTTPStatus

from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.schemas.registry_client import RegistryRefused, RegistryUnreachable

_ABOUT_SCHEMAS = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY)


def let_through(error: Exception) -> None:
    """Raise what is no record's fault: a registry that is broken or knows no such user."""
    if isinstance(error, RegistryRefused) and error.status not in _ABOUT_SCHEMAS:
        raise RegistryUnreachable(str(error)) from error


def registry_settings() -> ConfigDef:
    """Where the registry is, and what is done about schemas; others go to it as they are."""
    low, flag = Importance.LOW, ConfigType.BOOLEAN
    return ConfigDef(
        ConfigEntry(
            "schema.registry.url",
            ConfigType.LIST,
            NO_DEFAULT,
            Importance.HIGH,
            "The addresses of the schema registry.",
        ),
        ConfigEntry(
            "auto.register.schemas",
            flag,
            True,
            Importance.MEDIUM,
            "Whether schemas are registered.",
        ),
        ConfigEntry("use.latest.version", flag, False, low, "Write under the latest schema."),
        ConfigEntry("normalize.schemas", flag, False, low, "Normalize schemas in the registry."),
        ConfigEntry(
            "basic.auth.user.info",
            ConfigType.PASSWORD,
            "",
            Importance.MEDIUM,
            "user:password for the registry.",
        ),
    )
