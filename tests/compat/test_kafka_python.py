"""kafka-python against the broker: as it is today, and pretending to meet brokers of the past.

With `api_version` set, the client speaks as it would to a broker of that release: message format 0
for 0.9, format 1 for 0.10, format 2 from 0.11 on.
"""

from collections.abc import Iterator, Sequence

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from tests.support.processes import ServerProcess
from tests.support.samples import CODECS, STEP_MS, Sample, samples, stored_codec
from tests.support.wire import FETCH, RawConnection

Release = tuple[int, ...]
OLD: list[Release] = [(0, 9), (0, 10, 0), (0, 10, 2), (0, 11), (1, 1), (2, 1), (2, 8), (3, 9)]


def produce(
    server: ServerProcess, topic: str, sent: Sequence[Sample], codec: str, **settings: object
) -> None:
    producer = KafkaProducer(
        bootstrap_servers=server.address,
        compression_type=None if codec == "none" else codec,
        linger_ms=60_000,  # All in one batch; `flush` sends it at once.
        **settings,
    )
    timed = settings.get("api_version", (9,)) >= (0, 10)  # type: ignore[operator]
    futures = [
        producer.send(
            topic,
            sample.value.encode(),
            sample.key.encode(),
            partition=0,
            timestamp_ms=sample.timestamp_ms if timed else None,
        )
        for sample in sent
    ]
    producer.flush(120)
    assert [future.get(120).offset for future in futures] == list(range(len(sent)))
    producer.close()


def consumer_of(server: ServerProcess, **settings: object) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=server.address,
        group_id=None,
        enable_auto_commit=False,
        consumer_timeout_ms=120_000,
        **settings,
    )


def read(consumer: KafkaConsumer, topic: str, offset: int, count: int) -> list[Sample]:
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, offset)
    found: list[Sample] = []
    for message in consumer:
        assert message.offset == offset + len(found)
        sample = Sample(
            key=message.key.decode(),
            value=message.value.decode(),
            timestamp_ms=message.timestamp,
        )
        found.append(sample)
        if len(found) == count:
            break
    assert len(found) == count
    return found


def skip_if_dropped(server: ServerProcess, release: Release) -> None:
    """Apache Kafka 4 no longer takes the old formats; Penstock does, and never comes here."""
    with RawConnection(server.port) as connection:
        lowest_fetch_version = connection.api_versions().ranges[FETCH][0]
    if lowest_fetch_version > 0 and release < (2, 1):
        pytest.skip("this server has dropped what the release speaks")


@pytest.fixture
def consumer(server: ServerProcess) -> Iterator[KafkaConsumer]:
    consumer = consumer_of(server)
    yield consumer
    consumer.close()


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_by_offset_and_by_time_in_every_compression(
    server: ServerProcess, consumer: KafkaConsumer, codec: str
) -> None:
    topic, sent = f"kafka-python-{codec}", samples()
    admin = KafkaAdminClient(bootstrap_servers=server.address)
    admin.create_topics([NewTopic(topic, 1, 1)])
    admin.close()
    produce(server, topic, sent, codec)

    assert read(consumer, topic, 0, len(sent)) == sent
    assert read(consumer, topic, 25, 15) == sent[25:]
    partition = TopicPartition(topic, 0)
    wanted = {partition: sent[30].timestamp_ms - STEP_MS // 2}
    found = consumer.offsets_for_times(wanted)[partition]
    assert (found.offset, found.timestamp) == (30, sent[30].timestamp_ms)
    assert stored_codec(server.port, topic) == codec


@pytest.mark.parametrize("release", OLD, ids=lambda release: ".".join(map(str, release)))
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_a_client_of_an_old_release_writes_and_reads(
    server: ServerProcess, release: Release, codec: str
) -> None:
    skip_if_dropped(server, release)
    topic, sent = f"old-{'.'.join(map(str, release))}-{codec}", samples()
    with RawConnection(server.port) as connection:
        assert connection.create_topic(topic) == 0
    produce(server, topic, sent, codec, api_version=release)
    consumer = consumer_of(server, api_version=release)
    found = read(consumer, topic, 0, len(sent))
    assert [(s.key, s.value) for s in found] == [(s.key, s.value) for s in sent]
    if release >= (0, 10):
        assert found == sent
    tail = read(consumer, topic, 25, 15)
    assert [s.value for s in tail] == [s.value for s in sent[25:]]
    consumer.close()


@pytest.mark.parametrize("release", [(0, 9), (0, 10, 2)], ids=["0.9", "0.10.2"])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_an_old_client_reads_what_a_new_one_wrote(
    server: ServerProcess, release: Release, codec: str
) -> None:
    skip_if_dropped(server, release)
    topic, sent = f"down-{'.'.join(map(str, release))}-{codec}", samples()
    with RawConnection(server.port) as connection:
        assert connection.create_topic(topic) == 0
    produce(server, topic, sent, codec)
    consumer = consumer_of(server, api_version=release)
    found = read(consumer, topic, 0, len(sent))
    assert [(s.key, s.value) for s in found] == [(s.key, s.value) for s in sent]
    consumer.close()


@pytest.mark.parametrize("release", [(0, 9), (0, 10, 2)], ids=["0.9", "0.10.2"])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_a_new_client_reads_what_an_old_one_wrote(
    server: ServerProcess, consumer: KafkaConsumer, release: Release, codec: str
) -> None:
    skip_if_dropped(server, release)
    topic, sent = f"up-{'.'.join(map(str, release))}-{codec}", samples()
    with RawConnection(server.port) as connection:
        assert connection.create_topic(topic) == 0
    produce(server, topic, sent, codec, api_version=release)
    found = read(consumer, topic, 0, len(sent))
    assert [(s.key, s.value) for s in found] == [(s.key, s.value) for s in sent]
