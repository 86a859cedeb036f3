"""What a handler can reach: the broker's parts, and the facts of the request at hand."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.broker.exactly_once import Transactions
from penstock.broker.fetch_sessions import FetchSessions
from penstock.broker.producer_ids import ProducerIds
from penstock.broker.quotas.clients import ClientQuotas
from penstock.broker.quotas.connections import ConnectionQuotas
from penstock.cluster.controller import Controller
from penstock.cluster.image import ClusterImage
from penstock.config.broker import BrokerConfig
from penstock.errors import NotController
from penstock.groups.coordinator import GroupCoordinator
from penstock.meta.store import MetaStore
from penstock.protocol.headers import RequestHeader
from penstock.replica.table import PartitionTable
from penstock.storage.log_dirs import LogDirs
from penstock.telemetry.metrics import Metrics

if TYPE_CHECKING:  # A broker alone needs none of these, and does without them in memory too.
    from penstock.broker.cluster_member import ClusterMember
    from penstock.broker.forwarding import Forwarder
    from penstock.net.peers import Peers


ANONYMOUS = "User:ANONYMOUS"  # Whoever did not have to say who they are.


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(slots=True, kw_only=True)
class Broker:
    """The parts of one broker process; `config` and `image` are replaced as they change."""

    config: BrokerConfig
    store: MetaStore  # Of the present session; a new session brings another.
    controller: Controller | None  # None: another broker is it.
    image: ClusterImage
    partitions: PartitionTable
    log_dirs: LogDirs
    metrics: Metrics
    producer_ids: ProducerIds
    fetch_sessions: FetchSessions
    groups: GroupCoordinator
    transactions: Transactions
    quotas: ClientQuotas
    connection_quotas: ConnectionQuotas
    now_ms: Callable[[], int] = field(default=wall_clock_ms)
    is_stopping: bool = False  # From then on nobody waits for what may never come.
    # What only a member of a cluster has; None: this broker is alone.
    peers: "Peers | None" = None
    member: "ClusterMember | None" = None
    forwarder: "Forwarder | None" = None

    @property
    def broker_id(self) -> int:
        return self.config.broker_id

    def acting_controller(self) -> Controller:
        """The controller, if this broker is it; raises what a client is told if not."""
        if self.controller is None or self.controller.is_over:
            raise NotController("This is not the correct controller for this cluster.")
        return self.controller


class RequestContext:
    """The facts of one request."""

    __slots__ = (
        "broker",
        "client_address",
        "header",
        "listener",
        "principal",
        "throttle_ms",
        "version",
    )

    def __init__(
        self,
        broker: Broker,
        header: RequestHeader,
        listener: str,
        client_address: str,
        principal: str = ANONYMOUS,
    ) -> None:
        self.broker = broker
        self.header = header
        self.version = header.api_version
        self.listener = listener  # The name of the listener the client came in on.
        self.client_address = client_address
        self.principal = principal
        self.throttle_ms = 0  # How long the client is to be silent, as far as the handler knows.

    @property
    def client_id(self) -> str | None:
        return self.header.client_id
