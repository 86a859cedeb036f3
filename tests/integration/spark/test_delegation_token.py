"""Executors that log in by a delegation token: the driver's password stays on the driver."""

import pickle
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.support.broker import BrokerProcess
from tests.support.processes import HOST, free_port

from penstock.client.admin import Admin
from penstock.client.operations.topics import NewTopic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PASSWORD = "alice-secret"
LISTENER = "listener.name.sasl_plaintext"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """The driver can log in by PLAIN alone, and so whoever comes by SCRAM has a token."""
    port, inside = free_port(), free_port()
    settings = {
        "listeners": f"SASL_PLAINTEXT://{HOST}:{port},PLAINTEXT://{HOST}:{inside}",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        f"{LISTENER}.plain.sasl.jaas.config": f'{PLAIN} required user_alice="{PASSWORD}";',
        f"{LISTENER}.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
        "delegation.token.secret.key": "the key of all tokens",
    }
    with BrokerProcess(tmp_path_factory.mktemp("broker"), settings, port=inside) as started:
        started.start()
        started.settings["clients"] = f"{HOST}:{port}"
        with Admin(bootstrap_servers=started.address) as admin:
            admin.create_topics([NewTopic(name="t", partitions=2)])
        yield started
        assert started.tracebacks() == {}
        started.stop()


def options_of(broker: BrokerProcess) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": broker.settings["clients"],
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "alice",
        "kafka.sasl.password": PASSWORD,
        "delegationToken": "true",
    }


def test_rows_go_there_and_back_without_the_password(
    spark: "SparkSession", broker: BrokerProcess
) -> None:
    options = options_of(broker)
    frame = spark.range(0, 100, 1, 2).selectExpr("CAST(id AS STRING) AS value")
    frame.write.format("penstock").mode("append").options(**options, topic="t").save()
    read = spark.read.format("penstock").options(**options, subscribe="t").load()
    assert {row.value for row in read.select("value").collect()} == {b"%d" % n for n in range(100)}
    settings = {name.removeprefix("kafka."): value for name, value in options.items()}
    del settings["delegationToken"]
    with Admin(settings) as admin:
        (token,) = admin.describe_delegation_tokens()  # One was enough for both.
    assert str(token.information.owner) == "User:alice"


def test_what_leaves_the_driver_has_a_token_and_no_password(broker: BrokerProcess) -> None:
    from pyspark.sql.types import BinaryType, StructField, StructType

    from penstock.spark.options import read_options, write_options
    from penstock.spark.sink.sink import batch_writer, stream_writer
    from penstock.spark.source.reader import PenstockReader
    from penstock.spark.source.stream_reader import PenstockStreamReader

    options = options_of(broker)
    with_topic = {**options, "subscribe": "t"}
    reader = PenstockReader(read_options(with_topic, streaming=False))
    stream = PenstockStreamReader(
        read_options({**with_topic, "startingOffsets": "earliest"}, streaming=True)
    )
    schema = StructType([StructField("value", BinaryType())])
    start = stream.initialOffset()
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    for sent in (
        reader,
        reader.partitions(),
        stream,
        stream.partitions(start, end),
        batch_writer(write_options({**options, "topic": "t"}), schema, False),
        stream_writer(write_options({**options, "topic": "t"}), schema, False),
    ):
        assert PASSWORD.encode() not in pickle.dumps(sent), sent
    stream.stop()
