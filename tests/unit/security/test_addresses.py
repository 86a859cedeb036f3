"""Addresses in the spelling of Java."""

import pytest

from penstock.security.addresses import java_address


@pytest.mark.parametrize(
    ("host", "printed"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("0:0:0:0:0:0:0:1", "0:0:0:0:0:0:0:1"),
        ("2001:DB8::00ff", "2001:db8:0:0:0:0:0:ff"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("*", "*"),
        ("", ""),
        ("a host", "a host"),
        ("::x", "::x"),
        ("::1\0", "::1\0"),
    ],
)
def test_an_address_has_one_spelling(host: str, printed: str) -> None:
    assert java_address(host) == printed
