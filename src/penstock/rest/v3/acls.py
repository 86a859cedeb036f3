"""The routes of access rules: search, create one or many, delete those that match.

The rules are the brokers'. Brokers without an authorizer refuse, and that is passed on.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, TypeVar

from penstock.client.operations.acls import create_acls, delete_acls, describe_acls
from penstock.http.handlers import Request, Response, Route
from penstock.rest.errors import BadRequest
from penstock.rest.proxy import Proxy
from penstock.rest.v3.asking import links_of, objects, text_of
from penstock.rest.v3.bodies import answer, read_document
from penstock.rest.v3.links import Document, Links, collection, resource, with_query
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    EntryFilter,
    PatternType,
    ResourceFilter,
    ResourcePattern,
)

W = TypeVar("W", bound=IntEnum)

_ACLS = "/v3/clusters/{cluster:segment}/acls"
_NEEDED_TO_DELETE = ("resource_type", "pattern_type", "operation", "permission")


class RuleResources:
    """Handlers for one proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._ask = proxy.brokers.ask

    def routes(self) -> list[Route]:
        return [
            Route(_ACLS, self._search, methods=["GET"]),
            Route(_ACLS, self._create, methods=["POST"]),
            Route(_ACLS, self._delete, methods=["DELETE"]),
            Route(f"{_ACLS}:batch", self._create_many, methods=["POST"]),
        ]

    async def _search(self, request: Request) -> Response:
        links = await links_of(self._proxy, request)
        asked = dict(request.query_params)
        wanted = rule_filter(asked)
        found = await self._ask(lambda admin: describe_acls(admin.cluster, wanted))
        data = [rule_document(links, one) for one in found]
        at = with_query(links.to("acls"), asked)
        return answer(request, collection("KafkaAclList", at, data))

    async def _create(self, request: Request) -> Response:
        links = await links_of(self._proxy, request)
        new = new_rule(await read_document(request))
        await self._ask(lambda admin: create_acls(admin.cluster, [new]))
        location = rule_document(links, new)["metadata"]["self"]
        return Response(status_code=201, headers={"location": location})

    async def _create_many(self, request: Request) -> Response:
        await links_of(self._proxy, request)
        new = [new_rule(one) for one in objects(await read_document(request), "data")]
        if not new:
            raise BadRequest("data is missing or empty.")
        await self._ask(lambda admin: create_acls(admin.cluster, new))
        return Response(status_code=201)

    async def _delete(self, request: Request) -> Response:
        links = await links_of(self._proxy, request)
        asked = dict(request.query_params)
        missing = [name for name in _NEEDED_TO_DELETE if not asked.get(name)]
        if missing:
            raise BadRequest(f"{missing[0]} is missing: rules are not deleted by an open search.")
        wanted = rule_filter(asked)
        gone = await self._ask(lambda admin: delete_acls(admin.cluster, [wanted]))
        return answer(request, {"data": [rule_document(links, one) for one in gone]})


def rule_filter(asked: Mapping[str, str]) -> AclBindingFilter:
    """The rules that parameters describe; what is not said may be anything."""
    return AclBindingFilter(
        resource=ResourceFilter(
            type=_word(AclResourceType, "resource_type", asked.get("resource_type", "ANY")),
            name=asked.get("resource_name"),
            pattern=_word(PatternType, "pattern_type", asked.get("pattern_type", "ANY")),
        ),
        entry=EntryFilter(
            principal=asked.get("principal"),
            host=asked.get("host"),
            operation=_word(AclOperation, "operation", asked.get("operation", "ANY")),
            permission=_word(AclPermission, "permission", asked.get("permission", "ANY")),
        ),
    )


def new_rule(body: Mapping[str, Any]) -> AclBinding:
    """The rule that a body describes."""
    return AclBinding(
        ResourcePattern(
            _word(AclResourceType, "resource_type", text_of(body, "resource_type")),
            text_of(body, "resource_name", default="kafka-cluster"),
            _word(PatternType, "pattern_type", text_of(body, "pattern_type")),
        ),
        AccessControlEntry(
            text_of(body, "principal"),
            text_of(body, "host"),
            _word(AclOperation, "operation", text_of(body, "operation")),
            _word(AclPermission, "permission", text_of(body, "permission")),
        ),
    )


def rule_document(links: Links, rule: AclBinding) -> Document:
    """A rule; its address is the search that finds it."""
    words = {
        "resource_type": rule.resource.type.name,
        "resource_name": rule.resource.name,
        "pattern_type": rule.resource.pattern.name,
        "principal": rule.entry.principal,
        "host": rule.entry.host,
        "operation": rule.entry.operation.name,
        "permission": rule.entry.permission.name,
    }
    at = with_query(links.to("acls"), words)
    return resource("KafkaAcl", at, None, {"cluster_id": links.cluster_id, **words})


def _word(words: type[W], name: str, text: str) -> W:
    if text.upper() not in words.__members__:
        raise BadRequest(f"{name} {text} is not one of {', '.join(words.__members__)}.")
    return words[text.upper()]
