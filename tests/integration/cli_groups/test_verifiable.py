"""The verifiable tools: every event a line of JSON, from the start to a stop in good order."""

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.integration.cli.conftest import Tool, command, start
from tests.integration.cli_groups.conftest import Cluster
from tests.support.waiting import eventually


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def names(found: list[dict[str, Any]]) -> list[str]:
    return [event["name"] for event in found]


class Running:
    """A tool at work and the events it has told."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.events: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.events.append(json.loads(line))

    def has_told(self, name: str) -> list[dict[str, Any]]:
        """The events of a name, as soon as there is one."""
        return eventually(
            lambda: [event for event in self.events if event["name"] == name],
            timeout_s=120,
            what=name,
        )

    def stop(self) -> list[dict[str, Any]]:
        """SIGTERM, and all events."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(120) == 0
        self._reader.join(120)
        return self.events


@contextmanager
def running(cluster: Cluster, tool: str, *words: object) -> Iterator[Running]:
    process = start(command(tool, "--bootstrap-server", cluster.address, *words))
    try:
        yield Running(process)
    finally:
        process.kill()
        process.wait()


def test_every_record_sent_is_told_with_its_place(tool: Tool, cluster: Cluster) -> None:
    topic = cluster.create("sent")
    words = ["--topic", topic, "--max-messages", 5, "--repeating-keys", 2, "--value-prefix", 7]
    told = events(tool("verifiable-producer", *words, "--message-create-time", 1234).out)
    assert names(told) == [
        "startup_complete",
        *["producer_send_success"] * 5,
        "shutdown_complete",
        "tool_data",
    ]
    assert list(told[1]) == ["timestamp", "name", "key", "value", "offset", "topic", "partition"]
    assert [(e["key"], e["value"], e["offset"], e["partition"]) for e in told[1:6]] == [
        ("0", "7.0", 0, 0),
        ("1", "7.1", 1, 0),
        ("0", "7.2", 2, 0),
        ("1", "7.3", 3, 0),
        ("0", "7.4", 4, 0),
    ]
    summary = told[-1]
    assert (summary["sent"], summary["acked"], summary["target_throughput"]) == (5, 5, -1)
    assert summary["avg_throughput"] > 0
    printed = ["--formatter-property", "print.timestamp=true", "--max-messages", 1]
    lines = tool("console-consumer", "--topic", topic, "--from-beginning", *printed).lines
    assert lines == ["CreateTime:1234\t7.0"]


def test_a_record_that_cannot_be_sent_is_told_too(tool: Tool, cluster: Cluster) -> None:
    told = events(tool("verifiable-producer", "--topic", "a/b", "--max-messages", 1).out)
    error = told[1]
    assert (error["name"], error["topic"], error["value"]) == ("producer_send_error", "a/b", "0")
    assert error["exception"].endswith("InvalidTopic") and error["message"]
    assert (told[-1]["sent"], told[-1]["acked"]) == (1, 0)


def test_a_producer_keeps_its_pace_and_stops_when_told(cluster: Cluster) -> None:
    topic = cluster.create("paced")
    with running(cluster, "verifiable-producer", "--topic", topic, "--throughput", 50) as producer:
        eventually(lambda: len(producer.events) > 20, timeout_s=120)
        told = producer.stop()
    acked = [event for event in told if event["name"] == "producer_send_success"]
    assert names(told)[-2:] == ["shutdown_complete", "tool_data"]
    assert told[-1]["acked"] == told[-1]["sent"] == len(acked)
    assert told[-1]["avg_throughput"] < 60
    assert [event["offset"] for event in acked] == list(range(len(acked)))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_tells_all_that_happens_to_it(tool: Tool, cluster: Cluster, protocol: str) -> None:
    topic, group = cluster.create(f"told-{protocol}", records=5), f"told-{protocol}"
    words = ["--topic", topic, "--group-id", group, "--group-protocol", protocol, "--verbose"]
    told = events(tool("verifiable-consumer", *words, "--max-messages", 3).out)
    assert names(told) == [
        "startup_complete",
        "partitions_assigned",
        *["record_data"] * 3,
        "records_consumed",
        "offsets_committed",
        "partitions_revoked",
        "shutdown_complete",
        "shutdown_requested",
    ]
    place = {"topic": topic, "partition": 0}
    assert told[1]["partitions"] == told[7]["partitions"] == [place]
    assert [event["value"] for event in told[2:5]] == ["v0", "v1", "v2"]
    assert list(told[2])[2:] == ["key", "value", "topic", "partition", "offset"]
    assert told[5]["partitions"] == [{**place, "count": 3, "minOffset": 0, "maxOffset": 2}]
    assert told[6]["offsets"] == [{**place, "offset": 3}]
    assert told[6]["success"] is True
    told = events(tool("verifiable-consumer", *words, "--max-messages", 2).out)
    assert [e["value"] for e in told if e["name"] == "record_data"] == ["v3", "v4"]


def test_a_second_member_takes_its_share(cluster: Cluster) -> None:
    topic = cluster.create("shared-out", 2, records=1)
    words = ["--topic", topic, "--group-id", "shared-out"]
    with running(cluster, "verifiable-consumer", *words) as first:
        assert len(first.has_told("partitions_assigned")[0]["partitions"]) == 2
        with running(cluster, "verifiable-consumer", *words) as second:
            assert len(second.has_told("partitions_assigned")[0]["partitions"]) == 1
            first.has_told("partitions_revoked")
            told = second.stop()
        assert names(told)[-3:] == ["shutdown_requested", "partitions_revoked", "shutdown_complete"]
        eventually(
            lambda: [len(e["partitions"]) for e in first.has_told("partitions_assigned")][-1] == 2,
            timeout_s=120,
            what="the whole topic again",
        )


def test_with_automatic_commits_nothing_is_told_of_them(tool: Tool, cluster: Cluster) -> None:
    topic = cluster.create("automatic", records=3)
    words = ["--topic", topic, "--group-id", "automatic", "--enable-autocommit"]
    told = events(tool("verifiable-consumer", *words, "--max-messages", 3).out)
    assert "offsets_committed" not in names(told)
    described = tool("consumer-groups", "--describe", "--group", "automatic").lines[2]
    assert described.split()[3] == "3"


def test_no_broker_is_one_sentence() -> None:
    for tool, words in (
        ("verifiable-producer", ["--topic", "t"]),
        ("verifiable-consumer", ["--topic", "t", "--group-id", "g"]),
    ):
        done = subprocess.run(
            command(tool, "--bootstrap-server", "127.0.0.1:1", *words),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.startswith("Connection to 127.0.0.1:1 could not be established.")
