"""Producer, on the cluster that librdkafka simulates inside the process."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.client.errors import (
    BufferExhaustedError,
    ClientError,
    IllegalStateError,
    KafkaTimeoutError,
    SerializationError,
)
from penstock.client.interceptors import ProducerInterceptor
from penstock.client.producer.producer import Producer
from penstock.client.values import ProducerRecord, RecordMetadata
from penstock.errors import ConfigError
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

SIMULATED = {"bootstrap.servers": "simulated", "test.mock.num.brokers": 1, "linger.ms": 0}


def producer(**settings: Any) -> Producer[Any, Any]:
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    return Producer({**SIMULATED, **dotted})


@pytest.fixture
def plain() -> Iterator[Producer[Any, Any]]:
    made = producer(acks="1")  # Without idempotence the first record need not wait for an id.
    yield made
    made.close()


def test_the_future_tells_where_the_record_is(plain: Producer[Any, Any]) -> None:
    metadata = plain.send("t", b"value", key=b"key", partition=2, timestamp_ms=1234).result(120)
    assert metadata == RecordMetadata("t", 2, 0, 1234, 3, 5)
    assert str(metadata) == "t-2@0"


def test_a_record_may_be_given_whole(plain: Producer[Any, Any]) -> None:
    record = ProducerRecord(topic="t", value=None, key=b"k", partition=1, headers=[("h", None)])
    metadata = plain.send(record).result(120)
    assert (metadata.partition, metadata.serialized_value_size) == (1, -1)


def test_callbacks_come_in_order_on_the_producers_own_thread(plain: Producer[Any, Any]) -> None:
    seen: list[tuple[int, str, Exception | None]] = []

    def note(metadata: RecordMetadata | None, error: Exception | None) -> None:
        assert metadata is not None
        seen.append((metadata.offset, threading.current_thread().name, error))

    for _ in range(20):
        plain.send("t", b"v", partition=0, on_completion=note)
    plain.flush(30)
    assert [offset for offset, _, _ in seen] == list(range(20))
    assert {name for _, name, _ in seen} == {f"{plain._client_id}-callbacks"}
    assert {error for _, _, error in seen} == {None}


def test_a_broken_callback_costs_no_other_record(
    plain: Producer[Any, Any], caplog: pytest.LogCaptureFixture
) -> None:
    first = plain.send("t", b"v", on_completion=lambda *_: 1 / 0)  # type: ignore[arg-type,return-value]
    second = plain.send("t", b"v")
    assert first.result(120)
    assert second.result(120)
    plain.flush(30)  # A result may be there before its callback was called.
    assert "callback of a sent record failed" in caplog.text


def test_many_threads_may_send(plain: Producer[Any, Any]) -> None:
    offsets: list[int] = []

    def send() -> None:
        offsets.extend(plain.send("t", b"v", partition=0).result(120).offset for _ in range(10))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(offsets) == list(range(40))


def test_a_value_that_cannot_be_serialized_is_refused_at_once() -> None:
    with (
        producer(value_serializer="long") as made,
        pytest.raises(SerializationError, match="type str"),
    ):
        made.send("t", "text")


@pytest.mark.parametrize("time_ms", [0, -1])
def test_a_time_that_cannot_be_sent_is_refused(plain: Producer[Any, Any], time_ms: int) -> None:
    with pytest.raises(ValueError, match=f"Invalid timestamp: {time_ms}"):
        plain.send("t", b"v", timestamp_ms=time_ms)


def test_partitions_are_told(plain: Producer[Any, Any]) -> None:
    plain.send("t", b"v").result(120)
    found = plain.partitions_for("t")
    assert [one.partition for one in found] == list(range(len(found)))
    assert found[0].leader is not None


@pytest.mark.parametrize("key", [b"21", b"foobar", b"a-little-bit-long-string", b""])
def test_a_key_goes_where_kafkas_own_producer_sends_it(
    plain: Producer[Any, Any], key: bytes
) -> None:
    count = len(plain.partitions_for("t"))
    partitions = {plain.send("t", b"v", key=key).result(120).partition for _ in range(3)}
    assert partitions == {_murmur2(key) % count}


def _murmur2(data: bytes) -> int:
    """The hash of Kafka's partitioner, straight from its definition."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = (0x9747B28C ^ len(data)) & mask
    for at in range(0, len(data) - 3, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = h * m & mask ^ k
    tail = data[len(data) & ~3 :]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return (h ^ h >> 15) & 0x7FFFFFFF


class ToTheLast:
    """Every record to the last partition."""

    def partition(self, topic: str, *values: Any) -> int:
        return int(values[-1].partitions_for_topic(topic)[-1].partition)


def test_a_custom_partitioner_sees_the_cluster() -> None:
    with Producer({**SIMULATED, "acks": "1"}, partitioner=ToTheLast(), importantStocks="x") as made:
        last = made.partitions_for("t")[-1].partition
        assert made.send("t", b"v", key=b"k").result(120).partition == last


class Watcher(ProducerInterceptor):
    def __init__(self) -> None:
        self.told: list[Any] = []

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        return ProducerRecord(topic="other", value=b"changed")

    def on_acknowledgement(self, metadata: Any, exception: Any) -> None:
        self.told.append(metadata.topic)

    def close(self) -> None:
        self.told.append("closed")


def test_an_interceptor_changes_and_hears() -> None:
    watcher = Watcher()
    with Producer({**SIMULATED, "acks": "1"}, interceptor_classes=[watcher]) as made:
        metadata = made.send("t", b"v").result(120)
        assert (metadata.topic, metadata.serialized_value_size) == ("other", 7)
    assert watcher.told == ["other", "closed"]


def test_the_producer_closes_once_and_then_refuses() -> None:
    made = producer()
    made.close()
    made.close()
    with pytest.raises(IllegalStateError, match="closed"):
        made.send("t", b"v")


def test_without_a_broker_send_gives_up_after_max_block_ms(closed_port: int) -> None:
    settings = {"bootstrap.servers": f"127.0.0.1:{closed_port}", "max.block.ms": 100}
    with Producer(settings) as made, pytest.raises(KafkaTimeoutError, match="after 100 ms"):
        made.send("t", b"v")


def test_a_full_buffer_blocks_and_then_fails() -> None:
    settings = {**SIMULATED, "buffer.memory": 4096, "linger.ms": 60000, "batch.size": 1_000_000}
    with Producer(settings) as made:
        made.partitions_for("t")
        made._max_block_s = 0.05
        with pytest.raises(BufferExhaustedError, match=r"0\.05 s"):
            for _ in range(10):
                made.send("t", b"x" * 1000)
        made.close(0)


def test_what_is_unsent_at_the_deadline_of_close_fails(stub: Any) -> None:
    parts = [MetadataResponsePartition(partition_index=0, leader_id=0)]
    topics = [MetadataResponseTopic(name="t", partitions=parts)]
    stub.answers[ApiKey.METADATA] = lambda *_: stub.metadata(topics=topics)
    stub.answers[ApiKey.PRODUCE] = lambda *_: None  # It never answers.
    made = Producer({"bootstrap.servers": stub.address, "acks": "1"})
    future = made.send("t", b"v")
    made.close(0.05)
    assert isinstance(future.exception(30), ClientError)


def test_a_future_cannot_be_cancelled(plain: Producer[Any, Any]) -> None:
    future = plain.send("t", b"v")
    assert not future.cancel()
    assert future.result(120)


def test_a_transaction_commits_or_aborts_as_a_whole() -> None:
    with producer(transactional_id="id") as made:
        with made.transaction():
            stored = made.send("t", b"v", partition=0)
        assert stored.result(120).offset == 0
        with pytest.raises(ZeroDivisionError), made.transaction():
            made.send("t", b"v", partition=0)
            raise ZeroDivisionError
        with made.transaction():
            made.send("t", b"v", partition=0)


def test_transactions_need_an_id(plain: Producer[Any, Any]) -> None:
    with pytest.raises(IllegalStateError, match=r"transactional\.id"), plain.transaction():
        pass


def test_an_unknown_setting_is_named_unless_a_plugin_may_want_it() -> None:
    with pytest.raises(ConfigError, match=r"'linger\.mss' is not a setting of a producer"):
        producer(linger_mss=5)
    with Producer({**SIMULATED, "importantStocks": "IBM"}, partitioner=ToTheLast()) as made:
        assert made is not None
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is missing"):
        Producer()


def test_metrics_are_named_as_kafka_names_them() -> None:
    with producer(acks="1", statistics_interval_ms=20) as made:
        made.send("t", b"v").result(120)
        _await(lambda: _metric(made, "record-send-total") >= 1)
        assert _metric(made, "record-error-total") == 0


def _metric(made: Producer[Any, Any], name: str) -> float:
    found = made.metrics().items()
    return next(m.value for n, m in found if (n.name, n.group) == (name, "producer-metrics"))


def _await(condition: Any) -> None:
    """Statistics come on librdkafka's own time."""
    done = threading.Event()
    for _ in range(6000):
        if condition():
            return
        done.wait(0.01)
    raise AssertionError("it never came true")


AFTER_CLOSE: dict[str, Callable[[Producer[Any, Any]], object]] = {
    "send": lambda p: p.send("t", b"v"),
    "partitions_for": lambda p: p.partitions_for("t"),
    "init_transactions": lambda p: p.init_transactions(),
    "begin_transaction": lambda p: p.begin_transaction(),
    "commit_transaction": lambda p: p.commit_transaction(),
    "abort_transaction": lambda p: p.abort_transaction(),
    "transaction": lambda p: p.transaction().__enter__(),
}


@pytest.mark.parametrize("name", AFTER_CLOSE)
def test_a_closed_producer_says_that_it_is_closed(name: str) -> None:
    made = producer(transactional_id="t")
    made.close()
    with pytest.raises(IllegalStateError, match="after producer has been closed"):
        AFTER_CLOSE[name](made)
    made.flush()  # As in Kafka: there is nothing left to wait for.
    made.close()


def test_values_are_sent_in_the_format_of_a_word() -> None:
    seen: list[ProducerRecord[Any, Any]] = []

    class Note(ProducerInterceptor):
        def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
            seen.append(record)
            return record

    settings = {**SIMULATED, "acks": "1", "interceptor.classes": [Note()]}
    with Producer(settings, key="long", value="json") as made:
        sent = made.send("t", {"né": [1, None]}, key=7, headers={"a": "1"}, timestamp=99)
        metadata = sent.result(120)
        assert metadata.serialized_key_size == 8
        assert metadata.serialized_value_size == len('{"né":[1,null]}'.encode())
        assert (seen[0].timestamp_ms, seen[0].headers) == (99, (("a", b"1"),))
        with pytest.raises(SerializationError, match="set is not JSON serializable"):
            made.send("t", {1, 2}, key=7)
