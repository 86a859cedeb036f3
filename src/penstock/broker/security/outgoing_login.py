"""How this broker comes to others: TLS and SASL of the listener of brokers."""

import secrets
import socket
from collections.abc import Callable
from typing import Final

from penstock.config.broker import BrokerConfig
from penstock.config.listeners import ENCRYPTED, SSL, WITH_SASL, ListenerAddress
from penstock.errors import ConfigError
from penstock.net.session import ANONYMOUS
from penstock.net.transport import Transport
from penstock.security.sasl.client_exchange import NONCE_BYTES, Exchange, client_exchange
from penstock.security.sasl.client_tokens import MECHANISMS, Credentials
from penstock.security.sasl.jaas import user_and_password

_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"


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


def outgoing_wrap(config: BrokerConfig) -> Callable[[socket.socket, str], Transport] | None:
    """TLS to other brokers; None: their listener has none."""
    listener = inter_broker_listener(config)
    if listener.security_protocol not in ENCRYPTED:
        return None
    from penstock.broker.security.tls_doors import tls_settings
    from penstock.net.tls_transport import TlsTransport

    context = tls_settings(config, listener.name).client_context()
    return lambda sock, host: TlsTransport(sock, context, server_hostname=host)


def outgoing_login(config: BrokerConfig) -> Callable[[], Exchange] | None:
    """A login for each connection to another broker; None: their listener asks for none."""
    listener = inter_broker_listener(config)
    if listener.security_protocol not in WITH_SASL:
        return None
    credentials = _credentials(config, listener.name)
    return lambda: client_exchange(credentials, nonce=secrets.token_urlsafe(NONCE_BYTES))


def own_principal(config: BrokerConfig) -> str | None:
    """Who this broker is to the others; None: its certificate says."""
    listener = inter_broker_listener(config)
    if listener.security_protocol in WITH_SASL:
        return f"User:{_credentials(config, listener.name).username}"
    return None if listener.security_protocol == SSL else ANONYMOUS


def _credentials(config: BrokerConfig, listener: str) -> Credentials:
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
            'username="..." and password="..."'
        )
    username, password = user_and_password(str(text))
    return Credentials(mechanism=mechanism, username=username, password=password)
