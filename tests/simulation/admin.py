"""An operator in the simulation: topics made, partitions moved, settings changed, by request."""

import asyncio
import contextlib
from collections.abc import Mapping

from tests.simulation.clients import Client
from tests.simulation.history import Place

from penstock.errors import ErrorCode
from penstock.net.peers import PeerUnreachable
from penstock.protocol.apis import Request
from penstock.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest
from penstock.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from penstock.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

_TOPIC = 2  # A resource type.
_SET = 0


class Admin:
    def __init__(self, client: Client, places: list[Place], broker_ids: list[int]) -> None:
        self._client = client
        self.places = places
        self._broker_ids = broker_ids

    async def create(
        self,
        name: str,
        *,
        partitions: int,
        replicas: int,
        settings: Mapping[str, str],
        is_listed: bool = True,
    ) -> None:
        """Until it is there; what is listed gets clients, and is moved and trimmed."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            configs=[CreatableTopicConfig(name=n, value=v) for n, v in settings.items()],
        )
        while True:
            try:
                answer = await self._client.ask_any(
                    CreateTopicsRequest(topics=[topic], timeout_ms=10_000), version=5
                )
            except PeerUnreachable:
                await asyncio.sleep(0.2)
                continue
            code = ErrorCode(answer.topics[0].error_code)
            if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                if is_listed:
                    self.places += [(name, number) for number in range(partitions)]
                return
            self._client.history.trace.note("create", name, code.name)
            await asyncio.sleep(0.2)

    async def delete(self, name: str) -> None:
        """Until it is gone."""
        while True:
            try:
                answer = await self._client.ask_any(
                    DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), version=5
                )
            except PeerUnreachable:
                await asyncio.sleep(0.2)
                continue
            code = ErrorCode(answer.responses[0].error_code)
            self._client.history.trace.note("delete topic", name, code.name)
            if code in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                return
            await asyncio.sleep(0.2)

    async def delete_records(self, place: Place, offset: int) -> None:
        """Once; whether it is done or not, from then on it may be."""
        topic, number = place
        history = self._client.history
        history.trimmed[place] = max(history.trimmed.get(place, 0), offset)
        history.trace.note("trim", *place, offset)
        wanted = DeleteRecordsPartition(partition_index=number, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=2000
        )
        _, leader = await self._client.leader(place)
        try:
            answer = await self._client.ask(leader, request, version=2)
        except PeerUnreachable:
            self._client.forget_leader(place)
            return
        told = answer.topics[0].partitions[0]
        if told.error_code:
            self._client.forget_leader(place)
        elif told.low_watermark < offset:
            history.violate(f"I31 {place} was trimmed to {offset} and begins at {told}")

    async def elect_uncleanly(self, topic: str) -> None:
        if (topic, 0) in self.places:
            self._client.history.trace.note("elect uncleanly", topic)
            wanted = TopicPartitions(topic=topic, partitions=[0])
            request = ElectLeadersRequest(election_type=1, topic_partitions=[wanted])
            await self._try(request, version=2)

    async def elect_preferred(self) -> None:
        await self._try(ElectLeadersRequest(election_type=0, topic_partitions=None), version=2)

    async def reassign_one(self) -> None:
        """Three brokers of all, in any order; sometimes the move under way is taken back."""
        rng = self._client.rng
        topic, number = rng.choice(self.places)
        replicas = None
        if rng.random() < 0.8:
            replicas = rng.sample(self._broker_ids, 3)
        wanted = ReassignablePartition(partition_index=number, replicas=replicas)
        self._client.history.trace.note("reassign", topic, number, replicas)
        await self._try(
            AlterPartitionReassignmentsRequest(
                topics=[ReassignableTopic(name=topic, partitions=[wanted])]
            ),
            version=0,
        )

    async def change_min_isr(self, value: str) -> None:
        self._client.history.trace.note("min.insync.replicas", value)
        await self._try(_set_config("safe", "min.insync.replicas", value), version=1)

    async def touch(self, broker_id: int) -> None:
        """Something for the controller to write, asked of a certain broker."""
        rng = self._client.rng
        request: Request = ElectLeadersRequest(election_type=0, topic_partitions=None)
        version = 2
        if rng.random() < 0.7:
            value = rng.choice(("604800000", "-1", "86400000"))
            topic, _ = rng.choice(self.places)
            request, version = _set_config(topic, "retention.ms", value), 1
        with contextlib.suppress(PeerUnreachable):
            await self._client.ask(broker_id, request, version=version)

    async def _try(self, request: object, *, version: int) -> None:
        try:
            await self._client.ask_any(request, version=version)  # type: ignore[arg-type]
        except PeerUnreachable:
            return  # An operator tries again another time.


def _set_config(topic: str, name: str, value: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=name, config_operation=_SET, value=value)
    return IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(resource_type=_TOPIC, resource_name=topic, configs=[config])
        ]
    )
