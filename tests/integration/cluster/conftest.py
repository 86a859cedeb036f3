"""One cluster for most tests: a test may kill whom it likes, the next one finds all well."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from tests.support.cluster import Cluster
from tests.support.waiting import eventually


@pytest.fixture(scope="session")
def shared() -> Iterator[Cluster]:
    """In memory where there is such a place: power cuts are not tested here."""
    memory = Path("/dev/shm")
    place = TemporaryDirectory(dir=memory if memory.is_dir() else None)
    with place as directory, Cluster(Path(directory)) as running:
        yield running
        running.assert_no_tracebacks()


@pytest.fixture
def cluster(shared: Cluster) -> Cluster:
    """Three brokers, all running."""
    if shared.zookeeper.process is None:  # A test that took it away failed before it came back.
        shared.zookeeper.start()
    for broker in shared.brokers:
        if broker.process is None:
            broker.start(timeout_s=120)
    return shared


class Topics:
    """Makes topics, by way of any broker."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def create_eventually(self, name: str) -> None:
        """After the metadata store was away: as soon as the controller has it again."""

        def made() -> bool:
            try:
                self.create(name)
            except KafkaException as failure:
                error: KafkaError = failure.args[0]
                assert error.code() == KafkaError.TOPIC_ALREADY_EXISTS, error
            return True

        eventually(made, timeout_s=120, every_s=0.2, what=f"the topic {name}")

    def create(self, name: str, *, partitions: int = 1, replicas: int = 3, **config: str) -> str:
        """Wait until all its replicas are in sync; settings are written with underscores."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        topic = NewTopic(name, partitions, replicas, config=settings)
        # A new client each time: one of librdkafka whose only connection was to a controller that
        # died goes on trying that one, and asks nobody else who has taken over.
        admin = AdminClient({"bootstrap.servers": self._cluster.bootstrap})
        for made in admin.create_topics([topic], operation_timeout=30).values():
            made.result()
        self._cluster.until_in_sync(name, replicas)
        return name


@pytest.fixture
def topics(cluster: Cluster) -> Topics:
    return Topics(cluster)
