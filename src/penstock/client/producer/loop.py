"""LoopProducer: for a loop of one thread that sends many records, waits, and goes on.

`Producer` gives each record a future and tells it on a thread of its own; with a hundred thousand
records a second, futures and the fight of two threads for Python's lock are most of the work. Here
the thread that sends also takes in the reports, and outcomes are entries of a dict that the caller
brings. Partitioners, interceptors and transactions are those of `Producer`.
"""

import time
from collections.abc import Mapping, MutableMapping
from functools import partial
from typing import Any, TypeAlias

import confluent_kafka

from penstock.client import interceptors, librdkafka
from penstock.client.connection_log import ConnectionLog
from penstock.client.errors import BufferExhaustedError, KafkaTimeoutError
from penstock.client.metrics.statistics import Statistics
from penstock.client.plugins import close as close_plugin
from penstock.client.producer import partitioners
from penstock.client.producer.metadata import ProducerMetadata
from penstock.client.producer.polled import ANY_PARTITION, Outcome, StoredAt
from penstock.client.producer.producer import checked_time
from penstock.client.settings import as_bool
from penstock.client.values import NO_OFFSET, ProducerRecord, RecordMetadata

Outcomes: TypeAlias = MutableMapping[int, Outcome]
_ROOM_S = 0.005
_SLICE_S = 0.1


class LoopProducer:
    """Sends bytes as they are; all calls come from one thread, which also calls `serve`."""

    def __init__(self, config: Mapping[str, object]) -> None:
        chosen = librdkafka.settings_of(config, {}, "producer")
        ours = chosen.ours
        ignore_keys = as_bool("partitioner.ignore.keys", ours["partitioner.ignore.keys"])
        self._partitioner, extra = partitioners.choose(
            ours["partitioner.class"], ignore_keys=ignore_keys, settings=chosen.given
        )
        for key, value in extra.items():
            chosen.librdkafka.setdefault(key, value)
        self._interceptors = interceptors.Chain(
            ours["interceptor.classes"], interceptors.ProducerInterceptor, chosen.given
        )
        self._max_block_s = chosen.ms("max.block.ms") / 1000
        self._connections = ConnectionLog(librdkafka.log)
        self._rd = librdkafka.create(
            confluent_kafka.Producer,
            chosen,
            Statistics(),
            "producer",
            connections=self._connections,
            has_plugins=interceptors.names_plugins(
                ours, ("partitioner.class", "interceptor.classes")
            ),
        )
        self._produce = self._rd.produce
        self._metadata = ProducerMetadata(self._rd, self._max_block_s)
        self._topics: set[str] = set()  # Those that are known to be there.

    def send(self, record: "ProducerRecord[bytes, bytes]", outcomes: Outcomes, number: int) -> None:
        """Queue a record; what becomes of it is `outcomes[number]` after some `serve`.

        Waits up to max.block.ms while the topic is not known or the buffer is full.
        """
        if self._interceptors:
            record = self._interceptors.pass_through("on_send", record)
            report = partial(self._report_to_interceptors, record, outcomes, number)
        else:
            report = partial(_report, outcomes, number)
        topic, key, value, partition = record.topic, record.key, record.value, record.partition
        if topic not in self._topics:
            self._metadata.wait_for(topic, time.monotonic() + self._max_block_s)
            self._topics.add(topic)
        if partition is None:
            partition = ANY_PARTITION
            if self._partitioner is not None:
                partition = self._partitioner.partition(
                    topic, key, key, value, value, self._metadata
                )
        named: dict[str, Any] = {}
        if record.headers:
            named["headers"] = list(record.headers)
        if record.timestamp_ms is not None:
            named["timestamp"] = checked_time(record.timestamp_ms)
        try:
            self._produce(topic, value, key, partition, report, **named)
        except BufferError:
            self._produce_when_there_is_room((topic, value, key, partition, report), named)
        except confluent_kafka.KafkaException as error:
            raise librdkafka.translated(error) from error

    def serve(self, timeout_s: float = 0.0) -> None:
        """Take in what librdkafka has to report; raises what ends this producer."""
        librdkafka.call(self._rd.poll, timeout_s)

    def wait_for(self, outcomes: Outcomes, number: int, timeout_s: float) -> Outcome:
        """What became of a record; KafkaTimeoutError when that is not known in time."""
        give_up_s = time.monotonic() + timeout_s
        while (found := outcomes.get(number)) is None:
            if time.monotonic() >= give_up_s:
                raise KafkaTimeoutError(f"A record was not stored within {timeout_s:g} s.")
            self.serve(_SLICE_S)
        return found

    def flush(self, timeout_s: float) -> None:
        """Wait until everything sent so far has an outcome; KafkaTimeoutError: it has not."""
        left: int = librdkafka.call(self._rd.flush, timeout_s)
        if left:
            raise KafkaTimeoutError(f"{left} records were not yet sent after {timeout_s:g} s.")

    def init_transactions(self) -> None:
        """Register the transactional id, fencing every older producer that has it."""
        librdkafka.call(self._rd.init_transactions, self._max_block_s)

    def begin_transaction(self) -> None:
        """Start a transaction."""
        librdkafka.call(self._rd.begin_transaction)

    def commit_transaction(self) -> None:
        """Send what is left and make the whole transaction visible."""
        librdkafka.call(self._rd.commit_transaction, self._max_block_s)

    def abort_transaction(self) -> None:
        """Drop what is left and make the whole transaction void."""
        librdkafka.call(self._rd.abort_transaction, self._max_block_s)

    def close(self, timeout_s: float) -> None:
        """Wait for what is under way, at most so long, and free everything."""
        try:
            self._rd.flush(timeout_s)
        except confluent_kafka.KafkaException:
            librdkafka.log.debug("A producer was closed after an error.", exc_info=True)
        self._rd.purge()
        self._rd.close()
        self._connections.close()
        self._interceptors.close()
        close_plugin(self._partitioner)

    def _produce_when_there_is_room(self, arguments: tuple[Any, ...], named: Any) -> None:
        give_up_s = time.monotonic() + self._max_block_s
        while True:
            self.serve(_ROOM_S)
            try:
                librdkafka.call(self._produce, *arguments, **named)
                return
            except BufferError:
                if time.monotonic() >= give_up_s:
                    raise BufferExhaustedError(
                        f"No room in buffer.memory for a record within {self._max_block_s:g} s."
                    ) from None

    def _report_to_interceptors(
        self,
        record: "ProducerRecord[bytes, bytes]",
        outcomes: Outcomes,
        number: int,
        error: confluent_kafka.KafkaError | None,
        message: Any,
    ) -> None:
        _report(outcomes, number, error, message)
        found = outcomes[number]
        if isinstance(found, StoredAt):
            sizes = [-1 if one is None else len(one) for one in (record.key, record.value)]
            stored = RecordMetadata(record.topic, *found, *sizes)
            self._interceptors.tell("on_acknowledgement", stored, None)
        else:
            self._interceptors.tell("on_acknowledgement", None, found)


def _report(
    outcomes: Outcomes, number: int, error: confluent_kafka.KafkaError | None, message: Any
) -> None:
    if error is not None:
        outcomes[number] = librdkafka.translated_error(error)
        return
    offset = message.offset()
    outcomes[number] = StoredAt(
        message.partition(), NO_OFFSET if offset is None else offset, message.timestamp()[1]
    )
