"""What a broker counts: plain integers that the hot path adds to, and gauges asked for on demand.

A counter here is an attribute, so counting costs one addition and no call. Names, labels and
text belong to `prometheus.py`, which reads these values when somebody scrapes.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from penstock.telemetry.histogram import Histogram

WINDOW_S: Final = 60.0

log = logging.getLogger("kafka.metrics.KafkaMetrics")


class TopicMetrics:
    """What came in and went out of one topic on this broker."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_produce_requests",
        "fetch_conversions",
        "fetch_requests",
        "invalid_messages",
        "messages_in",
        "produce_conversions",
        "produce_requests",
        "replication_bytes_in",
        "replication_bytes_out",
        "validation_checked",
        "validation_dead_letters",
        "validation_refused",
        "validation_seconds",
        "validation_unchecked",
        "validation_warned",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.produce_requests = 0
        self.fetch_requests = 0
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0
        self.produce_conversions = 0  # Batches taken in an old format and converted up.
        self.fetch_conversions = 0  # Batches converted down for an old consumer.
        self.invalid_messages = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        # Of a topic that checks schemas: records, and the time that it took.
        self.validation_checked = 0
        self.validation_refused = 0
        self.validation_dead_letters = 0
        self.validation_warned = 0  # Appended though they fail.
        self.validation_unchecked = 0  # Appended while the registry was away.
        self.validation_seconds = 0.0

    def add(self, other: "TopicMetrics") -> None:
        """Add another topic's counts to these."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class RequestMetrics:
    """How often an API was asked for, how it went, how long it took."""

    __slots__ = ("errors", "local_time", "observe", "request_bytes", "response_bytes", "total_time")

    def __init__(self) -> None:
        self.errors: dict[str, int] = {}  # By the name of the error code.
        self.request_bytes = 0
        self.response_bytes = 0
        self.total_time = (
            Histogram()
        )  # From a request's last byte to the handing over of its answer.
        self.local_time = Histogram()  # The part of it that was work and not waiting.
        # Counts one request that took so many seconds in all.
        self.observe: Callable[[float], None] = self.total_time.observe

    @property
    def count(self) -> int:
        """Requests answered."""
        return self.total_time.count

    def fail(self, error: str) -> None:
        """Count an error code that was answered."""
        self.errors[error] = self.errors.get(error, 0) + 1


class ListenerMetrics:
    """Connections of one listener."""

    __slots__ = ("closed", "closed_idle", "opened", "refused")

    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0
        self.closed_idle = 0  # Among the closed: silent for connections.max.idle.ms.
        self.refused = 0  # Over a limit on connections; never counted as opened.

    @property
    def active(self) -> int:
        """How many are open now."""
        return self.opened - self.closed


class Gauge(NamedTuple):
    """A value at the moment of a scrape."""

    name: str
    labels: Mapping[str, str]
    value: float


GaugeSource = Callable[[], Iterable[Gauge]]


class Metrics:
    """All that one broker counts."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicMetrics] = {}
        self.requests: dict[str, RequestMetrics] = {}
        self.listeners: dict[str, ListenerMetrics] = {}
        self._forgotten = TopicMetrics()
        self._sources: list[GaugeSource] = []
        self._window_began_s: float | None = None  # None: nobody has scraped yet.

    def topic(self, name: str) -> TopicMetrics:
        """The counts of a topic; keep the answer rather than ask for every batch."""
        found = self.topics.get(name)
        if found is None:
            found = self.topics[name] = TopicMetrics()
        return found

    def request(self, api: str) -> RequestMetrics:
        """The counts of an API, by its name such as Produce."""
        found = self.requests.get(api)
        if found is None:
            found = self.requests[api] = RequestMetrics()
        return found

    def listener(self, name: str) -> ListenerMetrics:
        """The connections of a listener."""
        found = self.listeners.get(name)
        if found is None:
            found = self.listeners[name] = ListenerMetrics()
        return found

    def forget_topic(self, name: str) -> None:
        """Drop a deleted topic; its counts stay in the sums, which must never fall."""
        found = self.topics.pop(name, None)
        if found is not None:
            self._forgotten.add(found)

    def all_topics(self) -> TopicMetrics:
        """The sums over all topics there are and were."""
        total = TopicMetrics()
        for counts in (self._forgotten, *tuple(self.topics.values())):
            total.add(counts)
        return total

    def watch(self, source: GaugeSource) -> None:
        """Ask this function for gauges at every scrape."""
        self._sources.append(source)

    def gauges(self) -> Iterable[Gauge]:
        """The gauges of all sources, now; a source that fails does not hide the others."""
        for source in self._sources:
            try:
                yield from source()
            except Exception:
                log.exception("a source of metrics failed")

    def roll(self, now_s: float) -> None:
        """Begin a new window for percentiles where the last one is old enough."""
        if self._window_began_s is None:
            self._window_began_s = now_s
        if now_s - self._window_began_s < WINDOW_S:
            return
        self._window_began_s = now_s
        for request in self.requests.values():
            request.total_time.roll()
            request.local_time.roll()
