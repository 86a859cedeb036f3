"""What Spark writes with a registry has its subject, and confluent-kafka reads it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from pyspark.sql import DataFrame, Row, SparkSession
from tests.integration.serializers.confluent import Confluent, SchemaRegistryClient
from tests.support.broker import BrokerProcess
from tests.support.registry import RegistryProcess
from tests.support.spark_topics import Topic
from tests.unit.schemas.protos import add

from penstock.cli.tools.dlq.read import read_topic
from penstock.schemas.errors import SchemaError
from penstock.schemas.protobuf import ProtobufSchema
from penstock.schemas.registry_client import RegistryRefused
from penstock.spark import formats

ROWS = [Row(id=7, name="ann", tags=["a", None]), Row(id=8, name=None, tags=[])]
COLUMNS = "id long not null, name string, tags array<string>"


@pytest.fixture(scope="module")
def registry(
    shared_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryProcess]:
    with RegistryProcess(tmp_path_factory.mktemp("registry"), shared_broker.address) as running:
        running.start()
        yield running


@pytest.fixture
def people(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, COLUMNS)


def write(records: DataFrame, broker: BrokerProcess) -> None:
    writer = records.write.format("penstock").mode("append")
    writer.option("kafka.bootstrap.servers", broker.address).save()


def written(broker: BrokerProcess, topic: str) -> list[Any]:
    stored = read_topic({"bootstrap.servers": broker.address}, topic)
    return [one.record for one in stored]


def test_avro_is_registered_under_its_topic_once(
    people: DataFrame, shared_broker: BrokerProcess, registry: RegistryProcess
) -> None:
    Topic(shared_broker.port, "spark-avro")
    avro = formats.Avro(lookup=formats.RegistryClient(registry.url))
    for _ in range(2):
        records = formats.encode(people, avro, key="id", key_format=avro, topic="spark-avro")
        write(records, shared_broker)
    client = SchemaRegistryClient({"url": registry.url})
    assert client.get_versions("spark-avro-value") == [1]
    assert client.get_versions("spark-avro-key") == [1]
    theirs, keys = Confluent(registry.url, "AVRO"), Confluent(registry.url, "AVRO", is_key=True)
    found = written(shared_broker, "spark-avro")
    values = [theirs.read("spark-avro", one.value) for one in found]
    assert sorted(values, key=lambda one: one["id"]) == [
        {"id": 7, "name": "ann", "tags": ["a", None]},
        {"id": 7, "name": "ann", "tags": ["a", None]},
        {"id": 8, "name": None, "tags": []},
        {"id": 8, "name": None, "tags": []},
    ]
    assert {keys.read("spark-avro", one.key) for one in found} == {7, 8}


def test_json_is_registered_by_the_schema_of_its_columns(
    people: DataFrame, shared_broker: BrokerProcess, registry: RegistryProcess
) -> None:
    Topic(shared_broker.port, "spark-json")
    json_format = formats.Json(registry=formats.RegistryClient(registry.url))
    write(formats.encode(people, json_format, value=["id", "name", "tags"], topic="spark-json"),
          shared_broker)  # fmt: skip
    theirs = Confluent(registry.url, "JSON")  # It checks what it reads by the schema.
    values = [theirs.read("spark-json", one.value) for one in written(shared_broker, "spark-json")]
    assert sorted(values, key=lambda one: one["id"]) == [
        {"id": 7, "name": "ann", "tags": ["a", None]},
        {"id": 8, "tags": []},
    ]
    decoded = formats.decode(
        people.sparkSession.createDataFrame(
            [(one.value,) for one in written(shared_broker, "spark-json")], "value binary"
        ),
        formats.Json(COLUMNS, registry=formats.RegistryClient(registry.url)),
    )
    assert {row.value.id for row in decoded.collect()} == {7, 8}


def test_protobuf_is_registered_with_what_it_imports(
    spark: SparkSession, shared_broker: BrokerProcess, registry: RegistryProcess
) -> None:
    Topic(shared_broker.port, "spark-proto")
    inner = descriptor_pb2.FileDescriptorProto(
        name="money/money.proto", package="money", syntax="proto3"
    )
    add(inner.message_type.add(name="Money"), "cents", "int64")
    outer = descriptor_pb2.FileDescriptorProto(
        name="shop/sale.proto", package="shop", syntax="proto3", dependency=["money/money.proto"]
    )
    outer.message_type.add(name="First")
    sale = outer.message_type.add(name="Sale")
    add(sale, "id", "int64")
    add(sale, "price", "money.Money")
    compiled = descriptor_pb2.FileDescriptorSet(file=[inner, outer]).SerializeToString()
    proto = formats.Protobuf(compiled, "shop.Sale", lookup=formats.RegistryClient(registry.url))
    frame = spark.createDataFrame([Row(id=7, price=Row(cents=250))], proto.spark_type())
    write(formats.encode(frame, proto, topic="spark-proto"), shared_broker)
    client = SchemaRegistryClient({"url": registry.url})
    latest = client.get_latest_version("spark-proto-value")
    (reference,) = latest.schema.references
    assert (reference.name, reference.subject) == ("money/money.proto", "money/money.proto")
    (record,) = written(shared_broker, "spark-proto")
    message_class = ProtobufSchema.of(compiled, "shop.Sale").message_class
    read = Confluent(registry.url, "PROTOBUF").read("spark-proto", record.value, message_class)
    assert (read.id, read.price.cents) == (7, 250)


def test_a_stream_registers_before_its_first_batch(
    spark: SparkSession,
    shared_broker: BrokerProcess,
    registry: RegistryProcess,
    tmp_path: Path,
) -> None:
    source = Topic(shared_broker.port, "spark-in")
    Topic(shared_broker.port, "spark-out")
    reader = spark.readStream.format("penstock").option("subscribe", "spark-in")
    frame = reader.option("kafka.bootstrap.servers", shared_broker.address).option(
        "startingOffsets", "earliest"
    )
    values = formats.decode(frame.load(), formats.Json("id long")).select("value.*")
    avro = formats.Avro(lookup=formats.RegistryClient(registry.url))
    records = formats.encode(values, avro, value=["id"], schema_topic="spark-out")
    client = SchemaRegistryClient({"url": registry.url})
    assert client.get_versions("spark-out-value") == [1]
    source.put([b'{"id": 1}', b'{"id": 2}'])
    writer = records.writeStream.format("penstock").option("topic", "spark-out")
    query = (
        writer.option("kafka.bootstrap.servers", shared_broker.address)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(300)
    theirs = Confluent(registry.url, "AVRO")
    found = [theirs.read("spark-out", one.value) for one in written(shared_broker, "spark-out")]
    assert found == [{"id": 1}, {"id": 2}]


def test_what_the_registry_refuses_writes_nothing(
    people: DataFrame, shared_broker: BrokerProcess, registry: RegistryProcess
) -> None:
    Topic(shared_broker.port, "spark-strict")
    lookup = formats.RegistryClient(registry.url)
    with pytest.raises(SchemaError, match="schema_topic"):
        formats.encode(people, formats.Avro(lookup=lookup))
    with pytest.raises(RegistryRefused, match="40401"):
        formats.encode(people, formats.Avro(lookup=lookup, register=False), topic="spark-strict")
    formats.encode(people, formats.Avro(lookup=lookup), topic="spark-strict")
    changed = people.selectExpr("CAST(id AS STRING) AS id", "name", "tags")
    with pytest.raises(RegistryRefused, match="409"):
        formats.encode(changed, formats.Avro(lookup=lookup), topic="spark-strict")
    known = formats.Avro(lookup=lookup, register=False, subject="spark-strict-value")
    formats.encode(people, known)
    assert written(shared_broker, "spark-strict") == []
