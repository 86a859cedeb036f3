"""Addresses as Java prints them, because the hosts of Kafka's rules are written so.

An address of IPv6 is eight numbers, none of them left out: `0:0:0:0:0:0:0:1` for `::1`. One of IPv4
that came over IPv6 is the one of IPv4. A rule may have an address in any of its spellings.
"""


def java_address(host: str) -> str:
    """The one spelling of an address; what is no address of IPv6 stays as it is."""
    if ":" not in host:
        return host
    import ipaddress  # Most brokers meet no such address.

    text, percent, zone = host.partition("%")
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    groups = (int(group, 16) for group in address.exploded.split(":"))
    return ":".join(f"{group:x}" for group in groups) + percent + zone
