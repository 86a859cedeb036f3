"""kafka-console-producer and kafka-console-consumer: lines in, lines out."""

import contextlib
import signal
import subprocess
from collections.abc import Iterator

import pytest
from tests.integration.cli.conftest import Tool, command, start
from tests.support.broker import BrokerProcess

READ_ALL = ["--from-beginning", "--timeout-ms", "1500"]


def printed(tool: Tool, topic: str, count: int, *words: object) -> list[str]:
    """So many records of a topic."""
    done = tool(
        "console-consumer", "--topic", topic, "--from-beginning", "--max-messages", count, *words
    )
    assert done.err == f"Processed a total of {count} messages\n"
    return done.lines


def show(*names: str) -> list[str]:
    return [word for name in names for word in ("--formatter-property", f"print.{name}=true")]


def test_lines_become_records_in_order(tool: Tool) -> None:
    tool("topics", "--create", "--topic", "lines")
    text = "".join(f"line {number}\n" for number in range(500)) + "the last has no end"
    done = tool("console-producer", "--topic", "lines", stdin=text)
    assert (done.out, done.err) == ("", "")
    assert printed(tool, "lines", 501) == text.splitlines()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_is_read_back(tool: Tool, codec: str) -> None:
    topic = f"codec-{codec}"
    tool("topics", "--create", "--topic", topic)
    lines = [f"{codec} {number}" for number in range(100)]
    stdin = "".join(f"{line}\n" for line in lines)
    tool("console-producer", "--topic", topic, "--compression-codec", codec, stdin=stdin)
    assert printed(tool, topic, 100) == lines


@pytest.mark.parametrize("acks", ["0", "1", "-1"])
def test_every_kind_of_acks_stores_the_record(tool: Tool, acks: str) -> None:
    topic = f"acks{acks}"
    tool("topics", "--create", "--topic", topic)
    tool("console-producer", "--topic", topic, "--request-required-acks", acks, stdin="v\n")
    assert printed(tool, topic, 1) == ["v"]


def test_keys_and_headers_are_read_and_printed(tool: Tool) -> None:
    tool("topics", "--create", "--topic", "keyed")
    properties = ["parse.key=true", "parse.headers=true", "null.marker=NULL", "key.separator=:"]
    words = [word for prop in properties for word in ("--reader-property", prop)]
    stdin = "a=1,b=2\tk1:v1\nNULL\tk2:NULL\n"
    words += ["--reader-property", "headers.key.separator=="]
    tool("console-producer", "--topic", "keyed", *words, stdin=stdin)
    wanted = show("key", "headers", "partition", "offset")
    assert printed(tool, "keyed", 2, *wanted) == [
        "Partition:0\tOffset:0\ta:1,b:2\tk1\tv1",
        "Partition:0\tOffset:1\tNO_HEADERS\tk2\tnull",
    ]


def test_old_option_names_still_work(shared_broker: BrokerProcess, tool: Tool) -> None:
    from tests.integration.cli.conftest import run

    tool("topics", "--create", "--topic", "old")
    done = run(
        "console-producer",
        "--broker-list",
        shared_broker.address,
        "--topic",
        "old",
        "--property",
        "parse.key=true",
        "--producer-property",
        "acks=1",
        stdin="k\tv\n",
    )
    assert done.code == 0
    assert "Use --reader-property instead" in done.err
    done = run(
        "console-consumer",
        "--zookeeper",
        shared_broker.address,
        "--topic",
        "old",
        "-from-beginning",
        "--new-consumer",
        "--max-messages",
        "1",
    )
    assert done.out == "v\n"


def test_a_bad_line_ends_the_producer_after_the_good_ones(tool: Tool) -> None:
    tool("topics", "--create", "--topic", "bad")
    words = ["--topic", "bad", "--reader-property", "parse.key=true"]
    done = tool("console-producer", *words, stdin="k\tv\nnokey\n", code=1)
    assert done.err == "No key separator found on line number 2: 'nokey'\n"
    assert printed(tool, "bad", 1) == ["v"]


def test_records_too_large_are_told_and_the_others_stored(tool: Tool) -> None:
    tool("topics", "--create", "--topic", "small", "--config", "max.message.bytes=1000")
    words = ["--topic", "small", "--sync"]
    stdin = "first\n" + "x" * 5000 + "\nlast\n"
    done = tool("console-producer", *words, stdin=stdin, code=1)
    assert done.err.startswith("Error when sending 1 record to topic small: RecordTooLarge")
    assert printed(tool, "small", 2) == ["first", "last"]


def test_a_partition_is_read_from_an_offset(tool: Tool) -> None:
    tool("topics", "--create", "--topic", "part", "--partitions", 1)
    tool("console-producer", "--topic", "part", stdin="a\nb\nc\nd\n")
    base = ["--topic", "part", "--partition", "0", "--timeout-ms", "1500"]
    assert tool("console-consumer", *base, "--offset", "2").lines == ["c", "d"]
    assert tool("console-consumer", *base, "--offset", "earliest").lines == ["a", "b", "c", "d"]
    assert tool("console-consumer", *base, "--offset", "latest").lines == []
    assert tool("console-consumer", *base, "--from-beginning", "--max-messages", 1).lines == ["a"]


