"""Three replicas with real logs on random walks of elections, crashes, cuts and late news.

The test is the network, the store and the controller, and plays all of them badly: images reach
brokers late, old leaders go on writing, answers arrive after elections, writes of in-sync sets are
lost or unheard. Committed records must outlive all of it, and every log must be what it says.
"""

import shutil
import tempfile
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.storage.made import MEMORY

from penstock.cluster.image.image import NO_LEADER, BrokerImage, PartitionImage, PartitionState
from penstock.cluster.transition import Elected, Preferred, Removed, TransitionFacts, transition
from penstock.errors import OffsetOutOfRange, ProtocolError
from penstock.protocol.messages.fetch import EpochEndOffset, PartitionData
from penstock.records.batch import build_batch, control_batch, split_batches
from penstock.records.control import ControlType, EndTransactionMarker
from penstock.records.record import Record
from penstock.replica.following import (
    Position,
    Taken,
    is_current,
    position_of,
    settle_out_of_range,
    take_answer,
)
from penstock.replica.partition import Partition
from penstock.replica.reads import FollowerFetch
from penstock.replica.surroundings import ReplicaSurroundings
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log
from penstock.storage.producers.producers import ProducerTable

BROKERS = (1, 2, 3)
LAG_MS = 100
CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=100, segment_index_bytes=4096)
PRODUCERS = (7, 8)


class Broker:
    """One life after the other of a broker with one partition."""

    def __init__(self, broker_id: int, root: Path, world: "World") -> None:
        self.broker_id = broker_id
        self.directory = root / str(broker_id) / "orders-0"
        self.directory.mkdir(parents=True)
        self.world = world
        self.epoch = 0
        self.recovery_point = 0
        self.high_watermark = 0
        self.answer: tuple[Position, PartitionData] | None = None
        self.start(is_clean=True)

    def start(self, *, is_clean: bool) -> None:
        self.epoch += 1
        self.answer = None
        log = Log.open(
            self.directory,
            config=CONFIG,
            now_ms=0,
            clean=is_clean,
            recovery_point=self.recovery_point,
            report=lambda _: None,
        )
        log.high_watermark = min(max(self.high_watermark, log.log_start_offset), log.log_end_offset)
        around = ReplicaSurroundings(
            broker_id=self.broker_id,
            lag_ms_max=lambda: LAG_MS,
            clock_ms=lambda: self.world.now_ms,
        )
        self.partition = Partition(
            topic="orders",
            partition=0,
            topic_id=bytes(16),
            broker_id=self.broker_id,
            log=log,
            around=around,
        )

    def crash(self) -> None:
        """The process dies; the page cache does not. Marks are as old as their last note."""
        self.start(is_clean=False)

    def flush(self) -> None:
        log = self.partition.log
        log.flush()
        self.note()

    def note(self) -> None:
        log = self.partition.log
        self.recovery_point, self.high_watermark = log.recovery_point, log.high_watermark


