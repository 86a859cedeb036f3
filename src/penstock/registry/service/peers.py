"""How instances see each other: this one's address, and the TLS between them."""

import socket
import ssl
from collections.abc import Sequence
from typing import NamedTuple

from penstock.config.listeners import ANY_ADDRESS
from penstock.errors import ConfigError
from penstock.http.doors import server_context
from penstock.registry.election import InstanceIdentity
from penstock.registry.service.config import RegistryConfig
from penstock.registry.service.forwarding import ForwardSettings
from penstock.security.tls.contexts import TlsSettings


class TlsContexts(NamedTuple):
    """One for our listeners, one for what we ask of others; None: not needed."""

    server: ssl.SSLContext | None
    client: ssl.SSLContext | None


def tls_contexts(config: RegistryConfig) -> TlsContexts:
    """What `ssl.*` says; ConfigError if an https listener cannot be served with it."""
    tls = config.tls or TlsSettings.read({})
    return TlsContexts(
        server=server_context(config.tls, config.listeners),
        client=tls.client_context() if config.inter_instance_scheme == "https" else None,
    )


def own_identity(config: RegistryConfig, ports: Sequence[int]) -> InstanceIdentity:
    """What the others are told of us: the first listener of the protocol between instances."""
    scheme = config.inter_instance_scheme
    for listener, port in zip(config.listeners, ports, strict=True):
        if listener.scheme == scheme:
            return InstanceIdentity(
                host=config.host_name or _reachable(listener.host),
                port=port,
                scheme=scheme,
                is_eligible=config.is_eligible,
            )
    raise ConfigError(f"inter.instance.protocol={scheme}, but no listener is of that protocol")


def forward_settings(config: RegistryConfig, tls: ssl.SSLContext | None) -> ForwardSettings:
    """How writes are passed on."""
    return ForwardSettings(timeout_s=config.timeout_s, tls=tls, headers=config.forwarded_headers)


def _reachable(host: str) -> str:
    """The machine's name stands for all of its addresses."""
    return socket.getfqdn() if not host or host in ANY_ADDRESS else host
