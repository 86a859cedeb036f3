"""What members of a group of Connect workers tell each other through the coordinator.

Version 0 is that of eager rebalances, 1 that of incremental ones (KIP-415), 2 says the same and
that requests between workers are signed (KIP-507).
"""

from penstock.protocol.schema import Struct, array, blob, int16, int32, int64, string
from penstock.protocol.stored import Versioned


class ConnectorTasks(Struct):
    """Tasks of a connector; -1 stands for the connector itself."""

    connector: str = string("0+")
    tasks: list[int] = array(int32, "0+")


class ConnectWorkerState(Versioned, versions="0-2"):
    """What a worker tells of itself when it joins."""

    url: str = string("0+")
    config_offset: int = int64("0+")
    allocation: bytes | None = blob("1+", nullable=True, default=None, ignorable=True)


class ConnectAssignment(Versioned, versions="0-2"):
    """What the leader tells a worker, and what a worker tells that it holds."""

    error: int = int16("0+")
    leader: str = string("0+")
    leader_url: str = string("0+")
    config_offset: int = int64("0+")
    assignment: list[ConnectorTasks] = array(ConnectorTasks, "0+")
    revoked: list[ConnectorTasks] | None = array(
        ConnectorTasks, "1+", nullable=True, default=None, ignorable=True
    )
    delay: int = int32("1+", ignorable=True)
