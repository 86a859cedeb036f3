"""Which certificate may take the place of another."""

import pytest
from tests.support.key_stores import make_identity

from penstock.errors import ConfigError
from penstock.security.tls.same_owner import refuse_other_owner

AUTHORITY = make_identity("authority")


def chain(name: str, host: str = "127.0.0.1") -> bytes:
    return make_identity(name, issuer=AUTHORITY, host=host).chain_pem


def test_a_renewed_certificate_takes_the_place_of_the_old_one() -> None:
    refuse_other_owner(chain("a"), chain("a"), may_rename=False, may_lose_hosts=False)


def test_another_name_needs_leave() -> None:
    with pytest.raises(ConfigError, match="existing CN=a, new CN=b"):
        refuse_other_owner(chain("a"), chain("b"), may_rename=False, may_lose_hosts=True)
    refuse_other_owner(chain("a"), chain("b"), may_rename=True, may_lose_hosts=False)


def test_a_host_that_is_missing_needs_leave() -> None:
    old, new = chain("a"), chain("a", host="127.0.0.2")
    with pytest.raises(ConfigError, match="SubjectAltNames do not match"):
        refuse_other_owner(old, new, may_rename=True, may_lose_hosts=False)
    refuse_other_owner(old, new, may_rename=False, may_lose_hosts=True)


def test_hosts_may_be_added_to_none() -> None:
    bare = AUTHORITY.certificate_pem  # Has no names of hosts.
    refuse_other_owner(bare, chain("authority"), may_rename=False, may_lose_hosts=False)
