"""The routes of topics and their partitions: list, create, enlarge, delete; replicas and moves."""

from collections.abc import Mapping
from typing import Any

from penstock.client.admin import Admin
from penstock.client.operations.topics import BROKER_DEFAULT, NewPartitions, NewTopic
from penstock.client.values import TopicPartition
from penstock.http.handlers import Request, Response, Route
from penstock.protocol.messages.metadata import MetadataResponseTopic
from penstock.rest.errors import BadRequest
from penstock.rest.proxy import Proxy
from penstock.rest.v3.asking import (
    ID_MAX,
    NotThere,
    created,
    is_true,
    links_of,
    nothing,
    number,
    objects,
    optional_number,
    optional_text,
    segment,
    text_of,
)
from penstock.rest.v3.bodies import answer, read_document
from penstock.rest.v3.links import Document, Links, collection, resource
from penstock.rest.v3.replicas import (
    changed_topic,
    moves_of,
    offsets_of,
    partition_document,
    partition_of,
    partitions_of,
    replica_document,
    topic_of,
    topics_of,
)

_TOPICS = "/v3/clusters/{cluster:segment}/topics"
_TOPIC = _TOPICS + "/{topic:segment}"
_PARTITIONS = _TOPIC + "/partitions"
_PARTITION = _PARTITIONS + "/{partition:segment}"


