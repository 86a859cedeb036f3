"""The world as consumer groups see it: topics, settings and the time.

One per shard, shared by its groups, so that what they have in common is worked out once.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.cluster.image.image import ClusterImage, TopicImage
from penstock.config.broker import BrokerConfig
from penstock.errors import InvalidRegularExpression
from penstock.groups.consumer.records import Resolved
from penstock.groups.consumer.settings import (
    Assignor,
    GroupSettings,
    MigrationPolicy,
    assignors,
    settings_of,
)
from penstock.groups.consumer.topics import TopicHashes, image_version
from penstock.groups.surroundings import GroupSurroundings

if TYPE_CHECKING:
    from penstock.groups.patterns.pattern import TopicPattern

_PATTERNS_MAX = 256  # Compiled ones that are kept.
_GROUP_CONFIGS = "groups"  # The kind of settings in the cluster's image.


class ClusterView:
    """What a group asks about anything but itself."""

    def __init__(self, around: GroupSurroundings) -> None:
        self.around = around
        self._hashes = TopicHashes()
        self._patterns: dict[str, TopicPattern] = {}
        self._selected: dict[str, frozenset[str]] = {}  # By pattern, of these names:
        self._names: Mapping[str, TopicImage] = {}

    @property
    def image(self) -> ClusterImage:
        return self.around.image()

    @property
    def config(self) -> BrokerConfig:
        return self.around.config()

    def now_ms(self) -> int:
        return self.around.clock.now_ms()

    def settings(self, group_id: str) -> GroupSettings:
        return settings_of(self.image.config(_GROUP_CONFIGS, group_id), self.config)

    def migration_policy(self) -> MigrationPolicy:
        return MigrationPolicy.of(self.config)

    def assignors(self) -> dict[str, Assignor]:
        return assignors(self.config)

    # Topics

    def metadata_hash(self, topics: Iterable[str]) -> int:
        return self._hashes.of_group(topics, self.image)

    def topic_ids(self, topics: Collection[str]) -> frozenset[bytes]:
        """Of those that exist."""
        known = self.image.topics
        return frozenset(known[name].topic_id for name in topics if name in known)

    def partition_counts(self, topics: Iterable[str]) -> dict[bytes, int]:
        known = [self.image.topics.get(name) for name in topics]
        return {topic.topic_id: len(topic.partitions) for topic in known if topic is not None}

    def topic_name(self, topic_id: bytes) -> str | None:
        return self.image.topic_names_by_id.get(topic_id)

    def topic_id(self, topic: str) -> bytes | None:
        found = self.image.topics.get(topic)
        return None if found is None else found.topic_id

    # Patterns

    def resolve(self, pattern: str) -> Resolved:
        """The topics that match now; raises InvalidRegularExpression."""
        image = self.image
        if image.topics is not self._names:
            if image.topics.keys() != self._names.keys():
                self._selected.clear()
            self._names = image.topics
        if pattern not in self._selected:
            self._selected[pattern] = self._compiled(pattern).select(image.topics)
        return Resolved(self._selected[pattern], image_version(image), self.now_ms())

    def resolve_again(self, pattern: str, before: Resolved) -> Resolved:
        """The same for a pattern that was taken once; with too many topics by now, none is new."""
        try:
            return self.resolve(pattern)
        except InvalidRegularExpression as error:
            self.around.report(f"A pattern was not looked up again: {error}")
            return before._replace(version=image_version(self.image), at_ms=self.now_ms())

    def _compiled(self, pattern: str) -> "TopicPattern":
        from penstock.groups.patterns.pattern import TopicPattern  # Few groups use them.

        found = self._patterns.get(pattern)
        if found is None:
            if len(self._patterns) >= _PATTERNS_MAX:
                self._patterns.clear()
                self._selected.clear()
            found = self._patterns[pattern] = TopicPattern(pattern)
        return found
