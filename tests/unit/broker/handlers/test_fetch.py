"""Fetch, asked by consumers: how much, how long, and what is told instead of records."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.broker.conftest import Served

from penstock.errors import ErrorCode
from penstock.protocol.apis import ApiKey, supported_versions
from penstock.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from penstock.records.batch import control_batch, read_records, split_batches
from penstock.records.compression import Codec
from penstock.records.control import ControlType, EndTransactionMarker
from penstock.records.message_set import read_message_set

VERSIONS = supported_versions(ApiKey.FETCH)
FIRST_WITH_IDS = 13
LATEST = VERSIONS[-1]
NOWHERE = b"?" * 16
LONG_MS = 60_000  # Longer than any test waits: only what is to be tested ends it.
MIB = 1 << 20
AT_ONCE = 1_000  # Beyond so many partitions a request is answered in turns.
READ_COMMITTED = 1


def fetch(
    served: Served,
    wanted: Mapping[tuple[str, int], int],
    *,
    partition_bytes: int = MIB,
    epochs: tuple[int, int] = (-1, -1),
    forgotten: list[tuple[str, int]] | None = None,
    **fields: Any,
) -> FetchRequest:
    """For offsets by partition; topics go by name and id, so that it is right in every version.

    `epochs` are the leader epoch that the reader knows, and that of the last record it has.
    """
    return FetchRequest(
        **{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": MIB, **fields},
        topics=[
            FetchTopic(
                topic=topic,
                topic_id=topic_id(served, topic),
                partitions=[
                    FetchPartition(
                        partition=index,
                        fetch_offset=offset,
                        partition_max_bytes=partition_bytes,
                        current_leader_epoch=epochs[0],
                        last_fetched_epoch=epochs[1],
                    )
                ],
            )
            for (topic, index), offset in wanted.items()
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic=topic, topic_id=topic_id(served, topic), partitions=[index])
            for topic, index in forgotten or []
        ],
    )


def topic_id(served: Served, topic: str) -> bytes:
    known = served.broker.image.topics.get(topic)
    return NOWHERE if known is None else known.topic_id


def told(answer: Any) -> list[Any]:
    """What is said of each partition, in the order of the answer."""
    return [partition for topic in answer.responses for partition in topic.partitions]


def sizes(answer: Any) -> list[int]:
    return [len(partition.records or b"") for partition in told(answer)]


def code(answer: Any) -> ErrorCode:
    """Of the one partition."""
    (partition,) = told(answer)
    return ErrorCode(partition.error_code)


def batch_bytes(served: Served, topic: str, index: int = 0) -> int:
    """The size of a log that has one batch."""
    return int(served.partition(topic, index).log.size_bytes)


# Every version


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_reads_what_was_written(served: Served, version: int) -> None:
    served.create("t")
    served.append("t", 10, 20, 30)
    answer = served.ask(fetch(served, {("t", 0): 1}), version)
    (topic,) = answer.responses
    if version >= FIRST_WITH_IDS:
        assert topic.topic_id == topic_id(served, "t")
    else:
        assert topic.topic == "t"
    (partition,) = topic.partitions
    assert (partition.partition_index, partition.error_code) == (0, ErrorCode.NONE)
    assert partition.high_watermark == 3
    assert partition.last_stable_offset == (3 if version >= 4 else -1)
    assert partition.log_start_offset == (0 if version >= 5 else -1)
    if version >= 4:
        records = list(read_records(bytes(partition.records)))
        assert [(record.offset, record.timestamp) for record in records] == [
            (0, 10),
            (1, 20),
            (2, 30),
        ]
    else:
        messages = read_message_set(bytes(partition.records), bytes_max=MIB)
        assert [message.offset for message in messages] == [1, 2]


def test_at_the_end_of_the_log_there_is_nothing_and_no_error(served: Served) -> None:
    served.create("t")
    served.append("t", 1, 2)
    answer = served.ask(fetch(served, {("t", 0): 2}), LATEST)
    assert (code(answer), sizes(answer)) == (ErrorCode.NONE, [0])
    assert told(answer)[0].high_watermark == 2


@pytest.mark.parametrize(("version", "is_readable"), [(9, False), (10, True)])
def test_zstd_is_for_those_who_know_it(served: Served, version: int, is_readable: bool) -> None:
    served.create("t", compression_type="zstd")
    served.append("t", 1, codec=Codec.ZSTD)
    answer = served.ask(fetch(served, {("t", 0): 0}), version)
    refused = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert code(answer) == (ErrorCode.NONE if is_readable else refused)
    assert bool(sizes(answer)[0]) == is_readable


@pytest.mark.parametrize(("version", "is_served"), [(3, False), (4, True)])
def test_conversion_for_old_clients_can_be_switched_off(
    served: Served, version: int, is_served: bool
) -> None:
    served.create("t", message_downconversion_enable="false")
    served.append("t", 1)
    answer = served.ask(fetch(served, {("t", 0): 0}), version)
    assert code(answer) == (ErrorCode.NONE if is_served else ErrorCode.UNSUPPORTED_VERSION)


# What is not there


@pytest.mark.parametrize("version", [0, 6, 12])
def test_a_name_that_no_topic_has_is_unknown(served: Served, version: int) -> None:
    answer = served.ask(fetch(served, {("none", 0): 0}), version)
    assert code(answer) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (partition,) = told(answer)
    assert (partition.high_watermark, partition.records) == (-1, b"")


@pytest.mark.parametrize("version", [13, LATEST])
def test_an_id_that_no_topic_has_is_unknown(served: Served, version: int) -> None:
    answer = served.ask(fetch(served, {("none", 0): 0}), version)
    assert code(answer) == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_topic_made_anew_is_another_one(served: Served) -> None:
    served.create("t")
    asked = fetch(served, {("t", 0): 0})
    served.ask(DeleteTopicsRequest(topic_names=["t"]), 4)
    served.create("t")
    served.append("t", 1)
    assert code(served.ask(asked, LATEST)) == ErrorCode.UNKNOWN_TOPIC_ID
    assert code(served.ask(asked, FIRST_WITH_IDS - 1)) == ErrorCode.NONE


@pytest.mark.parametrize("version", [4, 12, LATEST])
def test_a_partition_that_is_not_there_spoils_no_other(served: Served, version: int) -> None:
    served.create("t")
    served.append("t", 1)
    answer = served.ask(fetch(served, {("t", 7): 0, ("t", 0): 0}), version)
    assert [(it.partition_index, it.error_code) for it in told(answer)] == [
        (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (0, ErrorCode.NONE),
    ]
    assert sizes(answer)[1] == batch_bytes(served, "t")


@pytest.mark.parametrize("offset", [-1, 0, 1, 4, 99])
def test_an_offset_outside_the_log_is_out_of_range(served: Served, offset: int) -> None:
    served.create("t")
    served.append("t", 1, 2, 3)
    deletion = DeleteRecordsTopic(
        name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=2)]
    )
    served.ask(DeleteRecordsRequest(topics=[deletion], timeout_ms=LONG_MS), 2)
    answer = served.ask(fetch(served, {("t", 0): offset}, max_wait_ms=LONG_MS), LATEST)
    assert code(answer) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert sizes(answer) == [0]
    assert code(served.ask(fetch(served, {("t", 0): 2}), LATEST)) == ErrorCode.NONE


# Leader epochs


def begin_epoch(served: Served, topic: str) -> None:
    """A move to where the partition is already is a new leader epoch, and nothing else."""
    partition = ReassignablePartition(partition_index=0, replicas=[7])
    move = ReassignableTopic(name=topic, partitions=[partition])
    served.ask(AlterPartitionReassignmentsRequest(topics=[move], timeout_ms=LONG_MS), 0)
    assert served.partition(topic).leader_epoch == 1


@pytest.mark.parametrize(
    ("epoch", "found"),
    [
        (-1, ErrorCode.NONE),
        (0, ErrorCode.NONE),
        (1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
@pytest.mark.parametrize("version", [9, 12, LATEST])
def test_a_reader_that_knows_a_newer_leader_is_told_to_wait(
    served: Served, version: int, epoch: int, found: ErrorCode
) -> None:
    served.create("t")
    answer = served.ask(fetch(served, {("t", 0): 0}, epochs=(epoch, -1)), version)
    assert code(answer) == found


@pytest.mark.parametrize("version", [9, 12, 16, LATEST])
def test_a_reader_of_an_old_epoch_is_fenced_and_told_the_leader(
    served: Served, version: int
) -> None:
    served.create("t")
    begin_epoch(served, "t")
    answer = served.ask(fetch(served, {("t", 0): 0}, epochs=(0, -1), max_wait_ms=LONG_MS), version)
    assert code(answer) == ErrorCode.FENCED_LEADER_EPOCH
    nodes = [node.node_id for node in answer.node_endpoints]
    assert nodes == ([7] if version >= 16 else [])
    assert told(answer)[0].current_leader.leader_id == (7 if version >= 16 else -1)


def test_a_reader_whose_records_the_leader_never_had_is_told_where_they_part(
    served: Served,
) -> None:
    served.create("t")
    served.append("t", 1, 2)
    begin_epoch(served, "t")
    served.append("t", 3)
    answer = served.ask(fetch(served, {("t", 0): 3}, epochs=(-1, 0), max_wait_ms=LONG_MS), LATEST)
    (partition,) = told(answer)
    assert (partition.error_code, sizes(answer)) == (ErrorCode.NONE, [0])
    assert (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset) == (0, 2)


# How much


def test_the_first_batch_comes_whatever_its_size_and_only_the_first(served: Served) -> None:
    served.create("t", 3)
    for index in (1, 2):
        served.append("t", *range(50), index=index)
    wanted = {("t", 0): 0, ("t", 1): 0, ("t", 2): 0}
    small = served.ask(fetch(served, wanted, max_bytes=1), LATEST)
    assert sizes(small) == [0, batch_bytes(served, "t", 1), 0]
    narrow = served.ask(fetch(served, wanted, partition_bytes=1), LATEST)
    assert sizes(narrow) == [0, batch_bytes(served, "t", 1), 0]


def test_what_one_partition_takes_is_missing_for_the_next(served: Served) -> None:
    served.create("t", 3)
    for index in range(3):
        served.append("t", *range(50), index=index)
    size = batch_bytes(served, "t")
    wanted = {("t", index): 0 for index in range(3)}
    for room, expected in [
        (3 * size, [size, size, size]),
        (3 * size - 1, [size, size, 0]),
        (2 * size - 1, [size, 0, 0]),
    ]:
        assert sizes(served.ask(fetch(served, wanted, max_bytes=room), LATEST)) == expected


def test_a_partition_gives_whole_batches_up_to_its_own_limit(served: Served) -> None:
    served.create("t")
    for _ in range(4):
        served.append("t", *range(50))
    size = served.partition("t").log.size_bytes // 4
    answer = served.ask(fetch(served, {("t", 0): 0}, partition_bytes=3 * size - 1), LATEST)
    assert sizes(answer) == [2 * size]


def test_no_client_gets_more_at_once_than_the_broker_allows(serve: Callable[..., Served]) -> None:
    served = serve({"fetch.max.bytes": "2000"})
    served.create("t")
    for _ in range(8):
        served.append("t", *range(50))
    size = served.partition("t").log.size_bytes // 8
    assert size < 2000 < 8 * size
    (found,) = sizes(served.ask(fetch(served, {("t", 0): 0}), LATEST))
    assert found == 2000 // size * size


# How long


async def started(served: Served, request: FetchRequest, version: int = LATEST) -> Any:
    """The request, once it waits."""
    asking = asyncio.ensure_future(served.answer(request, version))
    for _ in range(20):
        await asyncio.sleep(0)
    return asking


@pytest.mark.parametrize("version", [0, 3, 4, LATEST])
def test_a_reader_waits_until_there_is_as_much_as_it_wants(served: Served, version: int) -> None:
    served.create("t", 2)
    served.append("t", *range(50), index=1)
    size = batch_bytes(served, "t", 1)
    wanted = {("t", 0): 0, ("t", 1): 0}

    async def story() -> Any:
        request = fetch(served, wanted, min_bytes=2 * size + 1, max_wait_ms=LONG_MS)
        asking = await started(served, request, version)
        served.append("t", *range(50))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not asking.done()
        served.append("t", *range(50), index=1)
        return await asyncio.wait_for(asking, 60)

    answer = served.run(story())
    assert all(sizes(answer))
    if version >= 4:
        assert sizes(answer) == [size, 2 * size]


def test_a_reader_who_waits_hears_of_a_topic_that_was_made_anew_under_its_name(
    served: Served,
) -> None:
    served.create("t")
    image = served.broker.image
    other = replace(image.topics["t"], topic_id=b"another topic id")

    async def story() -> Any:
        request = fetch(served, {("t", 0): 0}, max_wait_ms=LONG_MS)
        asking = await started(served, request, FIRST_WITH_IDS - 1)
        served.broker.partitions.apply(replace(image, topics={**image.topics, "t": other}))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not asking.done()
        served.append("t", 1)
        return await asyncio.wait_for(asking, 60)

    assert sizes(served.run(story())) == [batch_bytes(served, "t")]


def test_when_its_time_is_up_a_reader_gets_what_there_is(served: Served) -> None:
    served.create("t")
    served.append("t", 1)
    request = fetch(served, {("t", 0): 0}, min_bytes=MIB, max_wait_ms=1)
    answer = served.run(asyncio.wait_for(served.answer(request, LATEST), 60))
    assert sizes(answer) == [batch_bytes(served, "t")]


@pytest.mark.parametrize("fields", [{"min_bytes": 0}, {"max_wait_ms": 0}])
def test_who_wants_nothing_or_has_no_time_is_answered_at_once(
    served: Served, fields: dict[str, int]
) -> None:
    served.create("t")
    request = fetch(served, {("t", 0): 0}, **{"max_wait_ms": LONG_MS, "min_bytes": MIB, **fields})
    assert sizes(served.ask(request, LATEST)) == [0]


def test_an_error_does_not_wait_for_others_to_grow(served: Served) -> None:
    served.create("t")
    wanted = {("t", 0): 0, ("t", 1): 0}
    request = fetch(served, wanted, min_bytes=MIB, max_wait_ms=LONG_MS)
    answer = served.run(asyncio.wait_for(served.answer(request, LATEST), 60))
    assert [it.error_code for it in told(answer)] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_a_reader_of_many_partitions_waits_like_others(served: Served) -> None:
    served.create("t", 2)
    wanted = {("t", index): 0 for index in range(2)}
    request = fetch(served, wanted, min_bytes=1, max_wait_ms=LONG_MS)
    request.topics *= AT_ONCE // 2 + 1

    async def story() -> Any:
        asking = await started(served, request, FIRST_WITH_IDS - 1)
        assert not asking.done()
        served.append("t", 1, index=1)
        return await asyncio.wait_for(asking, 60)

    answer = served.run(story())
    size = batch_bytes(served, "t", 1)
    assert len(told(answer)) == len(request.topics)
    assert {it.partition_index for it in told(answer) if it.records} == {1}
    assert sum(sizes(answer)) == size * len(request.topics) // 2


# Committed only


@pytest.mark.parametrize("version", [4, LATEST])
def test_a_reader_of_committed_records_stops_at_what_is_open(served: Served, version: int) -> None:
    served.create("t")
    served.append("t", 1)
    open_at = served.partition("t").log.log_end_offset
    served.append("t", 2, producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    served.append("t", 3)
    wanted = {("t", 0): 0}
    (everything,) = told(served.ask(fetch(served, wanted), version))
    (committed,) = told(served.ask(fetch(served, wanted, isolation_level=READ_COMMITTED), version))
    assert [record.offset for record in read_records(bytes(everything.records))] == [0]
    assert (committed.high_watermark, committed.last_stable_offset) == (3, open_at)
    assert len(committed.records) < len(everything.records)
    assert everything.aborted_transactions is None
    assert committed.aborted_transactions == []


@pytest.mark.parametrize("version", [4, 12])
@pytest.mark.parametrize("times", [1, AT_ONCE + 1])
def test_the_small_end_of_a_transaction_is_enough_for_who_waits_for_all_of_it(
    served: Served, version: int, times: int
) -> None:
    served.create("t")
    producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    marker = control_batch(
        EndTransactionMarker(ControlType.COMMIT, 0), producer_id=5, producer_epoch=0, now_ms=3
    )

    async def story() -> Any:
        request = fetch(served, {("t", 0): 0}, max_wait_ms=LONG_MS, min_bytes=2 * len(marker))
        request.isolation_level = READ_COMMITTED
        request.topics *= times
        asking = await started(served, request, version)
        served.append("t", *range(50), **producer, is_transactional=True)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not asking.done()
        served.partition("t").append(
            split_batches(memoryview(marker)), required_acks=1, now_ms=3, verify_producer=False
        )
        return await asyncio.wait_for(asking, 60)

    assert sizes(served.run(story()))[0] == batch_bytes(served, "t")


def test_a_reader_of_committed_records_is_told_what_was_aborted(served: Served) -> None:
    served.create("t")
    served.append("t", 1)
    served.append("t", 2, producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    marker = control_batch(
        EndTransactionMarker(ControlType.ABORT, 0), producer_id=5, producer_epoch=0, now_ms=3
    )
    served.partition("t").append(
        split_batches(memoryview(marker)), required_acks=1, now_ms=3, verify_producer=False
    )
    request = fetch(served, {("t", 0): 0}, isolation_level=READ_COMMITTED)
    (partition,) = told(served.ask(request, LATEST))
    assert partition.last_stable_offset == 3
    assert [(it.producer_id, it.first_offset) for it in partition.aborted_transactions] == [(5, 1)]
    assert len(partition.records) == served.partition("t").log.size_bytes
    behind = fetch(served, {("t", 0): 3}, isolation_level=READ_COMMITTED)
    assert told(served.ask(behind, LATEST))[0].aborted_transactions == []


# Sessions


def begun(served: Served, version: int = LATEST, **offsets: int) -> int:
    """The id of a session about partition 0 of these topics."""
    request = fetch(served, {(name, 0): at for name, at in offsets.items()}, session_epoch=0)
    answer = served.ask(request, version)
    assert answer.error_code == ErrorCode.NONE
    assert answer.session_id > 0
    return int(answer.session_id)


def on(served: Served, session: int, epoch: int, version: int = LATEST, **more: Any) -> Any:
    """The answer to a request that names only what `more` says."""
    wanted = more.pop("wanted", {})
    request = fetch(served, wanted, session_id=session, session_epoch=epoch, **more)
    return served.ask(request, version)


@pytest.mark.parametrize("version", [7, 12, 13, LATEST])
def test_in_a_session_only_news_is_told(served: Served, version: int) -> None:
    served.create("a")
    served.create("b")
    session = begun(served, version, a=0, b=0)
    quiet = on(served, session, 1, version)
    assert (quiet.error_code, quiet.session_id, quiet.responses) == (0, session, [])
    served.append("b", 1)
    answer = on(served, session, 2, version)
    (topic,) = answer.responses
    assert (topic.topic_id if version >= FIRST_WITH_IDS else topic.topic) == (
        topic_id(served, "b") if version >= FIRST_WITH_IDS else "b"
    )
    assert sizes(answer) == [batch_bytes(served, "b")]
    moved = on(served, session, 3, version, wanted={("b", 0): 1})
    assert moved.responses == []


def test_what_is_forgotten_is_not_read_any_more(served: Served) -> None:
    served.create("a")
    served.create("b")
    session = begun(served, a=0, b=0)
    served.append("a", 1)
    served.append("b", 1)
    answer = on(served, session, 1, forgotten=[("a", 0)])
    assert [topic.topic_id for topic in answer.responses] == [topic_id(served, "b")]


@pytest.mark.parametrize("version", [7, LATEST])
def test_a_request_out_of_turn_or_of_no_session_is_refused_at_the_top(
    served: Served, version: int
) -> None:
    served.create("a")
    session = begun(served, version, a=0)
    early = on(served, session, 2, version)
    assert early.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    unknown = on(served, session + 1, 1, version)
    assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (early.session_id, early.responses, unknown.responses) == (0, [], [])
    assert on(served, session, 1, version).error_code == ErrorCode.NONE


def test_a_session_of_names_does_not_go_on_with_ids(served: Served) -> None:
    served.create("a")
    session = begun(served, FIRST_WITH_IDS - 1, a=0)
    answer = on(served, session, 1, FIRST_WITH_IDS)
    assert answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_the_final_epoch_closes_the_session_and_is_answered_in_full(served: Served) -> None:
    served.create("a")
    session = begun(served, a=0)
    answer = on(served, session, -1, wanted={("a", 0): 0})
    assert (answer.session_id, len(told(answer))) == (0, 1)
    assert on(served, session, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(served.broker.fetch_sessions) == 0


def test_an_error_is_told_in_a_session_until_it_is_over(served: Served) -> None:
    served.create("a")
    session = begun(served, FIRST_WITH_IDS - 1, a=0, b=0)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for epoch in (1, 2):
        answer = on(served, session, epoch, FIRST_WITH_IDS - 1)
        assert [(t.topic, t.partitions[0].error_code) for t in answer.responses] == [("b", unknown)]
    served.create("b")
    answer = on(served, session, 3, FIRST_WITH_IDS - 1)
    assert [(t.topic, t.partitions[0].error_code) for t in answer.responses] == [("b", 0)]


def test_partitions_of_a_session_take_turns(served: Served) -> None:
    served.create("a")
    served.create("b")
    served.append("a", *range(50))
    served.append("b", *range(50))
    answer = served.ask(
        fetch(served, {("a", 0): 0, ("b", 0): 0}, session_epoch=0, max_bytes=1), LATEST
    )
    assert [bool(size) for size in sizes(answer)] == [True, False]
    answer = on(served, answer.session_id, 1, max_bytes=1)
    assert [topic.topic_id for topic in answer.responses] == [topic_id(served, "b")]
    assert sizes(answer) == [batch_bytes(served, "b")]


# What is counted


def test_what_goes_out_is_counted_by_topic(served: Served) -> None:
    served.create("t")
    served.append("t", 1)
    served.ask(fetch(served, {("t", 0): 0}), LATEST)
    served.ask(fetch(served, {("t", 0): 1}), LATEST)
    metrics = served.broker.metrics.topic("t")
    assert (metrics.fetch_requests, metrics.bytes_out) == (2, batch_bytes(served, "t"))
