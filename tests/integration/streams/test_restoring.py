"""An application that lost its disk, as far as a broker is needed for it and Spark is not."""

import json
import uuid
from pathlib import Path

import confluent_kafka
from tests.support.broker import BrokerProcess
from tests.support.streams_host import APPLICATION, DictShelf, ListHost
from tests.support.streams_spark import create

from penstock.client.operations.group_offsets import alter_group_offsets
from penstock.client.operations.offsets import OffsetSpec, list_offsets
from penstock.client.values import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from penstock.client.wire.raw_cluster import cluster_for
from penstock.streams import LONG, STRING, StreamsBuilder, StreamsTopology
from penstock.streams.running.folder import ApplicationFolder
from penstock.streams.running.preparing import Prepared, prepare
from penstock.streams.running.purging import RepartitionPurge
from penstock.streams.running.settings import streams_settings
from penstock.streams.tasks.batch import RowIn
from penstock.streams.tasks.paged_memory import PagedMemory
from penstock.streams.values.records import Stamped

REPARTITION = f"{APPLICATION}-n-repartition"


def counting() -> StreamsTopology:
    builder = StreamsBuilder(value=STRING)
    builder.stream("a").group_by(lambda key, word: word).count(store="n")
    return builder.build()


def prepared(address: str, folder: Path) -> Prepared:
    config = {"application.id": APPLICATION, "bootstrap.servers": address, "state.dir": folder}
    settings = streams_settings(config)
    with cluster_for(settings.client) as cluster:
        state = ApplicationFolder(settings.folder)
        return prepare(cluster, settings, counting(), state, once=True)


def begun(address: str, task: int) -> confluent_kafka.Producer:
    """A transaction as a stage's task has them."""
    name = f"{APPLICATION}-stage-1-{uuid.uuid4()}-{task}"
    producer = confluent_kafka.Producer({"bootstrap.servers": address, "transactional.id": name})
    producer.init_transactions(60)
    producer.begin_transaction()
    return producer


def write(producer: confluent_kafka.Producer, row: RowIn, value: bytes | None = None) -> None:
    producer.produce(
        row.topic, value or row.value, row.key, row.partition, timestamp=row.timestamp_ms
    )


def test_lost_state_is_found_in_topics_and_what_was_not_decided_is_not(
    shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    address, host = shared_broker.address, ListHost(counting())
    create(address, "a")
    assert not prepared(address, tmp_path / "first").is_restored
    for at_ms in range(5):
        host.put("a", None, b"word", 1_000 + at_ms)
    host.run()
    told, open_ = begun(address, 0), begun(address, 1)
    changes = host.written(f"{APPLICATION}-n-changelog")
    for topic in [name for name in host.topics if name != "a"]:
        for row in host.written(topic):
            write(told, row)
    told.commit_transaction(60)
    write(open_, changes[-1], LONG.serialize(99))
    open_.flush(60)

    found = prepared(address, tmp_path / "second")
    assert found.is_restored
    first, second = found.queries
    assert json.loads(first.starting) == {"a": {"0": 5}}
    assert json.loads(second.starting) == {REPARTITION: {"0": 5}}
    shelves: dict[str, DictShelf] = {}
    second.lost.restore(second.work, 0, lambda state: shelves.setdefault(state, DictShelf()))
    assert PagedMemory(shelves["n"], STRING, LONG).state(b"word") == Stamped(5, 1_004)
    _purge(address)


def _purge(address: str) -> None:
    """What was committed of the repartition topic is not kept."""
    at, client = TopicPartition(REPARTITION, 0), {"bootstrap.servers": address}
    with cluster_for(client) as cluster:
        alter_group_offsets(cluster, APPLICATION, {at: OffsetAndMetadata(3)})
    RepartitionPurge(
        application_id=APPLICATION,
        topics=frozenset({REPARTITION}),
        connect=lambda: cluster_for(client),
        every_s=30.0,
    ).purge()
    with cluster_for(client) as cluster:
        first = list_offsets(cluster, {at: int(OffsetSpec.EARLIEST)}, timeout_ms=30_000)[at]
    assert isinstance(first, OffsetAndTimestamp) and first.offset == 3
