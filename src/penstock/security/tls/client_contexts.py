"""TLS of whoever calls a broker with PEM: which certificates to believe, and which to show.

Certificates and keys are PEM, in files or as text; `contexts` reads Java's stores. The broker's
chain and name are verified unless a setting says otherwise. `ssl` is imported only by a client that
uses it; the handshake is for the one who has the socket.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import ConfigError

if TYPE_CHECKING:
    from ssl import SSLContext


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """What a connection needs to know; None: not given."""

    ca_location: str | None = None  # A file or a directory; None: the system's certificates.
    ca_pem: str | None = None
    certificate_location: str | None = None
    certificate_pem: str | None = None
    key_location: str | None = None
    key_pem: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    crl_location: str | None = None
    ciphers: str | None = None
    protocols: tuple[str, ...] = ()  # Empty: TLS 1.2 and 1.3.
    check_certificate: bool = True
    check_host: bool = True

    def context(self) -> "SSLContext":
        """The settings in the form of Python's ssl; ConfigError names what cannot be used."""
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.check_certificate and self.check_host
        context.verify_mode = ssl.CERT_REQUIRED if self.check_certificate else ssl.CERT_NONE
        self._limit_protocols(context)
        if self.ciphers:
            try:
                context.set_ciphers(self.ciphers.replace(",", ":"))
            except ssl.SSLError:
                raise ConfigError(
                    f"ssl.cipher.suites={self.ciphers} names no cipher that OpenSSL knows"
                ) from None
        self._trust(context)
        self._show(context)
        return context

    def _limit_protocols(self, context: "SSLContext") -> None:
        import ssl

        versions = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
        unknown = [name for name in self.protocols if name not in versions]
        if unknown:
            raise ConfigError(
                f"ssl.enabled.protocols={unknown[0]} is not served: write TLSv1.2, TLSv1.3 or both"
            )
        wanted = [versions[name] for name in self.protocols] or list(versions.values())
        context.minimum_version, context.maximum_version = min(wanted), max(wanted)

    def _trust(self, context: "SSLContext") -> None:
        import ssl

        if self.ca_location is None and self.ca_pem is None:
            context.load_default_certs()
            return
        key, value = "ssl.ca.location", self.ca_location
        try:
            if value is not None:
                is_directory = Path(value).is_dir()
                context.load_verify_locations(
                    cafile=None if is_directory else value, capath=value if is_directory else None
                )
            if self.ca_pem is not None:
                key, value = "ssl.ca.pem", "..."
                context.load_verify_locations(cadata=self.ca_pem)
            if self.crl_location is not None:
                key, value = "ssl.crl.location", self.crl_location
                context.load_verify_locations(cafile=value)
                context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
        except (OSError, ValueError) as error:  # An SSLError is an OSError.
            raise ConfigError(f"{key}={value}: {_why(error)}") from None

    def _show(self, context: "SSLContext") -> None:
        """Load our own certificate and key, for brokers that ask who we are."""
        if self.certificate_pem is not None:
            self._show_texts(context)
        elif self.certificate_location is not None:
            self._load(context, self.certificate_location, self.key_location)
        elif self.key_location is not None or self.key_pem is not None:
            raise ConfigError("there is a key but no certificate: set ssl.certificate.location")

    def _show_texts(self, context: "SSLContext") -> None:
        """Python loads them only from files: one that nobody else may read, gone at once."""
        import tempfile

        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # Created with mode 600.
            key = self.key_pem
            if key is None and self.key_location is not None:
                key = Path(self.key_location).read_text()
            file.write("\n".join([self.certificate_pem or "", key or ""]))
            file.flush()
            self._load(context, file.name, None)

    def _load(self, context: "SSLContext", certificate: str, key: str | None) -> None:
        password = self.key_password or ""  # Never ask at the terminal.
        try:
            context.load_cert_chain(certificate, key, password=lambda: password)
        except (OSError, ValueError) as error:
            shown = "ssl.certificate.pem" if self.certificate_pem else certificate
            beside = f" and {key}" if key and key != certificate else ""
            raise ConfigError(
                f"cannot use {shown}{beside} as certificate and key: {_why(error)}"
            ) from None


def _why(error: OSError | ValueError) -> str:
    """A reason without a trace of what was in the file."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "it may not be read"
    words = str(getattr(error, "reason", None) or error).lower().replace("_", " ")
    return f"it is not usable PEM ({words}); is the key's password right?"
