"""Whole replicas beside each other: followers copy, cut, catch up and never make things up."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.unit.replica.replicas import TOPIC, TOPIC_ID, Replicas, append, bytes_of
from tests.unit.storage.compacted import COMPACT, clean_once, keyed

from penstock.broker.fetching.nearest_replica import LEADER, nearest_replica
from penstock.broker.handlers.delete_records import _when_deleted
from penstock.cluster.image.image import BrokerImage, ImageDelta
from penstock.errors import ErrorCode, KafkaStorage, OffsetNotAvailable, RequestTimedOut
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.api_versions import ApiVersionsRequest
from penstock.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from penstock.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from penstock.records.batch import control_batch, split_batches
from penstock.records.control import ControlType, EndTransactionMarker
from penstock.storage.log.config import LogConfig


def run(story: Coroutine[Any, Any, None]) -> None:
    asyncio.run(story)


def test_followers_copy_byte_for_byte_and_acks_all_waits_for_them(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            last = append(cluster.leader, b"a", b"b", acks=-1)
            wait = cluster.leader.replicated(last)
            assert wait is not None
            await asyncio.wait_for(wait, 60)
            append(cluster.leader, b"c")
            await cluster.until_equal()
            assert cluster.leader.high_watermark == 3

    run(story())


def test_a_quiet_session_names_nothing_and_is_told_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, partitions=20) as cluster:
            append(cluster.leader, b"a")
            await cluster.until_equal()
            await cluster.until(lambda: len(cluster.asked) > 12)
            cluster.asked.clear()
            await cluster.until(lambda: len(cluster.asked) > 6)
            named = [len(r.topics) for _, _, r in cluster.asked if isinstance(r, FetchRequest)]
            assert set(named) == {0}

    run(story())


def test_who_has_a_request_waiting_is_known_to_a_leader_that_begins_anew(tmp_path: Path) -> None:
    """It has everything, so it says nothing of the partition again."""

    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            append(cluster.leader, b"a")
            await cluster.until_equal()
            await cluster.until(lambda: len(cluster.asked) > 12)
            leader = cluster.leader
            assert leader.state is not None
            newer = leader.state._replace(partition_epoch=leader.state.partition_epoch + 1)
            leader.take_state(newer, tuple(reversed(leader.replicas)))
            assert leader.in_sync is not None
            followers = leader.in_sync.followers.values()
            assert {one.fetch_offset for one in followers} == {-1}
            await cluster.until(lambda: {one.fetch_offset for one in followers} == {1})

    run(story())


def test_a_new_leader_is_followed_and_what_it_lacks_is_cut(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            append(cluster.leader, b"a")
            await cluster.until_equal()
            cluster.cuts |= {frozenset((1, 2)), frozenset((1, 3))}
            append(cluster.nodes[1].partition, b"lost", b"lost too")
            cluster.elect(2, 2, 3, isr=(2, 3))
            last = append(cluster.nodes[2].partition, b"kept", acks=-1)
            wait = cluster.nodes[2].partition.replicated(last)
            if wait is not None:
                await asyncio.wait_for(wait, 60)
            cluster.cuts.clear()
            cluster.publish()
            await cluster.until_equal()
            assert b"lost" not in bytes_of(cluster.nodes[1].partition)
            assert cluster.nodes[1].partition.log.epochs == cluster.nodes[2].partition.log.epochs

    run(story())


# Sessions


def fetched_by(
    broker: int, *, offset: int = 0, session: int = 0, epoch: int = 0, is_named: bool = True
) -> FetchRequest:
    """A request as a follower makes it."""
    partition = FetchPartition(
        partition=0,
        current_leader_epoch=0,
        fetch_offset=offset,
        log_start_offset=0,
        partition_max_bytes=1 << 20,
    )
    return FetchRequest(
        replica_state=ReplicaState(replica_id=broker, replica_epoch=100 + broker),
        max_wait_ms=0,
        min_bytes=1,
        session_id=session,
        session_epoch=epoch,
        topics=[FetchTopic(topic_id=TOPIC_ID, partitions=[partition])] if is_named else [],
    )


async def answered(cluster: Replicas, broker: int, request: FetchRequest) -> FetchResponse:
    found = await cluster.nodes[broker].answer(ApiKey.FETCH, request.encode(17), 17)
    return FetchResponse.decode(memoryview(found), 17)


def follower_offset(cluster: Replicas, broker: int) -> int:
    in_sync = cluster.leader.in_sync
    assert in_sync is not None
    return in_sync.followers[broker].fetch_offset


def test_a_lost_session_is_begun_anew(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, brokers=(1, 2)) as cluster:
            append(cluster.leader, b"a")
            await cluster.until_equal()
            sessions = cluster.nodes[1].sessions.followers
            for session in tuple(sessions._sessions.values()):
                sessions._close(session)
            append(cluster.leader, b"b")
            await cluster.until_equal()

    run(story())


def test_a_request_out_of_its_turn_changes_nothing(tmp_path: Path) -> None:  # I34
    async def story() -> None:
        async with Replicas(tmp_path, brokers=(1, 2)) as cluster:
            await cluster.nodes[2].fetchers.close()
            append(cluster.leader, b"a", b"b", b"c")
            first = await answered(cluster, 1, fetched_by(2))
            session = first.session_id
            second = fetched_by(2, offset=1, session=session, epoch=1)
            assert (await answered(cluster, 1, second)).error_code == ErrorCode.NONE
            assert follower_offset(cluster, 2) == 1
            for epoch in (1, 3, 4):  # Again, and too early.
                late = fetched_by(2, offset=3, session=session, epoch=epoch)
                answer = await answered(cluster, 1, late)
                assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
            stranger = fetched_by(2, offset=3, session=session + 1, epoch=2)
            answer = await answered(cluster, 1, stranger)
            assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            assert follower_offset(cluster, 2) == 1
            assert cluster.leader.high_watermark == 1

    run(story())


def test_a_first_request_that_was_long_on_its_way_does_not_stay_in_charge(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, brokers=(1, 2)) as cluster:
            append(cluster.leader, b"a", b"b")
            await cluster.until_equal()
            await answered(cluster, 1, fetched_by(2, offset=0))  # As of long ago.
            append(cluster.leader, b"c")
            await cluster.until_equal()
            assert cluster.leader.high_watermark == 3

    run(story())


def test_a_fetch_of_an_earlier_life_of_the_broker_is_refused(tmp_path: Path) -> None:  # I6
    async def story() -> None:
        async with Replicas(tmp_path, brokers=(1, 2)) as cluster:
            await cluster.nodes[2].fetchers.close()
            append(cluster.leader, b"a")
            cluster.register_again(2)
            cluster.publish(1)
            answer = await answered(cluster, 1, fetched_by(2, offset=1))
            (data,) = answer.responses[0].partitions
            assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert cluster.leader.high_watermark == 0

    run(story())


def test_who_is_no_replica_is_told_that_its_news_has_not_come(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, brokers=(1, 2)) as cluster:
            answer = await answered(cluster, 1, fetched_by(9))
            (data,) = answer.responses[0].partitions
            assert data.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH

    run(story())


def test_a_waiting_request_is_answered_by_the_next_append(tmp_path: Path) -> None:
    async def story() -> None:
        settings = {"replica.fetch.wait.max.ms": "20000"}
        async with Replicas(tmp_path, brokers=(1, 2), settings=settings) as cluster:
            append(cluster.leader, b"a")
            await cluster.until(lambda: cluster.leader.high_watermark == 1)
            wait = cluster.leader.replicated(append(cluster.leader, b"b"))
            assert wait is not None
            await asyncio.wait_for(wait, 60)

    run(story())


def test_a_replica_that_has_just_come_back_does_not_spoil_the_answer_to_a_deletion(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, brokers=(1, 2, 3)) as cluster:
            append(cluster.leader, b"a")
            await cluster.until(lambda: cluster.leader.high_watermark == 1)
            await cluster.lose(3)
            start = cluster.leader.delete_records(1)
            await cluster.until(lambda: cluster.leader.low_watermark() == 1)
            deleted = asyncio.get_running_loop().create_future()
            deleted.set_result(None)
            cluster.register_again(3)
            cluster.publish(1)
            assert cluster.leader.low_watermark() < 1
            answer = DeleteRecordsPartitionResult(partition_index=0)
            waits = [(answer, cluster.leader, start, deleted)]
            await _when_deleted(DeleteRecordsResponse(), waits, timeout_s=1)
            assert (answer.error_code, answer.low_watermark) == (0, 1)

    run(story())


def test_a_leader_that_was_away_is_knocked_at_before_all_partitions_are_named(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, brokers=(1, 2)) as cluster:
            await cluster.until(lambda: cluster.nodes[1].sessions.followers._sessions != {})
            cluster.cuts.add(frozenset((1, 2)))
            await cluster.until(lambda: cluster.nodes[2].fetchers._fetchers[1, 0]._fail_count > 1)
            before = len(cluster.asked)
            cluster.cuts.clear()
            append(cluster.leader, b"a")
            await cluster.until(lambda: cluster.leader.high_watermark == 1)
            since = [type(request) for _, _, request in cluster.asked[before:]]
            assert since[:2] == [ApiVersionsRequest, FetchRequest]
            assert ApiVersionsRequest not in since[2:]

    run(story())


def test_a_partition_that_comes_new_does_not_wait_with_the_others(tmp_path: Path) -> None:
    async def story() -> None:
        settings = {"replica.fetch.wait.max.ms": "20000"}
        async with Replicas(tmp_path, brokers=(1, 2), partitions=2, settings=settings) as cluster:
            await cluster.until(lambda: cluster.nodes[1].sessions.followers._sessions != {})
            cluster.change(1, leader=2, leader_epoch=1)
            cluster.publish()
            cluster.change(1, leader=1, leader_epoch=2)
            cluster.publish()
            wait = cluster.nodes[1].hosted(1).replicated(append(cluster.nodes[1].hosted(1), b"a"))
            assert wait is not None
            await asyncio.wait_for(wait, 60)

    run(story())


def test_nor_does_one_that_comes_right_after_another(tmp_path: Path) -> None:
    async def story() -> None:
        settings = {"replica.fetch.wait.max.ms": "20000"}
        async with Replicas(tmp_path, brokers=(1, 2), partitions=4, settings=settings) as cluster:
            await cluster.until(lambda: cluster.nodes[1].sessions.followers._sessions != {})
            for number in range(1, 4):
                cluster.change(number, leader=2, leader_epoch=1)
                cluster.publish()
                cluster.change(number, leader=1, leader_epoch=2)
                cluster.publish()
                led = cluster.nodes[1].hosted(number)
                wait = led.replicated(append(led, b"a"))
                assert wait is not None
                await asyncio.wait_for(wait, 60)

    run(story())


def test_in_a_hurry_a_waiting_request_is_let_go_and_its_session_goes_on(tmp_path: Path) -> None:
    async def story() -> None:
        settings = {"replica.fetch.wait.max.ms": "20000"}
        async with Replicas(tmp_path, brokers=(1, 2), settings=settings) as cluster:
            append(cluster.leader, b"a")
            await cluster.until(lambda: cluster.leader.high_watermark == 1)
            before = len(cluster.asked)
            cluster.nodes[1].sessions.followers.hurry()
            await cluster.until(lambda: len(cluster.asked) > before + 3)
            asked = [r for _, _, r in cluster.asked[before:] if isinstance(r, FetchRequest)]
            assert all(request.session_epoch > 0 for request in asked)

    run(story())


# Where logs begin and end


def test_a_follower_that_was_away_too_long_begins_where_the_leader_does(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            append(cluster.leader, b"a")
            await cluster.until_equal()
            await cluster.lose(3)
            append(cluster.leader, b"b", b"c", b"d")
            await cluster.until_equal(1, 2)
            cluster.leader.delete_records(2)  # In the middle of a batch.
            cluster.register_again(3)
            cluster.nodes[3].start()
            cluster.publish()
            await cluster.until(lambda: cluster.nodes[3].partition.log.log_start_offset == 2)
            await cluster.until(lambda: cluster.nodes[3].partition.high_watermark == 4)
            assert bytes_of(cluster.nodes[3].partition) == bytes_of(cluster.leader)

    run(story())


def test_an_unclean_leader_s_log_is_the_truth(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, brokers=(1, 2)) as cluster:
            append(cluster.leader, b"a")
            await cluster.until_equal()
            cluster.cuts.add(frozenset((1, 2)))
            append(cluster.leader, b"b", b"c")
            cluster.elect(2, 2, isr=(2,))
            append(cluster.nodes[2].partition, b"other")
            cluster.cuts.clear()
            cluster.publish()
            await cluster.until_equal()
            assert cluster.nodes[1].partition.log.log_end_offset == 2

    run(story())


def deleted(cluster: Replicas, offset: int, timeout_ms: int) -> Any:
    request = DeleteRecordsRequest(
        timeout_ms=timeout_ms,
        topics=[
            DeleteRecordsTopic(
                name=TOPIC, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)]
            )
        ],
    )
    return cluster.nodes[1].answer(ApiKey.DELETE_RECORDS, request.encode(2), 2)


def test_records_are_deleted_when_every_live_replica_has_deleted_them(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            append(cluster.leader, b"a", b"b", b"c")
            await cluster.until_equal()
            response = DeleteRecordsResponse.decode(
                memoryview(await deleted(cluster, 2, timeout_ms=20_000)), 2
            )
            (answer,) = response.topics[0].partitions
            assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, 2)
            starts = {n.partition.log.log_start_offset for n in cluster.nodes.values()}
            assert starts == {2}
            cluster.cuts.add(frozenset((1, 3)))
            response = DeleteRecordsResponse.decode(
                memoryview(await deleted(cluster, 3, timeout_ms=100)), 2
            )
            (answer,) = response.topics[0].partitions
            assert answer.error_code == RequestTimedOut.code

    run(story())


def test_retention_on_a_follower_keeps_what_is_not_committed(tmp_path: Path) -> None:
    async def story() -> None:
        config = LogConfig(segment_bytes=200, retention_bytes=0, segment_index_bytes=4096)
        async with Replicas(tmp_path, log_config=config) as cluster:
            for number in range(10):
                append(cluster.leader, b"%d" % number)
            await cluster.until_equal()
            cluster.cuts.add(frozenset((1, 3)))
            for number in range(10):
                append(cluster.leader, b"%d" % number)
            await cluster.until(lambda: cluster.nodes[2].partition.log.log_end_offset == 20)
            log = cluster.nodes[2].partition.log
            log.retain(10_000)
            assert 0 < log.log_start_offset <= log.high_watermark == 10
            cluster.cuts.clear()
            await cluster.until(lambda: cluster.nodes[3].partition.high_watermark == 20)
            await cluster.until(lambda: log.high_watermark == 20)

    run(story())


# What batches carry


def test_producers_and_transactions_are_the_same_on_every_replica(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            leader = cluster.leader
            numbered = {"producer_id": 5, "producer_epoch": 0}
            append(leader, b"a", base_sequence=0, **numbered)
            append(leader, b"b", base_sequence=1, is_transactional=True, **numbered)
            append(
                leader,
                b"c",
                producer_id=6,
                producer_epoch=1,
                base_sequence=0,
                is_transactional=True,
            )
            await cluster.until_equal()
            assert {n.partition.last_stable_offset for n in cluster.nodes.values()} == {1}
            marker = control_batch(
                EndTransactionMarker(ControlType.ABORT, 0), now_ms=1_000, **numbered
            )
            leader.append(split_batches(memoryview(marker)), required_acks=1, now_ms=1_000)
            await cluster.until_equal()
            logs = [node.partition.log for node in cluster.nodes.values()]
            assert {log.last_stable_offset for log in logs} == {2}
            assert all(log.producers() == logs[0].producers() for log in logs)
            aborted = [log.aborted_transactions(0, 10) for log in logs]
            assert aborted[0]
            assert aborted[1:] == aborted[:1] * 2
            cluster.elect(2)
            again = append(cluster.nodes[2].partition, b"a", base_sequence=0, **numbered)
            assert again == 0  # The new leader knows the batch that was sent to the old one.

    run(story())


def test_a_compacted_log_is_copied_with_its_gaps(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, log_config=COMPACT) as cluster:
            await cluster.lose(3)
            for number in range(60):
                batch = keyed([(b"key %d" % (number % 3), b"value %d" % number)])
                cluster.leader.append([batch], required_acks=1, now_ms=1_000)
            await cluster.until_equal(1, 2)
            assert clean_once(cluster.leader.log) is not None
            assert len(bytes_of(cluster.leader)) < len(bytes_of(cluster.nodes[2].partition))
            cluster.register_again(3)
            cluster.nodes[3].start()
            cluster.publish()
            await cluster.until(lambda: cluster.nodes[3].partition.high_watermark == 60)
            assert bytes_of(cluster.nodes[3].partition) == bytes_of(cluster.leader)
            assert clean_once(cluster.nodes[2].partition.log) is not None
            append(cluster.leader, b"and on")
            await cluster.until(
                lambda: {n.partition.high_watermark for n in cluster.nodes.values()} == {61}
            )

    run(story())


def test_a_topic_made_anew_has_nothing_of_the_old_one(tmp_path: Path) -> None:  # I30
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            append(cluster.leader, b"old")
            await cluster.until_equal()
            cluster.image = cluster.with_topic_id(b"another topic id")
            cluster.publish(1)
            append(cluster.nodes[1].partition, b"new", b"new")
            await asyncio.sleep(0.1)  # Followers ask for the old one meanwhile.
            cluster.publish()
            await cluster.until_equal()
            assert b"old" not in bytes_of(cluster.nodes[2].partition)

    run(story())


def test_one_log_that_fails_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, brokers=(1, 2), partitions=2) as cluster:
            broken = cluster.nodes[2].hosted(0).log
            whole = broken.append_as_follower

            def fail(*_: object, **__: object) -> Any:
                raise KafkaStorage("the disk is full")

            broken.append_as_follower = fail  # type: ignore[method-assign]
            append(cluster.nodes[1].hosted(0), b"a")
            append(cluster.nodes[1].hosted(1), b"b")
            await cluster.until(lambda: cluster.nodes[2].hosted(1).high_watermark == 1)
            assert broken.log_end_offset == 0
            broken.append_as_follower = whole  # type: ignore[method-assign]
            await cluster.until(lambda: cluster.nodes[2].hosted(0).high_watermark == 1)

    run(story())


# Readers


def test_a_follower_shows_consumers_what_is_committed(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            append(cluster.leader, b"a")
            await cluster.until_equal()
            cluster.cuts.add(frozenset((1, 3)))
            append(cluster.leader, b"not everywhere")
            follower = cluster.nodes[2].partition
            await cluster.until(lambda: follower.log.log_end_offset == 2)
            read = follower.read(0, bytes_max=1 << 20, is_committed_only=False, min_one=True)
            assert b"not everywhere" not in read.records.read()  # type: ignore[union-attr]
            assert not follower.read(1, bytes_max=9, is_committed_only=True, min_one=True).records
            with pytest.raises(OffsetNotAvailable):
                follower.read(2, bytes_max=9, is_committed_only=False, min_one=True)

    run(story())


def test_a_consumer_is_sent_to_the_replica_in_its_rack(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path) as cluster:
            append(cluster.leader, b"a")
            await cluster.until_equal()
            brokers = {
                broker: BrokerImage(
                    broker_id=broker, epoch=0, endpoints=(), is_active=True, rack=f"r{broker}"
                )
                for broker in cluster.nodes
            }
            await cluster.until(lambda: follower_offset(cluster, 3) == 1)
            assert nearest_replica(cluster.leader, 1, "r3", brokers) == 3
            assert nearest_replica(cluster.leader, 2, "r3", brokers) == LEADER
            for rack in ("", "r1", "nowhere"):
                assert nearest_replica(cluster.leader, 1, rack, brokers) == LEADER
            cluster.change(isr=(1, 2))
            cluster.publish()
            assert nearest_replica(cluster.leader, 1, "r3", brokers) == LEADER

    run(story())


# Throttles


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_replica_is_held_back_while_it_is_not_in_sync(
    tmp_path: Path, side: str
) -> None:
    async def story() -> None:
        rate = f"{side}.replication.throttled.rate"
        settings = {"replica.fetch.max.bytes": "100"}  # A batch at a time.
        config = LogConfig(**{f"{side}_replication_throttled_replicas": ("*",)})  # type: ignore[arg-type]
        async with Replicas(tmp_path, log_config=config, settings=settings) as cluster:
            for node in cluster.nodes.values():
                node.configure({rate: "1"})
            cluster.cuts.add(frozenset((1, 3)))
            cluster.change(isr=(1, 2))
            cluster.publish()
            for _ in range(8):
                append(cluster.leader, b"x" * 1_000)
            await cluster.until(lambda: cluster.nodes[2].partition.log.log_end_offset == 8)
            held = cluster.nodes[3].partition.log
            cluster.cuts.clear()
            await cluster.until(lambda: held.log_end_offset == 1)
            await asyncio.sleep(0.3)  # The rate would let the next batch through in a quarter hour.
            assert held.log_end_offset == 1
            for node in cluster.nodes.values():
                node.configure({rate: "1000000000"})
            await cluster.until(lambda: held.log_end_offset == 8)

    run(story())


def test_brokers_that_come_and_go_change_who_is_followed(tmp_path: Path) -> None:
    async def story() -> None:
        async with Replicas(tmp_path, brokers=(1, 2)) as cluster:
            append(cluster.leader, b"a")
            await cluster.until_equal()
            cluster.image = cluster.image.apply(ImageDelta(brokers={1: None}))
            cluster.publish(2)
            assert cluster.nodes[2].fetchers._fetchers == {}
            cluster.register_again(1)
            cluster.publish()
            append(cluster.leader, b"b")
            await cluster.until_equal()

    run(story())