class World:
    def __init__(self, root: Path, random: Random, min_isr: int) -> None:
        self.random = random
        self.now_ms = 0
        self.written = 0
        self.committed: list[tuple[int, bytes]] = []  # Offset and CRC of each committed batch.
        self.committed_end = 0
        self.state = PartitionState(leader=1, leader_epoch=0, isr=BROKERS, min_isr=min_isr)
        self.fences = dict.fromkeys(BROKERS, 0)
        self.brokers = {broker: Broker(broker, root, self) for broker in BROKERS}
        for broker in BROKERS:
            self.tell(broker)

    # The cluster

    @property
    def registered(self) -> dict[int, BrokerImage]:
        return {
            broker: BrokerImage(
                broker_id=broker,
                epoch=self.brokers[broker].epoch,
                endpoints=(),
                is_active=True,
                fence_version=self.fences[broker],
            )
            for broker in BROKERS
        }

    def tell(self, broker: int) -> None:
        image = PartitionImage(replicas=BROKERS, state=self.state)
        self.brokers[broker].partition.apply(image, self.registered)

    def write(self, state: PartitionState) -> None:
        assert state.leader_epoch >= self.state.leader_epoch
        self.state = state._replace(partition_epoch=self.state.partition_epoch + 1)

    def decide(self, *events: Removed | Elected | Preferred) -> None:
        facts = TransitionFacts(replicas=BROKERS, active=frozenset(BROKERS))
        after = self.state
        for event in events:
            after = transition(after, event, facts)
        if after != self.state:
            epoch = min(after.leader_epoch, self.state.leader_epoch + 1)
            self.write(after._replace(leader_epoch=epoch))

    # Steps

    def step(self) -> None:
        random = self.random
        broker = self.brokers[random.choice(BROKERS)]
        chance = random.random()
        self.now_ms += random.choice((0, 1, 30))
        if chance < 0.25:
            self.append(broker.partition)
        elif chance < 0.50:
            self.ask(broker)
        elif chance < 0.72:
            self.take(broker)
        elif chance < 0.80:
            self.tell(broker.broker_id)
        elif chance < 0.86:
            self.propose(broker)
        elif chance < 0.90:
            self.move_leader()
        elif chance < 0.94:
            broker.flush()
        elif chance < 0.97:
            broker.note()
        else:
            self.restart(broker)
        self.check()

    def append(self, partition: Partition) -> None:
        if not partition.is_leader:
            return
        random = self.random
        values = [b"%d" % (self.written + number) for number in range(random.randint(1, 3))]
        self.written += len(values)
        records = [Record(at, 1_000, None, value, ()) for at, value in enumerate(values)]
        producer = random.choice(PRODUCERS)
        match random.randrange(4):
            case 0 | 1:
                batch = build_batch(records)
            case 2:
                table = partition.log.producer_state.table
                entry = table.entries.get(producer)
                batch = build_batch(
                    records,
                    producer_id=producer,
                    producer_epoch=0,
                    base_sequence=0 if entry is None else entry.last_sequence + 1,
                    is_transactional=True,
                )
            case _:
                marker = EndTransactionMarker(
                    random.choice((ControlType.COMMIT, ControlType.ABORT)), 0
                )
                batch = control_batch(marker, producer_id=producer, producer_epoch=0, now_ms=1_000)
        partition.append(
            split_batches(memoryview(batch)),
            required_acks=1,
            now_ms=1_000,
            verify_producer=False,
        )
        self.note_committed(partition)

    def ask(self, broker: Broker) -> None:
        """A follower asks whom it thinks is the leader; the answer is on its way then."""
        partition = broker.partition
        leader = partition.leader
        if partition.is_leader or leader in (NO_LEADER, broker.broker_id):
            return
        position = position_of(partition)
        asked = self.brokers[leader].partition
        fetch = FollowerFetch(
            replica_id=broker.broker_id,
            replica_epoch=broker.epoch,
            fetch_offset=position.fetch_offset,
            log_start_offset=position.log_start_offset,
            current_leader_epoch=position.leader_epoch,
            last_fetched_epoch=position.last_fetched_epoch,
        )
        data = PartitionData(partition_index=0, records=b"")
        try:
            read = asked.read_as_follower(
                fetch, bytes_max=self.random.choice((100, 1000)), min_one=True
            )
        except ProtocolError as error:
            data.error_code = int(error.code)
            if isinstance(error, OffsetOutOfRange):
                data.high_watermark = asked.log.log_end_offset  # Told by ListOffsets in truth.
                data.log_start_offset = asked.log.log_start_offset
        else:
            data.high_watermark = read.high_watermark
            data.log_start_offset = read.log_start_offset
            records = read.records
            data.records = records if isinstance(records, bytes) else records.read()
            if read.diverging is not None:
                epoch, end_offset = read.diverging
                data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
        self.note_committed(asked)
        broker.answer = position, data

    def take(self, broker: Broker) -> None:
        if broker.answer is None:
            return
        asked, data = broker.answer
        broker.answer = None
        partition = broker.partition
        before = partition.log.high_watermark
        taken = take_answer(partition, asked, data, now_ms=1_000)
        if taken is Taken.OUT_OF_RANGE and is_current(partition, asked):
            settle_out_of_range(partition, data.log_start_offset, data.high_watermark)
        if taken in (Taken.CUT, Taken.OUT_OF_RANGE):
            broker.recovery_point = partition.log.recovery_point  # As PartitionTable.note_cut.
        assert partition.log.high_watermark >= before, "a replica forgot what was committed"

    def propose(self, broker: Broker) -> None:
        partition = broker.partition
        proposal = partition.proposal()
        if proposal is None:
            return
        fences_hold = all(self.fences[one] == seen for one, seen in proposal.fences)
        is_first = proposal.base.partition_epoch == self.state.partition_epoch
        fate = self.random.randrange(4)
        if fate == 0 or not (fences_hold and is_first):
            partition.settle_refused(proposal)
            return
        self.state = proposal.state
        if fate == 1:
            partition.settle_unknown(proposal)
        else:
            partition.settle_accepted(proposal)
        self.note_committed(partition)

    def move_leader(self) -> None:
        """An election that nothing made necessary, among those who are in sync."""
        choice = self.random.choice(self.state.isr or (NO_LEADER,))
        if choice != NO_LEADER:
            self.write(self.state._replace(leader=choice, leader_epoch=self.state.leader_epoch + 1))

    def restart(self, broker: Broker) -> None:
        """It crashes and comes back; the controller hears of both before it is active."""
        self.fences[broker.broker_id] += 1
        broker.crash()
        self.decide(Removed(broker.broker_id))
        self.decide(Elected())
        self.tell(broker.broker_id)

    # Truths

    def note_committed(self, leader: Partition) -> None:
        """Remember what a leader says is committed; two never say different things."""
        batches = batches_of(leader.log, leader.log.high_watermark)
        known = min(len(batches), len(self.committed))
        assert batches[:known] == self.committed[:known], "committed records changed"
        if leader.log.high_watermark > self.committed_end:
            self.committed_end = leader.log.high_watermark
            self.committed = batches

    def check(self) -> None:
        for broker in self.brokers.values():
            log = broker.partition.log
            assert batches_of(log, min(log.high_watermark, self.committed_end)) == [
                batch for batch in self.committed if batch[0] < log.high_watermark
            ], f"broker {broker.broker_id} shows what was never committed"
        leader = self.state.leader
        if leader != NO_LEADER:
            log = self.brokers[leader].partition.log
            held = batches_of(log, self.committed_end)
            assert held == self.committed, f"leader {leader} lacks committed records"

    def check_logs(self) -> None:
        """Epochs and producers are functions of the batches."""
        for broker in self.brokers.values():
            log = broker.partition.log
            derived: list[tuple[int, int]] = []
            table = ProducerTable()
            for header, batch in log_batches(log):
                if not derived or header.leader_epoch > derived[-1][0]:
                    derived.append((header.leader_epoch, header.base_offset))
                table.replay(header, batch)
            kept = [tuple(entry) for entry in log.epochs if entry.start_offset < log.log_end_offset]
            assert kept == derived
            assert summary(log.producer_state.table) == summary(table)
            assert log.producer_state.table.open == table.open

    def settle(self) -> None:
        """Everybody hears everything: the replicas become the same."""
        for _ in range(60):
            for broker in BROKERS:
                self.tell(broker)
                self.now_ms += 1
                self.ask(self.brokers[broker])
                self.take(self.brokers[broker])
                if self.random.random() < 0.5:
                    self.propose(self.brokers[broker])
            self.check()
        logs = [broker.partition.log for broker in self.brokers.values()]
        ends = {(log.log_end_offset, log.high_watermark) for log in logs}
        assert len(ends) == 1
        assert len({tuple(batches_of(log, log.log_end_offset)) for log in logs}) == 1
        assert set(self.state.isr) == set(BROKERS)


