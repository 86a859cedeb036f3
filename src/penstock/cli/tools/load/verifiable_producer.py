"""kafka-verifiable-producer: sends increasing numbers and tells in JSON which were stored.

Made for tests from outside: every send ends in one line, so what was acknowledged can be compared
with what is read back.
"""

import argparse
import itertools
import threading
import time
from collections.abc import Iterator, Sequence

from penstock.cli.bootstrap import add_bootstrap, bootstrap_of
from penstock.cli.client_options import quiet_librdkafka, reach
from penstock.cli.events import emit
from penstock.cli.parser import ToolParser, settings_from, warn_deprecated
from penstock.cli.stopping import stop_on_signals
from penstock.client.producer.producer import Producer
from penstock.client.values import RecordMetadata
from penstock.errors import PenstockError


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    if not argv:
        print(parser.format_help(), end="")
        return 0
    options = parser.parse(argv)
    parser.required(options, "topic")
    warn_deprecated(options, {"producer.config": "command-config"})
    settings = _settings(options)
    settings["bootstrap.servers"] = bootstrap_of(parser, options, settings)
    quiet_librdkafka()
    reach(settings, [], create=False)
    stop = stop_on_signals()
    began_s = time.monotonic()
    sending = Sending(options.topic)
    with Producer[bytes, bytes](settings) as producer:
        emit("startup_complete")
        _send_all(producer, sending, options, stop)
    emit("shutdown_complete")
    emit(
        "tool_data",
        sent=sending.sent,
        acked=sending.acked,
        target_throughput=options.throughput,
        avg_throughput=sending.acked / max(0.001, time.monotonic() - began_s),
    )
    return 0


class Sending:
    """What was sent and what came back; every record ends in one event."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.sent = 0
        self.acked = 0

    def send(
        self,
        producer: Producer[bytes, bytes],
        key: str | None,
        value: str,
        timestamp_ms: int | None,
    ) -> None:
        """Send one record; its event comes from the producer's thread."""
        self.sent += 1

        def done(stored: RecordMetadata | None, error: Exception | None) -> None:
            if stored is None:
                self._report_failure(key, value, error or RuntimeError("unknown"))
                return
            self.acked += 1
            emit(
                "producer_send_success",
                key=key,
                value=value,
                offset=stored.offset,
                topic=stored.topic,
                partition=stored.partition,
            )

        try:
            producer.send(
                self.topic,
                value.encode(),
                key=None if key is None else key.encode(),
                timestamp_ms=timestamp_ms,
                on_completion=done,
            )
        except PenstockError as error:
            self._report_failure(key, value, error)

    def _report_failure(self, key: str | None, value: str, error: Exception) -> None:
        kind = type(error)
        emit(
            "producer_send_error",
            topic=self.topic,
            key=key,
            value=value,
            exception=f"class {kind.__module__}.{kind.__qualname__}",
            message=str(error),
        )


def records(
    count: int, prefix: int | None, repeating_keys: int | None
) -> Iterator[tuple[str | None, str]]:
    """Keys and values: numbers from 0 on, without end for a negative count."""
    numbers = itertools.count() if count < 0 else iter(range(count))
    for number in numbers:
        key = None if repeating_keys is None else str(number % repeating_keys)
        yield key, f"{number}" if prefix is None else f"{prefix}.{number}"


def _send_all(
    producer: Producer[bytes, bytes],
    sending: Sending,
    options: argparse.Namespace,
    stop: threading.Event,
) -> None:
    began_s = time.monotonic()
    create_ms = options.message_create_time if options.message_create_time >= 0 else None
    for key, value in records(options.max_messages, options.value_prefix, options.repeating_keys):
        if stop.is_set():
            return
        age_s = time.monotonic() - began_s
        sending.send(producer, key, value, create_ms)
        if create_ms is not None:
            create_ms += int(age_s * 1000)
        if options.throughput > 0:
            stop.wait(max(0.0, sending.sent / options.throughput - age_s))
        elif options.throughput == 0:
            stop.wait()  # Kafka's own: no throughput at all is to wait for the end.


def _settings(options: argparse.Namespace) -> dict[str, object]:
    """The file's settings win over those of the command line, as in Kafka's tool."""
    settings: dict[str, object] = {"acks": options.acks, "retries": 0}
    settings.update(settings_from(options.command_config or options.producer_config))
    return settings


def _check_keys(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-verifiable-producer",
        "This tool produces increasing integers to the specified topic and prints JSON metadata "
        'to stdout on each "send" request, making externally visible which messages have been '
        "acked and which have not.",
    )
    add_bootstrap(parser, broker_list=True)
    option = parser.add_argument
    option("--topic", metavar="TOPIC", help="REQUIRED: Produce messages to this topic.")
    option(
        "--max-messages",
        type=int,
        default=-1,
        metavar="MAX-MESSAGES",
        help="Produce this many messages. If -1, until the process is stopped (default: -1)",
    )
    option(
        "--throughput",
        type=int,
        default=-1,
        metavar="THROUGHPUT",
        help="If set, throttle to about so many messages per second (default: -1)",
    )
    option(
        "--acks",
        type=int,
        choices=(0, 1, -1),
        default=-1,
        metavar="ACKS",
        help="Acks required on each produced message: 0, 1 or -1 (default: -1)",
    )
    option(
        "--message-create-time",
        type=int,
        default=-1,
        metavar="CREATE-TIME",
        help="Creation time of the first message, in ms since the epoch (default: now)",
    )
    option(
        "--value-prefix",
        type=int,
        metavar="VALUE-PREFIX",
        help="A number to stand before each value, with a dot between.",
    )
    option(
        "--repeating-keys",
        type=_check_keys,
        metavar="REPEATING-KEYS",
        help="Give keys from 0 up to this number (exclusive), then from 0 again.",
    )
    option("--command-config", metavar="CONFIG-FILE", help="Property file for the producer.")
    option(
        "--producer.config",
        dest="producer_config",
        metavar="CONFIG-FILE",
        help="(DEPRECATED) Use --command-config instead.",
    )
    return parser
