"""The options of `format("penstock")`: read once, checked once, with Spark's Kafka option names.

Pure: text in, values out. A job moves between `format("kafka")` and `format("penstock")` by one
word, so names, meanings and defaults are the same; only an unknown name, which Spark lets pass
silently, is an error here. What a subscription or a position resolves to is asked of the cluster
in `partitions`.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TypeVar

from penstock.client.settings import known_keys
from penstock.client.values import TopicPartition
from penstock.errors import ConfigError
from penstock.spark.schema import COLUMNS, DEFAULT_COLUMNS, RANGE_END_COLUMNS

EARLIEST = -2
LATEST = -1

T = TypeVar("T")


class OptionError(ConfigError, ValueError):
    """An option that cannot be used; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What to read; exactly one of the three is set."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    @property
    def text(self) -> str:
        """For messages: the option as it was given."""
        if self.pattern is not None:
            return f"subscribePattern={self.pattern}"
        if self.partitions:
            return f"assign={', '.join(map(str, self.partitions))}"
        return f"subscribe={','.join(self.topics)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Where to begin or end: an edge, offsets, or times; exactly one is set."""

    option: str  # The name of the option, for messages.
    edge: int | None = None  # EARLIEST or LATEST.
    offsets: Mapping[TopicPartition, int] | None = None  # May hold EARLIEST and LATEST.
    timestamps_ms: Mapping[TopicPartition, int] | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Everything that a read needs to know."""

    # The kafka.* options, without the prefix; there may be passwords among them.
    client_settings: Mapping[str, str] = field(repr=False)
    subscription: Subscription
    starting: Bound
    ending: Bound
    latest_if_no_timestamp: bool = False  # False: a time after the last record is an error.
    fail_on_data_loss: bool = True
    on_unreadable_batch: str = "fail"  # "null": a row without key and value; "skip": nothing.
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 15 * 60_000
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    include_range_ends: bool = False  # A row more behind each range, which tells where it ends.
    columns: tuple[str, ...] = DEFAULT_COLUMNS
    group_id_prefix: str = "penstock-spark"
    group_id: str | None = None  # None: the prefix and the query's id.
    commit_progress: bool = True
    checkpoint: str | None = None  # The query's, if told: the topics' ids are kept there.
    poll_timeout_ms: int = 120_000
    fetch_offset_retries: int = 3
    fetch_offset_retry_interval_ms: int = 1_000
    delegation_token: bool = False  # True: executors log in by a token that the driver gets.

    def with_login(self, login: Mapping[str, str]) -> "ReadOptions":
        """The same for somebody who comes in by this."""
        return replace(self, client_settings={**self.client_settings, **login}) if login else self

    @property
    def without_effect(self) -> list[str]:
        """Settings of Kafka's consumer that say nothing to this reader, which is none."""
        return sorted(
            name
            for name in self.client_settings
            if name not in _WITH_EFFECT and not name.startswith(("ssl.", "sasl."))
        )

    @property
    def read_committed(self) -> bool:
        return self.client_settings.get("isolation.level") == "read_committed"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Everything that a write needs to know."""

    client_settings: Mapping[str, str] = field(repr=False)
    topic: str | None = None  # None: each row names its own in the column `topic`.
    include_headers: bool = True
    include_timestamp: bool = False  # True: the column `timestamp` is each record's own time.
    delivery: str | None = None  # "exactly-once", "at-least-once"; None: the user did not say.
    transactional_id_prefix: str = "penstock-spark"
    group: str | None = None
    delegation_token: bool = False  # True: executors log in by a token that the driver gets.

    @property
    def bootstrap(self) -> str:
        return self.client_settings["bootstrap.servers"]


def read_options(raw: Mapping[str, str], *, streaming: bool) -> ReadOptions:
    """The options of a read; OptionError names the first that is wrong."""
    given = _Given(raw, known=_READ_NAMES, what="read")
    settings = _client_settings(given, _REFUSED_FOR_READERS)
    _check_known(settings)
    _check_isolation(settings)
    if streaming:
        _refuse_ends(given)
    starting = _bound(given, "starting", default=LATEST if streaming else EARLIEST)
    ending = _bound(given, "ending", default=LATEST)
    if not streaming:
        _check_batch_bounds(starting, ending)
    options = ReadOptions(
        client_settings=settings,
        subscription=_subscription(given),
        starting=starting,
        ending=ending,
        latest_if_no_timestamp=given.choice(
            "startingOffsetsByTimestampStrategy", ("error", "latest"), default="error"
        )
        == "latest",
        fail_on_data_loss=given.boolean("failOnDataLoss", default=True),
        on_unreadable_batch=given.choice(
            "onUnreadableBatch", ("fail", "null", "skip"), default="fail"
        )
        or "fail",
        max_offsets_per_trigger=given.positive("maxOffsetsPerTrigger"),
        min_offsets_per_trigger=given.positive("minOffsetsPerTrigger"),
        max_trigger_delay_ms=given.convert("maxTriggerDelay", _duration_ms) or 15 * 60_000,
        min_partitions=given.positive("minPartitions"),
        max_records_per_partition=given.positive("maxRecordsPerPartition"),
        include_range_ends=given.boolean("includeRangeEnds", default=False),
        columns=_columns(given),
        group_id_prefix=given.text("groupIdPrefix") or "penstock-spark",
        group_id=settings.get("group.id"),
        commit_progress=given.boolean("commitProgress", default=True),
        checkpoint=given.text("checkpointLocation") if streaming else None,
        poll_timeout_ms=given.positive("kafkaConsumer.pollTimeoutMs") or 120_000,
        fetch_offset_retries=given.count("fetchOffset.numRetries", default=3),
        fetch_offset_retry_interval_ms=given.count("fetchOffset.retryIntervalMs", default=1_000),
        delegation_token=given.boolean("delegationToken", default=False),
    )
    _check_trigger_limits(options)
    _check_range_ends(options)
    return options


def chosen_columns(raw: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of a read, before it is known whether it is a batch or a stream."""
    return _columns(_Given(raw, known=_READ_NAMES, what="read"))


