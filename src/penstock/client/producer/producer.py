"""Producer: sends records, and tells through futures where they were stored.

librdkafka batches, compresses, routes and retries. This gives it Kafka's settings, serializers,
partitioners and interceptors, one thread that runs the callbacks in order, and transactions. May be
used by any number of threads.
"""

import contextlib
import logging
import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Generic, Self, TypeAlias, overload

import confluent_kafka

from penstock.client import interceptors, librdkafka
from penstock.client.connection_log import ConnectionLog
from penstock.client.errors import BufferExhaustedError, IllegalStateError, KafkaTimeoutError
from penstock.client.headers import Headers
from penstock.client.metrics.client_metrics import producer_metrics
from penstock.client.metrics.statistics import Statistics
from penstock.client.plugins import close as close_plugin
from penstock.client.producer import partitioners
from penstock.client.producer.metadata import ProducerMetadata
from penstock.client.serialization import (
    AnySerializer,
    IntWord,
    ReadySerializer,
    SerializerOf,
    StringWord,
    chosen_format,
)
from penstock.client.settings import as_bool
from penstock.client.values import (
    NO_OFFSET,
    Metrics,
    OffsetAndMetadata,
    PartitionInfo,
    ProducerRecord,
    RecordMetadata,
    SentK,
    SentV,
    TopicPartition,
)
from penstock.errors import PenstockError

Callback: TypeAlias = Callable[[RecordMetadata | None, Exception | None], None]
_Config: TypeAlias = Mapping[str, object] | None

log = logging.getLogger("penstock.client")

_KIND = "serializer"
_POLL_S = 0.02  # A flush waits this long for its turn at most.
_TURN_S = 0.005
_FULL_PAUSE_S = 0.002
_FATAL_PAUSE_S = 0.05
_ANY_PARTITION = -1
_FOREVER = -1.0


