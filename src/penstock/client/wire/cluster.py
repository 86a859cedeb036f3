"""A cluster as one partner: find a living broker, the controller or a leader, and ask there.

Dead entries of the bootstrap list are skipped; connections are kept; an answer that says "not me"
makes it look again. What the requests mean is for the modules in `operations`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from penstock.client.errors import BrokerUnreachableError, KafkaTimeoutError
from penstock.client.values import Node, TopicPartition
from penstock.client.wire.connection import BrokerConnection, R, parse_addresses
from penstock.errors import (
    LeaderNotAvailable,
    NotController,
    ProtocolError,
    RetriableError,
    UnknownTopicOrPartition,
    error_for,
)
from penstock.protocol.apis import Request
from penstock.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

if TYPE_CHECKING:
    from penstock.client.wire.security import Security

T = TypeVar("T")


class ClusterClient:
    """Connections to the brokers of one cluster, opened when needed. Not for several threads."""

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        *,
        client_id: str = "penstock",
        request_timeout_ms: int = 30_000,
        api_timeout_ms: int = 60_000,
        retry_backoff_ms: int = 100,
        security: "Security | None" = None,
    ) -> None:
        text = bootstrap if isinstance(bootstrap, str) else ",".join(bootstrap)
        self.bootstrap = parse_addresses(text)
        self.client_id = client_id
        self.security = security
        self.request_timeout_s = request_timeout_ms / 1000
        self.api_timeout_s = api_timeout_ms / 1000
        self.retry_backoff_s = retry_backoff_ms / 1000
        self.nodes: dict[int, Node] = {}
        self.controller_id: int | None = None
        self._connections: dict[tuple[str, int], BrokerConnection] = {}

    def metadata(
        self, topics: Sequence[str] | None = None, *, allow_auto_creation: bool = False
    ) -> MetadataResponse:
        """What the cluster says of these topics, or of all; also who its brokers are."""
        wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=allow_auto_creation)
        answer = self.ask_any(request, MetadataResponse)
        self.nodes = {b.node_id: Node(b.node_id, b.host, b.port, b.rack) for b in answer.brokers}
        self.controller_id = answer.controller_id if answer.controller_id >= 0 else None
        return answer

    def any_connection(self) -> BrokerConnection:
        """A connection to whichever broker answers first."""
        refused: BrokerUnreachableError | None = None
        for host, port in self._candidates():
            try:
                return self._connection(host, port)
            except BrokerUnreachableError as error:
                refused = refused or error
        assert refused is not None
        raise refused

    def node_connection(self, node_id: int) -> BrokerConnection:
        """A connection to one broker."""
        if node_id not in self.nodes:
            self.metadata([])
        node = self.nodes.get(node_id)
        if node is None:
            raise BrokerUnreachableError(f"Broker {node_id} is not part of the cluster now.")
        return self._connection(node.host, node.port)

    def ask_any(self, request: Request, expect: type[R]) -> R:
        """Ask any broker; one whose connection breaks is replaced by the next."""
        return self._persist(lambda: self._ask(self.any_connection(), request, expect))

    def ask_node(self, node_id: int, request: Request, expect: type[R]) -> R:
        """Ask one broker."""
        return self._ask_again_once(lambda: self.node_connection(node_id), request, expect)

    def ask_controller(
        self, request: Request, expect: type[R], *, code_of: Callable[[R], int]
    ) -> R:
        """Ask the controller, and the next one where it says that it is none."""

        def attempt() -> R:
            self.metadata([])
            at = self.controller_id
            to = self.any_connection() if at not in self.nodes else self.node_connection(at or 0)
            answer = self._ask(to, request, expect)
            if code_of(answer) == NotController.code:
                raise NotController(f"{to.address} is not the controller.")
            return answer

        return self._persist(attempt)

    def leaders(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The broker that leads each partition; waits out an election."""
        return self._persist(lambda: self._leaders(partitions))

    def locate(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int | ProtocolError]:
        """The leader of each partition, or why it has none; waits out an election."""
        deadline_s = time.monotonic() + self.api_timeout_s
        while True:
            found = self._persist(lambda: self._look_up(partitions))
            passing = [one for one in found.values() if _may_pass(one)]
            if not passing or time.monotonic() + self.retry_backoff_s > deadline_s:
                return found
            time.sleep(self.retry_backoff_s)

    def _leaders(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        led: dict[TopicPartition, int] = {}
        for partition, leader in self._look_up(partitions).items():
            if isinstance(leader, ProtocolError):
                raise leader
            led[partition] = leader
        return led

    def _look_up(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int | ProtocolError]:
        topics = sorted({partition.topic for partition in partitions})
        refused: dict[str, ProtocolError] = {}
        led: dict[TopicPartition, int] = {}
        for topic in self.metadata(topics).topics:
            name = topic.name or ""
            if topic.error_code == UnknownTopicOrPartition.code:
                refused[name] = UnknownTopicOrPartition(f"Topic {name!r} does not exist.")
            elif topic.error_code:
                text = f"Topic {name}: error {topic.error_code}"
                refused[name] = error_for(topic.error_code, text)
            for part in topic.partitions:
                led[TopicPartition(name, part.partition_index)] = part.leader_id
        return {at: refused.get(at.topic) or _leader_of(at, led.get(at)) for at in partitions}

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def drop(self, connection: BrokerConnection) -> None:
        """Close a connection and open a new one the next time its broker is asked."""
        connection.close()
        self._connections.pop((connection.host, connection.port), None)

    def _candidates(self) -> Iterator[tuple[str, int]]:
        """Open connections first, then brokers known by now, then the bootstrap list."""
        seen: set[tuple[str, int]] = set()
        known = [(node.host, node.port) for node in self.nodes.values()]
        for address in (*self._connections, *known, *self.bootstrap):
            if address not in seen:
                seen.add(address)
                yield address

    def _connection(self, host: str, port: int) -> BrokerConnection:
        address = (host, port)
        if address not in self._connections:
            connected = BrokerConnection(
                host, port, self.client_id, self.request_timeout_s, security=self.security
            )
            self._connections[address] = connected
        return self._connections[address]

    def _ask(self, connection: BrokerConnection, request: Request, expect: type[R]) -> R:
        try:
            return connection.ask(request, expect)
        except (BrokerUnreachableError, KafkaTimeoutError):
            self._connections.pop((connection.host, connection.port), None)
            raise

    def _ask_again_once(
        self, connect: Callable[[], BrokerConnection], request: Request, expect: type[R]
    ) -> R:
        """A kept connection may have been closed for being idle: that is no failure yet."""
        try:
            return self._ask(connect(), request, expect)
        except BrokerUnreachableError:
            return self._ask(connect(), request, expect)

    def _persist(self, attempt: Callable[[], T]) -> T:
        """Try again, with pauses, while the cluster says that it may pass."""
        deadline_s = time.monotonic() + self.api_timeout_s
        broke_before = False
        while True:
            try:
                return attempt()
            except UnknownTopicOrPartition:
                raise  # Retriable for one who just created it; here it is an answer.
            except RetriableError:
                if time.monotonic() + self.retry_backoff_s > deadline_s:
                    raise
            except BrokerUnreachableError:
                if broke_before:
                    raise
                broke_before = True
            time.sleep(self.retry_backoff_s)


def _leader_of(partition: TopicPartition, leader: int | None) -> int | ProtocolError:
    if leader is None:
        return UnknownTopicOrPartition(f"Partition {partition} does not exist.")
    if leader < 0:
        return LeaderNotAvailable(f"Partition {partition} has no leader now.")
    return leader


def _may_pass(found: int | ProtocolError) -> bool:
    """Whether another look may find a leader; that a topic does not exist is an answer."""
    return isinstance(found, RetriableError) and not isinstance(found, UnknownTopicOrPartition)
