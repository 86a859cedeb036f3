"""Whether a new certificate may take the place of one that is shown now.

Kafka's rule: it must have the same name and all the hosts of the old one, so that nobody replaces a
broker's certificate by another broker's, unless that was allowed.
"""

from penstock.errors import ConfigError


def refuse_other_owner(
    old_pem: bytes, new_pem: bytes, *, may_rename: bool, may_lose_hosts: bool
) -> None:
    """ConfigError tells what is different between the first certificates of the two chains."""
    (old_name, old_hosts), (new_name, new_hosts) = _owner(old_pem), _owner(new_pem)
    if not may_rename and old_name != new_name:
        raise ConfigError(
            f"Keystore DistinguishedName does not match: existing {old_name}, new {new_name}; "
            "ssl.allow.dn.changes=true would allow it"
        )
    if not may_lose_hosts and not old_hosts <= new_hosts:
        raise ConfigError(
            f"Keystore SubjectAltNames do not match: existing {sorted(old_hosts)}, new "
            f"{sorted(new_hosts)}; ssl.allow.san.changes=true would allow it"
        )


def _owner(chain_pem: bytes) -> tuple[str, frozenset[str]]:
    """The name, and the hosts with their kinds."""
    from cryptography import x509

    from penstock.security.tls.subjects import distinguished_name

    certificate = x509.load_pem_x509_certificate(chain_pem)
    try:
        named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        hosts: frozenset[str] = frozenset()
    else:
        hosts = frozenset(f"{type(one).__name__}:{one.value}" for one in named)
    return distinguished_name(certificate.subject), hosts
