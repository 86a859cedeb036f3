"""Consumer: reads records of the partitions it has, alone or as a member of a group.

librdkafka fetches ahead and speaks with the group's coordinator. This gives it Kafka's settings,
deserializers and interceptors, and Kafka's way of keeping positions: what a poll returned counts as
read when the next poll begins. For one thread, as in Kafka; `wakeup` alone may come from another.
"""

import contextlib
import logging
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias, overload

import confluent_kafka

from penstock.client import interceptors, librdkafka
from penstock.client.connection_log import ConnectionLog
from penstock.client.consumer import positions
from penstock.client.consumer.commits import CommitCallback, Commits, Offsets
from penstock.client.consumer.read_ahead import ReadAhead, partition_of
from penstock.client.consumer.rebalance import Rebalance, RebalanceListener, with_starts
from penstock.client.consumer.record_decoder import RecordDecoder
from penstock.client.errors import (
    ClientError,
    IllegalStateError,
    NoOffsetForPartitionError,
    WakeupError,
)
from penstock.client.metrics.client_metrics import consumer_metrics
from penstock.client.metrics.statistics import Statistics
from penstock.client.serialization import (
    AnyDeserializer,
    DeserializerOf,
    IntWord,
    StringWord,
    chosen_format,
)
from penstock.client.settings import as_bool, as_int
from penstock.client.values import (
    ConsumerRecord,
    ConsumerRecords,
    K,
    Metrics,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PartitionInfo,
    TopicPartition,
    V,
)
from penstock.errors import InvalidGroupId

log = logging.getLogger("penstock.client")

_Config: TypeAlias = Mapping[str, object] | None

_KIND = "deserializer"
_SEEK_S_MAX = 5.0
_SEEK_PAUSE_S = 0.01
_RESOLVE_S_MIN = 0.05
_NO_GROUP = "penstock-no-group"  # librdkafka wants a group id even of one who joins none.
_NOT_STARTED = confluent_kafka.KafkaError._STATE


