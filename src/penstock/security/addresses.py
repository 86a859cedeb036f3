"""Addresses as Java prints them, because the hosts of Kafka's rules are written so.

An address of IPv6 is eight numbers, none of them left out: `0:0:0:0:0:0:0:1` for `::1`. One of IPv4
that came over IPv6 is the one of IPv4. A rule may have an address in any of its spellings.
"""

import socket

_MAPPED = bytes(10) + b"\xff\xff"  # How an address of IPv4 begins inside one of IPv6.


def java_address(host: str) -> str:
    """The one spelling of an address; what is no address of IPv6 stays as it is."""
    if ":" not in host:
        return host
    text, percent, zone = host.partition("%")
    try:
        packed = socket.inet_pton(socket.AF_INET6, text)
    except (OSError, ValueError):  # ValueError: a NUL in it.
        return host
    if packed.startswith(_MAPPED):
        return socket.inet_ntop(socket.AF_INET, packed[len(_MAPPED) :])
    groups = (int.from_bytes(packed[at : at + 2], "big") for at in range(0, len(packed), 2))
    return ":".join(f"{group:x}" for group in groups) + percent + zone
