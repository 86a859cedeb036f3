"""The topics of a flow: which are copied, and that the target has them, as large and as set.

Topics and partitions that are missing on the target are made, settings follow the source's, and so
do access rules, but for the right to write: on the target the mirror is the one who writes.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

from penstock.client.operations.acls import create_acls, describe_acls
from penstock.client.operations.configs import (
    ConfigChange,
    ConfigResource,
    ConfigSource,
    Operation,
    ResourceType,
    alter_configs,
    describe_configs,
)
from penstock.client.operations.topics import (
    NewPartitions,
    NewTopic,
    create_partitions,
    create_topics,
)
from penstock.client.wire.cluster import ClusterClient
from penstock.errors import (
    PenstockError,
    SecurityDisabled,
    TopicExists,
    UnsupportedVersion,
)
from penstock.mirror.config import Flow
from penstock.mirror.policies import (
    checkpoints_topic,
    is_heartbeats,
    is_internal,
    runs_topic,
    syncs_topic,
    would_circle,
)
from penstock.records.topic_partition import TopicPartition
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    ResourceFilter,
)

_LOG = logging.getLogger("penstock.mirror")
_TIMEOUT_MS = 60_000
_COMPACTED = {"cleanup.policy": "compact"}
_RULES_OF_TOPICS = AclBindingFilter(resource=ResourceFilter(type=AclResourceType.TOPIC))
_REPLICAS, _INTERNAL_REPLICAS = 2, 3  # MirrorMaker 2's own, where nothing is said.


def is_copied(flow: Flow, topic: str) -> bool:
    """Whether a flow takes a topic of its source."""
    is_chosen = flow.topics.takes(topic) or (
        flow.takes_heartbeats and is_heartbeats(flow.policy, topic)
    )
    return (
        is_chosen and not is_internal(topic) and not would_circle(flow.policy, topic, flow.target)
    )


class TopicSync:
    """Looks at both clusters of a flow and brings the target up to the source."""

    def __init__(self, flow: Flow, source: ClusterClient, target: ClusterClient) -> None:
        self._flow = flow
        self._source = source
        self._target = target

    def prepare(self) -> None:
        """Make the mirror's own topics, where they are not there."""
        flow, separator = self._flow, self._flow.policy.separator
        self._make_own(self._target, runs_topic(flow.source, separator))
        if flow.emit_checkpoints:
            self._make_own(self._target, checkpoints_topic(flow.source, separator))
        if flow.emit_offset_syncs:
            on_source = flow.are_syncs_on_source
            cluster = self._source if on_source else self._target
            other = flow.target if on_source else flow.source
            self._make_own(cluster, syncs_topic(other, separator))

    def refresh(self) -> dict[TopicPartition, TopicPartition]:
        """The partitions to copy and where to, all of which the target has by now."""
        sizes = {
            name: size
            for name, size in sizes_of(self._source).items()
            if is_copied(self._flow, name)
        }
        there = sizes_of(self._target)
        names = {name: self._flow.policy.remote(self._flow.source, name) for name in sizes}
        missing = [name for name in sizes if names[name] not in there]
        self._create(missing, sizes, names)
        self._grow({names[name]: size for name, size in sizes.items()}, there)
        if self._flow.sync_topic_configs:
            self._sync_configs({name: names[name] for name in sizes if name not in missing})
        if self._flow.sync_topic_acls:
            self._sync_rules(names)
        return {
            TopicPartition(name, index): TopicPartition(names[name], index)
            for name, size in sorted(sizes.items())
            for index in range(size)
        }

    def _create(self, missing: Sequence[str], sizes: dict[str, int], names: dict[str, str]) -> None:
        configs = self._own_configs(self._source, missing)
        factor = chosen_replicas(self._flow.replication_factor, _REPLICAS, self._target)
        for name in missing:
            make_topic(
                self._target,
                NewTopic(
                    name=names[name],
                    partitions=sizes[name],
                    replication_factor=factor,
                    configs=configs.get(name, {}),
                ),
            )

    def _grow(self, wanted: dict[str, int], there: dict[str, int]) -> None:
        more = {
            name: NewPartitions(total_count=size)
            for name, size in wanted.items()
            if name in there and there[name] < size
        }
        if more:
            create_partitions(self._target, more, timeout_ms=_TIMEOUT_MS)

    def _sync_configs(self, names: dict[str, str]) -> None:
        here = self._own_configs(self._source, list(names))
        there = self._own_configs(self._target, list(names.values()))
        changes: dict[ConfigResource, list[ConfigChange]] = {}
        for name, remote in names.items():
            found = config_changes(here.get(name, {}), there.get(remote, {}))
            if found:
                changes[ConfigResource(ResourceType.TOPIC, remote)] = found
        if changes:
            alter_configs(self._target, changes)

    def _own_configs(
        self, cluster: ClusterClient, topics: Sequence[str]
    ) -> dict[str, dict[str, str]]:
        """The settings that topics have of their own and that may be copied."""
        if not topics:
            return {}
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
        return {
            resource.name: {
                entry.name: entry.value
                for entry in entries
                if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
                and entry.value is not None
                and not self._flow.configs_excluded.takes(entry.name)
            }
            for resource, entries in describe_configs(cluster, resources, synonyms=False).items()
        }

    def _sync_rules(self, names: dict[str, str]) -> None:
        try:
            rules = describe_acls(self._source, _RULES_OF_TOPICS)
            wanted = copied_rules(rules, names)
            known = describe_acls(self._target, _RULES_OF_TOPICS)
            new = [rule for rule in wanted if rule not in known]
            if new:
                create_acls(self._target, new)
        except (SecurityDisabled, UnsupportedVersion):
            return  # One of the two has no access rules at all.

    def _make_own(self, cluster: ClusterClient, name: str) -> None:
        factor = chosen_replicas(
            self._flow.internal_replication_factor, _INTERNAL_REPLICAS, cluster
        )
        make_own_topic(cluster, name, factor)


