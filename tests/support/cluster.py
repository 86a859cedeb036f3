"""A whole cluster as real processes: one ZooKeeper and some brokers, each to be killed at will."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.support.broker import BrokerProcess
from tests.support.processes import HOST
from tests.support.waiting import eventually
from tests.support.zookeeper import ZooKeeperProcess

from penstock.client.errors import ClientError
from penstock.client.wire.connection import BrokerConnection
from penstock.errors import ErrorCode
from penstock.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
)

SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
    # A killed broker is missed at once; only one that hangs is given so long.
    "zookeeper.session.timeout.ms": "10000",
    "controlled.shutdown.retry.backoff.ms": "500",
}


class Cluster:
    """`brokers[i]` has broker.id `i`. All settings may be overridden; each broker has its own."""

    def __init__(
        self,
        directory: Path,
        brokers: int = 3,
        settings: Mapping[str, str] | None = None,
        *,
        zookeeper: ZooKeeperProcess | None = None,
        chroot: str = "",
    ) -> None:
        self.directory = directory
        self.settings = {**SETTINGS, **(settings or {})}
        self.chroot = chroot
        self._owns_zookeeper = zookeeper is None
        self.zookeeper = zookeeper or ZooKeeperProcess(directory / "zookeeper")
        self.brokers: list[BrokerProcess] = []
        for _ in range(brokers):
            self.new_broker()

    def new_broker(self, settings: Mapping[str, str] | None = None) -> BrokerProcess:
        """One more broker, with the next number; not started yet."""
        number = len(self.brokers)
        own = {
            **self.settings,
            "zookeeper.connect": self.zookeeper.connect + self.chroot,
            **(settings or {}),
        }
        broker = BrokerProcess(self.directory / f"broker-{number}", own, broker_id=number)
        self.brokers.append(broker)
        return broker

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers)

    @property
    def running(self) -> list[BrokerProcess]:
        return [broker for broker in self.brokers if broker.process is not None]

    def start(self, *, timeout_s: float = 180.0) -> None:
        """All of it, and wait until every broker answers."""
        try:
            if self.zookeeper.process is None:
                self.zookeeper.start()
            for broker in self.brokers:
                broker.launch()
            for broker in self.brokers:
                broker.wait_until_ready(timeout_s=timeout_s)
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        with ExitStack() as stack:
            if self._owns_zookeeper:
                stack.callback(self.zookeeper.kill)
            for broker in self.brokers:
                stack.callback(broker.kill)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    # Looking

    def metadata(self, topic: str | None = None, *, broker: int | None = None) -> MetadataResponse:
        """As one of the running brokers sees it; of all topics, or of one (which is not made)."""
        asked = None if topic is None else [MetadataRequestTopic(name=topic)]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        chosen = self.running[0] if broker is None else self.brokers[broker]
        try:
            connection = BrokerConnection(HOST, chosen.port, timeout_s=30)
            try:
                return connection.ask(request, MetadataResponse, version=9)
            finally:
                connection.close()
        except ClientError as error:
            raise AssertionError(f"broker {chosen.port} does not tell: {error}") from error

    def partition(
        self, topic: str, number: int = 0, *, broker: int | None = None
    ) -> MetadataResponsePartition:
        (found,) = self.metadata(topic, broker=broker).topics
        return next(p for p in found.partitions if p.partition_index == number)

    def leader(self, topic: str, number: int = 0, *, timeout_s: float = 120.0) -> int:
        """Who leads it, as soon as a broker that runs does."""

        def led() -> list[int]:
            found = self.partition(topic, number)
            assert found.error_code == ErrorCode.NONE, found
            assert self.brokers[found.leader_id].process is not None, found
            return [found.leader_id]

        return eventually(led, timeout_s=timeout_s, what=f"a leader of {topic}-{number}")[0]

    @property
    def controller(self) -> int:
        """Who is the controller, as soon as a running broker knows one that runs."""

        def known() -> list[int]:
            found = self.metadata().controller_id
            assert found >= 0 and self.brokers[found].process is not None, found
            return [found]

        return eventually(known, timeout_s=120, what="a controller")[0]

    def until_in_sync(self, topic: str, count: int = 3, *, timeout_s: float = 120.0) -> None:
        """Wait until every partition has so many replicas in sync, and a leader.

        Every running broker has heard of it then: clients may ask any of them.
        """

        def in_sync() -> bool:
            return all(
                found.partitions
                and all(len(p.isr_nodes) >= count and p.leader_id >= 0 for p in found.partitions)
                for broker in self.running
                for found in self.metadata(topic, broker=self.brokers.index(broker)).topics
            )

        eventually(in_sync, timeout_s=timeout_s, what=f"{count} replicas of {topic} in sync")

    def assert_no_tracebacks(self) -> None:
        """No broker met an error of its own."""
        met = {n: b.tracebacks() for n, b in enumerate(self.brokers) if b.tracebacks()}
        texts = [f"broker {n}: {text}" for n, found in met.items() for text in found.values()]
        assert not texts, "\n\n".join(texts)
