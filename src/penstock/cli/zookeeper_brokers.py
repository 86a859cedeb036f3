"""The brokers that ZooKeeper knows of, for tools that are given its address as of old."""

from penstock.cluster.znodes import BROKER_IDS, BrokerNode, broker_path
from penstock.errors import CommandError
from penstock.meta.store import MetaError, NoNode
from penstock.meta.zookeeper.nodes import ZkNodes

_CONNECT_S = 5.0


def brokers_in_zookeeper(address: str, security_protocol: str = "PLAINTEXT") -> str | None:
    """`host:port` of all live brokers with such a listener; None: no ZooKeeper answers there."""
    try:
        with ZkNodes(address, connect_s=_CONNECT_S) as nodes:
            found = [_address(nodes, name, security_protocol) for name in _broker_ids(nodes)]
    except MetaError:
        return None
    known = [place for place in found if place is not None]
    if not known:
        raise CommandError(
            f"The ZooKeeper at {address} knows of no live broker with a {security_protocol} "
            "listener. Is a broker running, and is the path behind the address (its chroot) right?"
        )
    return ",".join(known)


def _broker_ids(nodes: ZkNodes) -> list[str]:
    try:
        return nodes.children(BROKER_IDS)
    except NoNode:
        return []


def _address(nodes: ZkNodes, name: str, security_protocol: str) -> str | None:
    path = broker_path(int(name))
    try:
        data, _ = nodes.get(path)
    except NoNode:
        return None  # It went away while we looked.
    node = BrokerNode.decode(path, data or b"")
    for endpoint in node.endpoints:
        if endpoint.security_protocol == security_protocol:
            host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
            return f"{host}:{endpoint.port}"
    return None
