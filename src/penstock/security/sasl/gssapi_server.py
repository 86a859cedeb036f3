"""Kerberos by RFC 4752, the server's side: a ticket is checked, then the layer is agreed on.

A ticket is checked with the keytab alone; no ticket service is asked. The library keeps a cache of
what it has seen, so a ticket that somebody caught and sends again is refused. No layer of GSSAPI's
is offered, as in Kafka: what encrypts is TLS.
"""

from collections.abc import Iterable
from typing import Any

from penstock.errors import ConfigError
from penstock.security.kerberos_names import KerberosName, KerberosNames
from penstock.security.principals import USER, Principal
from penstock.security.sasl.kerberos_login import (
    KerberosLogin,
    default_realm,
    fail_at_once,
    library,
    principal_name,
    words_of,
)
from penstock.security.sasl.outcome import Authenticated, Challenge, SaslRefused

NO_LAYER = 1
# The layers there are, and the largest message inside of one: none, and so no message.
OFFER = bytes([NO_LAYER, 0, 0, 0])


class KerberosService:
    """The keys of a listener, and what its rules make of the names in tickets."""

    def __init__(self, login: KerberosLogin, rules: Iterable[str]) -> None:
        gssapi: Any = library()
        self._gssapi = gssapi
        self.names = KerberosNames.parse(rules, default_realm=default_realm())
        if login.principal is None or login.keytab is None:
            raise ConfigError("sasl.jaas.config: a broker needs useKeyTab=true with its principal")
        try:
            self._keys = gssapi.Credentials(
                name=principal_name(gssapi, login.principal),
                usage="accept",
                mechs=[gssapi.MechType.kerberos],
                store={"keytab": login.keytab},
            )
        except gssapi.exceptions.GSSError as error:
            raise ConfigError(
                f"the keytab {login.keytab} cannot be used for {login.principal}: {words_of(error)}"
            ) from None

    def server(self) -> "GssapiServer":
        """For one authentication."""
        context = self._gssapi.SecurityContext(creds=self._keys, usage="accept")
        fail_at_once(context)
        return GssapiServer(
            context,
            failure=self._gssapi.exceptions.GSSError,
            names=self.names,
        )


class GssapiServer:
    """One authentication: a ticket, perhaps an empty message, and the layer the client chose."""

    __slots__ = ("_context", "_failure", "_is_offered", "_names", "_user")

    def __init__(self, context: Any, *, failure: type[Exception], names: KerberosNames) -> None:
        self._context = context
        self._failure = failure
        self._names = names
        self._user: str | None = None  # None: no ticket was seen yet.
        self._is_offered = False

    def step(self, token: bytes) -> Challenge | Authenticated:
        """The client's next message."""
        try:
            if self._is_offered:
                return self._judge(token)
            if self._user is None:
                answer = self._take_ticket(token)
                if answer:  # The client wants to know who we are, too.
                    return Challenge(token=answer)
            elif token:
                raise SaslRefused("a message where none was expected")
            self._is_offered = True
            return Challenge(token=self._context.wrap(OFFER, False).message)
        except self._failure as failure:
            raise SaslRefused(words_of(failure)) from None

    def _take_ticket(self, token: bytes) -> bytes:
        if not token:
            raise SaslRefused("no ticket")
        answer = self._context.step(token)
        if not self._context.complete:
            raise SaslRefused("the exchange takes more steps than Kerberos has")
        self._user = _local_name(str(self._context.initiator_name), self._names)
        return answer or b""

    def _judge(self, token: bytes) -> Authenticated:
        """Whom the client would like to be stands behind the layer; as in Kafka nobody asks."""
        chosen = self._context.unwrap(token).message
        if len(chosen) < len(OFFER) or chosen[0] != NO_LAYER:
            raise SaslRefused("the client chose a layer that was not offered")
        assert self._user is not None
        # The client is satisfied before we are, and one of Kafka 0.10 waits for no more.
        return Authenticated(token=None, principal=Principal(USER, self._user))


def _local_name(client: str, names: KerberosNames) -> str:
    """A backslash stands before a `/` or `@` inside a part, by which one name could be another."""
    if "\\" in client:
        raise SaslRefused(f"the principal {client} has a character that rules cannot tell apart")
    try:
        return names.user(KerberosName.parse(client))
    except ConfigError as error:
        raise SaslRefused(f"no user for the principal {client}: {error}") from None
