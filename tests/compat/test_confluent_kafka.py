"""confluent-kafka (librdkafka) against the broker."""

from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic
from tests.support.processes import ServerProcess
from tests.support.samples import CODECS, STEP_MS, Sample, samples, stored_codec


def create_topic(server: ServerProcess, name: str, partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": server.address})
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result(timeout=120)


def produce(server: ServerProcess, topic: str, sent: Sequence[Sample], **settings: object) -> None:
    failures: list[KafkaError] = []
    # All in one batch, also on a busy machine: `flush` does not wait for the linger to end.
    producer = Producer({"bootstrap.servers": server.address, "linger.ms": 60_000, **settings})
    for sample in sent:
        producer.produce(
            topic,
            sample.value.encode(),
            sample.key.encode(),
            partition=0,
            timestamp=sample.timestamp_ms,
            headers=[("origin", b"compat"), ("empty", None)],
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(120) == 0
    assert failures == []


@pytest.fixture
def consumer(server: ServerProcess) -> Iterator[Consumer]:
    settings = {"bootstrap.servers": server.address, "group.id": "none"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "check.crcs": True})
    yield consumer
    consumer.close()


def read(consumer: Consumer, topic: str, offset: int, count: int) -> list[Message]:
    consumer.assign([TopicPartition(topic, 0, offset)])
    found: list[Message] = []
    while len(found) < count:
        messages = consumer.consume(count - len(found), timeout=120)
        assert messages, f"only {len(found)} of {count} records came"
        found += messages
    assert [message.error() for message in found] == [None] * count
    return found


def read_back(message: Message) -> Sample:
    key, value = message.key(), message.value()
    assert key is not None and value is not None
    return Sample(key=key.decode(), value=value.decode(), timestamp_ms=message.timestamp()[1])


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_by_offset_and_by_time_in_every_compression(
    server: ServerProcess, consumer: Consumer, codec: str
) -> None:
    topic, sent = f"confluent-{codec}", samples()
    create_topic(server, topic)
    produce(server, topic, sent, **{"compression.type": codec})

    everything = read(consumer, topic, 0, len(sent))
    assert [read_back(message) for message in everything] == sent
    assert everything[7].headers() == [("origin", b"compat"), ("empty", None)]
    assert [read_back(message) for message in read(consumer, topic, 25, 15)] == sent[25:]
    wanted = TopicPartition(topic, 0, sent[30].timestamp_ms - STEP_MS // 2)
    assert consumer.offsets_for_times([wanted], timeout=120)[0].offset == 30
    assert stored_codec(server.port, topic) == codec


@pytest.mark.parametrize("acks", [0, 1, "all"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_every_acks_setting_delivers(
    server: ServerProcess, consumer: Consumer, acks: object, idempotent: bool
) -> None:
    if idempotent and acks != "all":
        pytest.skip("librdkafka refuses an idempotent producer without acks=all")
    topic, sent = f"acks-{acks}-{idempotent}", samples()
    create_topic(server, topic)
    produce(server, topic, sent, acks=acks, **{"enable.idempotence": idempotent})
    assert [read_back(message) for message in read(consumer, topic, 0, len(sent))] == sent


def test_watermarks_tell_where_the_log_starts_and_ends(
    server: ServerProcess, consumer: Consumer
) -> None:
    create_topic(server, "watermarks")
    produce(server, "watermarks", samples())
    assert consumer.get_watermark_offsets(TopicPartition("watermarks", 0), timeout=120) == (0, 40)


def test_a_topic_is_made_by_the_first_record_sent_to_it(
    server: ServerProcess, consumer: Consumer
) -> None:
    sent = samples(3)
    produce(server, "made-by-itself", sent)
    assert [read_back(m) for m in read(consumer, "made-by-itself", 0, 3)] == sent


def test_an_administrator_grows_describes_and_deletes_topics(server: ServerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": server.address})
    create_topic(server, "administered", partitions=2)
    admin.create_partitions([NewPartitions("administered", 5)])["administered"].result(120)
    assert (
        len(admin.list_topics("administered", timeout=120).topics["administered"].partitions) == 5
    )

    resource = ConfigResource(ConfigResource.Type.TOPIC, "administered")
    described = admin.describe_configs([resource])[resource].result(120)
    assert described["cleanup.policy"].value == "delete"

    admin.delete_topics(["administered"])["administered"].result(120)
    assert "administered" not in admin.list_topics(timeout=120).topics


def test_deleted_records_stay_deleted(server: ServerProcess, consumer: Consumer) -> None:
    admin = AdminClient({"bootstrap.servers": server.address})
    create_topic(server, "cut")
    produce(server, "cut", samples())
    cut = TopicPartition("cut", 0, 25)
    (future,) = admin.delete_records([cut]).values()
    assert future.result(120).low_watermark == 25
    assert consumer.get_watermark_offsets(TopicPartition("cut", 0), timeout=120) == (25, 40)
