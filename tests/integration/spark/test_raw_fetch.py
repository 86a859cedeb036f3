"""Raw fetches of one partition: what is lost is named, what may pass is waited out."""

import pytest
from tests.support.broker import BrokerProcess
from tests.support.spark_topics import Topic

from penstock.client.admin import Admin
from penstock.client.values import TopicPartition
from penstock.client.wire.raw_cluster import cluster_for
from penstock.client.wire.raw_fetch import OffsetGone, PartitionFetcher, TopicGone
from penstock.errors import CorruptRecord
from penstock.spark.columns.arrow_records import decode
from penstock.spark.columns.batch_walk import offset_after


def settings(broker: BrokerProcess) -> dict[str, str]:
    return {"bootstrap.servers": broker.address, "default.api.timeout.ms": "20000"}


def values(records: memoryview) -> list[bytes]:
    batches = decode(records, topic="", partition=0, columns=["value"])
    return [value for batch in batches for value in batch.column("value").to_pylist()]


def test_the_next_fetch_may_be_asked_for_before_this_one_is_used(
    shared_broker: BrokerProcess,
) -> None:
    topic = Topic(shared_broker.port, "ahead")
    for n in range(3):
        topic.put([b"%d" % n])
    with cluster_for(settings(shared_broker)) as cluster:
        fetcher = PartitionFetcher(cluster, TopicPartition("ahead", 0), fetch_bytes=1)
        found, position = [], 0
        while position < 3:
            fetched = fetcher.fetch(position)
            position = offset_after(fetched.records) or position
            fetcher.ask_ahead(position)
            found += values(fetched.records)
        assert found == [b"0", b"1", b"2"]
        assert values(fetcher.fetch(1).records) == [b"1"]  # Not what was asked for ahead.


def test_offsets_out_of_range_are_named_with_what_is_there(shared_broker: BrokerProcess) -> None:
    topic = Topic(shared_broker.port, "ranged")
    topic.put([b"a"] * 9)
    at = TopicPartition("ranged", 0)
    with Admin(settings(shared_broker)) as admin:
        admin.delete_records({at: 4})
    with cluster_for(settings(shared_broker)) as cluster:
        fetcher = PartitionFetcher(cluster, at)
        for offset in (3, 10):
            text = rf"offset {offset} of topic 'ranged', partition 0 .* \[4, 9\)"
            with pytest.raises(OffsetGone, match=text):
                fetcher.fetch(offset)
        assert fetcher.fetch(9).records.nbytes == 0


def test_another_topic_of_the_same_name_is_not_taken_for_the_first(
    shared_broker: BrokerProcess,
) -> None:
    Topic(shared_broker.port, "twin").put([b"a"])
    with cluster_for(settings(shared_broker)) as cluster:
        fetcher = PartitionFetcher(cluster, TopicPartition("twin", 0), topic_id=bytes([7] * 16))
        with pytest.raises(TopicGone, match="'twin' was deleted and created anew"):
            fetcher.fetch(0)
        missing = PartitionFetcher(cluster, TopicPartition("twin", 5))
        with pytest.raises(TopicGone, match="'twin' has no partition 5"):
            missing.fetch(0)


def test_a_broker_that_comes_back_is_read_on(broker: BrokerProcess) -> None:
    topic = Topic(broker.port, "back")
    topic.put([b"a"])
    with cluster_for(settings(broker)) as cluster:
        fetcher = PartitionFetcher(cluster, TopicPartition("back", 0))
        assert values(fetcher.fetch(0).records) == [b"a"]
        broker.restart()
        topic.put([b"b"])
        assert values(fetcher.fetch(1).records) == [b"b"]
        fetcher.ask_ahead(2)
        broker.kill()
        broker.start()
        topic.put([b"c"])
        assert values(fetcher.fetch(2).records) == [b"c"]


def test_damage_on_the_brokers_disk_does_not_become_rows(broker: BrokerProcess) -> None:
    topic = Topic(broker.port, "damaged")
    topic.put([b"value"] * 3)
    (log,) = broker.partition_dir("damaged").glob("*.log")
    data = bytearray(log.read_bytes())
    data[data.rindex(b"value")] ^= 1
    log.write_bytes(data)
    with cluster_for(settings(broker)) as cluster:
        fetched = PartitionFetcher(cluster, TopicPartition("damaged", 0)).fetch(0)
        with pytest.raises(CorruptRecord, match="CRC of the batch at offset 0"):
            values(fetched.records)
