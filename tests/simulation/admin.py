"""An operator in the simulation: topics made, partitions moved, settings changed, by request."""

import asyncio
from collections.abc import Mapping

from tests.simulation.clients import Client
from tests.simulation.history import Place

from penstock.errors import ErrorCode
from penstock.net.peers import PeerUnreachable
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
from penstock.protocol.messages.elect_leaders import ElectLeadersRequest
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
        self._places = places
        self._broker_ids = broker_ids

    async def create(
        self, name: str, *, partitions: int, replicas: int, settings: Mapping[str, str]
    ) -> None:
        """Until it is there."""
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
                self._places += [(name, number) for number in range(partitions)]
                return
            self._client.history.trace.note("create", name, code.name)
            await asyncio.sleep(0.2)

    async def elect_preferred(self) -> None:
        await self._try(ElectLeadersRequest(election_type=0, topic_partitions=None), version=2)

    async def reassign_one(self) -> None:
        """Three brokers of all, in any order; sometimes the move under way is taken back."""
        rng = self._client.rng
        topic, number = rng.choice(self._places)
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

    async def change_min_isr(self) -> None:
        value = self._client.rng.choice(("1", "2", "2", "3"))
        self._client.history.trace.note("min.insync.replicas", value)
        await self._try(
            IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=_TOPIC,
                        resource_name="safe",
                        configs=[
                            AlterableConfig(
                                name="min.insync.replicas", config_operation=_SET, value=value
                            )
                        ],
                    )
                ]
            ),
            version=1,
        )

    async def _try(self, request: object, *, version: int) -> None:
        try:
            await self._client.ask_any(request, version=version)  # type: ignore[arg-type]
        except PeerUnreachable:
            return  # An operator tries again another time.