class Producer(Generic[SentK, SentV]):
    """A thread-safe producer: `Producer({"bootstrap.servers": "localhost:9092"})`.

    Settings are Kafka's, in a mapping or as keywords with underscores for dots. Text and bytes are
    sent as they are unless `key=` and `value=` name a format ("string", "long", "json", ...) or
    give a serializer; `key_serializer=` and Kafka's settings of that name do the same. A type
    checker sees what is given as an argument, not what stands in the mapping. Partitioner and
    interceptors may be given as objects or named in the settings.
    """

    # What may be sent follows from what is given: absent or an object, or one of the short words.
    # fmt: off
    @overload
    def __init__(self, config: _Config = ..., /, *,
                 key: SerializerOf[SentK] = ..., key_serializer: SerializerOf[SentK] = ...,
                 value: SerializerOf[SentV] = ..., value_serializer: SerializerOf[SentV] = ...,
                 **settings: object) -> None: ...
    @overload
    def __init__(self: "Producer[SentK, str]", config: _Config = ..., /, *,
                 key: SerializerOf[SentK] = ..., key_serializer: SerializerOf[SentK] = ...,
                 value: StringWord, **settings: object) -> None: ...
    @overload
    def __init__(self: "Producer[SentK, int]", config: _Config = ..., /, *,
                 key: SerializerOf[SentK] = ..., key_serializer: SerializerOf[SentK] = ...,
                 value: IntWord, **settings: object) -> None: ...
    @overload
    def __init__(self: "Producer[SentK, Any]", config: _Config = ..., /, *,
                 key: SerializerOf[SentK] = ..., key_serializer: SerializerOf[SentK] = ...,
                 value: str, **settings: object) -> None: ...
    @overload
    def __init__(self: "Producer[str, SentV]", config: _Config = ..., /, *,
                 key: StringWord, value: SerializerOf[SentV] = ...,
                 value_serializer: SerializerOf[SentV] = ..., **settings: object) -> None: ...
    @overload
    def __init__(self: "Producer[str, str]", config: _Config = ..., /, *,
                 key: StringWord, value: StringWord, **settings: object) -> None: ...
    @overload
    def __init__(self: "Producer[str, int]", config: _Config = ..., /, *,
                 key: StringWord, value: IntWord, **settings: object) -> None: ...
    @overload
    def __init__(self: "Producer[str, Any]", config: _Config = ..., /, *,
                 key: StringWord, value: str, **settings: object) -> None: ...
    @overload
    def __init__(self: "Producer[int, SentV]", config: _Config = ..., /, *,
                 key: IntWord, value: SerializerOf[SentV] = ...,
                 value_serializer: SerializerOf[SentV] = ..., **settings: object) -> None: ...
    @overload
    def __init__(self: "Producer[int, str]", config: _Config = ..., /, *,
                 key: IntWord, value: StringWord, **settings: object) -> None: ...
    @overload
    def __init__(self: "Producer[int, int]", config: _Config = ..., /, *,
                 key: IntWord, value: IntWord, **settings: object) -> None: ...
    @overload
    def __init__(self: "Producer[int, Any]", config: _Config = ..., /, *,
                 key: IntWord, value: str, **settings: object) -> None: ...
    @overload
    def __init__(self: "Producer[Any, Any]", config: _Config = ..., /, *,
                 key: AnySerializer | None = ..., value: AnySerializer | None = ...,
                 **settings: object) -> None: ...
    # fmt: on
    def __init__(
        self,
        config: _Config = None,
        /,
        *,
        key: object = None,
        value: object = None,
        key_serializer: object = None,
        value_serializer: object = None,
        partitioner: object = None,
        interceptor_classes: object = None,
        **settings: object,
    ) -> None:
        config = config or {}
        plugins = {
            "key.serializer": chosen_format("key", key, key_serializer, config, _KIND),
            "value.serializer": chosen_format("value", value, value_serializer, config, _KIND),
            "partitioner.class": partitioner,
            "interceptor.classes": interceptor_classes,
        }
        given = {name: plugin for name, plugin in plugins.items() if plugin is not None}
        chosen = librdkafka.settings_of({**config, **given}, settings, "producer")
        ours = chosen.ours
        self._max_block_s = chosen.ms("max.block.ms") / 1000
        self._encode_key = ReadySerializer(ours["key.serializer"], chosen.given, "key")  # type: ignore[arg-type]
        self._encode_value = ReadySerializer(ours["value.serializer"], chosen.given, "value")  # type: ignore[arg-type]
        self._interceptors = interceptors.Chain(
            ours["interceptor.classes"], interceptors.ProducerInterceptor, chosen.given
        )
        ignore_keys = as_bool("partitioner.ignore.keys", ours["partitioner.ignore.keys"])
        self._partitioner, extra = partitioners.choose(
            ours["partitioner.class"], ignore_keys=ignore_keys, settings=chosen.given
        )
        for key, value in extra.items():
            chosen.librdkafka.setdefault(key, value)
        self._statistics = Statistics()
        self._connections = ConnectionLog(log)
        self._client_id = str(chosen.librdkafka["client.id"])
        self._transactional = "transactional.id" in chosen.librdkafka
        self._transactions_ready = False
        self._failed = 0
        self._fatal: PenstockError | None = None
        self._closed = False
        self._rd = librdkafka.create(
            confluent_kafka.Producer,
            chosen,
            self._statistics,
            "producer",
            connections=self._connections,
            has_plugins=interceptors.names_plugins(ours, plugins),
        )
        self._metadata = ProducerMetadata(self._rd, self._max_block_s)
        # librdkafka reports to whoever asks it. One asks at a time, and only the producer's own
        # thread tells the reports on, so that they stay in order.
        self._asking = threading.Lock()
        self._reports: queue.Queue[_Delivery] = queue.Queue()
        self._thread = threading.Thread(
            target=self._run_callbacks, name=f"{self._client_id}-callbacks", daemon=True
        )
        self._thread.start()

    def send(
        self,
        record: ProducerRecord[SentK, SentV] | str,
        value: SentV | None = None,
        *,
        key: SentK | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        on_completion: Callback | None = None,
    ) -> Future[RecordMetadata]:
        """Queue a record; the future tells where it was stored, or raises why it was not.

        Give a ProducerRecord, or a topic and the rest; `headers` are a mapping or pairs, and
        `timestamp` is another name of timestamp_ms. `on_completion(metadata, exception)` runs on
        the producer's own thread, in order for each partition; keep it short. Blocks up to
        max.block.ms while the topic is not yet known or the buffer is full, then raises
        KafkaTimeoutError; raises SerializationError at once.
        """
        self._check_open()
        if not isinstance(record, str):
            wanted = record
        else:
            wanted = ProducerRecord(
                topic=record,
                value=value,
                key=key,
                partition=partition,
                timestamp_ms=timestamp_ms,
                headers=headers,
                timestamp=timestamp,
            )
        deadline_s = time.monotonic() + self._max_block_s
        if self._interceptors:
            wanted = self._interceptors.pass_through("on_send", wanted)
        future: Future[RecordMetadata] = Future()
        future.set_running_or_notify_cancel()  # As in Kafka: a record once sent is not taken back.
        try:
            self._produce(wanted, _Delivery(self, future, on_completion), deadline_s)
        except Exception as error:
            self._failed += 1
            self._interceptors.tell("on_acknowledgement", None, error)
            raise
        return future

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until everything sent so far has been stored or has failed."""
        if self._closed:
            return  # As in Kafka: closing has waited already.
        left = self._drain(_FOREVER if timeout_s is None else timeout_s)
        if self._fatal is not None:
            raise self._fatal
        if left:
            raise KafkaTimeoutError(f"{left} records were not yet sent after {timeout_s:g} s.")

    def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """The partitions of a topic, as the cluster says now."""
        self._check_open()
        return self._metadata.refresh(topic)

    def metrics(self) -> Metrics:
        """Kafka's producer metrics, over the last half minute."""
        return producer_metrics(self._statistics.documents(), self._client_id, self._failed)

    def close(self, timeout_s: float | None = None) -> None:
        """Wait for what is under way, then free everything; at the deadline the rest fails."""
        if self._closed:
            return
        self._closed = True
        if self._drain(_FOREVER if timeout_s is None else timeout_s):
            self._rd.purge()
        self._thread.join()  # It ends when the last record has been reported on.
        with warnings.catch_warnings():
            # After a fatal error librdkafka warns that it could not abort; that was told already.
            warnings.simplefilter("ignore", RuntimeWarning)
            self._rd.close()
        self._connections.close()
        self._interceptors.close()
        self._encode_key.close()
        self._encode_value.close()
        close_plugin(self._partitioner)

    def init_transactions(self, timeout_s: float | None = None) -> None:
        """Register the transactional id, fencing every older producer that has it."""
        self._call(self._rd.init_transactions, self._limit_s(timeout_s))
        self._transactions_ready = True

    def begin_transaction(self) -> None:
        """Start a transaction."""
        self._call(self._rd.begin_transaction)

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group_metadata: object,
        timeout_s: float | None = None,
    ) -> None:
        """Make a consumer's progress part of the transaction (`Consumer.group_metadata()`)."""
        self._call(
            self._rd.send_offsets_to_transaction,
            librdkafka.rd_offsets(offsets),
            group_metadata,
            self._limit_s(timeout_s),
        )

    def commit_transaction(self, timeout_s: float | None = None) -> None:
        """Send what is left and make the whole transaction visible."""
        self._call(self._rd.commit_transaction, self._limit_s(timeout_s))

    def abort_transaction(self, timeout_s: float | None = None) -> None:
        """Drop what is left and make the whole transaction void."""
        self._call(self._rd.abort_transaction, self._limit_s(timeout_s))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Self]:
        """All or nothing: committed at the end of the block, aborted if it raises."""
        if not self._transactional:
            raise IllegalStateError("A producer without transactional.id has no transactions.")
        if not self._transactions_ready:
            self.init_transactions()
        self.begin_transaction()
        try:
            yield self
            self.commit_transaction()
        except BaseException:
            # The first error is the one to tell; after a fatal one there is nothing to abort.
            with contextlib.suppress(Exception):
                self.abort_transaction()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _produce(
        self, record: ProducerRecord[SentK, SentV], delivery: "_Delivery", deadline_s: float
    ) -> None:
        topic = record.topic
        self._metadata.wait_for(topic, deadline_s)
        key = self._encode_key(topic, record.key)
        value = self._encode_value(topic, record.value)
        partition = record.partition
        if partition is None:
            partition = self._partition(record, key, value)
        delivery.sizes = (-1 if key is None else len(key), -1 if value is None else len(value))
        arguments: dict[str, Any] = {"on_delivery": delivery}
        if record.headers:
            arguments["headers"] = list(record.headers)
        if record.timestamp_ms is not None:
            arguments["timestamp"] = checked_time(record.timestamp_ms)
        while True:
            try:
                self._rd.produce(topic, value, key, partition, **arguments)
                return
            except BufferError:
                self._wait_for_room(deadline_s)
            except confluent_kafka.KafkaException as error:
                raise librdkafka.translated(error) from error

    def _partition(
        self, record: ProducerRecord[SentK, SentV], key: bytes | None, value: bytes | None
    ) -> int:
        if self._partitioner is None:
            return _ANY_PARTITION
        return self._partitioner.partition(
            record.topic, record.key, key, record.value, value, self._metadata
        )

    def _wait_for_room(self, deadline_s: float) -> None:
        # The callback thread frees room; running callbacks here too would break their order.
        if time.monotonic() >= deadline_s:
            raise BufferExhaustedError(
                f"No room in buffer.memory for a record within {self._max_block_s:g} s."
            )
        time.sleep(_FULL_PAUSE_S)

    def _run_callbacks(self) -> None:
        while not self._closed or len(self._rd) or not self._reports.empty():
            if self._asking.acquire(timeout=_TURN_S):
                try:
                    self._rd.poll(_POLL_S)
                except confluent_kafka.KafkaException as error:
                    self._note_fatal(librdkafka.translated(error))
                finally:
                    self._asking.release()
            self._tell_reports()

    def _tell_reports(self) -> None:
        while True:
            try:
                delivery = self._reports.get_nowait()
            except queue.Empty:
                return
            try:
                delivery.tell()
            finally:
                self._reports.task_done()

    def _wait_until_told(self) -> None:
        if threading.current_thread() is not self._thread:
            self._reports.join()

    def _note_fatal(self, error: PenstockError) -> None:
        """Nothing will be sent any more: what waits must fail now, and say why."""
        self._fatal = error
        self._rd.purge()
        time.sleep(_FATAL_PAUSE_S)  # Every poll raises from here on.

    def _drain(self, timeout_s: float) -> int:
        """Wait until nothing is under way; how much still is when the time is over."""
        try:
            with self._asking:
                left = self._flush_once(timeout_s)
        except confluent_kafka.KafkaException as error:
            self._note_fatal(librdkafka.translated(error))
            left = len(self._rd)
        self._wait_until_told()
        return left

    def _flush_once(self, timeout_s: float) -> int:
        try:
            return int(self._rd.flush(timeout_s))
        except SystemError:
            # After a fatal error the binding can lose what it means to raise; the next one tells.
            return int(self._rd.flush(timeout_s))

    def _limit_s(self, timeout_s: float | None) -> float:
        return self._max_block_s if timeout_s is None else timeout_s

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateError("Cannot perform operation after producer has been closed.")

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        self._check_open()
        try:
            with self._asking:
                function(*arguments)
        except confluent_kafka.KafkaException as error:
            raise librdkafka.translated(error) from error
        finally:
            self._wait_until_told()