def write_options(raw: Mapping[str, str]) -> WriteOptions:
    """The options of a write; OptionError names the first that is wrong."""
    given = _Given(raw, known=_WRITE_NAMES, what="write")
    settings = _client_settings(given, _REFUSED_FOR_WRITERS)
    return WriteOptions(
        client_settings=settings,
        topic=given.text("topic"),
        include_headers=given.boolean("includeHeaders", default=True),
        include_timestamp=given.boolean("includeTimestamp", default=False),
        delivery=given.choice("delivery", ("exactly-once", "at-least-once"), default=None),
        transactional_id_prefix=given.text("transactionalIdPrefix") or "penstock-spark",
        group=settings.get("group.id"),
        delegation_token=given.boolean("delegationToken", default=False),
    )


class _Given:
    """The options as the user wrote them, found by names whose case does not matter."""

    def __init__(self, raw: Mapping[str, str], *, known: tuple[str, ...], what: str) -> None:
        self.values = {name.lower(): value for name, value in raw.items()}
        names = {name.lower(): name for name in (*known, *_SPARKS_OWN)}
        for name in self.values:
            if name not in names and not name.startswith("kafka."):
                near = get_close_matches(name, [n.lower() for n in known], n=1, cutoff=0.6)
                hint = f"; did you mean {names[near[0]]!r}?" if near else ""
                raise OptionError(f"Option {name!r} is not known to a penstock {what}{hint}")

    def text(self, name: str) -> str | None:
        value = self.values.get(name.lower())
        return None if value is None else value.strip()

    def convert(self, name: str, converter: Callable[[str], T]) -> T | None:
        value = self.text(name)
        if value is None:
            return None
        try:
            return converter(value)
        except OptionError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise OptionError(f"Option {name!r} cannot be {value!r}: {error}") from None

    def positive(self, name: str) -> int | None:
        value = self.convert(name, _number)
        if value is not None and value < 1:
            raise OptionError(f"Option {name!r} must be a positive number, not {value}")
        return value

    def count(self, name: str, *, default: int) -> int:
        value = self.convert(name, _number)
        if value is not None and value < 0:
            raise OptionError(f"Option {name!r} must not be negative, but is {value}")
        return default if value is None else value

    def boolean(self, name: str, *, default: bool) -> bool:
        value = self.choice(name, ("true", "false"), default=None)
        return default if value is None else value == "true"

    def choice(self, name: str, allowed: tuple[str, ...], *, default: str | None) -> str | None:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in allowed:
            raise OptionError(f"Option {name!r} must be {' or '.join(allowed)}, not {value!r}")
        return value.lower()


