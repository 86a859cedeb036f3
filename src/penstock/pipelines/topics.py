"""Topics that pipelines declare with a number of partitions are created when they are missing."""

from collections.abc import Iterable

from penstock.client.operations.topics import NewTopic, create_topics, list_topics
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import CommandError, TopicExists
from penstock.pipelines.declaration import Pipeline, Topic

_TIMEOUT_MS = 30_000


def declared_topics(pipelines: Iterable[Pipeline]) -> dict[str, Topic]:
    """Every topic of the pipelines once; the declaration with partitions wins."""
    found: dict[str, Topic] = {}
    for one in pipelines:
        for place in [*one.inputs.values(), *one.outputs]:
            if isinstance(place, Topic) and (place.partitions or place.name not in found):
                found[place.name] = place
        for topic in one.streams.values():
            if topic.dead_letter is not None:
                found.setdefault(topic.dead_letter, Topic(topic.dead_letter, partitions=1))
    return found


def create_missing(cluster: ClusterClient, pipelines: Iterable[Pipeline]) -> list[str]:
    """Create what is declared and missing; CommandError for an input nobody will create."""
    pipelines = list(pipelines)
    there = {listing.name for listing in list_topics(cluster)}
    created = []
    for name, topic in declared_topics(pipelines).items():
        if name in there or topic.partitions is None:
            continue
        new = NewTopic(name=name, partitions=topic.partitions, configs=topic.configs)
        try:
            create_topics(cluster, [new], timeout_ms=_TIMEOUT_MS)
        except TopicExists:
            continue  # Somebody was faster.
        created.append(name)
    _check_inputs(pipelines, there | set(created))
    return created


def _check_inputs(pipelines: Iterable[Pipeline], there: set[str]) -> None:
    for one in pipelines:
        for topic in one.inputs.values():
            if topic.name not in there:
                raise CommandError(
                    f"The pipeline {one.name} reads the topic {topic.name}, which does not exist. "
                    f"Create it, or declare it as Topic({topic.name!r}, partitions=...)."
                )
