"""Any broker takes what only the controller can do; what it answers is true on that broker."""

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tests.integration.cluster.writing import QUIET
from tests.support.cluster import Cluster
from tests.support.processes import HOST
from tests.support.waiting import eventually
from tests.support.wire import RawConnection

from penstock.client.wire.connection import BrokerConnection
from penstock.errors import ErrorCode
from penstock.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from penstock.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def _elsewhere(cluster: Cluster) -> int:
    """A broker that is not the controller."""
    return next(number for number in range(3) if number != cluster.controller)


def test_topics_are_made_altered_grown_and_deleted_through_any_broker(cluster: Cluster) -> None:
    """Clients send these to the controller; here it is another broker that passes them on."""
    number = _elsewhere(cluster)
    connection = BrokerConnection(HOST, cluster.brokers[number].port)

    def partition_count() -> int:
        (found,) = cluster.metadata("anywhere", broker=number).topics
        return len(found.partitions)

    topic = CreatableTopic(name="anywhere", num_partitions=2, replication_factor=3)
    made = connection.ask(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)
    assert made.topics[0].error_code == ErrorCode.NONE
    assert partition_count() == 2

    wanted = CreatePartitionsTopic(name="anywhere", count=5, assignments=None)
    grown = connection.ask(CreatePartitionsRequest(topics=[wanted]), CreatePartitionsResponse)
    assert grown.results[0].error_code == ErrorCode.NONE
    assert partition_count() == 5

    setting = AlterableConfig(name="retention.ms", config_operation=0, value="1234567")
    resource = AlterConfigsResource(resource_type=2, resource_name="anywhere", configs=[setting])
    altered = connection.ask(
        IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse
    )
    assert altered.responses[0].error_code == ErrorCode.NONE

    gone = connection.ask(
        DeleteTopicsRequest(topics=[DeleteTopicState(name="anywhere")]), DeleteTopicsResponse
    )
    assert gone.responses[0].error_code == ErrorCode.NONE
    assert partition_count() == 0
    again = connection.ask(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)
    assert again.topics[0].error_code == ErrorCode.NONE
    connection.close()


def test_the_settings_of_each_broker_reach_that_broker(cluster: Cluster) -> None:
    for number, broker in enumerate(cluster.brokers):
        admin = AdminClient({"bootstrap.servers": broker.address, **QUIET})
        resource = ConfigResource(
            ResourceType.BROKER,
            str(number),
            incremental_configs=[
                ConfigEntry(
                    "log.cleaner.threads",
                    str(number + 1),
                    incremental_operation=AlterConfigOpType.SET,
                )
            ],
        )
        for altered in admin.incremental_alter_configs([resource], broker=number).values():
            altered.result()

        def has_it(admin: AdminClient = admin, number: int = number) -> bool:
            asked = ConfigResource(ResourceType.BROKER, str(number))
            (described,) = admin.describe_configs([asked], broker=number).values()
            return bool(described.result()["log.cleaner.threads"].value == str(number + 1))

        eventually(has_it, timeout_s=120, what="the setting")


def test_a_topic_made_on_first_use_is_made_through_any_broker(cluster: Cluster) -> None:
    number = _elsewhere(cluster)
    producer = Producer({"bootstrap.servers": cluster.brokers[number].address, **QUIET})
    producer.produce("on-first-use", b"hello")
    assert producer.flush(120) == 0
    cluster.until_in_sync("on-first-use")


def test_what_brokers_ask_of_each_other_is_not_offered_to_clients(cluster: Cluster) -> None:
    with RawConnection(cluster.brokers[0].port) as connection:
        assert max(connection.api_versions().ranges) < 10_000
