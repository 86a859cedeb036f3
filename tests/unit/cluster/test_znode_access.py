"""Who may do what with a cluster's nodes: Kafka's rules."""

import pytest

from penstock.cluster.znode_access import EXTENSIONS, SECURE_ROOTS, secure_access
from penstock.cluster.znodes import PERSISTENT_PATHS
from penstock.meta.access import Access


@pytest.mark.parametrize(
    ("path", "access"),
    [
        ("/consumers", Access.OPEN),
        ("/config/users/alice", Access.PRIVATE),
        ("/config/brokers", Access.PRIVATE),
        ("/delegation_token/tokens/id", Access.PRIVATE),
        ("/delegation_token", Access.READABLE),
        ("/ext/decoy_key", Access.PRIVATE),
        ("/ext/fence", Access.READABLE),
        ("/config/topics/t", Access.READABLE),
        ("/brokers/ids/1", Access.READABLE),
        ("/", Access.READABLE),
    ],
)
def test_brokers_write_all_read_and_secrets_are_kept(path: str, access: Access) -> None:
    assert secure_access(path) is access


def test_a_migration_reaches_every_node_of_a_cluster() -> None:
    roots = (*SECURE_ROOTS, EXTENSIONS)
    left = [
        path
        for path in PERSISTENT_PATHS
        if not any(path == root or path.startswith(f"{root}/") for root in roots)
    ]
    assert left == ["/consumers"]
