"""The routes of consumer instances: made, given topics or partitions, read from, ended."""

from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import quote

from penstock.client.errors import CommitFailedError
from penstock.client.values import TopicPartition
from penstock.errors import PenstockError
from penstock.http.errors import HttpError
from penstock.http.handlers import Request, Response, Route
from penstock.rest.config import RestConfig
from penstock.rest.errors import (
    ConsumerFormatMismatch,
    KafkaFailure,
    PartitionNotFound,
    translate,
)
from penstock.rest.payloads.plain import dump_json
from penstock.rest.v2.bodies import answer, nothing, read_document, read_required
from penstock.rest.v2.instance import ConsumerInstance
from penstock.rest.v2.instances import ConsumerInstances, InstanceId
from penstock.rest.v2.media import answer_media
from penstock.rest.v2.requests import (
    instance_request,
    offset_list,
    partition_list,
    subscription_request,
)

T = TypeVar("T")

_GROUP = "/consumers/{group:segment}"
_INSTANCE = f"{_GROUP}/instances/{{instance:segment}}"


class ConsumerRoutes:
    """Handlers over the instances of one process."""

    def __init__(self, config: RestConfig, instances: ConsumerInstances) -> None:
        self._config = config
        self._instances = instances

    def routes(self) -> list[Route]:
        return [
            Route(_GROUP, self._create, methods=["POST"]),
            Route(_INSTANCE, self._delete, methods=["DELETE"]),
            Route(f"{_INSTANCE}/subscription", self._subscribe, methods=["POST"]),
            Route(f"{_INSTANCE}/subscription", self._subscription, methods=["GET"]),
            Route(f"{_INSTANCE}/subscription", self._unsubscribe, methods=["DELETE"]),
            Route(f"{_INSTANCE}/assignments", self._assign, methods=["POST"]),
            Route(f"{_INSTANCE}/assignments", self._assignment, methods=["GET"]),
            Route(f"{_INSTANCE}/positions", self._seek, methods=["POST"]),
            Route(f"{_INSTANCE}/positions/beginning", self._seek_to_beginning, methods=["POST"]),
            Route(f"{_INSTANCE}/positions/end", self._seek_to_end, methods=["POST"]),
            Route(f"{_INSTANCE}/records", self._records, methods=["GET"]),
            Route(f"{_INSTANCE}/offsets", self._commit, methods=["POST"]),
            Route(f"{_INSTANCE}/offsets", self._committed, methods=["GET"]),
        ]

    async def _create(self, request: Request) -> Response:
        wanted = instance_request(await read_document(request))
        group = str(request.path_params["group"])
        name = await self._instances.create(group, wanted)
        path = f"/consumers/{quote(group, safe='')}/instances/{quote(name, safe='')}"
        return answer(request, {"instance_id": name, "base_uri": self._base(request) + path})

    async def _delete(self, request: Request) -> Response:
        await self._instances.delete(_key(request))
        return nothing()

    async def _subscribe(self, request: Request) -> Response:
        wanted = subscription_request(await read_required(request))
        await self._use(request, lambda instance: instance.subscribe(wanted))
        return nothing()

    async def _subscription(self, request: Request) -> Response:
        return answer(request, {"topics": await self._use(request, ConsumerInstance.subscription)})

    async def _unsubscribe(self, request: Request) -> Response:
        await self._use(request, ConsumerInstance.unsubscribe)
        return nothing()

    async def _assign(self, request: Request) -> Response:
        wanted = partition_list(await read_required(request))
        await self._use(request, lambda instance: instance.assign(wanted))
        return nothing()

    async def _assignment(self, request: Request) -> Response:
        found = await self._use(request, ConsumerInstance.assignment)
        return answer(request, {"partitions": [_partition_document(one) for one in found]})

    async def _seek(self, request: Request) -> Response:
        wanted = offset_list(await read_required(request))
        await self._use(request, lambda instance: instance.seek(wanted))
        return nothing()

    async def _seek_to_beginning(self, request: Request) -> Response:
        wanted = partition_list(await read_required(request))
        await self._use(request, lambda instance: instance.seek_to_beginning(wanted))
        return nothing()

    async def _seek_to_end(self, request: Request) -> Response:
        wanted = partition_list(await read_required(request))
        await self._use(request, lambda instance: instance.seek_to_end(wanted))
        return nothing()

    async def _records(self, request: Request) -> Response:
        key = _key(request)
        kept = self._instances.settings_of(key).format
        media = answer_media(request.headers.get("accept"), kept)
        if media is None:
            raise ConsumerFormatMismatch
        timeout_ms, bytes_max = _query(request, "timeout"), _query(request, "max_bytes")
        timeout_s = None if timeout_ms is None else timeout_ms / 1000
        found = await self._use(request, lambda one: dump_json(one.read(timeout_s, bytes_max)))
        return Response(found, media_type=media)

    async def _commit(self, request: Request) -> Response:
        document = await read_document(request)
        wanted = offset_list(document) if document else None
        waits = request.query_params.get("async", "").lower() != "true"
        await self._use(request, lambda instance: instance.commit(wanted, waits=waits))
        return answer(request, [])

    async def _committed(self, request: Request) -> Response:
        document = await read_document(request)
        if not document:
            raise PartitionNotFound
        wanted = partition_list(document)
        found = await self._use(request, lambda instance: instance.committed(wanted))
        offsets = [
            _partition_document(at) | {"offset": one.offset, "metadata": one.metadata}
            for at, one in found.items()
            if one is not None
        ]
        return answer(request, {"offsets": offsets})

    async def _use(self, request: Request, call: Callable[[ConsumerInstance], T]) -> T:
        """What Kafka refuses is told as Confluent's consumers tell it."""
        try:
            return await self._instances.use(_key(request), call)
        except CommitFailedError as error:
            raise KafkaFailure(f"Kafka error: {error}") from error
        except HttpError:
            raise
        except PenstockError as error:
            raise translate(error) or error from error

    def _base(self, request: Request) -> str:
        """Where this process is reached: as it was told, else as the client has reached it."""
        if self._config.advertised:
            return self._config.advertised
        scheme = request.scope.get("scheme", "http")
        if self._config.host_name:
            return f"{scheme}://{self._config.host_name}:{request.scope['server'][1]}"
        host = request.headers.get("host") or "{}:{}".format(*request.scope["server"])
        return f"{scheme}://{host}"


def _key(request: Request) -> InstanceId:
    return InstanceId(str(request.path_params["group"]), str(request.path_params["instance"]))


def _partition_document(one: TopicPartition) -> dict[str, Any]:
    return {"topic": one.topic, "partition": one.partition}


def _query(request: Request, name: str) -> int | None:
    """A number of the query; None: it is not given, or says that the default is meant."""
    text = request.query_params.get(name, "-1")
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 18:
        raise HttpError("HTTP 404 Not Found", status=404)
    return int(text) if int(text) > 0 else None
