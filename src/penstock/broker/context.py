"""What a handler can reach: the broker's parts, and the facts of the request at hand."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.broker.fetching.sessions import FetchSessions
from penstock.broker.quotas.clients import ClientQuotas
from penstock.broker.quotas.connections import ConnectionQuotas
from penstock.broker.slow_lane import SlowLane
from penstock.broker.transactions.exactly_once import Transactions
from penstock.broker.transactions.producer_ids import ProducerIds
from penstock.broker.waiting import WaitingRoom
from penstock.cluster.control.controller import Controller
from penstock.cluster.image.image import ClusterImage
from penstock.config.broker import BrokerConfig
from penstock.errors import NotController
from penstock.groups.coordinator import GroupCoordinator
from penstock.groups.surroundings import Caller
from penstock.meta.store import MetaStore
from penstock.net.session import Session
from penstock.protocol.headers import RequestHeader
from penstock.replica.table import PartitionTable
from penstock.storage.directories.log_dirs import LogDirs
from penstock.telemetry.metrics import Metrics

if TYPE_CHECKING:  # A broker alone needs none of these, and does without them in memory too.
    from penstock.broker.dispatch import Dispatcher
    from penstock.broker.membership.cluster_member import ClusterMember
    from penstock.broker.membership.forwarding import Forwarder
    from penstock.broker.security.access import AccessControl, RequestRights
    from penstock.broker.security.delegation_tokens import DelegationTokens
    from penstock.broker.validation.gate import ValidationGate
    from penstock.net.peers import Peers


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
    validation: "ValidationGate" = field(init=False)  # It needs the others; node.py puts it in.
    access: "AccessControl | None" = None  # None: everybody may do everything.
    tokens: "DelegationTokens | None" = None  # None: there is no key to make them with.
    decoy_key: bytes = field(default=b"", repr=False)  # Empty: no listener asks for passwords.
    slow_lane: SlowLane = field(default_factory=SlowLane)
    waiting_room: WaitingRoom = field(default_factory=WaitingRoom)
    now_ms: Callable[[], int] = field(default=wall_clock_ms)
    # What is to be told of settings that changed while the broker runs, after it obeys them itself.
    config_followers: list[Callable[[BrokerConfig], None]] = field(default_factory=list)
    # Each raises ConfigError for settings that it could not follow, before they are stored.
    config_checks: list[Callable[[BrokerConfig], None]] = field(default_factory=list)
    is_stopping: bool = False  # From then on nobody waits for what may never come.
    # What only a member of a cluster has; None: this broker is alone.
    peers: "Peers | None" = None
    member: "ClusterMember | None" = None
    forwarder: "Forwarder | None" = None
    dispatcher: "Dispatcher | None" = None  # For requests that come without a connection.

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
        "appending",
        "broker",
        "header",
        "holds",
        "is_large",
        "rights",
        "session",
        "throttle_ms",
        "version",
    )

    def __init__(self, broker: Broker, header: RequestHeader, session: Session) -> None:
        self.broker = broker
        self.header = header
        self.version = header.api_version
        self.session = session  # Of the client, also where another broker passed it on.
        # The last append of this request that a thread works for; None: there is none.
        self.appending: asyncio.Task[Any] | None = None
        # Whether what the client sent after this request must wait until it is answered.
        self.holds = False
        self.is_large = False  # Whether the answer is so large that others must not wait for it.
        # What the client may do, as far as a handler has to ask; None: everything.
        self.rights: RequestRights | None = None
        self.throttle_ms = 0  # How long the client is to be silent, as far as the handler knows.

    @property
    def client_id(self) -> str | None:
        return self.header.client_id

    @property
    def client_address(self) -> str:
        return self.session.address

    @property
    def caller(self) -> Caller:
        """The sender as groups know it: the id and the host that DescribeGroups will tell."""
        host = self.client_address.rpartition(":")[0] or self.client_address
        caller = Caller(self.version, self.client_id or "", f"/{host}")
        if self.rights is None:
            return caller
        return caller._replace(visible=self.rights.visible_topics)