_STRATEGIES = ("subscribe", "subscribePattern", "assign")
_READ_NAMES = (
    *_STRATEGIES,
    "startingOffsets",
    "endingOffsets",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "endingTimestamp",
    "failOnDataLoss",
    "onUnreadableBatch",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "includeRangeEnds",
    "includeHeaders",
    "columns",
    "groupIdPrefix",
    "commitProgress",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "delegationToken",
)
_WRITE_NAMES = (
    "topic",
    "includeHeaders",
    "includeTimestamp",
    "delivery",
    "transactionalIdPrefix",
    "delegationToken",
)
# What Spark adds by itself, and what belongs to a whole query.
_SPARKS_OWN = (
    "path",
    "paths",
    "checkpointLocation",
    "queryName",
    "outputMode",
    "__partition_columns",
)

_WITH_EFFECT = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "default.api.timeout.ms",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "group.id",
        "isolation.level",
        "max.partition.fetch.bytes",
        "request.timeout.ms",
        "retry.backoff.ms",
        "security.protocol",
    }
)

_WHERE_TO_START = "use the option 'startingOffsets' to say where to begin"
_FIXED_BYTES = "keys and values are always bytes; use DataFrame operations to convert them"
_REFUSED_FOR_READERS = {
    "auto.offset.reset": _WHERE_TO_START,
    "key.deserializer": _FIXED_BYTES,
    "value.deserializer": _FIXED_BYTES,
    "enable.auto.commit": "progress is committed with each batch; see 'commitProgress'",
    "interceptor.classes": "interceptors are classes of Java's consumer",
}
_REFUSED_FOR_WRITERS = {
    "key.serializer": _FIXED_BYTES,
    "value.serializer": _FIXED_BYTES,
    "interceptor.classes": "interceptors are classes of Java's producer",
}


def _client_settings(given: _Given, refused: Mapping[str, str]) -> dict[str, str]:
    settings = {
        name.removeprefix("kafka."): value
        for name, value in given.values.items()
        if name.startswith("kafka.")
    }
    for name, reason in refused.items():
        if name in settings:
            raise OptionError(f"Option 'kafka.{name}' is not supported: {reason}")
    if not settings.get("bootstrap.servers", "").strip():
        raise OptionError("Option 'kafka.bootstrap.servers' must be specified: host:port,...")
    return settings


def _check_known(settings: Mapping[str, str]) -> None:
    known = known_keys("consumer")
    for name in settings:
        # What belongs to TLS and SASL is checked where it is used.
        if name not in known and not name.startswith(("ssl.", "sasl.")):
            near = get_close_matches(name, known, n=1, cutoff=0.6)
            hint = f"; did you mean 'kafka.{near[0]}'?" if near else ""
            raise OptionError(f"Option 'kafka.{name}': Kafka's consumers have no {name!r}{hint}")


def _check_isolation(settings: Mapping[str, str]) -> None:
    level = settings.get("isolation.level", "read_uncommitted")
    if level not in ("read_uncommitted", "read_committed"):
        raise OptionError(
            f"Option 'kafka.isolation.level' must be read_uncommitted or read_committed, "
            f"not {level!r}"
        )


def _subscription(given: _Given) -> Subscription:
    named = [name for name in _STRATEGIES if given.text(name) is not None]
    choices = ", ".join(_STRATEGIES)
    if not named:
        raise OptionError(f"One of the options {choices} must be specified to say what to read")
    if len(named) > 1:
        raise OptionError(f"Only one of the options {choices} can be specified, not {named}")
    topics = given.text("subscribe")
    if topics is not None:
        names = tuple(dict.fromkeys(n.strip() for n in topics.split(",") if n.strip()))
        if not names:
            raise OptionError("No topics to subscribe to: option 'subscribe' is empty")
        return Subscription(topics=names)
    if given.text("subscribePattern") is not None:
        pattern = given.convert("subscribePattern", _pattern)
        return Subscription(pattern=pattern)
    partitions = given.convert("assign", _assigned) or ()
    return Subscription(partitions=partitions)


def _pattern(text: str) -> str:
    if not text:
        raise ValueError("an empty pattern matches no topic")
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(str(error)) from None
    return text


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    found = _json_object(text, 'write {"topic": [0, 1]}')
    pairs = [TopicPartition(topic, int(n)) for topic, numbers in found.items() for n in numbers]
    if not pairs or any(pair.partition < 0 for pair in pairs):
        raise ValueError('write {"topic": [0, 1]} with the partitions to read')
    return tuple(dict.fromkeys(sorted(pairs)))


