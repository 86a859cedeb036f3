"""TLS at a broker's listeners: whose certificate is shown there, and whom a client's stands for.

A door is asked for each newcomer. When the settings of its key store change, or the file behind
them, newcomers meet the new certificate; who is inside already stays. What TLS does with bytes is
net/tls_transport.py's.
"""

import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from penstock.config.broker import BrokerConfig
from penstock.config.listeners import SASL_SSL
from penstock.errors import ConfigError
from penstock.net.session import Session
from penstock.net.tls_transport import TlsFailed, TlsTransport
from penstock.security.certificate_names import CertificateNames, NoRuleApplies
from penstock.security.tls.contexts import TlsSettings
from penstock.security.tls.same_owner import refuse_other_owner
from penstock.security.tls.stores import load_key
from penstock.security.tls.subjects import principal_of

log = logging.getLogger("kafka.network.SocketServer")

_CLIENT_AUTH: Final = "ssl.client.auth"
# What a context is made of; each may be written for one listener alone.
TLS_NAMES: Final = (
    "ssl.cipher.suites",
    _CLIENT_AUTH,
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
)
_FILES: Final = ("ssl.keystore.location", "ssl.truststore.location")
# Java classes that would have a say in TLS: nobody is let in by other rules than were asked for.
_CLASSES: Final = ("ssl.engine.factory.class",)


def tls_settings(config: BrokerConfig, listener: str) -> TlsSettings:
    """What `ssl.*` says for one listener; ConfigError names the one that cannot be used."""
    for name in _CLASSES:
        if config.for_listener(listener, name):
            raise ConfigError(f"{name} is set, but Java classes cannot be loaded here: remove it")
    return TlsSettings.read(_given(config, listener))


class ChangingContext:
    """A context of one listener's settings, made anew when they change or a file of theirs."""

    def __init__(
        self,
        config: BrokerConfig,
        listener: str,
        make: Callable[[TlsSettings], ssl.SSLContext],
    ) -> None:
        self._listener = listener
        self._make = make
        self._made_of = _state(config, listener)
        settings = tls_settings(config, listener)
        self._chain = _chain(settings)
        self.context = make(settings)

    def check(self, config: BrokerConfig) -> None:
        """Raise ConfigError for settings that could not be followed, or that show another owner."""
        if _state(config, self._listener) == self._made_of:
            return
        settings = tls_settings(config, self._listener)
        self._make(settings)
        chain = _chain(settings)
        if self._chain is not None and chain is not None:
            refuse_other_owner(
                self._chain,
                chain,
                may_rename=config.ssl_allow_dn_changes,
                may_lose_hosts=config.ssl_allow_san_changes,
            )

    def reconfigure(self, config: BrokerConfig) -> bool:
        """Follow the settings as they are now; False: nothing is new, or it cannot be used."""
        made_of = _state(config, self._listener)
        if made_of == self._made_of:
            return False
        self._made_of = made_of
        try:
            settings = tls_settings(config, self._listener)
            self.context = self._make(settings)
        except ConfigError as error:
            log.error("The listener %s keeps its certificate: %s", self._listener, error)
            return False
        self._chain = _chain(settings)
        return True


class TlsDoor:
    """Wraps the newcomers of one listener in TLS."""

    def __init__(self, config: BrokerConfig, listener: str, *, names_clients: bool) -> None:
        self._listener = listener
        _warn_of_client_auth(config, listener)
        # With SASL the client says who it is; its certificate says nothing then.
        self._names: CertificateNames | None = None
        if names_clients:
            rules = config.for_listener(listener, "ssl.principal.mapping.rules")
            self._names = CertificateNames.parse(str(rules))
        self._tls = ChangingContext(config, listener, TlsSettings.server_context)
        self.check = self._tls.check

    def __call__(self, sock: socket.socket, session: Session) -> TlsTransport:
        return TlsTransport(sock, self._tls.context, on_shaken=partial(self._note_client, session))

    def reconfigure(self, config: BrokerConfig) -> None:
        """Show the certificate of the settings as they are now; what cannot be used is told."""
        if self._tls.reconfigure(config):
            log.info("The listener %s has a new TLS context", self._listener)

    def _note_client(self, session: Session, tls: ssl.SSLSocket) -> None:
        """Whom the certificate stands for; without one it is nobody in particular."""
        if self._names is None:
            return
        certificate = tls.getpeercert(binary_form=True)
        if certificate is None:
            return
        try:
            session.principal = str(principal_of(certificate, self._names))
        except (NoRuleApplies, ValueError) as error:
            raise TlsFailed(f"its certificate names nobody: {error}") from None


class OutgoingTls:
    """Wraps connections to other brokers in TLS, with the certificate of their listener."""

    def __init__(self, config: BrokerConfig, listener: str) -> None:
        self._tls = ChangingContext(config, listener, TlsSettings.client_context)
        self.check = self._tls.check

    def __call__(self, sock: socket.socket, host: str) -> TlsTransport:
        return TlsTransport(sock, self._tls.context, server_hostname=host)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Show a new certificate to brokers that are connected to from now on."""
        self._tls.reconfigure(config)


def _chain(settings: TlsSettings) -> bytes | None:
    """The certificates that are shown; None: none is."""
    return load_key(settings.key_store).chain_pem if settings.key_store.is_given else None


def _given(config: BrokerConfig, listener: str) -> Mapping[str, object]:
    given = {name: config.for_listener(listener, name) for name in TLS_NAMES}
    if _ignores_client_auth(config, listener):
        given[_CLIENT_AUTH] = "none"
    return given


def _ignores_client_auth(config: BrokerConfig, listener: str) -> bool:
    """With SASL clients need certificates only if that listener's own setting says so (KIP-684)."""
    asked = next((one for one in config.listeners if one.name == listener), None)
    is_with_sasl = asked is not None and asked.security_protocol == SASL_SSL
    return is_with_sasl and not config.has_for_listener(listener, _CLIENT_AUTH)


def _warn_of_client_auth(config: BrokerConfig, listener: str) -> None:
    value = config.for_listener(listener, _CLIENT_AUTH)
    if _ignores_client_auth(config, listener) and value not in (None, "none"):
        lead = f"listener.name.{listener.lower()}"
        log.warning(
            "%s=%s is for listeners of SSL alone: the listener %s asks for no certificate unless "
            "%s.%s says so",
            _CLIENT_AUTH,
            value,
            listener,
            lead,
            _CLIENT_AUTH,
        )


def _state(config: BrokerConfig, listener: str) -> Mapping[str, object]:
    """All that a context is made of: the settings, and which files they name."""
    given = _given(config, listener)
    return {**given, "files": [_file_state(given[name]) for name in _FILES]}


def _file_state(path: object) -> tuple[int, int] | None:
    try:
        found = Path(str(path)).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
