"""Kerberos by RFC 4752, the client's side: a ticket for the broker, then no layer of GSSAPI's.

The first step asks the ticket service, unless a ticket for this broker is at hand: whoever may not
wait takes it in a thread. The broker has to prove that it has its key.
"""

from collections.abc import Generator
from typing import Any

from penstock.security.sasl.gssapi_server import NO_LAYER, OFFER
from penstock.security.sasl.kerberos_login import (
    KerberosLogin,
    fail_at_once,
    library,
    principal_name,
    words_of,
)
from penstock.security.sasl.outcome import SaslRefused


def kerberos_tokens(login: KerberosLogin, *, host: str) -> Generator[bytes, bytes, None]:
    """The conversation with the broker on this host; SaslRefused without a ticket."""
    gssapi: Any = library()
    try:
        context = _context(gssapi, login, host)
        fail_at_once(context)
        token = context.step()
        while not context.complete:
            token = context.step((yield token or b""))
        offered = context.unwrap((yield token or b"")).message
        yield context.wrap(_choice(offered), False).message
    except gssapi.exceptions.GSSError as error:
        wanted = f"no ticket of {login.username} for {login.service}/{host}"
        raise SaslRefused(f"Kerberos has {wanted}: {words_of(error)}") from None


def _context(gssapi: Any, login: KerberosLogin, host: str) -> Any:
    kerberos = gssapi.MechType.kerberos
    credentials = gssapi.Credentials(
        name=principal_name(gssapi, login.principal),
        usage="initiate",
        mechs=[kerberos],
        store=login.store,
    )
    return gssapi.SecurityContext(
        name=gssapi.Name(f"{login.service}@{host}", gssapi.NameType.hostbased_service),
        creds=credentials,
        usage="initiate",
        mech=kerberos,
        flags=[
            gssapi.RequirementFlag.mutual_authentication,
            gssapi.RequirementFlag.integrity,
            gssapi.RequirementFlag.out_of_sequence_detection,
        ],
    )


def _choice(offered: bytes) -> bytes:
    if len(offered) != len(OFFER) or not offered[0] & NO_LAYER:
        raise SaslRefused("the broker wants a layer of GSSAPI's, which Kafka has none of")
    return OFFER
