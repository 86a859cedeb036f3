"""`spark.read.format("penstock")` against a real broker."""

from pyspark.sql import DataFrame, SparkSession
from tests.support.broker import BrokerProcess
from tests.support.spark_topics import Topic


def read(spark: SparkSession, broker: BrokerProcess, **options: str) -> DataFrame:
    reader = spark.read.format("penstock").option("kafka.bootstrap.servers", broker.address)
    return reader.options(**options).load()


def test_all_records_of_a_topic_are_read_once(
    spark: SparkSession, shared_broker: BrokerProcess
) -> None:
    topic = Topic(shared_broker.port, "plain", 3)
    for partition in range(3):
        topic.put([b"%d-%d" % (partition, n) for n in range(100)], partition=partition, key=b"k")
    rows = read(spark, shared_broker, subscribe="plain").collect()
    found = sorted((row.partition, row.offset, bytes(row.value)) for row in rows)
    assert found == [(p, n, b"%d-%d" % (p, n)) for p in range(3) for n in range(100)]
    assert {(row.topic, bytes(row.key), row.timestampType) for row in rows} == {("plain", b"k", 0)}
