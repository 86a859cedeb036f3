"""Access lists of ZooKeeper's nodes: who, known by which scheme, may do what."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from kazoo.security import ACL, Id

from penstock.meta.access import Access

RIGHTS: Final = "rwcda"  # Read, write, create, delete, administer.
_READ, _ALL = 1, 31


class Grant(NamedTuple):
    """One entry of a node's access list."""

    scheme: str
    identity: str
    permissions: int  # A bit for each of RIGHTS, the first the lowest.


# ZooKeeper puts in place of `auth` whoever the connection is known as, which is by x509 the name in
# the certificate. Kafka writes the same entries in the same order.
_CREATOR = Grant("auth", "", _ALL)
GRANTS: Final = {
    Access.OPEN: (Grant("world", "anyone", _ALL),),
    Access.READABLE: (_CREATOR, Grant("world", "anyone", _READ)),
    Access.PRIVATE: (_CREATOR,),
}


def access_list(grants: Sequence[Grant]) -> list[ACL]:
    """In the form kazoo sends."""
    return [ACL(one.permissions, Id(one.scheme, one.identity)) for one in grants]
