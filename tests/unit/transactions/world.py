"""A broker without its doors: real logs, partitions, coordinator and handlers; crashes on demand.

One `Server` is one life of the broker. Every append may be its last: it dies just before or just
after, and the next life finds only what the logs hold. With `is_replicated` a follower confirms
records later, and the next life may lack all that it did not confirm.
"""

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

from penstock.broker.context import RequestContext
from penstock.broker.handlers import (
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    produce,
    write_txn_markers,
)
from penstock.cluster.image.image import ClusterImage, PartitionImage, PartitionState, TopicImage
from penstock.config.broker import BrokerConfig
from penstock.errors import ProtocolError
from penstock.net.session import Session
from penstock.protocol.headers import RequestHeader
from penstock.records.batch import Record, read_records, split_batches
from penstock.records.control import ControlType, read_marker
from penstock.replica.partition import Partition
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Appended, Log
from penstock.telemetry.metrics import Metrics
from penstock.transactions.admission import Admission, AdmissionSettings
from penstock.transactions.coordinator import CoordinatorSettings, TransactionCoordinator
from penstock.transactions.guards import Guards
from penstock.transactions.markers import LocalMarkers

STATE = ("__transaction_state", 0)
DATA = (("orders", 0), ("orders", 1), ("offsets", 0))
BROKER, FOLLOWER = 0, 1
EXPIRATION_MS = 20_000

HANDLERS: dict[str, Any] = {
    "ProduceRequest": produce,
    "InitProducerIdRequest": init_producer_id,
    "AddPartitionsToTxnRequest": add_partitions_to_txn,
    "EndTxnRequest": end_txn,
    "WriteTxnMarkersRequest": write_txn_markers,
}


class Crashed(Exception):
    """The process is gone."""


class Lost(Exception):
    """No answer came: the request may have been carried out or not."""


class MortalPartition(Partition):
    """A partition whose broker may die before and after every append."""

    world: "World"

    def append(self, *args: Any, **options: Any) -> Appended:
        self.world.may_crash()
        appended = super().append(*args, **options)
        self.world.may_crash()
        return appended


class Server:
    """One life of the broker."""

    def __init__(self, world: "World", epoch: int) -> None:
        self.died: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.partitions = {key: world.open(key, epoch) for key in (STATE, *DATA)}
        self.guards = Guards()
        self.completed: list[tuple[int, bool]] = []
        self.markers = LocalMarkers(
            self,
            guards=self.guards,
            completions={"offsets": self._complete},
            now_ms=world.now_ms,
        )
        self.coordinator = TransactionCoordinator(
            producer_ids=world,
            partitions=self,
            markers=self.markers,
            settings=lambda: CoordinatorSettings(
                timeout_ms_max=60_000, expiration_ms=EXPIRATION_MS, load_bytes=1 << 16
            ),
            now_ms=world.now_ms,
        )
        self.admission = Admission(
            self.coordinator,
            guards=self.guards,
            settings=lambda: AdmissionSettings(verifies=True, retry_pause_ms=20, retry_ms_max=100),
            now_ms=world.now_ms,
        )
        self.broker: Any = SimpleNamespace(
            image=world.image(epoch),
            partitions=self,
            producer_ids=world,
            now_ms=world.now_ms,
            metrics=Metrics(),
            transactions=self,
            config=BrokerConfig({}),
        )
        self.coordinator.take_image(self.broker.image)

    def get(self, topic: str, partition: int) -> Partition | None:
        return self.partitions.get((topic, partition))

    def leader(self, topic: str, partition: int) -> Partition:
        return self.partitions[topic, partition]

    def _complete(self, partition: Partition, identity: Any, *, is_commit: bool, **_: int) -> None:
        self.completed.append((identity.producer_id, is_commit))


