"""Settings of TLS for a connector that calls a server: stores as Kafka's clients have them.

A store is PEM, PKCS12 or JKS, told by the end of its name.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.connect.plugins.config_def import ConfigDef, ConfigEntry, ConfigType, Importance
from penstock.security.tls.contexts import TlsSettings

_TYPES = {".pem": "PEM", ".crt": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsNames:
    """What a connector calls the five settings."""

    trust: str
    trust_password: str
    key: str
    key_store_password: str
    key_password: str

    @classmethod
    def below(cls, prefix: str) -> "TlsNames":
        """Kafka's own names behind a prefix."""
        return cls(
            trust=f"{prefix}ssl.truststore.location",
            trust_password=f"{prefix}ssl.truststore.password",
            key=f"{prefix}ssl.keystore.location",
            key_store_password=f"{prefix}ssl.keystore.password",
            key_password=f"{prefix}ssl.key.password",
        )

    def entries(self) -> ConfigDef:
        """Their definitions."""
        return ConfigDef(
            _path(self.trust, "Certificates to believe. Without it, those of the system."),
            _secret(self.trust_password, "The password of that store."),
            _path(self.key, "The certificate to show, with its key. Without it, none is shown."),
            _secret(self.key_store_password, "The password of that store."),
            _secret(self.key_password, "The password of the key in it."),
        )

    def context(self, parsed: Mapping[str, Any]) -> ssl.SSLContext:
        """For connections; ConfigError names the store that cannot be used."""
        given = {
            "ssl.truststore.location": parsed[self.trust],
            "ssl.truststore.type": _type_of(parsed[self.trust]),
            "ssl.truststore.password": parsed[self.trust_password],
            "ssl.keystore.location": parsed[self.key],
            "ssl.keystore.type": _type_of(parsed[self.key]),
            "ssl.keystore.password": parsed[self.key_store_password],
            "ssl.key.password": parsed[self.key_password],
        }
        return TlsSettings.read({k: v for k, v in given.items() if v}).client_context()


def _path(name: str, doc: str) -> ConfigEntry:
    return ConfigEntry(name, ConfigType.STRING, None, Importance.MEDIUM, doc)


def _secret(name: str, doc: str) -> ConfigEntry:
    return ConfigEntry(name, ConfigType.PASSWORD, None, Importance.MEDIUM, doc)


def _type_of(location: str | None) -> str | None:
    if not location:
        return None
    return next((kind for end, kind in _TYPES.items() if location.endswith(end)), "JKS")