class Consumer(Generic[K, V]):
    """A consumer: `Consumer({"bootstrap.servers": "localhost:9092", "group.id": "g"})`.

    Settings are Kafka's, in a mapping or as keywords with underscores for dots. Without group.id it
    can be assigned partitions, but neither subscribe nor commit. Keys and values are bytes unless
    `key=` and `value=` name a format ("string", "long", "json", ...) or give a deserializer;
    `key_deserializer=` and Kafka's settings of that name do the same. A type checker sees what is
    given as an argument, not what stands in the mapping.
    """

    # What comes out follows from what is given: absent or an object, or one of the short words.
    # fmt: off
    @overload
    def __init__(self, config: _Config = ..., /, *,
                 key: DeserializerOf[K] = ..., key_deserializer: DeserializerOf[K] = ...,
                 value: DeserializerOf[V] = ..., value_deserializer: DeserializerOf[V] = ...,
                 **settings: object) -> None: ...
    @overload
    def __init__(self: "Consumer[K, str]", config: _Config = ..., /, *,
                 key: DeserializerOf[K] = ..., key_deserializer: DeserializerOf[K] = ...,
                 value: StringWord, **settings: object) -> None: ...
    @overload
    def __init__(self: "Consumer[K, int]", config: _Config = ..., /, *,
                 key: DeserializerOf[K] = ..., key_deserializer: DeserializerOf[K] = ...,
                 value: IntWord, **settings: object) -> None: ...
    @overload
    def __init__(self: "Consumer[K, Any]", config: _Config = ..., /, *,
                 key: DeserializerOf[K] = ..., key_deserializer: DeserializerOf[K] = ...,
                 value: str, **settings: object) -> None: ...
    @overload
    def __init__(self: "Consumer[str, V]", config: _Config = ..., /, *,
                 key: StringWord, value: DeserializerOf[V] = ...,
                 value_deserializer: DeserializerOf[V] = ..., **settings: object) -> None: ...
    @overload
    def __init__(self: "Consumer[str, str]", config: _Config = ..., /, *,
                 key: StringWord, value: StringWord, **settings: object) -> None: ...
    @overload
    def __init__(self: "Consumer[str, int]", config: _Config = ..., /, *,
                 key: StringWord, value: IntWord, **settings: object) -> None: ...
    @overload
    def __init__(self: "Consumer[str, Any]", config: _Config = ..., /, *,
                 key: StringWord, value: str, **settings: object) -> None: ...
    @overload
    def __init__(self: "Consumer[int, V]", config: _Config = ..., /, *,
                 key: IntWord, value: DeserializerOf[V] = ...,
                 value_deserializer: DeserializerOf[V] = ..., **settings: object) -> None: ...
    @overload
    def __init__(self: "Consumer[int, str]", config: _Config = ..., /, *,
                 key: IntWord, value: StringWord, **settings: object) -> None: ...
    @overload
    def __init__(self: "Consumer[int, int]", config: _Config = ..., /, *,
                 key: IntWord, value: IntWord, **settings: object) -> None: ...
    @overload
    def __init__(self: "Consumer[int, Any]", config: _Config = ..., /, *,
                 key: IntWord, value: str, **settings: object) -> None: ...
    @overload
    def __init__(self: "Consumer[Any, Any]", config: _Config = ..., /, *,
                 key: AnyDeserializer | None = ..., value: AnyDeserializer | None = ...,
                 **settings: object) -> None: ...
    # fmt: on
    def __init__(
        self,
        config: _Config = None,
        /,
        *,
        key: object = None,
        value: object = None,
        key_deserializer: object = None,
        value_deserializer: object = None,
        interceptor_classes: object = None,
        **settings: object,
    ) -> None:
        config = config or {}
        plugins = {
            "key.deserializer": chosen_format("key", key, key_deserializer, config, _KIND),
            "value.deserializer": chosen_format("value", value, value_deserializer, config, _KIND),
            "interceptor.classes": interceptor_classes,
        }
        given = {name: plugin for name, plugin in plugins.items() if plugin is not None}
        chosen = librdkafka.settings_of({**config, **given}, settings, "consumer")
        ours, theirs = chosen.ours, chosen.librdkafka
        self._group_id = theirs.get("group.id")
        if self._group_id is None:
            theirs["group.id"] = _NO_GROUP
            theirs["enable.auto.commit"] = False
        self._client_id = str(theirs["client.id"])
        self._who = f"Consumer clientId={self._client_id}, groupId={self._group_id}"
        self._api_timeout_s = chosen.ms("default.api.timeout.ms") / 1000
        self._reset = str(theirs.get("auto.offset.reset", "latest"))
        self._commits_by_timer = as_bool(
            "enable.auto.commit", theirs.get("enable.auto.commit", True)
        )
        self._decode: RecordDecoder[K, V] = RecordDecoder(
            ours["key.deserializer"],  # type: ignore[arg-type]
            ours["value.deserializer"],  # type: ignore[arg-type]
            chosen.given,
        )
        self._interceptors = interceptors.Chain(
            ours["interceptor.classes"], interceptors.ConsumerInterceptor, chosen.given
        )
        self._commits = Commits(self._interceptors, self._who)
        theirs["on_commit"] = self._commits.on_commit_finished
        self._statistics = Statistics()
        self._connections = ConnectionLog(log)
        self._rd = librdkafka.create(
            confluent_kafka.Consumer,
            chosen,
            self._statistics,
            "consumer",
            connections=self._connections,
            has_plugins=interceptors.names_plugins(ours, plugins),
        )
        self._positions = positions.Positions(self._default_start())
        self._rebalance = Rebalance(
            self._positions, self._forget, cooperative=_is_cooperative(theirs), who=self._who
        )
        records_max = as_int("max.poll.records", ours["max.poll.records"])
        self._read_ahead = ReadAhead(self._rd, records_max)
        self._subscription: frozenset[str] = frozenset()
        self._unapplied = False  # An assignment by hand that librdkafka has not been told yet.
        self._wakeup = threading.Event()
        self._in_use = threading.RLock()
        self._closed = False

    @property
    def group_id(self) -> str | None:
        """The group it belongs to; None for a consumer by itself."""
        return None if self._group_id is None else str(self._group_id)

    # Which partitions ------------------------------------------------------------------------

    def subscribe(
        self,
        topics: Sequence[str] | re.Pattern[str],
        listener: RebalanceListener | None = None,
    ) -> None:
        """Share topics, or all whose name matches a pattern, with the members of the group."""
        self._need_group()
        if isinstance(topics, str):
            raise TypeError("subscribe takes a list of topics or a compiled pattern")
        if isinstance(topics, re.Pattern):
            wanted = [f"^{topics.pattern.removeprefix('^')}"]
        else:
            wanted = list(topics)
        self._rebalance.listener, self._rebalance.is_subscribed = listener, True
        self._subscription = frozenset(wanted)
        log.info("[%s] (Re-)joining group", self._who)
        self._call(
            self._rd.subscribe,
            wanted,
            on_assign=self._rebalance.on_assigned,
            on_revoke=self._rebalance.on_revoked,
            on_lost=self._rebalance.on_lost,
        )

    def unsubscribe(self) -> None:
        """Leave the group's work, and give up partitions assigned by hand."""
        self._check_open()
        self._subscription, self._rebalance.is_subscribed = frozenset(), False
        self._unapplied = False
        self._call(self._rd.unsubscribe)
        self._call(self._rebalance.put, self._rd, [])
        self._forget(self._positions.assigned)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without a group's help."""
        self._check_open()
        if self._subscription:
            raise IllegalStateError("Subscription to topics and manual assignment exclude another.")
        wanted = [TopicPartition(*partition) for partition in partitions]
        self._forget(self._positions.assigned - set(wanted))
        self._positions.add(wanted)
        self._unapplied = True

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions this consumer reads."""
        self._check_open()
        return self._positions.assigned

    def subscription(self) -> frozenset[str]:
        """What was subscribed to; a pattern begins with ^."""
        self._check_open()
        return self._subscription

    # Reading ---------------------------------------------------------------------------------

    def poll(self, timeout_s: float = 0.0) -> ConsumerRecords[K, V]:
        """Up to max.poll.records records; waits for the first, at most the timeout."""
        with self._single_thread():
            self._check_open()
            if not self._subscription and not self._positions.assigned:
                raise IllegalStateError("The consumer is not subscribed and has no partitions.")
            self._store_positions()
            self._apply_assignment(timeout_s)
            paused = self._positions.paused
            self._read_ahead.fill(
                time.monotonic() + timeout_s, paused=paused, interrupt=self._between_slices
            )
            records = ConsumerRecords(self._read_ahead.take(self._take_record, paused=paused))
        if self._interceptors and records:
            records = self._interceptors.pass_through("on_consume", records)
        return records

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Records without end."""
        self._check_open()
        while not self._closed:
            yield from self.poll(1.0)

    def wakeup(self) -> None:
        """Make a poll under way, or the next one, raise WakeupError; from any thread."""
        self._wakeup.set()

    def clear_wakeup(self) -> None:
        """Take back a wakeup that no poll has heard yet."""
        self._wakeup.clear()

    # Positions -------------------------------------------------------------------------------

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Read this record next."""
        self._check_open()
        at = offset if isinstance(offset, int) else offset.offset
        if at < 0:
            raise ValueError(f"The offset {at} is negative.")
        self._seek(partition, at)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Read from the first record there is; without partitions, in all assigned ones."""
        self._check_open()
        for partition in list(partitions) or self._positions.assigned:
            self._seek(partition, positions.BEGINNING)

    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Read only what comes from now on; without partitions, in all assigned ones."""
        self._check_open()
        for partition in list(partitions) or self._positions.assigned:
            self._seek(partition, positions.END)

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that poll will return."""
        self._check_open()
        known = self._positions.known(partition)
        if known is not None:
            return known
        return self._resolve(partition, self._positions.start_of(partition))

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these until resumed; positions and membership stay."""
        self._check_open()
        wanted = list(partitions)
        self._positions.pause(wanted)
        self._call(self._rd.pause, librdkafka.rd_partitions(self._started(wanted)))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records of these again."""
        self._check_open()
        wanted = list(partitions)
        self._positions.resume(wanted)
        self._call(self._rd.resume, librdkafka.rd_partitions(self._started(wanted)))

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        self._check_open()
        return self._positions.paused

    def lag(self, partition: TopicPartition) -> int | None:
        """How many records lie between position and end, as far as is known; else None."""
        self._check_open()
        known = self._positions.known(partition)
        _, end = self._watermarks(partition, cached=True)
        return None if known is None or end < 0 else max(0, end - known)

    # Committing ------------------------------------------------------------------------------

    def commit(self, offsets: Offsets | None = None) -> None:
        """Commit positions, or given offsets, and wait for the coordinator's word."""
        wanted = self._to_commit(offsets)
        if wanted:
            self._commits.wait(self._rd, wanted)

    def commit_async(
        self, offsets: Offsets | None = None, callback: CommitCallback | None = None
    ) -> None:
        """Commit without waiting; the callback runs in a later poll."""
        wanted = self._to_commit(offsets)
        if wanted:
            self._commits.start(self._rd, wanted, callback)

    def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed; None for a partition without."""
        self._need_group()
        asked = librdkafka.rd_partitions(partitions)
        found = self._call(self._rd.committed, asked, timeout=self._api_timeout_s)
        return {
            TopicPartition(one.topic, one.partition): librdkafka.our_offset(one) for one in found
        }

    def group_metadata(self) -> object:
        """For `Producer.send_offsets_to_transaction`."""
        self._need_group()
        return self._rd.consumer_group_metadata()

    # The cluster -----------------------------------------------------------------------------

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic; none if it does not exist."""
        self._check_open()
        metadata = self._call(self._rd.list_topics, topic, timeout=self._api_timeout_s)
        if metadata.topics[topic].error is not None:
            return []
        return librdkafka.partitions_of(metadata, topic)

    def topics(self) -> dict[str, list[PartitionInfo]]:
        """All topics and their partitions."""
        self._check_open()
        metadata = self._call(self._rd.list_topics, timeout=self._api_timeout_s)
        return {name: librdkafka.partitions_of(metadata, name) for name in metadata.topics}

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        self._check_open()
        return {one: self._watermarks(one)[0] for one in partitions}

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last readable record of each partition."""
        self._check_open()
        return {one: self._watermarks(one)[1] for one in partitions}

    def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time in ms; None where there is none."""
        self._check_open()
        asked = [confluent_kafka.TopicPartition(p.topic, p.partition, t) for p, t in times.items()]
        found = self._call(self._rd.offsets_for_times, asked, timeout=self._api_timeout_s)
        result: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        for one in found:
            at = TopicPartition(one.topic, one.partition)
            result[at] = None if one.offset < 0 else OffsetAndTimestamp(one.offset, times[at])
        return result

    def metrics(self) -> Metrics:
        """Kafka's consumer metrics, over the last half minute."""
        return consumer_metrics(self._statistics.documents(), self._client_id)

    def close(self) -> None:
        """Commit what was read, if that is automatic, leave the group, free everything."""
        if self._closed:
            return
        self._store_positions()
        self._closed = True
        self._rd.close()
        self._connections.close()
        self._interceptors.close()
        self._decode.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Inside ----------------------------------------------------------------------------------

    def _take_record(self, message: confluent_kafka.Message) -> ConsumerRecord[K, V] | None:
        """A record, or None for a message that is only worth a line in the log."""
        error = message.error()
        if error is not None:
            if not librdkafka.is_passing(error):
                raise librdkafka.translated_error(error)
            log.warning("[%s] %s", self._who, error.str())
            return None
        partition = partition_of(message)
        if partition not in self._positions.assigned:
            return None  # It was taken away since this was fetched.
        record = self._decode(message, partition)
        self._positions.note_consumed(partition, record.offset, record.leader_epoch)
        return record

    def _default_start(self) -> int:
        if self._group_id is not None:
            return positions.STORED
        starts = {"earliest": positions.BEGINNING, "latest": positions.END}
        return starts.get(self._reset, positions.INVALID)

    def _apply_assignment(self, timeout_s: float) -> None:
        """Tell librdkafka of an assignment by hand, with the positions wished for by now."""
        if not self._unapplied:
            return
        self._resolve_ends(timeout_s)
        starts = with_starts(self._positions, self._positions.assigned)
        self._call(self._rebalance.put, self._rd, starts)
        self._unapplied = False
        if self._positions.paused:
            self._call(self._rd.pause, librdkafka.rd_partitions(self._positions.paused))

    def _started(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those that librdkafka has begun on; for the others it is enough to remember."""
        if self._unapplied:
            return []
        return [one for one in partitions if one not in self._rebalance.starting]

    def _seek(self, partition: TopicPartition, offset: int) -> None:
        partition = TopicPartition(*partition)
        self._positions.seek(partition, offset)
        self._read_ahead.drop({partition})
        if not self._started([partition]):
            return
        if offset < 0:
            # librdkafka would find the end out by itself, half a second later.
            offset = self._resolve(partition, offset)
            self._positions.seek(partition, offset)
        target = confluent_kafka.TopicPartition(partition.topic, partition.partition, offset)
        deadline_s = time.monotonic() + _SEEK_S_MAX
        while True:
            try:
                self._rd.seek(target)
                return
            except confluent_kafka.KafkaException as error:
                # A partition that was just assigned takes seeks only once it has started.
                if error.args[0].code() != _NOT_STARTED or time.monotonic() > deadline_s:
                    raise librdkafka.translated(error) from error
                time.sleep(_SEEK_PAUSE_S)

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        gone = set(partitions)
        self._read_ahead.drop(gone)
        self._positions.remove(gone)

    def _resolve(self, partition: TopicPartition, start: int) -> int:
        """The number behind a word for an offset."""
        if start == positions.STORED:
            committed = self.committed([partition])[partition]
            if committed is not None:
                return committed.offset
            if self._reset not in ("earliest", "latest"):
                raise NoOffsetForPartitionError(f"Nothing is committed for {partition}.")
            start = positions.BEGINNING if self._reset == "earliest" else positions.END
        low, high = self._watermarks(partition)
        return low if start == positions.BEGINNING else high

    def _resolve_ends(self, timeout_s: float) -> None:
        """Numbers for BEGINNING and END in one question; librdkafka takes 500 ms for its own."""
        words = [
            start
            for start in with_starts(self._positions, self._positions.assigned)
            if start.offset in (positions.BEGINNING, positions.END)
        ]
        if not words or timeout_s < _RESOLVE_S_MIN:
            return
        with contextlib.suppress(confluent_kafka.KafkaException):  # Then it is left to librdkafka.
            # The words are the numbers that the protocol has for times without a date.
            for one in self._rd.offsets_for_times(words, timeout=timeout_s):
                if one.error is None and one.offset >= 0:
                    self._positions.seek(TopicPartition(one.topic, one.partition), one.offset)

    def _watermarks(self, partition: TopicPartition, *, cached: bool = False) -> tuple[int, int]:
        asked = confluent_kafka.TopicPartition(partition.topic, partition.partition)
        found = self._call(
            self._rd.get_watermark_offsets, asked, timeout=self._api_timeout_s, cached=cached
        )
        return found or (-1, -1)

    def _store_positions(self) -> None:
        """What earlier polls returned may now be committed by the timer."""
        wanted = self._positions.to_commit()
        if self._commits_by_timer and wanted and not self._unapplied:
            self._call(self._rd.store_offsets, offsets=librdkafka.rd_offsets(wanted))

    def _to_commit(self, offsets: Offsets | None) -> Offsets:
        self._need_group()
        return self._positions.to_commit() if offsets is None else offsets

    def _call(self, function: Any, *arguments: object, **named: object) -> Any:
        self._check_open()
        return librdkafka.call(function, *arguments, **named)

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateError("This consumer has already been closed.")

    def _need_group(self) -> None:
        self._check_open()
        if self._group_id is None:
            raise InvalidGroupId(
                "To use the group management or offset commit APIs, you must provide a valid "
                "group.id in the consumer configuration."
            )

    @contextlib.contextmanager
    def _single_thread(self) -> Iterator[None]:
        """Refuse a second thread, which would find the positions half done."""
        if not self._in_use.acquire(blocking=False):
            raise ClientError("The consumer is not safe for use by several threads.")
        try:
            yield
        finally:
            self._in_use.release()

    def _between_slices(self) -> None:
        """While a poll waits: hear of a wakeup, and give librdkafka back what it had to drop."""
        if self._rebalance.has_declined:
            self._rebalance.has_declined, self._unapplied = False, bool(self._positions.assigned)
            self._apply_assignment(0.0)
        if self._wakeup.is_set():
            self._wakeup.clear()
            raise WakeupError("The consumer was woken up.")


def _is_cooperative(settings: Mapping[str, object]) -> bool:
    """Whether partitions come and go one by one, not all at once."""
    by_server = settings.get("group.protocol") == "consumer"
    return by_server or settings.get("partition.assignment.strategy") == "cooperative-sticky"