class World:
    """What outlives the broker: its files, the clock, chance, and producer ids given out."""

    def __init__(self, directory: Path, random: Random, *, is_replicated: bool) -> None:
        self.random = random
        self.is_replicated = is_replicated
        self.crash_chance = 0.0
        self.server: Server | None = None
        self.lives = 0
        self._directory = directory
        self._logs: dict[tuple[str, int], Log] = {}
        self._next_producer_id = 0

    def now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    async def take(self) -> int:
        await asyncio.sleep(0)
        self._next_producer_id += 1
        return self._next_producer_id

    # Lives and deaths

    def start(self) -> None:
        self.server = Server(self, self.lives)
        self.lives += 1

    def may_crash(self) -> None:
        if self.server is None:
            raise Crashed
        if self.random.random() < self.crash_chance:
            self.crash()
            raise Crashed

    def crash(self) -> None:
        if self.server is None:
            return
        dead, self.server = self.server, None
        dead.coordinator.close()
        dead.died.set_result(None)
        asyncio.get_running_loop().call_later(self.random.random(), self.start)

    def open(self, key: tuple[str, int], epoch: int) -> MortalPartition:
        before = self._logs.get(key)
        directory = self._directory / f"{key[0]}-{key[1]}"
        directory.mkdir(exist_ok=True)
        log = self._logs[key] = Log.open(
            directory,
            config=LogConfig(segment_bytes=2_000, segment_index_bytes=4_096),
            now_ms=self.now_ms(),
            clean=False,
            report=lambda _: None,
        )
        if before is not None and self.is_replicated:
            kept = self.random.randint(before.high_watermark, log.log_end_offset)
            log.truncate_to(kept)
            log.high_watermark = before.high_watermark
        partition = MortalPartition(
            topic=key[0], partition=key[1], topic_id=bytes(16), broker_id=BROKER, log=log
        )
        partition.world = self
        partition.apply(PartitionImage(self._replicas, self._state(epoch)), {})
        return partition

    @property
    def _replicas(self) -> tuple[int, ...]:
        return (BROKER, FOLLOWER) if self.is_replicated else (BROKER,)

    def _state(self, epoch: int) -> PartitionState:
        return PartitionState(leader=BROKER, leader_epoch=epoch, isr=self._replicas, min_isr=1)

    def image(self, epoch: int) -> ClusterImage:
        placed = PartitionImage(self._replicas, self._state(epoch))
        topics: dict[str, dict[int, PartitionImage]] = {}
        for topic, number in (STATE, *DATA):
            topics.setdefault(topic, {})[number] = placed
        return ClusterImage(
            cluster_id="c",
            topics={
                name: TopicImage(name=name, topic_id=bytes(16), partitions=partitions)
                for name, partitions in topics.items()
            },
        )

    def confirm(self, chance: float = 1.0) -> None:
        """The follower has everything, or everything of some partitions."""
        if self.server is not None:
            for partition in self.server.partitions.values():
                if self.random.random() < chance:
                    partition._set_high_watermark(partition.log.log_end_offset)

    # Requests

    async def ask(self, request: Any, version: int, *, patience_s: float | None = None) -> Any:
        """The answer as a client gets it; Lost: the connection broke, or it took too long."""
        server = self.server
        if server is None:
            raise Lost
        task = asyncio.ensure_future(_handled(server, request, version))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        server.died.add_done_callback(lambda _: task.cancel())
        await asyncio.wait(
            [task, server.died], timeout=patience_s, return_when=asyncio.FIRST_COMPLETED
        )
        if not task.done() or task.cancelled():
            raise Lost  # The broker may still be busy with it.
        if isinstance(task.exception(), Crashed):
            raise Lost
        return task.result()

    # Looking into the logs

    def batches(self, key: tuple[str, int]) -> Iterator[Any]:
        log = self._logs[key]
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            read = log.read(offset, bytes_max=1 << 20, end_offset=log.log_end_offset, min_one=True)
            data = read.records if isinstance(read.records, bytes) else read.records.read()
            yield from split_batches(memoryview(bytearray(data)))
            offset = read.next_offset

    def records(self, key: tuple[str, int]) -> Iterator[Record]:
        for header, batch in self.batches(key):
            if not header.is_control:
                yield from read_records(batch)

    def committed(self, key: tuple[str, int]) -> list[bytes]:
        """What a consumer of committed records sees, found as consumers find it."""
        log = self._logs[key]
        end = log.last_stable_offset
        aborted = sorted(log.aborted_transactions(log.log_start_offset, end), key=lambda a: a[1])
        skipped: set[int] = set()
        seen: list[bytes] = []
        for header, batch in self.batches(key):
            if header.base_offset >= end:
                break
            while aborted and aborted[0].first_offset <= header.base_offset:
                skipped.add(aborted.pop(0).producer_id)
            if header.is_control:
                marker = read_marker(next(iter(read_records(batch))))
                if marker is not None and marker.type is ControlType.ABORT:
                    skipped.discard(header.producer_id)
            elif not header.is_transactional or header.producer_id not in skipped:
                seen += [record.value or b"" for record in read_records(batch)]
        return seen

    def open_transactions(self, key: tuple[str, int]) -> dict[int, int]:
        return dict(self._logs[key].producer_state.table.open)


async def _handled(server: Server, request: Any, version: int) -> Any:
    name = type(request).__name__
    handler = HANDLERS[name]
    read = type(request).decode(bytearray(request.encode(version)), version)
    header = RequestHeader(
        api_key=type(request).api_key, api_version=version, correlation_id=1, client_id="model"
    )
    session = Session(listener="PLAINTEXT", address="127.0.0.1")
    context = RequestContext(server.broker, header, session)
    try:
        response = handler.handle(read, context)
        if inspect.isawaitable(response):
            response = await response
    except ProtocolError as error:
        if hasattr(handler, "error_response"):
            response = handler.error_response(read, error)
        else:
            response = SimpleNamespace(error_code=int(error.code))
    return response
