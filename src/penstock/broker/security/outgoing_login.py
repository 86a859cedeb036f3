"""How this broker comes to others: TLS and SASL of the listener of brokers."""

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from penstock.config.broker import BrokerConfig
from penstock.config.listeners import ENCRYPTED, SSL, WITH_SASL, ListenerAddress
from penstock.errors import ConfigError
from penstock.net.session import ANONYMOUS
from penstock.security.kerberos_names import SETTING as RULES
from penstock.security.kerberos_names import KerberosName, KerberosNames
from penstock.security.sasl.client_exchange import NONCE_BYTES, Exchange, client_exchange
from penstock.security.sasl.client_tokens import MECHANISMS, Credentials, Proof
from penstock.security.sasl.jaas import user_and_password
from penstock.security.sasl.kerberos_login import (
    GSSAPI,
    SERVICE_SETTING,
    KerberosLogin,
    default_realm,
    kerberos_login_of,
    library,
)

if TYPE_CHECKING:
    from penstock.broker.security.tls_doors import OutgoingTls

_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
_WANTED: Final = {GSSAPI: "useKeyTab=true, keyTab and principal"}


def inter_broker_listener(config: BrokerConfig) -> ListenerAddress:
    """Where brokers find each other; all of them have it."""
    name = config.inter_broker_listener_name
    for listener in config.advertised_listeners:
        if listener.name == name:
            return listener
    raise ConfigError(
        f"brokers talk to each other on the listener {name}, which advertised.listeners does "
        "not have: add it, or name another in inter.broker.listener.name"
    )


def outgoing_wrap(config: BrokerConfig) -> "OutgoingTls | None":
    """TLS to other brokers; None: their listener has none."""
    listener = inter_broker_listener(config)
    if listener.security_protocol not in ENCRYPTED:
        return None
    from penstock.broker.security.tls_doors import OutgoingTls

    return OutgoingTls(config, listener.name)


def outgoing_login(config: BrokerConfig) -> Callable[[str], Exchange] | None:
    """A login for each connection, by the other broker's host; None: nobody asks for one."""
    listener = inter_broker_listener(config)
    if listener.security_protocol not in WITH_SASL:
        return None
    proof = _proof(config, listener.name)
    if isinstance(proof, KerberosLogin):
        library()  # It is better missed now than with the first connection.
    return lambda host: client_exchange(proof, nonce=secrets.token_urlsafe(NONCE_BYTES), host=host)


def own_principal(config: BrokerConfig) -> str | None:
    """Who this broker is to the others; None: its certificate says."""
    listener = inter_broker_listener(config)
    if listener.security_protocol in WITH_SASL:
        proof = _proof(config, listener.name)
        if isinstance(proof, KerberosLogin):
            return _own_user(config, listener.name, proof)
        return f"User:{proof.username}"
    return None if listener.security_protocol == SSL else ANONYMOUS


def _proof(config: BrokerConfig, listener: str) -> Proof:
    mechanism = str(config.for_listener(listener, _MECHANISM)).upper()
    if mechanism not in MECHANISMS:
        raise ConfigError(
            f"{_MECHANISM} is {mechanism}, by which brokers cannot come to each other here: "
            f"write one of {', '.join(MECHANISMS)}"
        )
    text = config.for_mechanism(listener, mechanism, "sasl.jaas.config")
    if not text:
        lead = f"listener.name.{listener.lower()}.{mechanism.lower()}"
        raise ConfigError(
            f"brokers log in to each other with {mechanism}: write {lead}.sasl.jaas.config with "
            + _WANTED.get(mechanism, 'username="..." and password="..."')
        )
    if mechanism == GSSAPI:
        return kerberos_login(config, listener, str(text))
    username, password = user_and_password(str(text))
    return Credentials(mechanism=mechanism, username=username, password=password)


def kerberos_login(config: BrokerConfig, listener: str, jaas: str) -> KerberosLogin:
    """The keys of a listener, with the name of its service."""
    service = config.for_listener(listener, SERVICE_SETTING)
    return kerberos_login_of(jaas, service=str(service) if service else None)


def kerberos_rules(config: BrokerConfig, listener: str) -> tuple[str, ...]:
    """How a principal becomes a user."""
    rules = config.for_listener(listener, RULES)
    assert isinstance(rules, tuple)
    return rules


def _own_user(config: BrokerConfig, listener: str, login: KerberosLogin) -> str | None:
    """Whom the rules make of our own principal; None: tickets say, which are not here yet."""
    if login.principal is None:
        return None
    realm = default_realm()
    names = KerberosNames.parse(kerberos_rules(config, listener), default_realm=realm)
    full = login.principal if "@" in login.principal else f"{login.principal}@{realm}"
    return f"User:{names.user(KerberosName.parse(full))}"
