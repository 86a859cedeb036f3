"""A stage as the supervised session takes it, and what cleans up behind an application."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.queries.query import NewQuery
from penstock.streams.plan.nodes import StreamsTopology
from penstock.streams.running.purging import RepartitionPurge
from penstock.streams.running.settings import StreamsSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.queries.query import Query
    from penstock.streams.spark.stage_query import StageQuery

# A cluster that is away must not hold up the watching.
SHORT_TIMEOUTS = {"request.timeout.ms": "3000", "default.api.timeout.ms": "2000"}


def new_query(
    query: "StageQuery",
    *,
    ends: bool = False,
    restarts_max: int | None = None,
    before: Callable[[], None] = lambda: None,
) -> NewQuery:
    """A stage to be added to a session; `before` is done at every start."""

    def start(spark: "SparkSession") -> "Query":
        before()
        return query.start(spark)

    sinks = [node for node in query.work.topology.nodes if node.kind == "sink"]
    written = sorted({query.work.name(t) for node in sinks for t in node.topics})
    return NewQuery(
        name=query.name,
        topics=[*query.topics, *query.global_topics],
        output=", ".join(written) or "its stores",
        group=query.group,
        checkpoint=query.checkpoint,
        start=start,
        rows_are_sums=query.sums_where_it_reads,
        ends=ends,
        restarts_max=restarts_max,
    )


def new_purge(settings: StreamsSettings, topology: StreamsTopology) -> RepartitionPurge:
    """Cuts the repartition topics of an application off."""
    from penstock.client.wire.raw_cluster import cluster_for

    application_id, client = settings.application_id, settings.client
    return RepartitionPurge(
        application_id=application_id,
        topics=frozenset(f"{application_id}-{topic}" for topic in topology.internal_topics),
        connect=lambda: cluster_for({**client, **SHORT_TIMEOUTS}),
        every_s=settings.purge_every_ms / 1000,
    )
