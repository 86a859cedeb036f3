"""The routes of consumer groups: who is in them, what each reads, how far behind they are."""

import re

from penstock.client.operations.groups import MemberDescription
from penstock.client.values import TopicPartition
from penstock.http.handlers import Request, Response, Route
from penstock.rest.proxy import Proxy
from penstock.rest.v3.asking import NotThere, links_of, number, only, segment
from penstock.rest.v3.bodies import answer
from penstock.rest.v3.group_lags import PartitionLag, find_lags, group_lags
from penstock.rest.v3.group_questions import FoundGroup, find_group, find_groups
from penstock.rest.v3.links import Document, Links, collection, resource

_GROUPS = "/v3/clusters/{cluster:segment}/consumer-groups"
_GROUP = _GROUPS + "/{group:segment}"
_MEMBER = _GROUP + "/consumers/{consumer:segment}"
_OF_PARTITION = "/{topic:segment}/partitions/{partition:segment}"


class GroupResources:
    """Handlers for one proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._ask = proxy.brokers.ask

    def routes(self) -> list[Route]:
        return [
            Route(_GROUPS, self._list, methods=["GET"]),
            Route(_GROUP, self._get, methods=["GET"]),
            Route(_GROUP + "/consumers", self._consumers, methods=["GET"]),
            Route(_MEMBER, self._consumer, methods=["GET"]),
            Route(_MEMBER + "/assignments", self._assignments, methods=["GET"]),
            Route(_MEMBER + "/assignments" + _OF_PARTITION, self._assignment, methods=["GET"]),
            Route(_GROUP + "/lag-summary", self._summary, methods=["GET"]),
            Route(_GROUP + "/lags", self._lags, methods=["GET"]),
            Route(_GROUP + "/lags" + _OF_PARTITION, self._lag, methods=["GET"]),
        ]

    async def _list(self, request: Request) -> Response:
        links = await links_of(self._proxy, request)
        found = [group_document(links, one) for one in await self._ask(find_groups)]
        return answer(
            request, collection("KafkaConsumerGroupList", links.to("consumer-groups"), found)
        )

    async def _get(self, request: Request) -> Response:
        links, group = await self._group(request)
        return answer(request, group_document(links, group))

    async def _consumers(self, request: Request) -> Response:
        links, group = await self._group(request)
        found = [member_document(links, group.group_id, one) for one in group.members]
        at = links.to("consumer-groups", group.group_id, "consumers")
        return answer(request, collection("KafkaConsumerList", at, found))

    async def _consumer(self, request: Request) -> Response:
        links, group = await self._group(request)
        member = _member(group, segment(request, "consumer"))
        return answer(request, member_document(links, group.group_id, member))

    async def _assignments(self, request: Request) -> Response:
        links, group = await self._group(request)
        member = _member(group, segment(request, "consumer"))
        found = [
            assignment_document(links, group.group_id, member.member_id, one)
            for one in sorted(member.assignment)
        ]
        place = ("consumer-groups", group.group_id, "consumers", member.member_id, "assignments")
        return answer(request, collection("KafkaConsumerAssignmentList", links.to(*place), found))

    async def _assignment(self, request: Request) -> Response:
        links, group = await self._group(request)
        member = _member(group, segment(request, "consumer"))
        at = _partition(request)
        if at not in member.assignment:
            raise NotThere(f"Assignment of partition {at} cannot be found.")
        found = assignment_document(links, group.group_id, member.member_id, at)
        return answer(request, found)

    async def _summary(self, request: Request) -> Response:
        links, group_id, lags = await self._lags_of(request)
        found = summary_document(links, group_id, lags) if lags else None
        return answer(request, only(found, f"Lag summary of consumer group {group_id}"))

    async def _lags(self, request: Request) -> Response:
        links, group_id, lags = await self._lags_of(request)
        found = [lag_document(links, group_id, one) for one in lags]
        at = links.to("consumer-groups", group_id, "lags")
        return answer(request, collection("KafkaConsumerLagList", at, found))

    async def _lag(self, request: Request) -> Response:
        links, group_id, lags = await self._lags_of(request)
        at = _partition(request)
        found = next((lag_document(links, group_id, one) for one in lags if one.at == at), None)
        return answer(request, only(found, f"Lag of partition {at}"))

    async def _group(self, request: Request) -> tuple[Links, FoundGroup]:
        links, group_id = await links_of(self._proxy, request), segment(request, "group")
        found = await self._ask(lambda admin: find_group(admin, group_id))
        if found is None:
            raise NotThere(f"Consumer Group {group_id} cannot be found.")
        return links, found

    async def _lags_of(self, request: Request) -> tuple[Links, str, list[PartitionLag]]:
        links, group = await self._group(request)
        known = await self._ask(lambda admin: find_lags(admin, group.group_id))
        return links, group.group_id, group_lags(known, group.members)


def group_document(links: Links, group: FoundGroup) -> Document:
    """A group."""
    place = ("consumer-groups", group.group_id)
    fields = {
        "cluster_id": links.cluster_id,
        "consumer_group_id": group.group_id,
        "is_simple": group.is_simple,
        "partition_assignor": group.assignor,
        "state": state_word(group.state),
        "type": group.type.upper(),
        "coordinator": links.related("brokers", group.coordinator_id),
        "consumers": links.related(*place, "consumers"),
        "lag_summary": links.related(*place, "lag-summary"),
    }
    name = links.name(consumer_group=group.group_id)
    return resource("KafkaConsumerGroup", links.to(*place), name, fields)


def state_word(state: str) -> str:
    """PREPARING_REBALANCE for PreparingRebalance."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", state).upper() or "UNKNOWN"


