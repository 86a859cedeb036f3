"""The coordinator finds shards, loads them, rings their timers, and answers when it is safe."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.cluster.image.image import ClusterImage, PartitionImage, PartitionState, TopicImage
from penstock.cluster.topics.names import CONSUMER_OFFSETS
from penstock.config.broker import BrokerConfig
from penstock.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    NotCoordinator,
)
from penstock.groups.coordinator import GroupCoordinator
from penstock.groups.group import JoinAnswer
from penstock.groups.offsets.commits import OffsetToCommit
from penstock.groups.shard import GroupShard
from penstock.groups.surroundings import Caller, MemberClaim
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from penstock.records.batch import control_batch, split_batches
from penstock.records.control import ControlType, EndTransactionMarker
from penstock.replica.partition import Partition
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log

BROKER, OTHER = 1, 2


class Table:
    """The partitions a broker hosts, as far as a coordinator asks for them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._hosted: dict[tuple[str, int], Partition] = {}

    def get(self, topic: str, partition: int) -> Partition | None:
        return self._hosted.get((topic, partition))

    def apply(self, image: ClusterImage) -> None:
        for number, placed in image.topics[CONSUMER_OFFSETS].partitions.items():
            key = (CONSUMER_OFFSETS, number)
            if key not in self._hosted:
                self._hosted[key] = self._open(number)
            self._hosted[key].apply(placed, {})

    def _open(self, number: int) -> Partition:
        directory = self._directory / f"{CONSUMER_OFFSETS}-{number}"
        directory.mkdir(exist_ok=True)
        log = Log.open(directory, config=LogConfig(), now_ms=0, clean=True, report=lambda _: None)
        return Partition(
            topic=CONSUMER_OFFSETS, partition=number, topic_id=bytes(16), broker_id=BROKER, log=log
        )


class Cluster:
    """An image that changes, with a coordinator that follows it."""

    def __init__(self, directory: Path, settings: dict[str, str] | None = None) -> None:
        self.config = BrokerConfig({"group.initial.rebalance.delay.ms": "0", **(settings or {})})
        self.image = ClusterImage(cluster_id="c")
        self.table = Table(directory)
        self.now_ms = 1_700_000_000_000
        self.coordinator = self.new_coordinator()
        self._changes = 0

    def new_coordinator(self) -> GroupCoordinator:
        return GroupCoordinator(
            partitions=self.table,  # type: ignore[arg-type]
            config=lambda: self.config,
            image=lambda: self.image,
            now_ms=lambda: self.now_ms,
        )

    def restart(self) -> None:
        """Another coordinator on the same logs."""
        self.coordinator = self.new_coordinator()
        self.coordinator.take_image(self.image)

    def topic(self, name: str, topic_id: bytes | None) -> None:
        """Make a topic, or take it away."""
        topics = {key: value for key, value in self.image.topics.items() if key != name}
        if topic_id is not None:
            topics[name] = TopicImage(name=name, topic_id=topic_id, partitions={})
        self._publish(topics)

    def lead(
        self,
        *,
        leader: int = BROKER,
        epoch: int = 0,
        isr: tuple[int, ...] = (BROKER,),
        partition_count: int = 3,
    ) -> None:
        self._changes += 1
        state = PartitionState(
            leader=leader,
            leader_epoch=epoch,
            isr=isr,
            min_isr=len(isr),
            partition_epoch=self._changes,
        )
        placed = PartitionImage(replicas=(BROKER, OTHER), state=state)
        made = TopicImage(
            name=CONSUMER_OFFSETS,
            topic_id=bytes(16),
            partitions=dict.fromkeys(range(partition_count), placed),
        )
        self._publish({**self.image.topics, CONSUMER_OFFSETS: made})

    def _publish(self, topics: dict[str, TopicImage]) -> None:
        self.image = replace(self.image, topics=topics)
        self.table.apply(self.image)
        self.coordinator.take_image(self.image)

    # Requests

    def commit(self, offset: int, *, topic: str = "t", group_id: str = "g") -> Any:
        def commit(shard: GroupShard) -> list[ErrorCode]:
            offsets = [OffsetToCommit(topic, 0, offset)]
            return shard.commits.commit(group_id, MemberClaim(), offsets, version=8)

        return self.coordinator.run(group_id, commit)

    def commit_in_transaction(self, offset: int, producer_id: int) -> Any:
        def commit(shard: GroupShard) -> list[ErrorCode]:
            offsets = [OffsetToCommit("t", 0, offset)]
            return shard.commits.commit_transactional(
                "g", MemberClaim(), (producer_id, 0), offsets, version=3
            )

        return self.coordinator.run("g", commit)

    def write_marker(self, producer_id: int, kind: ControlType) -> tuple[int, int]:
        """The marker of a transaction, as WriteTxnMarkers appends it; partition and offset."""
        number = self.coordinator.partition_of("g")
        partition = self.table.get(CONSUMER_OFFSETS, number)
        assert partition is not None
        marker = control_batch(
            EndTransactionMarker(kind, 0),
            producer_id=producer_id,
            producer_epoch=0,
            now_ms=self.now_ms,
        )
        batches = split_batches(memoryview(marker))
        appended = partition.append(batches, required_acks=-1, now_ms=self.now_ms)
        return number, appended.base_offset

    def commit_marked(self, producer_id: int) -> None:
        number, offset = self.write_marker(producer_id, ControlType.COMMIT)
        self.coordinator.take_marker(number, producer_id, is_committed=True, marker_offset=offset)

    def offset(self, *, topic: str = "t", group_id: str = "g") -> int | None:
        found = self.coordinator.led_shard(group_id).shard.offsets.get(group_id, topic, 0)
        return None if found is None else found.offset

    def join(self, member_id: str = "", *, version: int = 3) -> Any:
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=6000,
            rebalance_timeout_ms=6000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"s")],
        )

        def join(shard: GroupShard) -> JoinAnswer:
            return shard.join_group(request, Caller(version, "c", "/h"))

        return self.coordinator.run("g", join)

    async def loaded(self) -> None:
        """Until every shard has been read."""
        while self.coordinator.listed([], [])[1] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            await asyncio.sleep(0)


