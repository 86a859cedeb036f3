"""Brokers that replicate in one process: real tables, logs, fetchers and handlers.

Only the network is missing: a question is encoded, decoded, handled, and its answer encoded and
decoded again, so that what goes over a wire is all that passes between two brokers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from penstock.broker.context import RequestContext
from penstock.broker.fetching.sessions import FetchSessions
from penstock.broker.handlers import api_versions, delete_records, fetch, list_offsets, produce
from penstock.broker.waiting import WaitingRoom
from penstock.cluster.image.image import (
    BrokerImage,
    ClusterImage,
    Endpoint,
    ImageDelta,
    PartitionImage,
    PartitionState,
    TopicImage,
)
from penstock.config.broker import BrokerConfig
from penstock.errors import ProtocolError
from penstock.net.peers import PeerUnreachable
from penstock.net.session import Session
from penstock.protocol.apis import ApiKey, Request, Response, response_class
from penstock.protocol.headers import RequestHeader
from penstock.records.batch import build_batch, split_batches
from penstock.records.record import Record
from penstock.replica.fetchers import ReplicaFetchers
from penstock.replica.partition import Partition
from penstock.replica.table import PartitionTable
from penstock.storage.directories.log_dirs import LogDirs
from penstock.storage.log.config import LogConfig
from penstock.telemetry.metrics import Metrics

TOPIC = "orders"
TOPIC_ID = b"0123456789abcdef"
_HANDLERS: dict[ApiKey, Any] = {
    ApiKey.API_VERSIONS: api_versions,
    ApiKey.FETCH: fetch,
    ApiKey.LIST_OFFSETS: list_offsets,
    ApiKey.DELETE_RECORDS: delete_records,
    ApiKey.PRODUCE: produce,
}
SETTINGS = {
    "replica.fetch.wait.max.ms": "50",
    "replica.fetch.backoff.ms": "50",
    "replica.lag.time.max.ms": "30000",
}


def a_batch(*values: bytes, **options: Any) -> bytearray:
    records = [Record(at, 1_000 + at, None, value, ()) for at, value in enumerate(values)]
    return build_batch(records, **options)


def append(partition: Partition, *values: bytes, acks: int = 1, **options: Any) -> int:
    """The last offset of a batch of these values, appended by the leader."""
    batches = split_batches(memoryview(a_batch(*values, **options)))
    return partition.append(batches, required_acks=acks, now_ms=1_000).last_offset


def bytes_of(partition: Partition) -> bytes:
    """Everything the log holds, as it is on disk."""
    log = partition.log
    found, offset = bytearray(), log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, bytes_max=1 << 20, end_offset=log.log_end_offset, min_one=True)
        found += read.records if isinstance(read.records, bytes) else read.records.read()
        offset = read.next_offset
    return bytes(found)


class Node:
    """One broker's data plane."""

    def __init__(self, broker_id: int, path: Path, cluster: "Replicas") -> None:
        self.broker_id = broker_id
        self.path = path
        self.cluster = cluster
        self.epoch = 100 + broker_id
        self.is_up = False
        self.reports: list[str] = []

    def start(self, *, log_config: LogConfig | None = None) -> None:
        cluster = self.cluster
        self.log_dirs = LogDirs.open([self.path], now_ms=0, report=self.reports.append)
        self.log_dirs.claim(broker_id=self.broker_id, cluster_id="c")
        self.config = BrokerConfig(
            {**SETTINGS, **cluster.settings, "broker.id": str(self.broker_id)}
        )
        self.table = PartitionTable(
            broker_id=self.broker_id,
            log_dirs=self.log_dirs,
            log_config=lambda _image, _topic: self.cluster.log_config,
            now_ms=lambda: 1_000,
            lag_ms_max=lambda: self.config.replica_lag_time_max_ms,
        )
        self.sessions = FetchSessions(slots=10, evict_after_ms=120_000)
        self.metrics = Metrics()
        self.broker: Any = SimpleNamespace(
            broker_id=self.broker_id,
            config=self.config,
            image=cluster.image,
            partitions=self.table,
            fetch_sessions=self.sessions,
            metrics=self.metrics,
            quotas=SimpleNamespace(is_active=False),
            is_stopping=False,
            waiting_room=WaitingRoom(),
            now_ms=lambda: 1_000,
        )
        self.fetchers = ReplicaFetchers(
            broker_id=self.broker_id,
            broker_epoch=lambda: self.epoch,
            peers=Line(self),
            partitions=self.table,
            config=lambda: self.config,
            now_ms=lambda: 1_000,
        )
        self.is_up = True

    def configure(self, dynamic: dict[str, str]) -> None:
        """Settings that are changed while the broker runs."""
        self.config = self.broker.config = self.config.with_dynamic({}, dynamic)

    def take(self, image: ClusterImage) -> None:
        self.broker.image = image
        self.table.apply(image)
        self.fetchers.take_image(image)

    @property
    def partition(self) -> Partition:
        found = self.table.get(TOPIC, 0)
        assert found is not None
        return found

    def hosted(self, number: int) -> Partition:
        found = self.table.get(TOPIC, number)
        assert found is not None
        return found

    async def stop(self) -> None:
        if self.is_up:
            self.is_up = False
            await self.fetchers.close()
            self.log_dirs.close()

    async def answer(self, api_key: ApiKey, body: bytes, version: int) -> bytes:
        """The answer to a request, as bytes both."""
        handler = _HANDLERS[api_key]
        request = self.cluster.request_classes[api_key].decode(memoryview(bytearray(body)), version)
        header = RequestHeader(int(api_key), version, 1, f"broker-{self.broker_id}")
        context = RequestContext(self.broker, header, Session(listener="PLAINTEXT", address="here"))
        try:
            response = handler.handle(request, context)
            if isinstance(response, Awaitable):
                response = await response
        except ProtocolError as error:
            response = handler.error_response(request, error)
        parts = response.encode_parts(version)
        return b"".join(part if isinstance(part, bytes) else part.read() for part in parts)


