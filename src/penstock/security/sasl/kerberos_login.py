"""Whose tickets and keys a side of Kerberos uses, read from the line of Java's Krb5LoginModule.

    com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true
      keyTab="/etc/penstock/kafka.keytab" principal="kafka/broker1.example.org@EXAMPLE.ORG";

The library is optional (`pip install "penstock[kerberos]"`), and so it is imported only here, by
whoever was told to use Kerberos. It is MIT's own: realms and the address of the ticket service are
those of krb5.conf.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import ConfigError
from penstock.security.sasl.jaas import parse

GSSAPI = "GSSAPI"
SERVICE_SETTING = "sasl.kerberos.service.name"
KERBEROS_MODULE = "Krb5LoginModule"
_KEY = "sasl.jaas.config"
_EMPTY_WORDS = ("Success", "Unknown error")  # Which says nothing of a failure.
_OWN_TICKETS = "MEMORY:penstock-"  # Of this process alone, renewed by the library from the keytab.


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosLogin:
    """Who to be by Kerberos, and where the proof is."""

    service: str  # The first part of the names of brokers.
    principal: str | None  # None: whoever the tickets belong to.
    keytab: str | None = None  # None: there is none to get tickets with.
    uses_tickets: bool = False  # Tickets that `kinit` left are taken if they are there.
    tickets: str | None = None  # Where; None: where the library looks.

    @property
    def mechanism(self) -> str:
        return GSSAPI

    @property
    def username(self) -> str:
        """For a message."""
        return self.principal or "the current user"

    @property
    def store(self) -> dict[str, str]:
        """Where the library finds what a client needs."""
        found = {} if self.keytab is None else {"client_keytab": self.keytab}
        if not self.uses_tickets:
            found["ccache"] = f"{_OWN_TICKETS}{self.principal}"
        elif self.tickets is not None:
            found["ccache"] = self.tickets
        return found


def kerberos_login_of(
    text: str, *, service: str | None, is_service_elsewhere: bool = False
) -> KerberosLogin:
    """What the line says; ConfigError when it says too little."""
    options = parse(text)
    has_keytab = _is_true(options, "useKeyTab")
    uses_tickets = _is_true(options, "useTicketCache")
    if not has_keytab and not uses_tickets:
        raise ConfigError(
            f"{_KEY}: Kerberos needs useKeyTab=true with keyTab and principal, or "
            "useTicketCache=true; nobody can be asked for a password here"
        )
    for name in ("keyTab", "principal"):
        if has_keytab and name not in options:
            raise ConfigError(f"{_KEY}: useKeyTab=true needs {name}")
    return KerberosLogin(
        service=options.get("serviceName", "")
        if is_service_elsewhere
        else _service(options.get("serviceName"), service),
        principal=options.get("principal"),
        keytab=options["keyTab"] if has_keytab else None,
        uses_tickets=uses_tickets,
        tickets=options.get("ticketCache"),
    )


def library() -> Any:
    """python-gssapi; ConfigError where it, or the system's Kerberos, is not installed."""
    try:
        import gssapi
    except (ImportError, OSError) as error:
        raise ConfigError(
            "GSSAPI needs Kerberos: install the system's library (Debian: libkrb5-dev) and "
            f'`pip install "penstock[kerberos]"` ({error})'
        ) from None
    return gssapi


def principal_name(gssapi: Any, principal: str | None) -> Any:
    """As the library wants it; None: whoever is there."""
    if principal is None:
        return None
    return gssapi.Name(principal, gssapi.NameType.kerberos_principal)


def fail_at_once(context: Any) -> None:
    """The library would keep a failure back while there is a token that tells the other side."""
    setattr(context, "__DEFER_STEP_ERRORS__", False)  # noqa: B010 (its name would be mangled)


def default_realm() -> str:
    """The realm of this machine; empty where krb5.conf names none, as in Kafka."""
    gssapi: Any = library()
    try:
        name = gssapi.Name("anybody", gssapi.NameType.kerberos_principal)
        return str(name.canonicalize(gssapi.MechType.kerberos)).rpartition("@")[2]
    except gssapi.exceptions.GSSError:
        return ""


def words_of(error: Any) -> str:
    """What the mechanism says of a failure, which tells more than the words all mechanisms have."""
    minor = [
        text for text in error.get_all_statuses(error.min_code, False) if text not in _EMPTY_WORDS
    ]
    return "; ".join(minor or error.get_all_statuses(error.maj_code, True))


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false").lower() == "true"


def _service(in_jaas: str | None, in_settings: str | None) -> str:
    """The words are Kafka's."""
    if in_jaas and in_settings and in_jaas != in_settings:
        raise ConfigError(
            f"Conflicting serviceName values found in JAAS and Kafka configs value in JAAS file "
            f"{in_jaas}, value in Kafka config {in_settings}"
        )
    if found := in_jaas or in_settings:
        return found
    raise ConfigError(
        f"No serviceName defined in either JAAS or Kafka config: write {SERVICE_SETTING}"
    )
