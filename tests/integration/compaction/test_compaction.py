"""Compacted topics as their users see them, on a broker of their own."""

import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tests.integration.compaction.topics import (
    CLEAN_SOON,
    COMPACTED,
    Keyed,
    await_cleaning,
    cleaned_offset,
    create_topic,
    end_offset,
    last_segment,
    newest_of,
    produce,
    read_all,
)
from tests.support.broker import BrokerProcess
from tests.support.fixtures import StartBroker
from tests.support.waiting import eventually

TOPIC = "latest"
ROUNDS = 20 if os.environ.get("PENSTOCK_LONG") == "1" else 3


def random_records(count: int, *, keys: int, seed: int, tombstones: bool = True) -> Iterator[Keyed]:
    chance = random.Random(seed)
    for number in range(count):
        key = b"key-%d" % chance.randrange(keys)
        is_tombstone = tombstones and chance.random() < 0.05
        yield key, None if is_tombstone else b"%d:" % number + b"." * chance.randrange(200, 600)


def alter(broker: BrokerProcess, kind: ResourceType, name: str, setting: str, value: str) -> None:
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.address})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(120)


def worker_pids(broker: BrokerProcess) -> set[int]:
    """The cleaning processes of a broker."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
            parent = int((path.parent / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # Ended while we looked.
        if b"penstock.storage.compaction.worker" in words and parent == broker.pid:
            found.add(int(path.parent.name))
    return found


def test_the_last_value_of_every_key_stays_at_its_offset(start_broker: StartBroker) -> None:
    broker = start_broker(CLEAN_SOON)
    create_topic(broker, TOPIC, COMPACTED)
    newest = produce(broker, TOPIC, random_records(12_000, keys=300, seed=1))
    await_cleaning(broker.data, TOPIC)
    found = read_all(broker, TOPIC)
    offsets = [offset for offset, _, _ in found]
    assert newest_of(found) == newest
    assert offsets == sorted(offsets)
    active = last_segment(broker.partition_dir(TOPIC))
    clean = [key for offset, key, _ in found if offset < active]
    assert len(clean) == len(set(clean)) <= 300
    assert end_offset(broker, TOPIC) == 12_000


def test_a_reader_that_keeps_up_sees_every_record(start_broker: StartBroker) -> None:
    broker = start_broker(CLEAN_SOON)
    create_topic(broker, TOPIC, COMPACTED)
    count = 8_000
    seen: list[int] = []
    ready = threading.Event()

    def follow() -> None:
        consumer = Consumer(
            {"bootstrap.servers": broker.address, "group.id": "g", "fetch.wait.max.ms": 50}
        )
        consumer.assign([TopicPartition(TOPIC, 0, 0)])
        while len(seen) < count:
            message = consumer.poll(0.1)
            ready.set()
            if message is None:
                continue
            if message.error():
                break
            seen.append(message.offset())
        consumer.close()

    reader = threading.Thread(target=follow)
    reader.start()
    assert ready.wait(120)
    # One batch at a time. A segment ends between two batches, so the reader has seen all of it
    # before the cleaner may touch it, however long either of them waits for the processor.
    one_batch = {"linger.ms": 60_000, "batch.size": 100_000}
    for number in range(100):
        produce(broker, TOPIC, random_records(count // 100, keys=20, seed=number), **one_batch)
        eventually(lambda n=number: len(seen) >= (n + 1) * count // 100, timeout_s=120)  # type: ignore[misc]
    reader.join(120)
    assert seen == list(range(count))
    await_cleaning(broker.data, TOPIC)
    assert len(read_all(broker, TOPIC)) < count


def test_tombstones_go_after_their_retention(start_broker: StartBroker) -> None:
    broker = start_broker(CLEAN_SOON)
    create_topic(broker, TOPIC, {**COMPACTED, "delete.retention.ms": "100"})
    produce(broker, TOPIC, [(b"deleted", b"value"), (b"deleted", None), (b"kept", b"value")])

    def push() -> bool:
        """More records, so that there is something to clean."""
        produce(broker, TOPIC, random_records(4_000, keys=10, seed=3, tombstones=False))
        await_cleaning(broker.data, TOPIC)
        keys = [key for _, key, _ in read_all(broker, TOPIC)]
        return b"deleted" not in keys and b"kept" in keys

    eventually(push, timeout_s=120, what="the end of the tombstone")


def test_read_committed_sees_the_last_committed_values(start_broker: StartBroker) -> None:
    broker = start_broker({**CLEAN_SOON, "transaction.state.log.num.partitions": "1"})
    create_topic(broker, TOPIC, COMPACTED)
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "t"})
    producer.init_transactions(120)
    chance = random.Random(4)
    newest: dict[bytes, bytes] = {}
    for number in range(80):
        written = {
            b"key-%d" % chance.randrange(40): b"%d" % number + b"." * 3_000 for _ in range(20)
        }
        producer.begin_transaction()
        for key, value in written.items():
            producer.produce(TOPIC, value, key, partition=0)
        if chance.random() < 0.4:
            producer.flush(120)
            producer.abort_transaction(120)
        else:
            producer.commit_transaction(120)
            newest |= written
    await_cleaning(broker.data, TOPIC)
    found = {key: value for key, (_, value) in newest_of(read_all(broker, TOPIC)).items()}
    assert found == newest


def test_a_topic_becomes_compacted_while_the_broker_runs(start_broker: StartBroker) -> None:
    broker = start_broker({**CLEAN_SOON, "log.cleaner.threads": "0"})
    create_topic(broker, TOPIC, {**COMPACTED, "cleanup.policy": "delete"})
    newest = produce(broker, TOPIC, random_records(8_000, keys=50, seed=5))
    alter(broker, ResourceType.TOPIC, TOPIC, "cleanup.policy", "compact")
    alter(broker, ResourceType.BROKER, "0", "log.cleaner.threads", "1")
    await_cleaning(broker.data, TOPIC)
    assert newest_of(read_all(broker, TOPIC)) == newest
    assert len(worker_pids(broker)) == 1


def test_old_segments_of_a_compacted_topic_can_be_deleted_too(start_broker: StartBroker) -> None:
    broker = start_broker({**CLEAN_SOON, "log.retention.check.interval.ms": "100"})
    policy = {**COMPACTED, "cleanup.policy": "compact,delete", "retention.bytes": "3000000"}
    create_topic(broker, TOPIC, policy)
    produce(broker, TOPIC, ((b"%d" % number, b"." * 1_000) for number in range(8_000)))
    await_cleaning(broker.data, TOPIC)
    eventually(lambda: read_all(broker, TOPIC)[0][0] > 3_000, timeout_s=120, what="retention")
    assert read_all(broker, TOPIC)[-1][0] == 7_999


def test_killed_brokers_lose_no_last_value_and_leave_no_cleaner_behind(
    start_broker: StartBroker,
) -> None:
    """kill -9 at moments that hit the cleaner reading, writing and swapping."""
    broker = start_broker(CLEAN_SOON)
    create_topic(broker, TOPIC, COMPACTED)
    chance = random.Random(6)
    newest: dict[bytes, tuple[int, bytes | None]] = {}
    for number in range(ROUNDS):
        newest |= produce(broker, TOPIC, random_records(6_000, keys=200, seed=number), acks="all")
        before = cleaned_offset(broker.data, TOPIC)
        workers = eventually(lambda: worker_pids(broker), timeout_s=120, what="a cleaning process")
        if chance.random() < 0.5:
            eventually(
                lambda b=before: cleaned_offset(broker.data, TOPIC) != b,  # type: ignore[misc]
                timeout_s=120,
                what="progress",
            )
        broker.kill()
        eventually(
            lambda w=workers: not any(Path(f"/proc/{pid}").exists() for pid in w),  # type: ignore[misc]
            what="the end of the cleaning process",
        )
        broker.start()
        assert newest_of(read_all(broker, TOPIC)) == newest
    await_cleaning(broker.data, TOPIC)
    assert newest_of(read_all(broker, TOPIC)) == newest
    names = [path.name for path in broker.partition_dir(TOPIC).iterdir()]
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]


def test_a_broken_segment_is_named_in_the_log_and_the_rest_goes_on(
    start_broker: StartBroker,
) -> None:
    broker = start_broker({**CLEAN_SOON, "log.cleaner.enable": "false"})
    for topic in (TOPIC, "whole"):
        create_topic(broker, topic, COMPACTED)
        produce(broker, topic, random_records(6_000, keys=50, seed=7))
    broker.stop()
    segment = broker.partition_dir(TOPIC) / f"{0:020d}.log"
    data = bytearray(segment.read_bytes())
    data[5_000] ^= 1
    segment.write_bytes(data)
    broker.settings["log.cleaner.enable"] = "true"
    broker.start()
    await_cleaning(broker.data, "whole")
    eventually(lambda: f"cleaning log {TOPIC}-0" in broker.log, timeout_s=120, what="the warning")
    assert "Marking its partition as uncleanable" in broker.log
    assert cleaned_offset(broker.data, TOPIC) == 0
    newest = produce(broker, TOPIC, [(b"still", b"served")])
    assert newest[b"still"][0] == 6_000