class TopicResources:
    """Handlers for one proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._ask = proxy.brokers.ask

    def routes(self) -> list[Route]:
        return [
            Route(_TOPICS, self._list, methods=["GET"]),
            Route(_TOPICS, self._create, methods=["POST"]),
            Route(_TOPICS + "/-/partitions/-/reassignment", self._all_moves, methods=["GET"]),
            Route(_TOPIC, self._get, methods=["GET"]),
            Route(_TOPIC, self._enlarge, methods=["PATCH"]),
            Route(_TOPIC, self._delete, methods=["DELETE"]),
            Route(_PARTITIONS, self._partitions, methods=["GET"]),
            Route(_PARTITIONS + "/-/reassignment", self._moves, methods=["GET"]),
            Route(_PARTITION, self._partition, methods=["GET"]),
            Route(_PARTITION + "/offset", self._offsets, methods=["GET"]),
            Route(_PARTITION + "/offsets", self._offsets, methods=["GET"]),
            Route(_PARTITION + "/reassignment", self._move, methods=["GET"]),
            Route(_PARTITION + "/replicas", self._replicas, methods=["GET"]),
            Route(_PARTITION + "/replicas/{broker:segment}", self._replica, methods=["GET"]),
        ]

    async def _list(self, request: Request) -> Response:
        links = await links_of(self._proxy, request)
        found = await self._ask(
            lambda admin: [topic_document(links, one) for one in topics_of(admin, None)]
        )
        return answer(request, collection("KafkaTopicList", links.to("topics"), found))

    async def _create(self, request: Request) -> Response:
        links = await links_of(self._proxy, request)
        body = await read_document(request)
        new, is_trial = new_topic(body), is_true(body, "validate_only")
        if is_trial:
            await self._ask(lambda admin: admin.create_topics([new], validate_only=True))
            return answer(request, planned_topic(links, new))
        found = await self._ask(lambda admin: _create(admin, links, new))
        self._proxy.brokers.forget(new.name)
        return created(request, found)

    async def _get(self, request: Request) -> Response:
        links, name = await links_of(self._proxy, request), segment(request, "topic")
        found = await self._ask(lambda admin: topic_document(links, topic_of(admin, name)))
        return answer(request, found)

    async def _enlarge(self, request: Request) -> Response:
        links, name = await links_of(self._proxy, request), segment(request, "topic")
        count = optional_number(await read_document(request), "partitions_count")
        if count is None:
            raise BadRequest("partitions_count is missing.")
        found = await self._ask(lambda admin: _enlarge(admin, links, name, count))
        self._proxy.brokers.forget(name)
        return answer(request, found)

    async def _delete(self, request: Request) -> Response:
        await links_of(self._proxy, request)
        name = segment(request, "topic")
        await self._ask(lambda admin: admin.delete_topics([name]))
        self._proxy.brokers.forget(name)
        return nothing()

    async def _partitions(self, request: Request) -> Response:
        links, name = await links_of(self._proxy, request), segment(request, "topic")
        topic = await self._ask(lambda admin: topic_of(admin, name))
        found = [partition_document(links, name, one) for one in partitions_of(topic)]
        at = links.to("topics", name, "partitions")
        return answer(request, collection("KafkaPartitionList", at, found))

    async def _partition(self, request: Request) -> Response:
        links, name = await links_of(self._proxy, request), segment(request, "topic")
        index = number(request, "partition")
        topic = await self._ask(lambda admin: topic_of(admin, name))
        return answer(request, partition_document(links, name, partition_of(topic, index)))

    async def _offsets(self, request: Request) -> Response:
        links = await links_of(self._proxy, request)
        at = TopicPartition(segment(request, "topic"), number(request, "partition"))
        return answer(request, await self._ask(lambda admin: offsets_of(admin, links, at)))

    async def _replicas(self, request: Request) -> Response:
        links, name = await links_of(self._proxy, request), segment(request, "topic")
        index = number(request, "partition")
        topic = await self._ask(lambda admin: topic_of(admin, name))
        partition = partition_of(topic, index)
        found = [replica_document(links, name, partition, one) for one in partition.replica_nodes]
        at = links.to("topics", name, "partitions", index, "replicas")
        return answer(request, collection("KafkaReplicaList", at, found))

    async def _replica(self, request: Request) -> Response:
        links, name = await links_of(self._proxy, request), segment(request, "topic")
        index, broker_id = number(request, "partition"), number(request, "broker")
        topic = await self._ask(lambda admin: topic_of(admin, name))
        partition = partition_of(topic, index)
        if broker_id not in partition.replica_nodes:
            raise NotThere(f"Replica {broker_id} cannot be found.")
        return answer(request, replica_document(links, name, partition, broker_id))

    async def _all_moves(self, request: Request) -> Response:
        links = await links_of(self._proxy, request)
        found = await self._ask(lambda admin: moves_of(admin, links, None))
        at = links.to("topics", "-", "partitions", "-", "reassignment")
        return answer(request, collection("KafkaReassignmentList", at, found))

    async def _moves(self, request: Request) -> Response:
        links, name = await links_of(self._proxy, request), segment(request, "topic")
        found = await self._ask(lambda admin: moves_of(admin, links, name))
        at = links.to("topics", name, "partitions", "-", "reassignment")
        return answer(request, collection("KafkaReassignmentList", at, found))

    async def _move(self, request: Request) -> Response:
        links, name = await links_of(self._proxy, request), segment(request, "topic")
        index = number(request, "partition")
        for found in await self._ask(lambda admin: moves_of(admin, links, name)):
            if found["partition_id"] == index:
                return answer(request, found)
        raise NotThere(f"Reassignment of partition {name}-{index} cannot be found.")


def new_topic(body: Mapping[str, Any]) -> NewTopic:
    """The topic that a body asks for."""
    assignments: dict[int, list[int]] = {}
    for one in objects(body, "replicas_assignments"):
        partition, brokers = optional_number(one, "partition_id"), one.get("broker_ids")
        if partition is None or not isinstance(brokers, list):
            raise BadRequest("replicas_assignments has entries without partition_id or broker_ids.")
        if not all(type(broker) is int and 0 <= broker <= ID_MAX for broker in brokers):
            raise BadRequest("broker_ids is not a list of whole numbers.")
        assignments[partition] = brokers
    count = optional_number(body, "partitions_count")
    factor = optional_number(body, "replication_factor")
    return NewTopic(
        name=text_of(body, "topic_name"),
        partitions=BROKER_DEFAULT if count is None else count,
        replication_factor=BROKER_DEFAULT if factor is None else factor,
        assignments=assignments,
        configs={
            text_of(one, "name"): optional_text(one, "value") or ""
            for one in objects(body, "configs")
        },
    )


def planned_topic(links: Links, new: NewTopic) -> Document:
    """A topic that was only tried."""
    placed = new.assignments
    factor = max((len(one) for one in placed.values()), default=new.replication_factor)
    return _document(links, new.name, False, max(0, factor), len(placed) or max(0, new.partitions))


def topic_document(links: Links, topic: MetadataResponseTopic) -> Document:
    """A topic."""
    factor = max((len(one.replica_nodes) for one in topic.partitions), default=0)
    return _document(links, topic.name or "", topic.is_internal, factor, len(topic.partitions))


def _document(links: Links, name: str, is_internal: bool, factor: int, count: int) -> Document:
    place = ("topics", name)
    fields = {
        "cluster_id": links.cluster_id,
        "topic_name": name,
        "is_internal": is_internal,
        "replication_factor": factor,
        "partitions_count": count,
        "partitions": links.related(*place, "partitions"),
        "configs": links.related(*place, "configs"),
        "partition_reassignments": links.related(*place, "partitions", "-", "reassignment"),
        "authorized_operations": [],
    }
    return resource("KafkaTopic", links.to(*place), links.name(topic=name), fields)


def _create(admin: Admin, links: Links, new: NewTopic) -> Document:
    admin.create_topics([new])
    return topic_document(links, changed_topic(admin, new.name))


def _enlarge(admin: Admin, links: Links, name: str, count: int) -> Document:
    topic_of(admin, name)  # It must be there before it can grow.
    admin.create_partitions({name: NewPartitions(total_count=count)})
    return topic_document(links, changed_topic(admin, name, partitions=count))
