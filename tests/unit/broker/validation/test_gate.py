"""Which batches pass the gate at once, which wait, and what becomes of records that fail."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.conftest import Served
from tests.unit.broker.validation.fake_validator import FakeValidator

from penstock.broker.validation.gate import AT_ONCE_RECORDS_MAX, ValidationGate
from penstock.errors import ErrorCode
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.records.batch import Record, build_batch, read_records, split_batches
from penstock.records.compression import Codec

REGISTRY = {"confluent.schema.registry.url": "http://127.0.0.1:1"}
BY_ID = {"confluent_value_schema_validation": "true"}
DECODED = {"penstock_value_validation": "decode"}
GOOD = b"\0\0\0\0\7good"


@pytest.fixture
def validator() -> FakeValidator:
    return FakeValidator(7)


@pytest.fixture
def guarded(serve: Callable[..., Served], validator: FakeValidator) -> Served:
    """A broker whose gate asks the fake."""
    served = serve(REGISTRY)
    served.broker.validation = ValidationGate(served.broker, validator.open)
    return served


def batch_of(*values: bytes | None, **options: Any) -> bytearray:
    return build_batch([Record(at, 5, b"k", v) for at, v in enumerate(values)], **options)


def request_of(topic: str, *batches: bytearray, acks: int = -1) -> ProduceRequest:
    asked = [
        TopicProduceData(
            name=topic, partition_data=[PartitionProduceData(index=0, records=memoryview(batch))]
        )
        for batch in batches
    ]
    return ProduceRequest(acks=acks, timeout_ms=60_000, topic_data=asked)


def produce(served: Served, topic: str, batch: bytearray) -> Any:
    return served.ask(request_of(topic, batch), 9).responses[0].partition_responses[0]


def stored(served: Served, topic: str, index: int = 0) -> list[Record]:
    """Every record of a partition."""
    log = served.partition(topic, index).log
    found = log.read(0, bytes_max=1 << 20, end_offset=log.log_end_offset, min_one=True)
    data = found.records.read()
    batches = split_batches(memoryview(bytearray(data)))
    return [record for _, batch in batches for record in read_records(batch)]


def test_a_known_id_is_let_through_without_a_question(
    guarded: Served, validator: FakeValidator
) -> None:
    guarded.create("t", **BY_ID)
    for offset in range(3):
        answer = produce(guarded, "t", batch_of(GOOD))
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, offset)
    assert len(validator.asked) == 1
    assert guarded.broker.metrics.topic("t").validation_checked == 3


def test_the_producer_learns_which_records_fail(guarded: Served) -> None:
    guarded.create("t", **BY_ID)
    answer = produce(guarded, "t", batch_of(GOOD, b"foreign", b"\0\0\0\0\x09", None))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [(e.batch_index, e.batch_index_error_message) for e in answer.record_errors] == [
        (1, "the value does not begin with a zero byte and a schema id"),
        (2, "id 9 is unknown"),
    ]
    assert (answer.base_offset, answer.log_start_offset) == (-1, 0)
    metrics = guarded.broker.metrics.topic("t")
    assert (metrics.validation_checked, metrics.validation_refused) == (4, 2)
    assert metrics.validation_seconds > 0


def test_a_topic_that_does_not_ask_is_not_looked_at(
    guarded: Served, validator: FakeValidator
) -> None:
    guarded.create("t")
    assert produce(guarded, "t", batch_of(b"anything")).error_code == ErrorCode.NONE
    assert validator.asked == []


def test_both_sides_can_be_checked(guarded: Served) -> None:
    guarded.create("t", **BY_ID, confluent_key_schema_validation="true")
    answer = produce(guarded, "t", batch_of(GOOD))
    assert "the key does not begin" in answer.record_errors[0].batch_index_error_message


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("count", [3, AT_ONCE_RECORDS_MAX + 1])
def test_batches_of_every_kind_pass_and_fail(guarded: Served, codec: Codec, count: int) -> None:
    guarded.create("t", **BY_ID)
    for _ in range(2):
        good = batch_of(*[GOOD] * count, codec=codec)
        assert produce(guarded, "t", good).error_code == ErrorCode.NONE
    bad = batch_of(*[GOOD] * count, b"bad", codec=codec)
    assert produce(guarded, "t", bad).error_code == ErrorCode.INVALID_RECORD


def test_decoding_is_asked_for_after_the_ids(guarded: Served, validator: FakeValidator) -> None:
    guarded.create("t", **DECODED)
    assert produce(guarded, "t", batch_of(GOOD)).error_code == ErrorCode.NONE
    assert produce(guarded, "t", batch_of(b"foreign")).error_code == ErrorCode.INVALID_RECORD
    assert validator.decoded == 1
    answer = produce(guarded, "t", batch_of(GOOD, GOOD + b"bad"))
    assert answer.record_errors[0].batch_index_error_message == "it does not decode"


@pytest.mark.parametrize("check", [BY_ID, DECODED], ids=["by id", "decoded"])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_dead_letters_leave_gaps_and_keep_sequences(
    guarded: Served, check: dict[str, str], codec: Codec
) -> None:
    guarded.create("t", **check, penstock_validation_action="dlq")
    producer = {"producer_id": 5, "producer_epoch": 0, "codec": codec}
    first = batch_of(GOOD, b"foreign", GOOD, base_sequence=0, **producer)
    assert produce(guarded, "t", bytearray(first)).base_offset == 0
    last = batch_of(b"foreign", base_sequence=3, **producer)
    assert produce(guarded, "t", last).base_offset == 3
    following = batch_of(GOOD, base_sequence=4, **producer)
    assert produce(guarded, "t", following).base_offset == 4
    assert [record.offset for record in stored(guarded, "t")] == [0, 2, 4]
    letters = stored(guarded, "t.dlq")
    assert [letter.value for letter in letters] == [b"foreign", b"foreign"]
    assert letters[0].headers[0][0] == "why"
    again = produce(guarded, "t", bytearray(first))  # A retry: known to the log, so no new letters.
    assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 0)
    assert len(stored(guarded, "t.dlq")) == 2
    assert guarded.broker.metrics.topic("t").validation_dead_letters == 2


def test_a_batch_that_comes_out_of_order_leaves_no_dead_letters(guarded: Served) -> None:
    guarded.create("t", **BY_ID, penstock_validation_action="dlq")
    guarded.create("t.dlq")
    producer = {"producer_id": 5, "producer_epoch": 0}
    assert produce(guarded, "t", batch_of(GOOD, base_sequence=0, **producer)).error_code == 0
    early = batch_of(b"foreign", base_sequence=9, **producer)
    answer = produce(guarded, "t", early)
    assert answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert guarded.partition("t.dlq").log.log_end_offset == 0


def test_a_batch_in_the_log_is_answered_even_if_its_schema_is_gone(
    guarded: Served, validator: FakeValidator
) -> None:
    guarded.create("t", **BY_ID)
    producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    batch = batch_of(GOOD, **producer)
    assert produce(guarded, "t", bytearray(batch)).base_offset == 0
    validator.good_ids(validator.asked[0][1]).clear()
    validator.registered.clear()
    assert produce(guarded, "t", bytearray(batch)).base_offset == 0
    answer = produce(guarded, "t", batch_of(GOOD, **{**producer, "base_sequence": 1}))
    assert answer.error_code == ErrorCode.INVALID_RECORD


def test_a_dead_letter_topic_that_checks_takes_none(guarded: Served) -> None:
    guarded.create("grave", **BY_ID)
    guarded.create(
        "t", **BY_ID, penstock_validation_action="dlq", penstock_validation_dlq_topic="grave"
    )
    answer = produce(guarded, "t", batch_of(b"foreign"))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert "grave checks schemas itself" in answer.error_message


def test_a_warning_lets_all_records_in(guarded: Served) -> None:
    guarded.create("t", **BY_ID, penstock_validation_action="warn")
    assert produce(guarded, "t", batch_of(b"foreign", GOOD)).error_code == ErrorCode.NONE
    assert guarded.broker.metrics.topic("t").validation_warned == 1


@pytest.mark.parametrize("check", [BY_ID, DECODED], ids=["by id", "decoded"])
def test_while_nobody_answers_the_producer_is_to_try_again(
    guarded: Served, validator: FakeValidator, check: dict[str, str]
) -> None:
    guarded.create("t", **check)
    guarded.create("u", **check, penstock_validation_when_away="accept")
    validator.is_away = True
    answer = produce(guarded, "t", batch_of(GOOD))
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "nobody answers" in answer.error_message
    assert produce(guarded, "u", batch_of(GOOD)).error_code == ErrorCode.NONE
    assert guarded.broker.metrics.topic("u").validation_unchecked == 1


def test_a_broker_without_a_registry_does_as_if_it_were_away(
    guarded: Served, serve: Callable[..., Served]
) -> None:
    guarded.broker.validation = ValidationGate(guarded.broker, None)
    guarded.create("t", **BY_ID)
    answer = produce(guarded, "t", batch_of(GOOD))
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT


def test_a_torn_batch_is_refused(guarded: Served) -> None:
    guarded.create("t", **BY_ID)
    batch = build_batch([Record(0, 5, b"k", GOOD), Record(2, 5, b"k", GOOD)], last_offset_delta=1)
    answer = produce(guarded, "t", batch)
    assert answer.error_code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE)
    assert guarded.partition("t").log.log_end_offset == 0


def test_what_comes_later_in_a_request_does_not_overtake(
    guarded: Served, validator: FakeValidator
) -> None:
    guarded.create("t", **BY_ID)

    async def both() -> list[Any]:
        request = request_of("t", batch_of(GOOD + b"1"), batch_of(GOOD + b"2"))
        return [t.partition_responses[0] for t in (await guarded.answer(request, 9)).responses]

    first, second = guarded.run(both())
    assert (first.base_offset, second.base_offset) == (0, 1)
    assert [record.value for record in stored(guarded, "t")] == [GOOD + b"1", GOOD + b"2"]


def test_closing_the_gate_closes_the_validator(guarded: Served, validator: FakeValidator) -> None:
    guarded.create("t", **BY_ID)
    assert list(guarded.broker.validation.gauges()) == []
    produce(guarded, "t", batch_of(GOOD))
    assert [gauge.name for gauge in guarded.broker.validation.gauges()] == [
        "penstock_validation_workers"
    ]
    guarded.run(guarded.broker.validation.close())
    assert validator.is_closed
