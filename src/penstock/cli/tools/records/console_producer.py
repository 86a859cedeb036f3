"""kafka-console-producer: every line of standard input becomes a record."""

import argparse
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from penstock.cli.bootstrap import add_bootstrap
from penstock.cli.client_options import (
    add_client_options,
    client_settings,
    quiet_librdkafka,
    reach,
)
from penstock.cli.line_reader import LineReader
from penstock.cli.parser import ToolParser, settings_from, warn_deprecated
from penstock.client.producer.bulk import BulkProducer
from penstock.errors import CommandError, ErrorCode, error_for

# What Kafka's tool sets where neither an option nor a property says otherwise.
_DEFAULTS: dict[str, object] = {
    "client.id": "console-producer",
    "acks": "-1",
    "linger.ms": 1000,
    "batch.size": 16384,
    "retries": 3,
    "retry.backoff.ms": 100,
    "request.timeout.ms": 1500,
    "buffer.memory": 33554432,
    "max.block.ms": 60000,
    "metadata.max.age.ms": 300000,
    "send.buffer.bytes": 102400,
}
_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_SERVE_S = 0.1


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    parser.required(options, "topic")
    warn_deprecated(options, {"property": "reader-property"})
    settings = client_settings(parser, options, _DEFAULTS, _own_settings(parser, options))
    reader = LineReader(
        settings_from(options.reader_config, options.property + options.reader_property, "property")
    )
    quiet_librdkafka()
    _check_topic(settings, options.topic)
    with BulkProducer(settings) as producer, _serve_reports(producer):
        try:
            _send_all(producer, reader, options)
        finally:
            producer.flush()
        _tell_failures(producer, options.topic)
    return 1 if producer.failures else 0


def _send_all(producer: BulkProducer, reader: LineReader, options: argparse.Namespace) -> None:
    prompt = sys.stdin.isatty()
    for line in _lines(prompt):
        record = reader.parse(line)
        producer.send(options.topic, record.value, record.key, record.headers)
        if options.sync:
            producer.flush()
        if prompt:
            _tell_failures(producer, options.topic, forget=True)


def _lines(prompt: bool) -> Iterator[bytes]:
    """Lines without their ends; on a terminal each is asked for with `>`."""
    while True:
        if prompt:
            print(">", end="", flush=True)
        try:
            line = sys.stdin.buffer.readline()
        except KeyboardInterrupt:
            return
        if not line:
            return
        yield line.removesuffix(b"\n").removesuffix(b"\r")


@contextmanager
def _serve_reports(producer: BulkProducer) -> Iterator[None]:
    """Take in reports beside the reading, which may wait for a person for hours."""
    done = threading.Event()

    def serve() -> None:
        while not done.is_set():
            producer.serve(_SERVE_S)

    thread = threading.Thread(target=serve, name="reports", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _tell_failures(producer: BulkProducer, topic: str, *, forget: bool = False) -> None:
    seen: dict[str, int] = {}
    for failure in producer.failures:
        text = f"{type(failure).__name__}: {failure}"
        seen[text] = seen.get(text, 0) + 1
    for text, count in seen.items():
        records = "1 record" if count == 1 else f"{count} records"
        print(f"Error when sending {records} to topic {topic}: {text}", file=sys.stderr)
    if forget:
        producer.failures.clear()


def _check_topic(settings: Mapping[str, object], topic: str) -> None:
    code = reach(settings, [topic], create=True).get(topic, 0)
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        # A broker that creates topics says so once, while it creates.
        code = reach(settings, [topic], create=True).get(topic, 0)
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise CommandError(f"Topic {topic} does not exist, and the broker does not create it.")
    if code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
        error = error_for(code)
        raise CommandError(f"Topic {topic} cannot be written to: {type(error).__name__}.")


def _own_settings(parser: ToolParser, options: argparse.Namespace) -> dict[str, object]:
    codec = options.compression_codec
    if codec is not None and codec not in _CODECS:
        parser.error(f"--compression-codec {codec} is not one of {', '.join(_CODECS)}")
    return {
        "acks": options.request_required_acks,
        "linger.ms": options.timeout,
        "batch.size": options.max_partition_memory_bytes or options.batch_size,
        "retries": options.message_send_max_retries,
        "retry.backoff.ms": options.retry_backoff_ms,
        "request.timeout.ms": options.request_timeout_ms,
        "buffer.memory": options.max_memory_bytes,
        "max.block.ms": options.max_block_ms,
        "metadata.max.age.ms": options.metadata_expiry_ms,
        "send.buffer.bytes": options.socket_buffer_size,
        "compression.type": codec,
    }


def _parser() -> ToolParser:
    parser = ToolParser(
        "kafka-console-producer",
        "This tool helps to read data from standard input and publish it to Kafka.",
    )
    add_bootstrap(parser, broker_list=True)
    add_client_options(parser, "producer")
    option = parser.add_argument
    option("--topic", metavar="topic", help="REQUIRED: The topic name to produce messages to.")
    option(
        "--compression-codec",
        nargs="?",
        const="gzip",
        metavar="compression-codec",
        help="The compression codec: either 'none', 'gzip', 'snappy', 'lz4', or 'zstd'. If "
        "specified without value, then it defaults to 'gzip'",
    )
    parser.flag("sync", "Send one at a time: wait for the answer before the next line.")
    option(
        "--request-required-acks",
        metavar="request required acks",
        help="The required `acks` of the producer requests: 0, 1 or -1 (default: -1)",
    )
    numbers = {
        "timeout": ("timeout_ms", "How long records may wait for a full batch (default: 1000)"),
        "batch-size": ("size", "Size of a batch in bytes (default: 16384)"),
        "max-partition-memory-bytes": ("size", "(DEPRECATED) Use --batch-size instead."),
        "max-memory-bytes": ("size", "Memory for waiting records (default: 33554432)"),
        "max-block-ms": ("time", "How long to wait for memory or metadata (default: 60000)"),
        "message-send-max-retries": (
            "count",
            "How often a failed record is sent again (default: 3)",
        ),
        "retry-backoff-ms": ("time", "Pause before a retry (default: 100)"),
        "request-timeout-ms": ("time", "How long to wait for an answer (default: 1500)"),
        "metadata-expiry-ms": ("time", "How old metadata may become (default: 300000)"),
        "socket-buffer-size": ("size", "Size of the TCP send buffer (default: 102400)"),
    }
    for name, (value, text) in numbers.items():
        option(f"--{name}", type=int, metavar=value, help=text)
    _add_reader_options(parser)
    return parser


def _add_reader_options(parser: ToolParser) -> None:
    option = parser.add_argument
    option(
        "--reader-property",
        action="append",
        default=[],
        metavar="prop",
        help="How lines are read. Default properties include:\n parse.key=false\n "
        "parse.headers=false\n ignore.error=false\n key.separator=\\t\n headers.delimiter=\\t\n "
        "headers.separator=,\n headers.key.separator=:\n null.marker=   When set, any fields (key, "
        "value and headers) equal to this will be replaced by null",
    )
    option(
        "--property",
        action="append",
        default=[],
        metavar="prop",
        help="(DEPRECATED) Use --reader-property instead.",
    )
    option("--reader-config", metavar="config file", help="Properties file for reading lines.")
    option(
        "--line-reader", metavar="reader_class", help="Accepted; there is one way to read lines."
    )
