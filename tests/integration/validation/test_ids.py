"""Topics that take only records whose schema id is registered for them."""

from pathlib import Path

import pytest

pytest.importorskip("authlib")

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.validation.world import BY_ID, INVALID_RECORD, ORDER, World
from tests.support.broker import BrokerProcess
from tests.support.processes import HOST
from tests.support.waiting import eventually

from penstock.client.wire.connection import BrokerConnection
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from penstock.records.batch import Record
from penstock.records.message_set import write_message_set


def test_what_a_serializer_writes_is_taken_and_foreign_bytes_are_refused(world: World) -> None:
    topic = world.create("ids-foreign", BY_ID)
    good = world.order(topic, 1)
    assert world.send(topic, good, good).offsets == [0, 1]
    for bad in (b"plain text", b"", b"\0\0\0", b"\1" + good[1:]):
        sent = world.send(topic, bad)
        assert sent.codes == [INVALID_RECORD], sent.answers
    assert world.end(topic) == 2


def test_one_bad_record_refuses_its_whole_batch(world: World) -> None:
    topic = world.create("ids-whole", BY_ID)
    good = world.order(topic, 1)
    sent = world.send(topic, good, b"bad", good)
    assert INVALID_RECORD in sent.codes and 0 not in sent.codes
    assert world.end(topic) == 0


def test_an_id_that_the_registry_does_not_know_is_refused(world: World) -> None:
    topic = world.create("ids-unknown", BY_ID)
    world.order(topic, 1)
    assert world.send(topic, b"\0\0\x0f\xff\xff" + b"x").codes == [INVALID_RECORD]


def test_the_id_of_another_subject_is_refused(world: World) -> None:
    topic = world.create("ids-other", BY_ID)
    theirs = world.order("somebody-elses", 1)
    text = ORDER.replace("note", "remark")
    assert world.register(f"{topic}-value", text) != int.from_bytes(theirs[1:5], "big")
    assert world.send(topic, theirs).codes == [INVALID_RECORD]


def test_a_schema_registered_later_is_known_after_some_seconds(world: World) -> None:
    topic = world.create("ids-later", BY_ID)
    data = world.order("ids-early", 1)
    assert world.send(topic, data).codes == [INVALID_RECORD]
    world.register(f"{topic}-value")
    eventually(lambda: world.send(topic, data).codes == [0], every_s=0.5)


def test_tombstones_and_null_keys_pass(world: World) -> None:
    both = {**BY_ID, "confluent.key.schema.validation": "true"}
    topic = world.create("ids-null", both)
    assert world.send_keyed(topic, (None, None)).codes == [0]
    assert world.send_keyed(topic, (b"plain", None)).codes == [INVALID_RECORD]


def test_keys_have_a_subject_of_their_own(world: World) -> None:
    topic = world.create("ids-keys", {"confluent.key.schema.validation": "true"})
    schema_id = world.register(f"{topic}-key", '"string"')
    key = b"\0" + schema_id.to_bytes(4, "big") + b"\x02k"
    assert world.send_keyed(topic, (key, b"any value")).codes == [0]
    assert world.send_keyed(topic, (b"k", b"any value")).codes == [INVALID_RECORD]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_are_looked_into(world: World, codec: str) -> None:
    topic = world.create(f"ids-{codec}", BY_ID)
    good = world.order(topic, 1) + bytes(300)
    assert set(world.send(topic, *[good] * 300, compression_type=codec).codes) == {0}
    assert 0 not in world.send(topic, *[good] * 300, b"bad", compression_type=codec).codes
    assert world.end(topic) == 300


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("RecordNameStrategy", "shop.Order"),
        ("io.confluent.kafka.serializers.subject.TopicRecordNameStrategy", "{topic}-shop.Order"),
    ],
)
def test_subjects_can_be_named_after_records(world: World, strategy: str, subject: str) -> None:
    config = {**BY_ID, "confluent.value.subject.name.strategy": strategy}
    topic = world.create(f"ids-{strategy.rpartition('.')[2]}", config)
    subject = subject.format(topic=topic)
    # A schema of its own, so that no other test has registered it.
    text = ORDER.replace("note", strategy.rpartition(".")[2].lower())
    schema_id = world.register(f"{topic}-value", text)
    data = b"\0" + schema_id.to_bytes(4, "big") + b"\x02\x02n"
    assert world.send(topic, data).codes == [INVALID_RECORD]
    world.register(subject, text)
    eventually(lambda: world.send(topic, data).codes == [0], every_s=0.5)


def test_a_refused_batch_of_an_idempotent_producer_is_refused_again(world: World) -> None:
    topic = world.create("ids-idempotent", BY_ID)
    good = world.order(topic, 1)
    sent = world.send(topic, b"bad", enable_idempotence=True)
    assert sent.codes == [INVALID_RECORD]
    assert set(world.send(topic, *[good] * 5, enable_idempotence=True).codes) == {0}
    assert world.end(topic) == 5


def test_without_acks_a_bad_record_is_not_appended(world: World) -> None:
    topic = world.create("ids-acks-0", BY_ID)
    good = world.order(topic, 1)
    world.send(topic, b"bad", acks=0)
    assert world.send(topic, good, acks=1).offsets == [0]


def test_a_transaction_with_a_bad_record_can_only_abort(world: World) -> None:
    topic = world.create("ids-transaction", BY_ID)
    good = world.order(topic, 1)
    for values, is_good in (([good, b"bad"], False), ([good, good], True)):
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": world.bootstrap, "transactional.id": "ids", "linger.ms": 30_000}
        )
        producer.init_transactions(60)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value)
        if is_good:
            producer.commit_transaction(60)
        else:
            with pytest.raises(confluent_kafka.KafkaException):
                producer.commit_transaction(60)
            producer.abort_transaction(60)
    committed = {"isolation.level": "read_committed"}
    assert [message.value() for message in world.read(topic, 2, **committed)] == [good, good]


def test_old_formats_are_looked_into(broker: BrokerProcess, world: World) -> None:
    topic = world.create("ids-old", BY_ID)
    good = world.order(topic, 1)
    for value, code in ((good, 0), (b"bad", INVALID_RECORD)):
        records = [Record(0, 1_000, b"k", value)]
        with BrokerConnection(HOST, broker.port, timeout_s=60) as connection:
            old = memoryview(write_message_set(records, magic=1))
            data = PartitionProduceData(index=0, records=old)
            asked = TopicProduceData(name=topic, partition_data=[data])
            request = ProduceRequest(acks=1, timeout_ms=60_000, topic_data=[asked])
            answer = connection.ask(request, ProduceResponse, version=2)
        assert answer.responses[0].partition_responses[0].error_code == code


def test_a_topic_needs_a_registry_to_be_checked(world: World, tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as alone:
        alone.start()
        admin = AdminClient({"bootstrap.servers": alone.address})
        made = admin.create_topics([NewTopic("t", 1, 1, config=BY_ID)])["t"]
        with pytest.raises(confluent_kafka.KafkaException, match=r"confluent\.schema\.registry"):
            made.result(60)