def member_document(links: Links, group_id: str, member: MemberDescription) -> Document:
    """A consumer of a group."""
    place = ("consumer-groups", group_id, "consumers", member.member_id)
    fields = {
        "cluster_id": links.cluster_id,
        "consumer_group_id": group_id,
        "consumer_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "assignments": links.related(*place, "assignments"),
    }
    name = links.name(consumer_group=group_id, consumer=member.member_id)
    return resource("KafkaConsumer", links.to(*place), name, fields)


def assignment_document(
    links: Links, group_id: str, member_id: str, at: TopicPartition
) -> Document:
    """A partition that a consumer reads."""
    group = ("consumer-groups", group_id)
    of_partition = (at.topic, "partitions", at.partition)
    fields = {
        "cluster_id": links.cluster_id,
        "consumer_group_id": group_id,
        "consumer_id": member_id,
        "topic_name": at.topic,
        "partition_id": at.partition,
        "partition": links.related("topics", *of_partition),
        "lag": links.related(*group, "lags", *of_partition),
    }
    own = links.to(*group, "consumers", member_id, "assignments", *of_partition)
    name = links.name(
        consumer_group=group_id, consumer=member_id, assignment=at.topic, partition=at.partition
    )
    return resource("KafkaConsumerAssignment", own, name, fields)


def lag_document(links: Links, group_id: str, lag: PartitionLag) -> Document:
    """How far a group is behind in one partition."""
    at = lag.at
    fields = {
        "cluster_id": links.cluster_id,
        "consumer_group_id": group_id,
        "topic_name": at.topic,
        "partition_id": at.partition,
        "consumer_id": lag.consumer_id,
        "instance_id": lag.instance_id,
        "client_id": lag.client_id,
        "current_offset": lag.current_offset,
        "log_end_offset": lag.end_offset,
        "lag": lag.lag,
    }
    own = links.to("consumer-groups", group_id, "lags", at.topic, "partitions", at.partition)
    name = links.name(consumer_group=group_id, lag=at.topic, partition=at.partition)
    return resource("KafkaConsumerLag", own, name, fields)


def summary_document(links: Links, group_id: str, lags: list[PartitionLag]) -> Document:
    """The worst partition of a group, and the lag of all."""
    worst = max(lags, key=lambda one: one.lag)
    group = ("consumer-groups", group_id)
    reader = (*group, "consumers", *filter(None, [worst.consumer_id]))  # Maybe nobody reads now.
    fields = {
        "cluster_id": links.cluster_id,
        "consumer_group_id": group_id,
        "max_lag_consumer_id": worst.consumer_id,
        "max_lag_instance_id": worst.instance_id,
        "max_lag_client_id": worst.client_id,
        "max_lag_topic_name": worst.at.topic,
        "max_lag_partition_id": worst.at.partition,
        "max_lag": worst.lag,
        "total_lag": sum(one.lag for one in lags),
        "max_lag_consumer": links.related(*reader),
        "max_lag_partition": links.related(
            "topics", worst.at.topic, "partitions", worst.at.partition
        ),
    }
    name = f"{links.name(consumer_group=group_id)}/lag-summary"
    own = links.to(*group, "lag-summary")
    return resource("KafkaConsumerGroupLagSummary", own, name, fields)


def _member(group: FoundGroup, member_id: str) -> MemberDescription:
    for member in group.members:
        if member.member_id == member_id:
            return member
    raise NotThere(f"Consumer {member_id} cannot be found.")


def _partition(request: Request) -> TopicPartition:
    return TopicPartition(segment(request, "topic"), number(request, "partition"))
