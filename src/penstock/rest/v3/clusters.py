"""The routes of clusters and brokers: a proxy knows one cluster."""

from penstock.client.admin import Admin
from penstock.client.operations.brokers import ClusterDescription
from penstock.client.values import Node
from penstock.http.handlers import Request, Response, Route
from penstock.rest.proxy import Proxy
from penstock.rest.v3.asking import NotThere, base_of, links_of, number, segment
from penstock.rest.v3.bodies import answer
from penstock.rest.v3.links import Document, Links, collection, resource
from penstock.rest.v3.replicas import replicas_of_broker

_BROKERS = "/v3/clusters/{cluster:segment}/brokers"


class ClusterResources:
    """Handlers for one proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    def routes(self) -> list[Route]:
        return [
            Route("/v3/clusters", self._list, methods=["GET"]),
            Route("/v3/clusters/{cluster:segment}", self._get, methods=["GET"]),
            Route(_BROKERS, self._brokers, methods=["GET"]),
            Route(_BROKERS + "/{broker:segment}", self._broker, methods=["GET"]),
            Route(
                _BROKERS + "/{broker:segment}/partition-replicas", self._replicas, methods=["GET"]
            ),
        ]

    async def _list(self, request: Request) -> Response:
        described = await self._describe()
        base = base_of(self._proxy, request)
        links = Links(base=base, cluster_id=described.cluster_id or "")
        found = [cluster_document(links, described)]
        return answer(request, collection("KafkaClusterList", f"{base}/v3/clusters", found))

    async def _get(self, request: Request) -> Response:
        described = await self._describe()
        if segment(request, "cluster") != described.cluster_id:
            raise NotThere(f"Cluster {segment(request, 'cluster')} cannot be found.")
        base = base_of(self._proxy, request)
        links = Links(base=base, cluster_id=described.cluster_id)
        return answer(request, cluster_document(links, described))

    async def _brokers(self, request: Request) -> Response:
        links = await links_of(self._proxy, request)
        described = await self._describe()
        found = [broker_document(links, one.node) for one in described.brokers]
        return answer(request, collection("KafkaBrokerList", links.to("brokers"), found))

    async def _broker(self, request: Request) -> Response:
        links, broker_id = await links_of(self._proxy, request), number(request, "broker")
        for one in (await self._describe()).brokers:
            if one.node.id == broker_id:
                return answer(request, broker_document(links, one.node))
        raise NotThere(f"Broker {broker_id} cannot be found.")

    async def _replicas(self, request: Request) -> Response:
        links, broker_id = await links_of(self._proxy, request), number(request, "broker")
        found = await self._proxy.brokers.ask(
            lambda admin: replicas_of_broker(admin, links, broker_id)
        )
        at = links.to("brokers", broker_id, "partition-replicas")
        return answer(request, collection("KafkaReplicaList", at, found))

    async def _describe(self) -> ClusterDescription:
        return await self._proxy.brokers.ask(_describe)


def _describe(admin: Admin) -> ClusterDescription:
    return admin.describe_cluster()


def cluster_document(links: Links, described: ClusterDescription) -> Document:
    """A cluster, with where everything in it is."""
    controller = described.controller
    fields: Document = {"cluster_id": links.cluster_id}
    if controller is not None:
        fields["controller"] = links.related("brokers", controller.id)
    fields |= {
        "acls": links.related("acls"),
        "brokers": links.related("brokers"),
        "broker_configs": links.related("broker-configs"),
        "consumer_groups": links.related("consumer-groups"),
        "topics": links.related("topics"),
        "partition_reassignments": links.related("topics", "-", "partitions", "-", "reassignment"),
    }
    return resource("KafkaCluster", links.to(), links.name(), fields)


def broker_document(links: Links, node: Node) -> Document:
    """A broker."""
    fields = {
        "cluster_id": links.cluster_id,
        "broker_id": node.id,
        "host": node.host,
        "port": node.port,
        "rack": node.rack,
        "configs": links.related("brokers", node.id, "configs"),
        "partition_replicas": links.related("brokers", node.id, "partition-replicas"),
    }
    return resource("KafkaBroker", links.to("brokers", node.id), links.name(broker=node.id), fields)
