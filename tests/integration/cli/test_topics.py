"""kafka-topics and kafka-configs on a broker: what they do and what they print."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.cli.conftest import Tool, run
from tests.support.broker import BrokerProcess


def partition_lines(tool: Tool, topic: str) -> list[str]:
    return tool("topics", "--describe", "--topic", topic).lines[1:]


def test_a_topic_lives_from_create_to_delete(tool: Tool) -> None:
    done = tool("topics", "--create", "--topic", "life", "--partitions", 2)
    assert done.out == "Created topic life.\n"
    assert "life" in tool("topics", "--list").lines
    header, *parts = tool("topics", "--describe", "--topic", "life").lines
    assert re.fullmatch(
        r"Topic: life\tTopicId: [\w-]{22}\tPartitionCount: 2\tReplicationFactor: 1"
        r"\tConfigs: min\.insync\.replicas=1",
        header,
    )
    assert parts == [
        f"\tTopic: life\tPartition: {i}\tLeader: 0\tReplicas: 0\tIsr: 0\tElr: \tLastKnownElr: "
        for i in range(2)
    ]
    tool("topics", "--alter", "--topic", "life", "--partitions", 5)
    assert len(partition_lines(tool, "life")) == 5
    tool("topics", "--delete", "--topic", "life")
    assert "life" not in tool("topics", "--list").lines


def test_settings_come_with_a_topic_and_can_be_changed(tool: Tool) -> None:
    tool(
        "topics",
        "--create",
        "--topic",
        "set",
        "--config",
        "retention.ms=360000",
        "--config",
        "cleanup.policy=compact,delete",
    )
    header = tool("topics", "--describe", "--topic", "set").lines[0]
    settings = header.rpartition("Configs: ")[2]
    assert set(re.split(r",(?=[a-z.]+=)", settings)) == {
        "cleanup.policy=compact,delete",
        "min.insync.replicas=1",
        "retention.ms=360000",
    }
    tool("topics", "--alter", "--topic", "set", "--config", "retention.ms=72000")
    tool("topics", "--alter", "--topic", "set", "--deleteConfig", "cleanup.policy")
    header = tool("topics", "--describe", "--topic", "set").lines[0]
    assert header.endswith("Configs: min.insync.replicas=1,retention.ms=72000")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--create", "--topic", "twice"], "Topic 'twice' already exists."),
        (["--delete", "--topic", "nope"], "Topic 'nope' does not exist as expected"),
        (["--describe", "--topic", "nope"], "Topic 'nope' does not exist as expected"),
        (["--alter", "--topic", "twice", "--partitions", "1"], "currently has 2 partition"),
        (["--create", "--topic", "a/b"], "Topic name is invalid"),
        (["--create", "--topic", "far", "--replication-factor", "3"], "replication factor"),
        (["--create", "--topic", "odd", "--config", "zork=1"], "zork"),
        (["--create", "--topic", "odd", "--config", "retention.ms=long"], "retention.ms"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_code_1(
    tool: Tool, words: list[str], sentence: str
) -> None:
    tool("topics", "--create", "--topic", "twice", "--partitions", 2, "--if-not-exists")
    done = tool("topics", *words, code=1)
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("Error while executing topic command : ")
    assert sentence.lower() in line.lower()


def test_existence_may_be_left_open(tool: Tool) -> None:
    tool("topics", "--create", "--topic", "open", "--if-not-exists")
    assert tool("topics", "--create", "--topic", "open", "--if-not-exists").out == ""
    tool("topics", "--delete", "--topic", "nope", "--if-exists")
    tool("topics", "--describe", "--topic", "nope", "--if-exists")
    tool("topics", "--alter", "--topic", "nope", "--partitions", 3, "--if-exists")


def test_topics_may_be_chosen_by_pattern_and_id(tool: Tool) -> None:
    for name in ("pat-1", "pat-2", "tap-1"):
        tool("topics", "--create", "--topic", name)
    assert tool("topics", "--list", "--topic", "pat.*").lines == ["pat-1", "pat-2"]
    header = tool("topics", "--describe", "--topic", "tap-1").lines[0]
    topic_id = header.split("\t")[1].removeprefix("TopicId: ")
    assert tool("topics", "--describe", "--topic-id", topic_id).lines[0] == header
    tool("topics", "--delete", "--topic", "pat.*")
    assert tool("topics", "--list", "--topic", "pat.*").lines == []


def test_old_words_name_the_same_broker(shared_broker: BrokerProcess) -> None:
    address = shared_broker.address
    listed = run("topics", "--bootstrap-server", address, "--list").out
    for words in (["-bootstrap-server", address], ["--zookeeper", address]):
        done = run("topics", *words, "-list")
        assert (done.code, done.out) == (0, listed)


def test_the_command_is_installed_under_kafkas_names(shared_broker: BrokerProcess) -> None:
    for name in ("kafka-topics", "kafka-topics.sh"):
        script = Path(sys.executable).with_name(name)
        words = [str(script), "--bootstrap-server", shared_broker.address, "--list"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")


def test_settings_are_shown_with_their_sources(tool: Tool) -> None:
    tool("topics", "--create", "--topic", "src", "--config", "segment.bytes=1048576")
    done = tool("configs", "--describe", "--entity-type", "topics", "--entity-name", "src")
    assert done.lines == [
        "Dynamic configs for topic src are:",
        "  segment.bytes=1048576 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:"
        "segment.bytes=1048576, DEFAULT_CONFIG:log.segment.bytes=1073741824}",
    ]
    everything = tool("configs", "--describe", "--topic", "src", "--all").lines
    assert everything[0] == "All configs for topic src are:"
    assert len(everything) > 30


def test_settings_of_a_topic_are_changed(tool: Tool) -> None:
    tool("topics", "--create", "--topic", "chg")
    added = "cleanup.policy=[compact,delete],retention.ms=5000"
    done = tool("configs", "--alter", "--topic", "chg", "--add-config", added)
    assert done.out == "Completed updating config for topic chg.\n"
    names = [
        line.split("=")[0].strip() for line in tool("configs", "--describe", "--topic", "chg").lines
    ]
    assert names[1:] == ["cleanup.policy", "retention.ms"]
    tool("configs", "--alter", "--topic", "chg", "--delete-config", "retention.ms,cleanup.policy")
    assert len(tool("configs", "--describe", "--topic", "chg").lines) == 1


def test_settings_may_come_from_a_file(tool: Tool, tmp_path: Path) -> None:
    file = tmp_path / "add.properties"
    file.write_text("retention.ms=777\n")
    tool("topics", "--create", "--topic", "fil")
    tool("configs", "--alter", "--topic", "fil", "--add-config-file", file)
    assert "retention.ms=777" in tool("configs", "--describe", "--topic", "fil").out


def test_settings_of_brokers_are_changed_for_one_and_for_all(tool: Tool) -> None:
    done = tool("configs", "--alter", "--broker-defaults", "--add-config", "log.cleaner.threads=2")
    assert done.out == "Completed updating default config for brokers in the cluster.\n"
    done = tool("configs", "--alter", "--broker", 0, "--add-config", "log.cleaner.threads=1")
    assert done.out == "Completed updating config for broker 0.\n"
    assert tool("configs", "--describe", "--entity-type", "brokers").lines == [
        "Dynamic configs for broker 0 are:",
        "  log.cleaner.threads=1 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:"
        "log.cleaner.threads=1, DYNAMIC_DEFAULT_BROKER_CONFIG:log.cleaner.threads=2, "
        "DEFAULT_CONFIG:log.cleaner.threads=1}",
        "Default configs for brokers in the cluster are:",
        "  log.cleaner.threads=2 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:"
        "log.cleaner.threads=2}",
        "  min.insync.replicas=1 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:"
        "min.insync.replicas=1}",
    ]
    for who in (["--broker", 0], ["--broker-defaults"]):
        tool("configs", "--alter", *who, "--delete-config", "log.cleaner.threads")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--alter", "--topic", "nope", "--add-config", "retention.ms=1"], "nope"),
        (["--alter", "--topic", "bad", "--add-config", "zork=1"], "zork"),
        (["--alter", "--topic", "bad", "--add-config", "retention.ms=abc"], "abc"),
        (["--alter", "--broker", "0", "--add-config", "broker.id=5"], "broker.id"),
    ],
)
def test_a_setting_that_cannot_be_is_told(tool: Tool, words: list[str], sentence: str) -> None:
    tool("topics", "--create", "--topic", "bad", "--if-not-exists")
    done = tool("configs", *words, code=1)
    (line,) = done.err.splitlines()
    assert line.startswith("Error while executing config command with args")
    assert sentence in line


def test_a_topic_without_settings_because_there_is_none(tool: Tool) -> None:
    done = tool("configs", "--describe", "--topic", "nope")
    assert done.out == "The topic 'nope' doesn't exist and doesn't have dynamic config.\n"


def test_a_group_is_given_settings_of_its_own(tool: Tool) -> None:
    beat = "consumer.heartbeat.interval.ms"
    group = ("--entity-type", "groups", "--entity-name", "billing")
    done = tool("kafka-configs", "--alter", *group, "--add-config", f"{beat}=6000")
    assert done.lines == ["Completed updating config for group billing."]
    shown = tool("kafka-configs", "--describe", "--entity-type", "groups").lines
    assert shown[0] == "Dynamic configs for group billing are:"
    assert shown[1].startswith(f"  {beat}=6000 sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:")
    tool("kafka-configs", "--alter", *group, "--delete-config", beat)
    assert tool("kafka-configs", "--describe", "--entity-type", "groups").lines == []
    refused = tool("kafka-configs", "--alter", *group, "--add-config", f"{beat}=1", code=1)
    bound = "group.consumer.min.heartbeat.interval.ms"
    assert f"{beat} must be greater than or equal to {bound}" in refused.out + refused.err
