"""Who may do what with the nodes of a cluster, where ZooKeeper knows who is asking.

Apache Kafka's own rules: brokers alone write, everybody may read, except for what holds secrets.
Pure: who sets the access lists is whoever makes the nodes, or zookeeper-security-migration.
"""

from typing import Final

from penstock.cluster.znodes import CONTROLLER, CONTROLLER_EPOCH, DECOY_KEY, PRODUCER_ID_BLOCK
from penstock.meta.access import Access
from penstock.security.acls.nodes import (
    EXTENDED_CHANGES,
    LITERAL_CHANGES,
    LITERAL_ROOT,
    PREFIXED_ROOT,
)

# Consumers of the time before 0.9 wrote here by themselves.
CONSUMERS: Final = "/consumers"
# Passwords of users, of brokers' key stores, and tokens; and what tells users from nobody.
SECRET_ROOTS: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens", DECOY_KEY)
# What a migration goes through, all that is below included.
SECURE_ROOTS: Final = (
    "/admin",
    "/brokers",
    "/cluster",
    "/config",
    CONTROLLER,
    CONTROLLER_EPOCH,
    "/isr_change_notification",
    PRODUCER_ID_BLOCK,
    "/log_dir_event_notification",
    "/delegation_token",
    "/kafka-acl-extended",
    "/migration",
    "/feature",
    LITERAL_ROOT,
    LITERAL_CHANGES,
    PREFIXED_ROOT,
    EXTENDED_CHANGES,
)
EXTENSIONS: Final = "/ext"  # Our own; a cluster of Apache Kafka's does not have it.


def secure_access(path: str) -> Access:
    """Of a node that a broker makes with zookeeper.set.acl."""
    if path == CONSUMERS:
        return Access.OPEN
    return Access.PRIVATE if path.startswith(SECRET_ROOTS) else Access.READABLE
