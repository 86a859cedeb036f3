"""What the controller knows: the image it publishes and the node versions behind it.

Kept in memory only, filled from the store. It also remembers the latest changes, so that a broker
that is a little behind is sent those instead of everything.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

from penstock.cluster.image.image import (
    CLUSTER_WIDE,
    ClusterImage,
    ConfigKey,
    ImageDelta,
    sharing,
)
from penstock.cluster.image.load import (
    Fence,
    LoadedAcls,
    LoadedBrokers,
    LoadedConfigs,
    LoadedTokens,
    LoadedTopics,
)
from penstock.security.acls.rules import ResourcePattern

DELTAS_KEPT = 1000
MIN_ISR = "min.insync.replicas"

_log = logging.getLogger("penstock.cluster.controller")

ImageCallback = Callable[[ClusterImage], None]


class ImageLedger:
    """The image, in the order of its changes."""

    def __init__(
        self, image: ClusterImage, *, min_insync_replicas: int, known: ClusterImage | None = None
    ) -> None:
        self.image = image
        self._known = known  # What the broker knew before this; None: nothing.
        self.topic_versions: dict[str, int] = {}
        self.config_versions: dict[ConfigKey, int] = {}
        self.acl_versions: dict[ResourcePattern, int] = {}
        self.token_versions: dict[str, int] = {}
        self.fences: dict[int, Fence] = {}
        self.unclean_elections = 0  # Partitions given a leader that may lack records.
        self.min_insync_replicas = min_insync_replicas  # This broker's own, until one is stored.
        self._deltas: deque[ImageDelta] = deque(maxlen=DELTAS_KEPT)
        self._subscribers: list[ImageCallback] = []
        # Waits until this broker has applied what was published; others are not waited for.
        self.settled: Callable[[], Awaitable[None]] = _at_once

    def fill(
        self,
        topics: LoadedTopics,
        configs: LoadedConfigs,
        brokers: LoadedBrokers,
        acls: LoadedAcls,
        tokens: LoadedTokens,
    ) -> None:
        """Take what the store has; nobody has subscribed yet."""
        self.topic_versions.update(topics.versions)
        self.config_versions.update(configs.versions)
        self.fences.update(brokers.fences)
        self.acl_versions.update(acls.versions)
        self.token_versions.update(tokens.versions)
        self.publish(
            ImageDelta(
                brokers=brokers.brokers,
                topics=topics.topics,
                configs=configs.configs,
                acls=acls.acls,
                tokens=tokens.tokens,
            )
        )
        if self._known is not None:
            self.image, self._known = sharing(self._known, self.image), None

    def publish(self, delta: ImageDelta) -> None:
        """The store has accepted this: let everybody know, in order."""
        if not delta:
            return
        self.image = self.image.apply(delta)
        self._deltas.append(delta)
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(self.image)
            except Exception:  # noqa: BLE001  One that fails must not silence the others.
                _log.exception("A part of this broker could not follow the metadata")

    def subscribe(self, callback: ImageCallback) -> Callable[[], None]:
        """Call back with every image from now on; returns how to stop that."""
        self._subscribers.append(callback)

        def stop() -> None:
            if (
                callback in self._subscribers
            ):  # It may be called twice, by the controller and by the subscriber.
                self._subscribers.remove(callback)

        return stop

    def deltas_since(self, controller_epoch: int, seq: int) -> list[ImageDelta] | None:
        """What leads from that image to the current one; None: too long ago, take it whole."""
        count = self.image.seq - seq
        if controller_epoch != self.image.controller_epoch or not 0 <= count <= len(self._deltas):
            return None
        return list(self._deltas)[len(self._deltas) - count :]

    def min_isr(self, topic: str, replica_count: int, own: Mapping[str, str] | None = None) -> int:
        """How many replicas must be in sync; `own` are settings the topic will have."""
        config = self.image.config("topics", topic) if own is None else own
        for_all = self.image.config("brokers", CLUSTER_WIDE)
        wanted = _count(config.get(MIN_ISR)) or _count(for_all.get(MIN_ISR))
        return max(1, min(wanted or self.min_insync_replicas, replica_count))


async def _at_once() -> None:
    pass


def _count(text: str | None) -> int | None:
    """None for what is not a number: somebody wrote past the checks, straight into the store."""
    return int(text) if text is not None and text.isdecimal() else None