def checked_time(timestamp_ms: int) -> int:
    """The time as librdkafka takes it; ValueError for one that it takes for something else."""
    # To librdkafka 0 means now, so the first moment of 1970 cannot be told to it.
    if timestamp_ms <= 0:
        raise ValueError(
            f"Invalid timestamp: {timestamp_ms}. It must be positive, or None for now."
        )
    return timestamp_ms


class _Delivery:
    """What happens when librdkafka reports on one record."""

    __slots__ = ("callback", "future", "outcome", "producer", "sizes")

    def __init__(
        self,
        producer: Producer[Any, Any],
        future: Future[RecordMetadata],
        callback: Callback | None,
    ) -> None:
        self.producer = producer
        self.future = future
        self.callback = callback
        self.sizes = (-1, -1)
        self.outcome: RecordMetadata | PenstockError | None = None  # None: not known yet.

    def __call__(
        self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message
    ) -> None:
        self.outcome = self._metadata(message) if error is None else self._failure(error)
        self.producer._reports.put(self)

    def tell(self) -> None:
        """Interceptors, the callback, then the future: who has the result has been called back."""
        outcome = self.outcome
        metadata = outcome if isinstance(outcome, RecordMetadata) else None
        failure = outcome if isinstance(outcome, PenstockError) else None
        chain = self.producer._interceptors
        if chain:
            chain.tell("on_acknowledgement", metadata, failure)
        if self.callback is not None:
            self._tell(metadata, failure)
        if metadata is not None:
            self.future.set_result(metadata)
        else:
            self.producer._failed += 1
            self.future.set_exception(failure)

    def _failure(self, error: confluent_kafka.KafkaError) -> PenstockError:
        """What went wrong; of a record purged after a fatal error, that error."""
        return self.producer._fatal or librdkafka.translated_error(error)

    def _tell(self, metadata: RecordMetadata | None, failure: Exception | None) -> None:
        assert self.callback is not None
        try:
            self.callback(metadata, failure)
        except Exception:  # A user's mistake must not stop the callbacks of all others.
            log.warning("The callback of a sent record failed.", exc_info=True)

    def _metadata(self, message: confluent_kafka.Message) -> RecordMetadata:
        offset = message.offset()
        return RecordMetadata(
            message.topic() or "",
            message.partition() or 0,
            NO_OFFSET if offset is None or offset < 0 else offset,
            message.timestamp()[1],
            *self.sizes,
        )
