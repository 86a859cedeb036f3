"""Listeners as settings write them: NAME://host:port, and what each name means.

Only the text is judged here. Binding is the work of net/, and turning port 0 into the port the
system gave is done by `advertised_ports` once it is known.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from penstock.errors import ConfigError

PLAINTEXT: Final = "PLAINTEXT"
SSL: Final = "SSL"
SASL_PLAINTEXT: Final = "SASL_PLAINTEXT"
SASL_SSL: Final = "SASL_SSL"
PROTOCOLS: Final = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
ENCRYPTED: Final = frozenset({SSL, SASL_SSL})
WITH_SASL: Final = frozenset({SASL_PLAINTEXT, SASL_SSL})

ANY_ADDRESS: Final = ("0.0.0.0", "::")

_LISTENER = re.compile(r"([^:/]+)://(?:\[([0-9A-Fa-f:.%\w]*)\]|([\w.%:-]*)):(\d+)")


class ListenerAddress(NamedTuple):
    """One place to connect to, or to listen on."""

    name: str
    host: str  # Empty: every interface of the machine.
    port: int  # 0: whichever port the system has free.
    security_protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_protocol_map(text: str) -> dict[str, str]:
    """`listener.security.protocol.map`: the protocol of each listener name."""
    protocols: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, protocol = (part.strip().upper() for part in pair.partition(":"))
        _check_pair(pair, name, protocol)
        if name in protocols:
            raise ConfigError(f"listener.security.protocol.map names {name} twice")
        protocols[name] = protocol
    return protocols


def _check_pair(pair: str, name: str, protocol: str) -> None:
    if not name or protocol not in PROTOCOLS:
        raise ConfigError(
            f"listener.security.protocol.map has {pair}:"
            f" write NAME:PROTOCOL, the protocol one of {', '.join(PROTOCOLS)}"
        )


def parse_listeners(
    key: str, texts: Sequence[str], protocols: Mapping[str, str]
) -> tuple[ListenerAddress, ...]:
    """The listeners of a setting, each name once."""
    found = tuple(_parse_listener(key, text, protocols) for text in texts)
    _refuse_repeated(key, [listener.name for listener in found])
    return found


def _parse_listener(key: str, text: str, protocols: Mapping[str, str]) -> ListenerAddress:
    name, host, port = split_address(key, text, "NAME://host:port")
    name = name.upper()
    protocol = protocols.get(name)
    if protocol is None:
        raise ConfigError(
            f"{key} has the listener {name}, which listener.security.protocol.map does not name:"
            f" add {name}:PLAINTEXT to it"
        )
    return ListenerAddress(name, host, port, protocol)


def split_address(key: str, text: str, form: str) -> tuple[str, str, int]:
    """The three parts of `name://host:port`."""
    match = _LISTENER.fullmatch(text.strip())
    if match is None or int(match[4]) > 65535:
        raise ConfigError(f"{key} has {text or 'an empty entry'}: write {form}, port 0 to 65535")
    host = match[2] if match[2] is not None else match[3]
    return match[1], host, int(match[4])


def _refuse_repeated(key: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{key} has two listeners named {name}: each needs its own name")


def check_bindable(listeners: Iterable[ListenerAddress]) -> None:
    """Refuse two listeners on one port."""
    ports: dict[int, ListenerAddress] = {}
    for listener in listeners:
        other = ports.setdefault(listener.port, listener)
        if other is not listener and listener.port and not _two_families(other, listener):
            raise ConfigError(f"listeners has {other} and {listener}: each needs its own port")


def _two_families(one: ListenerAddress, other: ListenerAddress) -> bool:
    # The same port is two ports when one address is IPv4 and the other IPv6.
    return all(listener.host for listener in (one, other)) and (":" in one.host) != (
        ":" in other.host
    )


def advertised_ports(
    advertised: Iterable[ListenerAddress], bound_ports: Mapping[str, int]
) -> tuple[ListenerAddress, ...]:
    """What to tell clients once the listeners are bound: port 0 becomes the real port."""
    return tuple(
        listener if listener.port else listener._replace(port=bound_ports[listener.name])
        for listener in advertised
    )


def parse_http_listeners(key: str, texts: Sequence[str]) -> tuple[ListenerAddress, ...]:
    """Addresses of a plain HTTP endpoint, as `http://127.0.0.1:9404`."""
    found = []
    for text in texts:
        scheme, host, port = split_address(key, text.rstrip("/"), "http://host:port")
        if scheme.lower() != "http":
            raise ConfigError(f"{key} has {text}: only http:// is served")
        found.append(ListenerAddress("http", host, port, PLAINTEXT))
    return tuple(found)
