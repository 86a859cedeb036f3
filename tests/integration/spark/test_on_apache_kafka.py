"""The same source on an Apache Kafka: it knows no broker of its own."""

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession
from tests.support.apache_kafka import CURRENT, KafkaProcess
from tests.support.outside import needs
from tests.support.spark_queries import Seen, run_available, stream

from penstock.client.admin import Admin
from penstock.client.operations.group_offsets import group_offsets
from penstock.client.values import TopicPartition

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaProcess]:
    with KafkaProcess(needs(CURRENT), tmp_path_factory.mktemp("kafka")) as made:
        made.start()
        admin = AdminClient({"bootstrap.servers": made.address})
        for future in admin.create_topics([NewTopic("t", 2, 1)]).values():
            future.result(120)
        fill(made)
        yield made


def fill(kafka: KafkaProcess) -> None:
    """Thirty committed records, ten aborted ones, packed by librdkafka."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": kafka.address,
            "transactional.id": "filler",
            "compression.type": "lz4",
        }
    )
    producer.init_transactions(60)
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction)):
        producer.begin_transaction()
        for n in range(30 if number == 0 else 10):
            producer.produce("t", b"%d" % n, partition=n % 2, headers=[("h", b"1")])
        producer.flush(120)
        end(60)


def test_batches_are_read_with_headers_and_without_what_was_aborted(
    spark: SparkSession, kafka: KafkaProcess
) -> None:
    reader = spark.read.format("penstock").option("kafka.bootstrap.servers", kafka.address)
    reader = reader.option("subscribe", "t").option("includeHeaders", "true")
    assert reader.load().count() == 40
    rows = reader.option("kafka.isolation.level", "read_committed").load().collect()
    assert sorted(int(row.value) for row in rows) == list(range(30))
    assert {(header.key, bytes(header.value)) for row in rows for header in row.headers} == {
        ("h", b"1")
    }


def test_streams_go_on_and_show_their_lag_as_a_group(
    spark: SparkSession, kafka: KafkaProcess, tmp_path: Path
) -> None:
    seen = Seen()
    options = {"subscribe": "t", "maxOffsetsPerTrigger": "25"}
    query = run_available(stream(spark, kafka, **options), tmp_path, seen)
    assert len(seen.rows) == 40
    with Admin({"bootstrap.servers": kafka.address}) as admin:
        committed = group_offsets(admin.cluster, f"penstock-spark-{query.id}")
    ends = {at: offset.offset for at, offset in committed.items()}
    # Fifteen and five records, and a marker after each transaction.
    assert ends == {TopicPartition("t", 0): 22, TopicPartition("t", 1): 22}