def test_all_partitions_are_read_without_a_group(tool: Tool) -> None:
    tool("topics", "--create", "--topic", "many", "--partitions", 6)
    lines = [f"key{n}\t{n}" for n in range(60)]
    stdin = "".join(f"{line}\n" for line in lines)
    tool("console-producer", "--topic", "many", "--reader-property", "parse.key=true", stdin=stdin)
    assert sorted(printed(tool, "many", 60, *show("key"))) == sorted(lines)


def test_topics_can_be_read_by_pattern(tool: Tool) -> None:
    for name in ("inc-1", "inc-2"):
        tool("topics", "--create", "--topic", name)
        tool("console-producer", "--topic", name, stdin=f"{name}\n")
    done = tool("console-consumer", "--include", "inc-.*", *READ_ALL)
    assert sorted(done.lines) == ["inc-1", "inc-2"]


def test_values_are_deserialized_by_javas_names(tool: Tool) -> None:
    tool("topics", "--create", "--topic", "long")
    tool("console-producer", "--topic", "long", stdin="12345678\n")
    name = "org.apache.kafka.common.serialization.LongDeserializer"
    words = ["--value-deserializer", name]
    assert printed(tool, "long", 1, *words) == [str(int.from_bytes(b"12345678", "big"))]


def test_a_value_that_cannot_be_read_halts_or_is_skipped(tool: Tool) -> None:
    tool("topics", "--create", "--topic", "skip")
    tool("console-producer", "--topic", "skip", stdin="12345678\nshort\n87654321\n")
    words = ["--topic", "skip", "--from-beginning", "--value-deserializer", "long"]
    done = tool("console-consumer", *words, "--max-messages", 3, code=1)
    assert "cannot be deserialized" in done.err
    assert len(done.lines) == 1
    done = tool("console-consumer", *words, "--max-messages", 3, "--skip-message-on-error")
    assert len(done.lines) == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--topic", "a/b"], "Topic a/b cannot be read: InvalidTopic."),
        (["--topic", "lines", "--partition", "9"], "has no partition 9"),
        (["--topic", "lines", "--offset", "5"], "The partition is required when offset"),
        (["--topic", "lines", "--include", "x"], "required: [topic], [include]"),
        (["--topic", "lines", "--formatter-property", "print.kye=true"], "print.kye"),
        (["--topic", "lines", "--consumer-property", "fetch.min=1"], "'fetch.min' is not"),
    ],
)
def test_what_cannot_be_read_is_told(tool: Tool, words: list[str], sentence: str) -> None:
    tool("topics", "--create", "--topic", "lines", "--if-not-exists")
    done = tool("console-consumer", *words, code=1)
    assert sentence in done.err


@contextlib.contextmanager
def consumer(broker: BrokerProcess, topic: str, *words: object) -> Iterator[subprocess.Popen[str]]:
    """A console consumer that runs beside the test."""
    line = command(
        "console-consumer", "--bootstrap-server", broker.address, "--topic", topic, *words
    )
    process = start(line)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_running_consumer_prints_at_once_and_stops_cleanly(
    shared_broker: BrokerProcess, tool: Tool, number: int
) -> None:
    topic = f"live-{int(number)}"
    tool("topics", "--create", "--topic", topic)
    with consumer(shared_broker, topic, "--from-beginning") as process:
        tool("console-producer", "--topic", topic, stdin="now\n")
        assert process.stdout is not None
        assert process.stdout.readline() == "now\n"
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
    assert err == "Processed a total of 1 messages\n"
    assert process.returncode == 130


def test_a_running_consumer_picks_up_new_partitions(
    shared_broker: BrokerProcess, tool: Tool
) -> None:
    tool("topics", "--create", "--topic", "grow")
    with consumer(shared_broker, "grow", "--from-beginning") as process:
        assert process.stdout is not None
        tool("console-producer", "--topic", "grow", stdin="before\n")
        assert process.stdout.readline() == "before\n"
        tool("topics", "--alter", "--topic", "grow", "--partitions", 20)
        lines = [f"k{number}\tv{number}" for number in range(40)]
        stdin = "".join(f"{line}\n" for line in lines)
        words = ["--topic", "grow", "--reader-property", "parse.key=true"]
        tool("console-producer", *words, stdin=stdin)
        seen = {process.stdout.readline().strip() for _ in range(40)}
        assert seen == {line.split("\t")[1] for line in lines}


def test_a_topic_is_created_by_its_first_use(tool: Tool) -> None:
    tool("console-producer", "--topic", "fresh", stdin="hello\n")
    assert printed(tool, "fresh", 1) == ["hello"]
