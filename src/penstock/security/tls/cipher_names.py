"""Cipher suites by the names Java and Kafka use, in the names OpenSSL uses.

The suites of TLS 1.3 have one name everywhere, and Python cannot choose among them: `ssl` sets
those of TLS 1.2 alone. So a list must name all of TLS 1.3's or none.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.errors import ConfigError

SUITES_OF_TLS_1_3 = frozenset(
    {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
)
_EXCHANGES = {
    "ECDHE_ECDSA": "ECDHE-ECDSA-",
    "ECDHE_RSA": "ECDHE-RSA-",
    "DHE_RSA": "DHE-RSA-",
    "RSA": "",
}
_CIPHERS = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
}
OPENSSL_NAMES = {
    f"TLS_{exchange}_WITH_{cipher}": prefix + name
    for exchange, prefix in _EXCHANGES.items()
    for cipher, name in _CIPHERS.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CipherChoice:
    """What a list of suites means for a context."""

    openssl_names: tuple[str, ...]  # For TLS 1.2; empty: it has none.
    has_tls_1_3: bool


def choose_ciphers(suites: Iterable[str]) -> CipherChoice:
    """Read `ssl.cipher.suites`; OpenSSL's own names are taken as they are."""
    wanted = [suite.strip() for suite in suites if suite.strip()]
    newest = SUITES_OF_TLS_1_3.intersection(wanted)
    if newest and newest != SUITES_OF_TLS_1_3:
        missing = ", ".join(sorted(SUITES_OF_TLS_1_3 - newest))
        raise ConfigError(
            "ssl.cipher.suites: the suites of TLS 1.3 can only be chosen together; "
            f"add {missing}, or leave TLS 1.3 out"
        )
    older = [suite for suite in wanted if suite not in SUITES_OF_TLS_1_3]
    unknown = [one for one in older if one.startswith("TLS_") and one not in OPENSSL_NAMES]
    if unknown:
        raise ConfigError(f"ssl.cipher.suites={unknown[0]} is not known")
    return CipherChoice(
        openssl_names=tuple(OPENSSL_NAMES.get(one, one) for one in older),
        has_tls_1_3=bool(newest),
    )
