"""The routes that look at topics, partitions and brokers."""

from collections.abc import Callable
from typing import Any, TypeVar

from penstock.client.admin import Admin
from penstock.client.operations.configs import ConfigResource, ResourceType
from penstock.client.operations.offsets import OffsetSpec
from penstock.client.operations.topics import PartitionDescription, TopicDescription
from penstock.client.values import OffsetAndTimestamp, TopicPartition
from penstock.errors import InvalidTopic, ProtocolError, UnknownTopicOrPartition
from penstock.http.handlers import Request, Response, Route
from penstock.rest.brokers import Brokers
from penstock.rest.errors import PartitionNotFound, TopicNotFound
from penstock.rest.v2.bodies import answer
from penstock.rest.v2.requests import path_number

T = TypeVar("T")

_TOPIC = "/topics/{topic:segment}"
_PARTITION = f"{_TOPIC}/partitions/{{partition:segment}}"


class TopicRoutes:
    """Handlers that ask the brokers."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers

    def routes(self) -> list[Route]:
        return [
            Route("/", self._root, methods=["GET"]),
            Route("/brokers", self._list_brokers, methods=["GET"]),
            Route("/topics", self._list_topics, methods=["GET"]),
            Route(_TOPIC, self._describe, methods=["GET"]),
            Route(f"{_TOPIC}/partitions", self._list_partitions, methods=["GET"]),
            Route(_PARTITION, self._describe_partition, methods=["GET"]),
            Route(f"{_PARTITION}/offsets", self._offsets, methods=["GET"]),
        ]

    async def _root(self, request: Request) -> Response:
        return answer(request, {})

    async def _list_brokers(self, request: Request) -> Response:
        found = await self._brokers.ask(lambda admin: admin.describe_cluster().brokers)
        return answer(request, {"brokers": sorted(one.node.id for one in found)})

    async def _list_topics(self, request: Request) -> Response:
        found = await self._brokers.ask(lambda admin: admin.list_topics(internal=False))
        return answer(request, [one.name for one in found])

    async def _describe(self, request: Request) -> Response:
        name = topic_of(request)
        return answer(request, await self._ask(lambda admin: _topic_document(admin, name)))

    async def _list_partitions(self, request: Request) -> Response:
        found = await self._topic(topic_of(request))
        return answer(request, [_partition_document(one) for one in found.partitions])

    async def _describe_partition(self, request: Request) -> Response:
        return answer(request, _partition_document(await self._partition(request)))

    async def _offsets(self, request: Request) -> Response:
        number = (await self._partition(request)).partition
        there = TopicPartition(topic_of(request), number)
        return answer(request, await self._ask(lambda admin: _ends(admin, there)))

    async def _partition(self, request: Request) -> PartitionDescription:
        number = path_number(request.path_params["partition"])
        for one in (await self._topic(topic_of(request))).partitions:
            if one.partition == number:
                return one
        raise PartitionNotFound

    async def _topic(self, name: str) -> TopicDescription:
        return await self._ask(lambda admin: admin.describe_topics([name])[name])

    async def _ask(self, question: Callable[[Admin], T]) -> T:
        """What the cluster answers; no topic can have a name that is none."""
        try:
            return await self._brokers.ask(question)
        except (UnknownTopicOrPartition, InvalidTopic):
            raise TopicNotFound from None


def topic_of(request: Request) -> str:
    """The topic in the path."""
    return str(request.path_params["topic"])


def _topic_document(admin: Admin, name: str) -> dict[str, Any]:
    topic = admin.describe_topics([name])[name]
    resource = ConfigResource(ResourceType.TOPIC, name)
    entries = admin.describe_configs([resource], synonyms=False)[resource]
    return {
        "name": name,
        "configs": {entry.name: entry.value for entry in entries},
        "partitions": [_partition_document(one) for one in topic.partitions],
    }


def _partition_document(one: PartitionDescription) -> dict[str, Any]:
    leader = -1 if one.leader is None else one.leader.id
    in_sync = {node.id for node in one.isr}
    return {
        "partition": one.partition,
        "leader": leader,
        "replicas": [
            {"broker": node.id, "leader": node.id == leader, "in_sync": node.id in in_sync}
            for node in one.replicas
        ],
    }


def _ends(admin: Admin, there: TopicPartition) -> dict[str, int]:
    return {
        "beginning_offset": _end(admin, there, OffsetSpec.EARLIEST),
        "end_offset": _end(admin, there, OffsetSpec.LATEST),
    }


def _end(admin: Admin, there: TopicPartition, spec: OffsetSpec) -> int:
    found = admin.list_offsets({there: spec})[there]
    if isinstance(found, ProtocolError):
        raise found
    assert isinstance(found, OffsetAndTimestamp)
    return found.offset