Run = Callable[[Callable[[Cluster], Coroutine[Any, Any, None]]], None]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Runs a story on a cluster, and takes the cluster down after it."""

    def run(
        story: Callable[[Cluster], Coroutine[Any, Any, None]],
        settings: dict[str, str] | None = None,
    ) -> None:
        async def whole() -> None:
            cluster = Cluster(tmp_path, settings)
            try:
                await story(cluster)
            finally:
                cluster.coordinator.close()

        asyncio.run(whole())

    yield run


# Finding


def test_without_the_topic_there_is_no_coordinator(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        with pytest.raises(CoordinatorNotAvailable):
            cluster.commit(1)

    run(story)


def test_a_group_led_elsewhere_is_not_answered_for(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead(leader=OTHER)
        with pytest.raises(NotCoordinator):
            cluster.commit(1)

    run(story)


def test_groups_of_all_partitions_are_served_and_listed(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead(partition_count=5)
        names = [f"group {number}" for number in range(20)]
        for name in names:
            assert cluster.commit(1, group_id=name) == [ErrorCode.NONE]
        homes = {cluster.coordinator.partition_of(name) for name in names}
        assert len(homes) > 1
        groups, error = cluster.coordinator.listed([], [])
        assert error is ErrorCode.NONE
        assert sorted(group.group_id for group in groups) == sorted(names)

    run(story)


def test_a_commit_to_a_log_of_one_replica_is_answered_at_once(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead()
        assert cluster.commit(1) == [ErrorCode.NONE]

    run(story)


# Loading


def test_a_new_leader_finds_groups_and_offsets_in_the_log(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead()
        for number in range(2000):
            cluster.commit(number, group_id=f"group {number % 100}")
        cluster.restart()
        with pytest.raises(CoordinatorLoadInProgress):
            cluster.commit(1)
        assert cluster.coordinator.listed([], [])[1] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await cluster.loaded()
        for number in range(100):
            assert cluster.offset(group_id=f"group {number}") == 1900 + number

    run(story)


def test_loading_lets_others_run(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead(partition_count=1)
        for number in range(3000):
            cluster.commit(number)
        cluster.restart()
        turns = 0
        while cluster.coordinator.listed([], [])[1] is not ErrorCode.NONE:
            await asyncio.sleep(0)
            turns += 1
        assert turns > 3
        assert cluster.offset() == 2999

    run(story)


def test_offsets_of_a_transaction_are_found_by_their_marker(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead()
        cluster.commit(1)
        cluster.commit_in_transaction(5, 7)
        cluster.commit_in_transaction(6, 8)
        cluster.write_marker(7, ControlType.COMMIT)
        cluster.write_marker(8, ControlType.ABORT)
        cluster.restart()
        await cluster.loaded()
        assert cluster.offset() == 5
        assert not cluster.coordinator.led_shard("g").shard.offsets.has_pending("g")

    run(story)


def test_a_marker_decides_over_pending_offsets(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead()
        cluster.commit_in_transaction(5, 7)
        assert cluster.offset() is None
        cluster.commit_marked(7)
        assert cluster.offset() == 5

    run(story)


def test_a_marker_written_while_loading_counts(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead()
        cluster.commit_in_transaction(5, 7)
        for number in range(3000):  # Enough for several chunks.
            cluster.commit(number, topic="other")
        cluster.restart()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        cluster.commit_marked(7)
        await cluster.loaded()
        assert cluster.offset() == 5

    run(story)


def test_a_marker_of_a_partition_led_elsewhere_is_ignored(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead(leader=OTHER)
        cluster.coordinator.take_marker(0, 7, is_committed=True, marker_offset=0)

    run(story)


def test_records_that_may_still_be_lost_are_not_served(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead(isr=(BROKER, OTHER))
        waiting = asyncio.ensure_future(cluster.commit(1))
        await asyncio.sleep(0)
        cluster.restart()
        for _ in range(10):
            await asyncio.sleep(0)
        with pytest.raises(CoordinatorLoadInProgress):
            cluster.commit(2)
        cluster.lead(isr=(BROKER,))
        await cluster.loaded()
        assert cluster.offset() == 1
        assert await waiting == [ErrorCode.NONE]

    run(story)


def test_a_log_with_damage_is_loaded_as_far_as_it_can_be(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead(partition_count=1)
        cluster.commit(1, topic="first topic")
        cluster.commit(2, topic="second topic")
        partition = cluster.table.get(CONSUMER_OFFSETS, 0)
        assert partition is not None
        segment = next(partition.log.dir.glob("*.log"))
        segment.write_bytes(segment.read_bytes().replace(b"first topic", b"FIRST topic"))
        cluster.restart()
        await cluster.loaded()
        assert cluster.offset(topic="second topic") == 2
        assert cluster.offset(topic="first topic") is None
        assert cluster.commit(3) == [ErrorCode.NONE]

    run(story)


def test_a_log_that_could_not_be_read_is_tried_again(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.coordination.pauses.FIRST_PAUSE_S", 0.01)

    async def story(cluster: Cluster) -> None:
        cluster.lead(partition_count=1)
        cluster.commit(1)
        partition = cluster.table.get(CONSUMER_OFFSETS, 0)
        assert partition is not None
        segment = next(partition.log.dir.glob("*.log"))
        good = segment.read_bytes()
        segment.write_bytes(b"")
        cluster.restart()
        for _ in range(5):
            await asyncio.sleep(0)
        with pytest.raises(CoordinatorLoadInProgress):
            cluster.commit(2)
        segment.write_bytes(good)
        async with asyncio.timeout(60):
            await cluster.loaded()
        assert cluster.offset() == 1

    run(story)


# Replication


def test_an_answer_waits_until_what_it_rests_on_is_safe(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead(isr=(BROKER, OTHER))
        committing = asyncio.ensure_future(cluster.commit(1))
        reading = asyncio.ensure_future(
            cluster.coordinator.run("g", lambda shard: shard.offsets.get("g", "t", 0))
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not committing.done()
        assert not reading.done()
        cluster.lead(isr=(BROKER,))
        assert await committing == [ErrorCode.NONE]
        found = await reading
        assert found is not None and found.offset == 1

    run(story)


def test_an_offset_that_rests_on_a_marker_waits_for_the_marker(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead()
        cluster.commit_in_transaction(5, 7)
        cluster.lead(isr=(BROKER, OTHER))
        cluster.commit_marked(7)
        reading = asyncio.ensure_future(
            cluster.coordinator.run("g", lambda shard: shard.offsets.get("g", "t", 0))
        )
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not reading.done()
        cluster.lead(isr=(BROKER,))
        found = await reading
        assert found is not None and found.offset == 5

    run(story)


def test_a_commit_whose_replicas_are_too_slow_is_to_be_tried_again(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.config = BrokerConfig({"offsets.commit.timeout.ms": "20"})
        cluster.lead(isr=(BROKER, OTHER))
        with pytest.raises(CoordinatorNotAvailable):
            await cluster.commit(1)

    run(story)


def test_whoever_waits_is_sent_on_when_leadership_is_lost(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead(isr=(BROKER, OTHER))
        committing = asyncio.ensure_future(cluster.commit(1))
        joining = asyncio.ensure_future(cluster.join())
        await asyncio.sleep(0)
        cluster.lead(leader=OTHER, epoch=1)
        with pytest.raises(NotCoordinator):
            await committing
        assert (await joining).error_code == ErrorCode.NOT_COORDINATOR
        with pytest.raises(NotCoordinator):
            cluster.commit(2)

    run(story)


def test_nothing_is_answered_once_the_store_says_that_the_epoch_is_over(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead()
        cluster.commit(1)
        assert cluster.offset() == 1
        cluster.coordinator.led_shard("g").log.partition.step_down(None)
        with pytest.raises(NotCoordinator):
            cluster.offset()

    run(story)


def test_a_new_epoch_begins_with_what_the_log_says(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead()
        cluster.commit(1)
        joining = asyncio.ensure_future(cluster.join())
        await asyncio.sleep(0)
        cluster.lead(epoch=1)
        assert (await joining).error_code == ErrorCode.NOT_COORDINATOR
        await cluster.loaded()
        assert cluster.offset() == 1
        assert cluster.coordinator.led_shard("g").shard.group("g").state == "Empty"

    run(story)


# Timers


def test_a_rebalance_ends_by_the_clock(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.config = BrokerConfig({"group.initial.rebalance.delay.ms": "30"})
        cluster.lead()
        began_s = asyncio.get_running_loop().time()
        told = await cluster.join()
        assert (told.error_code, told.generation_id) == (0, 1)
        assert asyncio.get_running_loop().time() - began_s >= 0.03

    run(story)


def test_a_silent_member_is_out_when_its_session_ends(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.config = BrokerConfig(
            {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1"}
        )
        cluster.lead()
        told = await cluster.join()
        shard = cluster.coordinator.led_shard("g").shard
        member = next(iter(shard.group("g").members))  # type: ignore[attr-defined]
        member.session_timeout_ms = 20
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=told.member_id)
        cluster.coordinator.run("g", lambda shard: shard.heartbeat(beat))
        async with asyncio.timeout(60):
            while shard.group("g").state != "Empty":
                await asyncio.sleep(0.005)

    run(story)


def test_an_answer_that_comes_before_anybody_waits_for_it_is_not_lost(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead()
        first = cluster.join()  # Handed over, and not yet begun to be waited for.
        cluster.coordinator.run(
            "g", lambda shard: shard.group("g").stop(ErrorCode.REBALANCE_IN_PROGRESS)
        )
        async with asyncio.timeout(60):
            assert (await first).error_code == ErrorCode.REBALANCE_IN_PROGRESS

    run(story)


def test_a_client_that_went_away_while_waiting_disturbs_nobody(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.config = BrokerConfig({"group.initial.rebalance.delay.ms": "20"})
        cluster.lead()
        gone = asyncio.ensure_future(cluster.join())
        await asyncio.sleep(0)
        gone.cancel()
        told = await cluster.join()
        assert told.error_code == 0

    run(story)


# Topics that are gone, and time that passes


def test_offsets_go_with_their_topic(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead()
        cluster.topic("t", b"1" * 16)
        cluster.topic("other", b"2" * 16)
        cluster.commit(1)
        cluster.commit(2, topic="other")
        cluster.topic("t", None)
        assert cluster.offset() is None
        cluster.restart()
        await cluster.loaded()
        assert cluster.offset() is None
        assert cluster.offset(topic="other") == 2

    run(story)


def test_a_topic_made_anew_under_its_old_name_begins_without_offsets(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead()
        cluster.topic("t", b"1" * 16)
        cluster.commit(1)
        cluster.topic("t", b"2" * 16)
        assert cluster.offset() is None
        cluster.commit(7)
        cluster.topic("another", b"3" * 16)
        assert cluster.offset() == 7

    run(story)


def test_a_topic_deleted_while_its_offsets_are_loaded_takes_them_along(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.lead()
        cluster.topic("t", b"1" * 16)
        cluster.commit(1)
        cluster.restart()
        cluster.topic("t", None)
        await cluster.loaded()
        assert cluster.offset() is None

    run(story)


def test_old_offsets_are_removed_by_the_clock(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.config = BrokerConfig(
            {"offsets.retention.check.interval.ms": "10", "offsets.retention.minutes": "1"}
        )
        cluster.lead()
        cluster.commit(1)
        cluster.now_ms += 61_000
        cluster.commit(2, topic="young")
        async with asyncio.timeout(60):
            while cluster.offset() is not None:
                await asyncio.sleep(0.005)
        assert cluster.offset(topic="young") == 2

    run(story)


def test_nothing_is_led_after_closing(run: Run) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.config = BrokerConfig({"group.initial.rebalance.delay.ms": "60000"})
        cluster.lead()
        joining = asyncio.ensure_future(cluster.join())
        await asyncio.sleep(0)
        cluster.coordinator.close()
        assert (await joining).error_code == ErrorCode.NOT_COORDINATOR
        cluster.lead(epoch=5)
        with pytest.raises(CoordinatorNotAvailable):
            cluster.commit(1)

    run(story)
