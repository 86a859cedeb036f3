"""Apache Kafka's own tools on our broker and our files, beside ours: the words must be the same."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.integration.cli.conftest import Tool, run
from tests.support.broker import BrokerProcess
from tests.support.outside import needs

pytestmark = pytest.mark.kafka

Theirs = Callable[..., list[str]]


@pytest.fixture(scope="module")
def theirs() -> Theirs:
    """Runs a tool of Apache Kafka by its class; the lines it prints."""
    jars = needs("kafka-4.3.1")
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]

    def run_class(name: str, *words: object) -> list[str]:
        command = ["java", *options, "-cp", f"{jars}/*", name, *(str(word) for word in words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return [line for line in done.stdout.splitlines() if "StatusLogger" not in line]

    return run_class


@pytest.fixture
def filled(tool: Tool) -> None:
    """A topic with settings and records."""
    tool("topics", "--create", "--topic", "words", "--partitions", 2, "--if-not-exists")
    tool("configs", "--alter", "--topic", "words", "--add-config", "retention.ms=-1,flush.ms=500")
    stdin = "".join(f"a:1,b:2\tk{number}\tv{number}\n" for number in range(10))
    properties = ["--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"]
    words = ["--topic", "words", "--compression-codec", "gzip"]
    tool("console-producer", *words, *properties, stdin=stdin)


@pytest.mark.parametrize(
    ("name", "java", "words"),
    [
        ("topics", "org.apache.kafka.tools.TopicCommand", ["--describe", "--topic", "words"]),
        ("configs", "kafka.admin.ConfigCommand", ["--describe", "--topic", "words"]),
        ("configs", "kafka.admin.ConfigCommand", ["--describe", "--broker", "0", "--all"]),
        ("get-offsets", "org.apache.kafka.tools.GetOffsetShell", ["--topic", "words"]),
    ],
)
def test_what_is_described_is_described_alike(
    shared_broker: BrokerProcess,
    tool: Tool,
    theirs: Theirs,
    filled: None,
    name: str,
    java: str,
    words: list[str],
) -> None:
    expected = theirs(java, "--bootstrap-server", shared_broker.address, *words)
    assert in_order(tool(name, *words).lines) == in_order(expected)


def in_order(lines: list[str]) -> list[str]:
    """The settings of a topic sorted: Java's hash map puts them in no order that means anything."""
    parts = (line.partition("Configs: ") for line in lines)
    return [
        before + mark + ",".join(sorted(settings.split(","))) for before, mark, settings in parts
    ]


def test_directories_are_described_alike(
    shared_broker: BrokerProcess, tool: Tool, theirs: Theirs, filled: None
) -> None:
    words = ["--describe", "--topic-list", "words"]
    address = ["--bootstrap-server", shared_broker.address]
    expected = theirs("org.apache.kafka.tools.LogDirsCommand", *address, *words)
    found = tool("log-dirs", *words).lines
    assert found[:2] == expected[:2]
    assert ordered(json.loads(found[2])) == ordered(json.loads(expected[2]))


def ordered(document: Any) -> Any:
    """Kafka lists partitions in the order of a hash table."""
    for broker in document["brokers"]:
        for directory in broker["logDirs"]:
            directory["partitions"].sort(key=lambda one: one["partition"])
    return document


def test_files_are_dumped_alike(
    shared_broker: BrokerProcess, tool: Tool, theirs: Theirs, filled: None
) -> None:
    files = [
        str(Path(shared_broker.partition_dir("words", number)) / f"{0:020d}{suffix}")
        for number in range(2)
        for suffix in (".log", ".index", ".timeindex")
    ]
    words = ["--files", ",".join(files), "--print-data-log"]
    expected = theirs("org.apache.kafka.tools.DumpLogSegments", *words)
    found = run("dump-log", *words)
    assert found.code == 0
    assert found.lines == expected
    assert sum(" payload: v" in line for line in expected) >= 10


BOOTSTRAP = ["--bootstrap-server", "localhost:1"]


def check_refusal(name: str, java: str, *words: str) -> None:
    """The first line and the exit code are those of Apache Kafka's tool."""
    jars = needs("kafka-4.3.1")
    command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", java, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    ours = run(name, *words)
    lines = [line for line in done.stderr.splitlines() if "StatusLogger" not in line]
    assert same_names(ours.err.splitlines()[0]) == same_names(lines[0])
    assert ours.code == done.returncode


def same_names(line: str) -> list[str]:
    """Where Kafka names several options, it does in the order of a hash table."""
    return sorted(line.replace(": ", ", ").split(", "))


@pytest.mark.parametrize(
    ("name", "java", "words"),
    [
        ("topics", "TopicCommand", ["--list", "--zork"]),
        ("topics", "TopicCommand", ["--create", "--topic"]),
        ("console-consumer", "consumer.ConsoleConsumer", []),
        ("console-consumer", "consumer.ConsoleConsumer", ["--topic", "t", "--partition"]),
        ("console-producer", "ConsoleProducer", []),
        ("consumer-groups", "consumer.group.ConsumerGroupCommand", ["--describe"]),
        ("delete-records", "DeleteRecordsCommand", []),
        ("get-offsets", "GetOffsetShell", ["--time"]),
        ("consumer-perf-test", "ConsumerPerformance", ["--topic", "t", "--num-records", "x"]),
    ],
)
def test_a_mistake_is_told_in_the_same_words(name: str, java: str, words: list[str]) -> None:
    check_refusal(name, f"org.apache.kafka.tools.{java}", *BOOTSTRAP, *words)


@pytest.mark.parametrize(
    ("name", "java"),
    [
        ("topics", "org.apache.kafka.tools.TopicCommand"),
        ("configs", "kafka.admin.ConfigCommand"),
        ("console-producer", "org.apache.kafka.tools.ConsoleProducer"),
        ("get-offsets", "org.apache.kafka.tools.GetOffsetShell"),
        ("groups", "org.apache.kafka.tools.GroupsCommand"),
        ("streams-application-reset", "org.apache.kafka.tools.StreamsResetter"),
    ],
)
def test_a_tool_called_without_a_word_says_what_it_is_for(name: str, java: str) -> None:
    check_refusal(name, java)
