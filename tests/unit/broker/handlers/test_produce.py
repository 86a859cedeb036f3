"""Produce: where batches go, which are refused and with what words, and what acks mean."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.conftest import Served

from penstock.broker.context import RequestContext
from penstock.broker.handlers import produce as handler
from penstock.broker.incoming import AT_ONCE_BYTES_MAX
from penstock.errors import ErrorCode, InvalidRequest
from penstock.net.connection import CloseConnection
from penstock.net.session import Session
from penstock.protocol.apis import ApiKey, supported_versions
from penstock.protocol.headers import RequestHeader
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.records.batch import (
    HEADER_BYTES,
    Record,
    build_batch,
    read_header,
    read_records,
    seal,
)
from penstock.records.compression import Codec
from penstock.records.message_set import write_message_set

DAY_MS = 86_400_000
MIB = 1 << 20
VERSIONS = supported_versions(ApiKey.PRODUCE)
FIRST_WITH_IDS = 13
LATEST = VERSIONS[-1]
NOWHERE = b"?" * 16
AT_ONCE = 300  # Beyond so many partitions a request is answered in turns.


def produce(
    served: Served,
    topic: str,
    batch: bytearray,
    version: int = 12,
    *,
    acks: int = -1,
    timeout_ms: int = 1000,
) -> Any:
    data = PartitionProduceData(index=0, records=memoryview(batch))
    asked = TopicProduceData(name=topic, partition_data=[data])
    request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[asked])
    return served.ask(request, version).responses[0].partition_responses[0]


def batch_of(*records: tuple[int, bytes | None], codec: Codec = Codec.NONE) -> bytearray:
    """A batch of timestamps and keys."""
    made = [Record(at, ms, key, b"v") for at, (ms, key) in enumerate(records)]
    return build_batch(made, codec=codec)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_the_producer_learns_which_record_lacks_its_key(
    serve: Callable[..., Served], codec: Codec
) -> None:
    served = serve()
    served.create("t", cleanup_policy="compact")
    now_ms = served.broker.now_ms()
    batch = batch_of((now_ms, b"k"), (now_ms, None), (now_ms, b"k"), codec=codec)
    answer = produce(served, "t", batch)
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert "due to 1 record errors" in answer.error_message
    (error,) = answer.record_errors
    assert error.batch_index == 1
    assert "without key in topic partition t-0" in error.batch_index_error_message
    assert (answer.base_offset, answer.log_start_offset) == (-1, 0)
    old = produce(served, "t", batch, version=7)
    assert (old.error_code, old.record_errors) == (ErrorCode.INVALID_RECORD, [])


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("shift_ms", [-DAY_MS, DAY_MS])
def test_the_producer_learns_which_record_is_out_of_its_time(
    serve: Callable[..., Served], shift_ms: int, codec: Codec
) -> None:
    served = serve()
    settings = {"message_timestamp_before_max_ms": "1000000"} if shift_ms < 0 else {}
    served.create("t", **settings)
    now_ms = served.broker.now_ms()
    batch = batch_of((now_ms, None), (now_ms, None), (now_ms + shift_ms, None), codec=codec)
    answer = produce(served, "t", batch)
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    (error,) = answer.record_errors
    assert error.batch_index == 2
    assert error.batch_index_error_message.startswith(f"Timestamp {now_ms + shift_ms} of message")


def test_a_latest_timestamp_that_no_record_has_is_refused(serve: Callable[..., Served]) -> None:
    served = serve()
    served.create("t")
    now_ms = served.broker.now_ms()
    batch = batch_of((now_ms, None))
    header = read_header(batch)._replace(max_timestamp=now_ms + DAY_MS)
    answer = produce(served, "t", seal(header, batch[HEADER_BYTES:]))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert answer.record_errors == []


@pytest.mark.parametrize("acks", [1, -1])
def test_the_time_a_thread_looks_at_records_is_not_taken_from_the_producers(
    serve: Callable[..., Served], acks: int
) -> None:
    served = serve()
    served.create("t", cleanup_policy="compact")
    now_ms = served.broker.now_ms()
    many = batch_of(*((now_ms, b"k" * 100) for _ in range(1000)))
    assert len(many) > AT_ONCE_BYTES_MAX
    answer = produce(served, "t", many, acks=acks, timeout_ms=0)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
    assert served.partition("t").log.log_end_offset == 1000


def test_what_a_thread_refused_is_counted_as_failed(serve: Callable[..., Served]) -> None:
    served = serve()
    served.create("t", cleanup_policy="compact")
    now_ms = served.broker.now_ms()
    many = batch_of(*((now_ms, b"k" * 100) for _ in range(1000)), (now_ms, None))
    answer = produce(served, "t", many)
    assert (answer.error_code, answer.record_errors[0].batch_index) == (
        ErrorCode.INVALID_RECORD,
        1000,
    )
    assert served.broker.metrics.topic("t").failed_produce_requests == 1


# Every version


def asked(
    served: Served,
    *batches: tuple[str, int, bytes | bytearray | None],
    acks: int = -1,
    timeout_ms: int = 60_000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """A request about batches of topics; those go by name and id, so any version can have it."""
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        transactional_id=transactional_id,
        topic_data=[
            TopicProduceData(
                name=topic,
                topic_id=topic_id(served, topic),
                partition_data=[
                    PartitionProduceData(
                        index=index, records=None if data is None else memoryview(data)
                    )
                ],
            )
            for topic, index, data in batches
        ],
    )


def topic_id(served: Served, topic: str) -> bytes:
    known = served.broker.image.topics.get(topic)
    return NOWHERE if known is None else known.topic_id


def told(answer: Any) -> list[Any]:
    """What is said of each partition, in the order of the answer."""
    return [partition for topic in answer.responses for partition in topic.partition_responses]


def outcomes(answer: Any) -> list[tuple[int, ErrorCode, int]]:
    """Index, error and first offset of each partition."""
    return [(it.index, ErrorCode(it.error_code), it.base_offset) for it in told(answer)]


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", VERSIONS[3:])
def test_every_version_of_batches_is_told_where_they_went(
    served: Served, version: int, acks: int
) -> None:
    served.create("t", 2)
    for first in (0, 2):
        batch = batch_of((5, b"a"), (6, b"b"))
        answer = served.ask(asked(served, ("t", 1, batch), acks=acks), version)
        assert outcomes(answer) == [(1, ErrorCode.NONE, first)]
    (topic,) = answer.responses
    if version >= FIRST_WITH_IDS:
        assert topic.topic_id == topic_id(served, "t")
    else:
        assert topic.name == "t"
    (partition,) = told(answer)
    assert partition.log_append_time_ms == -1
    assert partition.log_start_offset == (0 if version >= 5 else -1)
    assert served.partition("t", 1).log.log_end_offset == 4
    assert served.partition("t", 0).log.log_end_offset == 0


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("version", VERSIONS[:3])
def test_messages_of_the_old_formats_become_a_batch(
    served: Served, version: int, codec: Codec
) -> None:
    served.create("t")
    records = [Record(at, 5 + at, b"k%d" % at, b"v") for at in range(3)]
    old = write_message_set(records, magic=version // 2, codec=codec)
    answer = served.ask(asked(served, ("t", 0, bytearray(old))), version)
    assert outcomes(answer) == [(0, ErrorCode.NONE, 0)]
    found = list(read_records(stored(served, "t")))
    assert [(record.offset, record.key) for record in found] == [(0, b"k0"), (1, b"k1"), (2, b"k2")]
    assert [record.timestamp for record in found] == ([5, 6, 7] if version == 2 else [-1] * 3)


def stored(served: Served, topic: str, index: int = 0) -> bytes:
    """All batches of a log."""
    log = served.partition(topic, index).log
    read = log.read(0, bytes_max=MIB, end_offset=log.log_end_offset, min_one=True)
    return bytes(read.records if isinstance(read.records, bytes) else read.records.read())


def test_the_topics_own_time_is_told_and_stored(served: Served) -> None:
    served.create("t", message_timestamp_type="LogAppendTime")
    before_ms = served.broker.now_ms()
    (partition,) = told(served.ask(asked(served, ("t", 0, batch_of((5, b"a")))), LATEST))
    assert before_ms <= partition.log_append_time_ms <= served.broker.now_ms()
    (record,) = read_records(stored(served, "t"))
    assert record.timestamp == partition.log_append_time_ms


@pytest.mark.parametrize(("version", "is_taken"), [(6, False), (7, True)])
def test_zstd_is_for_those_who_know_it(served: Served, version: int, is_taken: bool) -> None:
    served.create("t")
    batch = batch_of((5, b"a"), codec=Codec.ZSTD)
    ((_, error, offset),) = outcomes(served.ask(asked(served, ("t", 0, batch)), version))
    refused = (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, -1)
    assert (error, offset) == ((ErrorCode.NONE, 0) if is_taken else refused)


def test_a_topic_with_a_codec_of_its_own_packs_anew(served: Served) -> None:
    served.create("t", compression_type="lz4")
    batch = batch_of(*((5, b"a" * 50) for _ in range(20)), codec=Codec.GZIP)
    assert outcomes(served.ask(asked(served, ("t", 0, batch)), LATEST)) == [(0, ErrorCode.NONE, 0)]
    assert read_header(stored(served, "t")).codec is Codec.LZ4
    assert len(list(read_records(stored(served, "t")))) == 20


# What cannot be taken


@pytest.mark.parametrize("acks", [-2, 2, 100])
def test_acks_are_none_one_or_all(served: Served, acks: int) -> None:
    served.create("t")
    answer = served.ask(asked(served, ("t", 0, batch_of((5, b"a"))), acks=acks), LATEST)
    assert outcomes(answer) == [(0, ErrorCode.INVALID_REQUIRED_ACKS, -1)]
    assert told(answer)[0].error_message == f"acks is {acks}; it must be 0, 1 or -1"
    assert served.partition("t").log.log_end_offset == 0


def test_each_partition_has_its_own_outcome_in_the_order_asked(served: Served) -> None:
    served.create("t", 2)
    batch = batch_of((5, b"a"))
    request = asked(served, ("t", 9, batch), ("none", 0, batch), ("t", 1, batch))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert outcomes(served.ask(request, FIRST_WITH_IDS - 1)) == [
        (9, unknown, -1),
        (0, unknown, -1),
        (1, ErrorCode.NONE, 0),
    ]
    assert outcomes(served.ask(request, FIRST_WITH_IDS)) == [
        (9, unknown, -1),
        (0, ErrorCode.UNKNOWN_TOPIC_ID, -1),
        (1, ErrorCode.NONE, 1),
    ]


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_the_brokers_own_topics_are_not_written_by_clients(served: Served, topic: str) -> None:
    served.create(topic)
    answer = served.ask(asked(served, (topic, 0, batch_of((5, b"a")))), LATEST)
    assert outcomes(answer) == [(0, ErrorCode.INVALID_TOPIC_EXCEPTION, -1)]


def damaged() -> bytearray:
    batch = batch_of((5, b"a"))
    batch[-1] ^= 1
    return batch


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (damaged(), ErrorCode.CORRUPT_MESSAGE),
        (batch_of((5, b"a"))[:-1], ErrorCode.CORRUPT_MESSAGE),
        (batch_of((5, b"a")) + batch_of((5, b"b")), ErrorCode.INVALID_RECORD),
        (write_message_set([Record(0, 5, None, b"v")], magic=1), ErrorCode.INVALID_RECORD),
    ],
    ids=["null", "empty", "damaged", "cut", "two batches", "old format"],
)
def test_what_is_not_one_whole_batch_is_refused(
    served: Served, data: bytes | bytearray | None, error: ErrorCode
) -> None:
    served.create("t")
    assert outcomes(served.ask(asked(served, ("t", 0, data)), LATEST)) == [(0, error, -1)]
    assert served.partition("t").log.log_end_offset == 0
    assert served.broker.metrics.topic("t").failed_produce_requests == 1


def test_a_batch_larger_than_the_topic_allows_is_refused(served: Served) -> None:
    served.create("t", max_message_bytes="200")
    served.create("u", segment_bytes="1048576", max_message_bytes="2000000")
    large = batch_of((5, b"a" * 200))
    huge = batch_of((5, b"a" * (1 << 20)))
    answer = served.ask(asked(served, ("t", 0, large), ("u", 0, huge)), LATEST)
    assert outcomes(answer) == [
        (0, ErrorCode.MESSAGE_TOO_LARGE, -1),
        (0, ErrorCode.RECORD_LIST_TOO_LARGE, -1),
    ]
    assert outcomes(served.ask(asked(served, ("t", 0, batch_of((5, b"a")))), LATEST)) == [
        (0, ErrorCode.NONE, 0)
    ]


# Idempotent producers


def sequenced(sequence: int, *, count: int = 2, epoch: int = 0) -> bytearray:
    records = [Record(at, 5, b"k", b"v") for at in range(count)]
    return build_batch(records, producer_id=11, producer_epoch=epoch, base_sequence=sequence)


def test_a_batch_sent_again_gets_its_offset_back_and_is_there_once(served: Served) -> None:
    served.create("t")
    for sequence, offset in [(0, 0), (2, 2), (0, 0), (2, 2)]:
        answer = served.ask(asked(served, ("t", 0, sequenced(sequence))), LATEST)
        assert outcomes(answer) == [(0, ErrorCode.NONE, offset)]
    assert served.partition("t").log.log_end_offset == 4


def test_a_gap_in_the_sequence_is_refused_with_the_start_of_the_log(served: Served) -> None:
    served.create("t")
    served.ask(asked(served, ("t", 0, sequenced(0))), LATEST)
    answer = served.ask(asked(served, ("t", 0, sequenced(3))), LATEST)
    assert outcomes(answer) == [(0, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]
    assert told(answer)[0].log_start_offset == 0


def test_a_producer_of_an_old_epoch_is_refused(served: Served) -> None:
    served.create("t")
    served.ask(asked(served, ("t", 0, sequenced(0, epoch=1))), LATEST)
    answer = served.ask(asked(served, ("t", 0, sequenced(2, epoch=0))), LATEST)
    assert outcomes(answer) == [(0, ErrorCode.INVALID_PRODUCER_EPOCH, -1)]
    assert served.partition("t").log.log_end_offset == 2


# Acks


async def unanswered(served: Served, request: ProduceRequest) -> Any:
    """What the handler returns, which is not always an answer."""
    header = RequestHeader(
        api_key=ApiKey.PRODUCE, api_version=LATEST, correlation_id=1, client_id="test"
    )
    session = Session(listener="PLAINTEXT", address="127.0.0.1")
    context = RequestContext(served.broker, header, session)
    found = handler.handle(request, context)
    return await found if inspect.isawaitable(found) else found


def test_without_acks_there_is_no_answer(served: Served) -> None:
    served.create("t")
    request = asked(served, ("t", 0, batch_of((5, b"a"))), acks=0)
    assert served.run(unanswered(served, request)) is None
    assert served.partition("t").log.log_end_offset == 1


def test_without_acks_an_error_closes_the_connection(served: Served) -> None:
    request = asked(served, ("none", 0, batch_of((5, b"a"))), acks=0)
    with pytest.raises(CloseConnection, match="without acks failed: no topic has this id"):
        served.run(unanswered(served, request))
    with pytest.raises(CloseConnection, match="without acks failed: gone"):
        handler.error_response(request, InvalidRequest("gone"))


def test_a_request_that_fails_as_a_whole_fails_for_each_partition(served: Served) -> None:
    request = asked(served, ("t", 0, None), ("u", 3, None))
    answer = handler.error_response(request, InvalidRequest("no"))
    assert outcomes(answer) == [
        (0, ErrorCode.INVALID_REQUEST, -1),
        (3, ErrorCode.INVALID_REQUEST, -1),
    ]
    assert {partition.error_message for partition in told(answer)} == {"no"}


def test_a_request_about_many_partitions_is_answered_in_its_order(served: Served) -> None:
    served.create("t", 3)
    batch = batch_of((5, b"a"))
    rounds = AT_ONCE // 3 + 1
    request = asked(served, *[("t", index, batch) for _ in range(rounds) for index in (2, 9, 0)])
    found = outcomes(served.ask(request, LATEST))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found == [
        outcome
        for at in range(rounds)
        for outcome in ((2, ErrorCode.NONE, at), (9, unknown, -1), (0, ErrorCode.NONE, at))
    ]


def test_what_comes_in_is_counted_by_topic(served: Served) -> None:
    served.create("t")
    batch = batch_of((5, b"a"), (6, b"b"))
    size = len(batch)
    served.ask(asked(served, ("t", 0, batch)), LATEST)
    metrics = served.broker.metrics.topic("t")
    assert (metrics.produce_requests, metrics.messages_in, metrics.bytes_in) == (1, 2, size)