def make_own_topic(cluster: ClusterClient, name: str, factor: int) -> None:
    """A compacted topic of one partition, where it is not there."""
    if name not in sizes_of(cluster):
        new = NewTopic(name=name, partitions=1, replication_factor=factor, configs=_COMPACTED)
        make_topic(cluster, new)


def make_topic(cluster: ClusterClient, new: NewTopic) -> None:
    """Create a topic; somebody else may just have done so."""
    try:
        create_topics(cluster, [new], timeout_ms=_TIMEOUT_MS, validate_only=False)
    except TopicExists:
        return
    except PenstockError as error:
        raise type(error)(f"Topic {new.name} could not be created: {error}") from error
    _LOG.info("created topic %s with %d partitions", new.name, new.partitions)


def chosen_replicas(given: int | None, default: int, cluster: ClusterClient) -> int:
    """What was said, or as many as usual, if the cluster has so many brokers."""
    if given is not None:
        return given
    return min(default, len(cluster.metadata([]).brokers))


def sizes_of(cluster: ClusterClient) -> dict[str, int]:
    """All topics with their numbers of partitions."""
    topics = cluster.metadata().topics
    return {one.name or "": len(one.partitions) for one in topics if not one.error_code}


def config_changes(here: dict[str, str], there: dict[str, str]) -> list[ConfigChange]:
    """What makes the settings of a topic there those of here."""
    changes = [
        ConfigChange(name=name, value=value)
        for name, value in here.items()
        if there.get(name) != value
    ]
    gone = [
        ConfigChange(name=name, operation=Operation.DELETE) for name in there if name not in here
    ]
    return changes + gone


def copied_rules(rules: Sequence[AclBinding], names: dict[str, str]) -> list[AclBinding]:
    """Rules of topics as they hold on the target: who may do anything may read there."""
    found = []
    for rule in rules:
        entry = rule.entry
        if rule.resource.pattern is not PatternType.LITERAL or rule.resource.name not in names:
            continue
        if entry.permission is AclPermission.ALLOW and entry.operation is AclOperation.WRITE:
            continue
        if entry.permission is AclPermission.ALLOW and entry.operation is AclOperation.ALL:
            entry = AccessControlEntry(
                entry.principal, entry.host, AclOperation.READ, entry.permission
            )
        resource = replace(rule.resource, name=names[rule.resource.name])
        found.append(AclBinding(resource, entry))
    return found
