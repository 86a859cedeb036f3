"""zookeeper-security-migration: give the nodes of a cluster access lists, or take them away.

For a cluster whose brokers began to show certificates to ZooKeeper, and for the way back. Which
node gets what is cluster/znode_access.py's.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.cli.parser import ToolParser
from penstock.cluster.znode_access import EXTENSIONS, SECURE_ROOTS, secure_access
from penstock.cluster.znodes import CONTROLLER
from penstock.config.properties import read_properties
from penstock.errors import CommandError
from penstock.meta.access import Access
from penstock.meta.store import NodeExists, NoNode
from penstock.meta.zookeeper.grants import GRANTS
from penstock.meta.zookeeper.nodes import ZkNodes
from penstock.meta.zookeeper.tls import ENABLE, KEY_STORE, SOCKET, zookeeper_tls

_PURPOSE = (
    "ZooKeeper Migration Tool Help. This tool updates the ACLs of znodes as part of the process of "
    "setting up ZooKeeper authentication."
)
_FILE = "zk-tls-config-file"


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    access = getattr(options, "zookeeper.acl")
    if access is None:
        parser.error(_PURPOSE)
    file = options.zk_tls_config_file
    tls = zookeeper_tls(read_properties(Path(file))) if file else None
    if tls is None or not tls.key_store.is_given:
        raise CommandError(
            "ERROR: No TLS client certificate has been specified. Provide a ZooKeeper client TLS "
            f"configuration via --{_FILE} <filename> identifying at least {ENABLE}, {SOCKET}, and "
            f"{KEY_STORE}.location"
        )
    with ZkNodes(
        getattr(options, "zookeeper.connect"),
        connect_s=getattr(options, "zookeeper.connection.timeout") / 1000,
        session_s=getattr(options, "zookeeper.session.timeout") / 1000,
        tls=tls,
    ) as nodes:
        return migrate(nodes, is_secure=access == "secure", must_exist=options.enable_path_check)


def migrate(nodes: ZkNodes, *, is_secure: bool, must_exist: bool) -> int:
    """Go through the cluster's nodes; 1: it does not look like a cluster, and nothing was done."""
    missing = [path for path in SECURE_ROOTS if not _exists(nodes, path)]
    if missing:
        print(
            "Warning: The following secure root paths do not exist in ZooKeeper: "
            f"{','.join(missing)}\nThat might be due to an incorrect chroot is specified when "
            "executing the command."
        )
        if must_exist:
            print("Exit the command.")
            return 1
    for path in _to_change(nodes, missing):
        grants = GRANTS[secure_access(path) if is_secure else Access.OPEN]
        try:
            nodes.set_grants(path, grants)
        except NoNode:
            continue  # It went away while we looked.
    return 0


def _to_change(nodes: ZkNodes, missing: Sequence[str]) -> Iterator[str]:
    """The root, and all nodes below the cluster's own; parents first, so each is made once."""
    yield "/"
    roots = [path for path in SECURE_ROOTS if path != CONTROLLER or path not in missing]
    roots += [EXTENSIONS] if _exists(nodes, EXTENSIONS) else []
    for root in roots:
        _ensure(nodes, root)
        try:
            yield from nodes.descend(root)
        except NoNode:
            continue


def _ensure(nodes: ZkNodes, path: str) -> None:
    """Make a node that a broker would make at its start, and what is above it."""
    names = path.split("/")[1:]
    for depth in range(1, len(names) + 1):
        above = "/" + "/".join(names[:depth])
        if not _exists(nodes, above):
            try:
                nodes.create(above, b"")
            except NodeExists:
                continue


def _exists(nodes: ZkNodes, path: str) -> bool:
    try:
        nodes.get(path)
    except NoNode:
        return False
    return True


def _parser() -> ToolParser:
    parser = ToolParser("zookeeper-security-migration", _PURPOSE)
    parser.add_argument(
        "--zookeeper.acl",
        choices=["secure", "unsecure"],
        metavar="String",
        help="Indicates whether to make the Kafka znodes in ZooKeeper secure or unsecure. The "
        "options are 'secure' and 'unsecure'",
    )
    parser.add_argument(
        "--zookeeper.connect",
        default="localhost:2181",
        metavar="String",
        help="Sets the ZooKeeper connect string (ensemble). This parameter takes a "
        "comma-separated list of host:port pairs. (default: localhost:2181)",
    )
    for word in ("session", "connection"):
        parser.add_argument(
            f"--zookeeper.{word}.timeout",
            type=int,
            default=30_000,
            metavar="Integer",
            help=f"Sets the ZooKeeper {word} timeout. (default: 30000)",
        )
    parser.add_argument(
        "--enable.path.check",
        dest="enable_path_check",
        action="store_true",
        help="Checks if all the root paths exist in ZooKeeper before migration. If not, exit the "
        "command.",
    )
    parser.add_argument(
        f"--{_FILE}",
        metavar="String: ZooKeeper TLS configuration",
        help="Identifies the file where ZooKeeper client TLS connectivity properties are defined. "
        "Other properties in it are ignored.",
    )
    return parser