def _bound(given: _Given, side: str, *, default: int) -> Bound:
    """The option that counts: a time for all, then times by partition, then offsets."""
    time, times, offsets = f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets"
    timestamp_ms = given.convert(time, _timestamp)
    if timestamp_ms is not None:
        return Bound(option=time, timestamp_ms=timestamp_ms)
    timestamps_ms = given.convert(times, _timestamps)
    if timestamps_ms is not None:
        return Bound(option=times, timestamps_ms=timestamps_ms)
    text = given.text(offsets)
    if text is None:
        return Bound(option=offsets, edge=default)
    if text.lower() in ("earliest", "latest"):
        return Bound(option=offsets, edge=EARLIEST if text.lower() == "earliest" else LATEST)
    return Bound(option=offsets, offsets=given.convert(offsets, _offsets))


def _offsets(text: str) -> dict[TopicPartition, int]:
    return _by_partition(text, 'earliest, latest, or {"topic": {"0": 23, "1": -2}}', least=EARLIEST)


def _timestamps(text: str) -> dict[TopicPartition, int]:
    return _by_partition(text, '{"topic": {"0": 1700000000000}}, times in ms', least=0)


def _by_partition(text: str, form: str, *, least: int) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, numbers in _json_object(text, f"write {form}").items():
        for partition, number in numbers.items():
            if not isinstance(number, int) or isinstance(number, bool) or number < least:
                raise ValueError(f"{number!r} for {topic}-{partition}; write {form}")
            found[TopicPartition(topic, int(partition))] = number
    if not found:
        raise ValueError(f"write {form}")
    return found


def _json_object(text: str, form: str) -> dict[str, dict[str, int]]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{form} ({error})") from None
    if not isinstance(found, dict):
        raise ValueError(form)
    return found


def _timestamp(text: str) -> int:
    number = _number(text)
    if number < 0:
        raise ValueError("a time is given in milliseconds since 1970")
    return number


def _refuse_ends(given: _Given) -> None:
    for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
        if given.text(name) is not None:
            raise OptionError(f"Option {name!r} is not valid in streaming queries: they do not end")


def _check_batch_bounds(starting: Bound, ending: Bound) -> None:
    _refuse_edge(starting, LATEST, "starting", "latest")
    _refuse_edge(ending, EARLIEST, "ending", "earliest")


def _refuse_edge(bound: Bound, edge: int, side: str, name: str) -> None:
    if bound.edge == edge:
        raise OptionError(
            f"Option {bound.option!r}: the {side} offset can't be {name} for batch queries"
        )
    for partition, offset in (bound.offsets or {}).items():
        if offset == edge:
            raise OptionError(
                f"Option {bound.option!r}: the {side} offset for {partition} can't be "
                f"{name} ({edge}) for batch queries"
            )


def _check_trigger_limits(options: ReadOptions) -> None:
    least, most = options.min_offsets_per_trigger, options.max_offsets_per_trigger
    if least is not None and most is not None and least > most:
        raise OptionError(
            f"Option 'minOffsetsPerTrigger' ({least}) must not exceed "
            f"'maxOffsetsPerTrigger' ({most})"
        )


def _check_range_ends(options: ReadOptions) -> None:
    lacking = [name for name in RANGE_END_COLUMNS if name not in options.columns]
    if options.include_range_ends and lacking:
        raise OptionError(f"Option 'includeRangeEnds' needs the column {lacking[0]!r}")


def _columns(given: _Given) -> tuple[str, ...]:
    with_headers = given.boolean("includeHeaders", default=False)
    text = given.text("columns")
    if text is None:
        return COLUMNS if with_headers else DEFAULT_COLUMNS
    by_name = {name.lower(): name for name in COLUMNS}
    wanted = [name.strip().lower() for name in text.split(",") if name.strip()]
    for name in wanted:
        if name not in by_name:
            raise OptionError(f"Option 'columns' names {name!r}; there are {', '.join(COLUMNS)}")
    if not wanted:
        raise OptionError(f"Option 'columns' is empty; there are {', '.join(COLUMNS)}")
    if with_headers:
        wanted.append("headers")
    return tuple(name for name in COLUMNS if name.lower() in wanted)


def _number(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text):
        raise ValueError("write a whole number")
    return int(text)


_UNITS_MS = {
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}


def _duration_ms(text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.lower())
    if not found or (found[2] and found[2] not in _UNITS_MS):
        raise ValueError("write a number and a unit, for instance 15m, 30s or 500ms")
    return int(found[1]) * _UNITS_MS[found[2] or "ms"]


__all__ = [
    "EARLIEST",
    "LATEST",
    "Bound",
    "OptionError",
    "ReadOptions",
    "Subscription",
    "WriteOptions",
    "chosen_columns",
    "read_options",
    "write_options",
]
