"""From Kafka's `ssl.*` settings to the context of a listener, or of a broker that calls another.

A context is made whole or not at all; a changed key store makes a new one. Python loads keys from
files alone, so they go through a file that is memory (memfd) and has no name.
"""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from penstock.errors import ConfigError
from penstock.security.tls.cipher_names import choose_ciphers
from penstock.security.tls.stores import (
    KeyMaterial,
    StoreSettings,
    key_store_settings,
    load_key,
    load_trusted,
    trust_store_settings,
)

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """What `ssl.*` says, read and checked; the stores are not opened yet."""

    key_store: StoreSettings
    trust_store: StoreSettings
    protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    client_auth: str
    checks_host: bool

    @classmethod
    def read(cls, settings: Mapping[str, object]) -> "TlsSettings":
        """From the settings of one listener; ConfigError names the one that cannot be used."""
        client_auth = str(settings.get("ssl.client.auth") or "none").lower()
        if client_auth not in _CLIENT_AUTH:
            raise ConfigError(
                f"ssl.client.auth={client_auth} is not one of {', '.join(_CLIENT_AUTH)}"
            )
        key = "ssl.endpoint.identification.algorithm"
        algorithm = str(settings.get(key, "https") or "").lower()
        if algorithm not in ("https", ""):
            raise ConfigError(f"{key}={algorithm} is neither https nor empty")
        protocols = _list(settings.get("ssl.enabled.protocols")) or tuple(_VERSIONS)
        unknown = [name for name in protocols if name not in _VERSIONS]
        if unknown:
            raise ConfigError(
                f"ssl.enabled.protocols={unknown[0]} is not one of {', '.join(_VERSIONS)}"
            )
        return cls(
            key_store=key_store_settings(settings),
            trust_store=trust_store_settings(settings),
            protocols=protocols,
            cipher_suites=_list(settings.get("ssl.cipher.suites")),
            client_auth=client_auth,
            checks_host=algorithm == "https",
        )

    def server_context(self) -> ssl.SSLContext:
        """For a listener; without a key there is nothing to serve with."""
        if not self.key_store.is_given:
            raise ConfigError("a listener with TLS needs ssl.keystore.location or its PEM texts")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._limit(context)
        _show(context, load_key(self.key_store))
        context.verify_mode = _CLIENT_AUTH[self.client_auth]
        if context.verify_mode is not ssl.CERT_NONE:
            self._trust(context, ssl.Purpose.CLIENT_AUTH)
        return context

    def client_context(self) -> ssl.SSLContext:
        """For a connection to another broker; shows our certificate where there is one."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.checks_host
        context.verify_mode = ssl.CERT_REQUIRED
        self._limit(context)
        self._trust(context, ssl.Purpose.SERVER_AUTH)
        if self.key_store.is_given:
            _show(context, load_key(self.key_store))
        return context

    def portable(self) -> dict[str, object]:
        """What makes a client's context in a process without our packages, as plain values."""
        limits = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._limit(limits)
        material = load_key(self.key_store) if self.key_store.is_given else None
        trusted = load_trusted(self.trust_store).decode() if self.trust_store.is_given else None
        return {
            "checks_host": self.checks_host,
            "lowest": int(limits.minimum_version),
            "highest": int(limits.maximum_version),
            "ciphers": ":".join(choose_ciphers(self.cipher_suites).openssl_names),
            "trusted": trusted,
            "key": (material.key_pem + material.chain_pem).decode() if material else None,
        }

    def _trust(self, context: ssl.SSLContext, purpose: ssl.Purpose) -> None:
        """Without a trust store the machine's own authorities are believed, as in Java."""
        if not self.trust_store.is_given:
            context.load_default_certs(purpose)
            return
        try:
            context.load_verify_locations(cadata=load_trusted(self.trust_store).decode())
        except ssl.SSLError as error:
            raise ConfigError(f"{self.trust_store.name} cannot be used: {error.reason}") from None

    def _limit(self, context: ssl.SSLContext) -> None:
        wanted = {_VERSIONS[name] for name in self.protocols}
        if self.cipher_suites:
            choice = choose_ciphers(self.cipher_suites)
            if not choice.has_tls_1_3:
                wanted.discard(ssl.TLSVersion.TLSv1_3)
            if choice.openssl_names:
                _set_ciphers(context, choice.openssl_names)
            else:
                wanted.discard(ssl.TLSVersion.TLSv1_2)
        if not wanted:
            raise ConfigError("ssl.cipher.suites and ssl.enabled.protocols leave no TLS at all")
        context.minimum_version, context.maximum_version = min(wanted), max(wanted)


def _set_ciphers(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    try:
        context.set_ciphers(":".join(names))
    except ssl.SSLError:
        raise ConfigError(
            f"ssl.cipher.suites={','.join(names)} names no cipher that OpenSSL serves"
        ) from None


def _show(context: ssl.SSLContext, material: KeyMaterial) -> None:
    descriptor = os.memfd_create("key", os.MFD_CLOEXEC)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(material.key_pem + material.chain_pem)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    except ssl.SSLError as error:
        raise ConfigError(f"ssl.keystore cannot be used: {error.reason}") from None
    finally:
        os.close(descriptor)


def _list(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    parts = value.split(",") if isinstance(value, str) else cast("list[str]", value)
    return tuple(part.strip() for part in parts if part.strip())