class Line:
    """A broker's connections to the others."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def ask(
        self,
        broker_id: int,
        request: Request,
        *,
        timeout_s: float,
        channel: str = "control",
        version: int | None = None,
    ) -> Response:
        cluster = self._node.cluster
        spoken = request.versions[-1] if version is None else version
        body = request.encode(spoken)
        self._check(broker_id)
        cluster.asked.append((self._node.broker_id, broker_id, request))
        node = cluster.nodes[broker_id]
        answering = asyncio.ensure_future(node.answer(ApiKey(request.api_key), body, spoken))
        answered = await asyncio.wait_for(answering, timeout_s)
        self._check(broker_id)
        made = response_class(request.api_key).decode(memoryview(answered), spoken)
        return await cluster.on_answer(self._node.broker_id, broker_id, made)

    def _check(self, broker_id: int) -> None:
        cluster = self._node.cluster
        is_cut = frozenset((self._node.broker_id, broker_id)) in cluster.cuts
        if is_cut or not cluster.nodes[broker_id].is_up or not self._node.is_up:
            raise PeerUnreachable(f"broker {broker_id} is not there", is_refused=True)

    def forget(self, broker_id: int) -> None:
        pass


class Replicas:
    """A cluster whose controller is the test."""

    def __init__(
        self,
        path: Path,
        *,
        brokers: Sequence[int] = (1, 2, 3),
        partitions: int = 1,
        min_isr: int = 1,
        log_config: LogConfig | None = None,
        settings: dict[str, str] | None = None,
    ) -> None:
        from penstock.protocol.apis import request_class

        self.request_classes: dict[ApiKey, Any] = {key: request_class(key) for key in _HANDLERS}
        self.log_config = log_config or LogConfig()
        self.settings = settings or {}
        self.replicas = tuple(brokers)
        self.asked: list[tuple[int, int, Request]] = []
        self.cuts: set[frozenset[int]] = set()
        self.nodes = {broker: Node(broker, path / str(broker), self) for broker in brokers}
        state = PartitionState(
            leader=brokers[0], leader_epoch=0, isr=self.replicas, min_isr=min_isr
        )
        placed = PartitionImage(replicas=self.replicas, state=state)
        topic = TopicImage(
            name=TOPIC,
            topic_id=TOPIC_ID,
            partitions=dict.fromkeys(range(partitions), placed),
        )
        self.image = ClusterImage(cluster_id="c").apply(
            ImageDelta(
                topics={TOPIC: topic},
                brokers={broker: self.registered(broker) for broker in brokers},
            )
        )

    def registered(self, broker: int, *, is_active: bool = True) -> BrokerImage:
        epoch = self.nodes[broker].epoch
        return BrokerImage(
            broker_id=broker,
            epoch=epoch,
            endpoints=(Endpoint("PLAINTEXT", f"host-{broker}", 9000 + broker, "PLAINTEXT"),),
            rack=f"rack-{broker}",
            is_active=is_active,
            fence_version=epoch,
        )

    async def on_answer(self, asker: int, answerer: int, response: Response) -> Response:
        """A test may hold answers back here."""
        return response

    async def __aenter__(self) -> "Replicas":
        for node in self.nodes.values():
            node.start()
        self.publish()
        return self

    async def __aexit__(self, *_: object) -> None:
        for node in self.nodes.values():
            await node.stop()

    def publish(self, *only: int) -> None:
        for node in self.nodes.values():
            if node.is_up and (not only or node.broker_id in only):
                node.take(self.image)

    # What a controller would do

    @property
    def state(self) -> PartitionState:
        return self.image.topics[TOPIC].partitions[0].state

    def change(self, number: int = 0, **changes: Any) -> None:
        placed = self.image.topics[TOPIC].partitions[number]
        state = placed.state._replace(**changes, partition_epoch=placed.state.partition_epoch + 1)
        self.image = self.image.apply(
            ImageDelta(partitions={(TOPIC, number): placed._replace(state=state)})
        )

    def elect(self, leader: int, *only: int, isr: tuple[int, ...] | None = None) -> None:
        self.change(
            leader=leader, leader_epoch=self.state.leader_epoch + 1, isr=isr or self.state.isr
        )
        self.publish(*only)

    async def lose(self, broker: int) -> None:
        """A broker stops, and the cluster knows it."""
        await self.nodes[broker].stop()
        self.image = self.image.apply(ImageDelta(brokers={broker: None}))
        self.change(isr=tuple(one for one in self.state.isr if one != broker))
        self.publish()

    def register_again(self, broker: int) -> None:
        self.nodes[broker].epoch += 1_000
        self.image = self.image.apply(ImageDelta(brokers={broker: self.registered(broker)}))

    def with_topic_id(self, topic_id: bytes) -> ClusterImage:
        topic = replace(self.image.topics[TOPIC], topic_id=topic_id)
        return self.image.apply(ImageDelta(topics={TOPIC: topic}))

    @property
    def leader(self) -> Partition:
        return self.nodes[self.state.leader].partition

    async def until(self, holds: Callable[[], bool], *, for_s: float = 60.0) -> None:
        """Let the brokers run until something holds."""
        async with asyncio.timeout(for_s):
            while not holds():
                await asyncio.sleep(0.002)

    async def until_equal(self, *brokers: int) -> None:
        """Until the replicas are byte for byte the same, and know that all is committed."""

        def holds() -> bool:
            found = [self.nodes[broker].partition for broker in brokers or self.replicas]
            marks = {m for p in found for m in (p.log.log_end_offset, p.log.high_watermark)}
            return len(marks) == 1 and len({bytes_of(p) for p in found}) == 1

        await self.until(holds)