def log_batches(log: Log) -> list[tuple[object, memoryview]]:  # type: ignore[type-arg]
    found = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        read = log.read(offset, bytes_max=1 << 20, end_offset=log.log_end_offset, min_one=True)
        data = read.records if isinstance(read.records, bytes) else read.records.read()
        found += split_batches(memoryview(bytearray(data)))
        offset = read.next_offset
    return found


def batches_of(log: Log, end_offset: int) -> list[tuple[int, bytes]]:
    return [
        (header.base_offset, bytes(batch))
        for header, batch in log_batches(log)
        if header.base_offset < end_offset
    ]


def summary(table: ProducerTable) -> dict[int, tuple[int, int, int, int | None]]:
    return {
        producer: (e.producer_epoch, e.coordinator_epoch, e.last_sequence, e.open_since)
        for producer, e in table.entries.items()
    }


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from((1, 2)))
def test_committed_records_outlive_every_walk(seed: int, min_isr: int) -> None:
    root = Path(tempfile.mkdtemp(prefix="penstock-", dir=MEMORY))
    try:
        world = World(root, Random(seed), min_isr)
        for step in range(160):
            world.step()
            if step % 10 == 0:
                world.check_logs()
        world.settle()
        world.check_logs()
    finally:
        shutil.rmtree(root)
