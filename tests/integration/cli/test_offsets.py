"""Offsets, directories, versions and files: the tools that look."""

import json
import re
from pathlib import Path

import pytest
from tests.integration.cli.conftest import Tool, run
from tests.support.broker import BrokerProcess


@pytest.fixture
def filled(tool: Tool) -> str:
    """A topic with five records in partition 0 of 2."""
    tool("topics", "--create", "--topic", "off", "--partitions", 2, "--if-not-exists")
    done = tool("get-offsets", "--topic", "off")
    if done.lines == ["off:0:0", "off:1:0"]:
        words = ["--topic", "off", "--reader-property", "parse.key=true"]
        lines = "".join(f"k3\tv{number}\n" for number in range(5))
        tool("console-producer", *words, stdin=lines)
    return "off"


def total(tool: Tool, *words: object) -> int:
    return sum(int(line.rpartition(":")[2]) for line in tool("get-offsets", *words).lines)


def test_offsets_are_printed_by_partition(tool: Tool, filled: str) -> None:
    assert total(tool, "--topic", filled) == 5
    earliest = tool("get-offsets", "--topic", filled, "--time", "-2").lines
    assert [line.rpartition(":")[0] for line in earliest] == ["off:0", "off:1"]
    assert total(tool, "--topic", filled, "--time", "9999999999999") == 0
    assert total(tool, "--topic-partitions", f"{filled}:0-") == 5


def test_the_old_class_name_does_the_same(shared_broker: BrokerProcess, filled: str) -> None:
    words = ["--broker-list", shared_broker.address, "--topic", filled]
    done = run("run-class", "kafka.tools.GetOffsetShell", *words)
    assert [line.rpartition(":")[0] for line in done.lines] == ["off:0", "off:1"]


def test_no_match_is_told(tool: Tool) -> None:
    done = tool("get-offsets", "--topic", "nope", code=1)
    assert done.err == (
        "Error occurred: Could not match any topic-partitions with the specified filters\n"
    )


def test_records_are_deleted_up_to_an_offset(tool: Tool, tmp_path: Path) -> None:
    tool("topics", "--create", "--topic", "del")
    tool("console-producer", "--topic", "del", stdin="a\nb\nc\n")
    file = tmp_path / "offsets.json"
    entry = {"topic": "del", "partition": 0, "offset": 2}
    file.write_text(json.dumps({"partitions": [entry], "version": 1}))
    done = tool("delete-records", "--offset-json-file", file)
    assert done.lines == [
        "Executing records delete operation",
        "Records delete operation completed:",
        "partition: del-0\tlow_watermark: 2",
    ]
    assert tool("get-offsets", "--topic", "del", "--time", "earliest").lines == ["del:0:2"]
    file.write_text(json.dumps({"partitions": [{**entry, "offset": 99}], "version": 1}))
    done = tool("delete-records", "--offset-json-file", file)
    assert "error: OffsetOutOfRange: The log does not reach to offset 99." in done.out


def test_an_unknown_partition_does_not_stop_the_deletion_in_the_others(
    tool: Tool, tmp_path: Path
) -> None:
    tool("topics", "--create", "--topic", "partly")
    tool("console-producer", "--topic", "partly", stdin="a\nb\nc\n")
    file = tmp_path / "offsets.json"
    places = [("partly", 7), ("absent", 0), ("partly", 0)]
    entries = [{"topic": topic, "partition": number, "offset": 2} for topic, number in places]
    file.write_text(json.dumps({"partitions": entries, "version": 1}))
    # Apache's tool ends with 0 as well: the lines tell what became of each partition.
    done = tool("delete-records", "--offset-json-file", file)
    assert done.lines[2:] == [
        "partition: partly-7\terror: UnknownTopicOrPartition: Partition partly-7 does not exist.",
        "partition: absent-0\terror: UnknownTopicOrPartition: Topic 'absent' does not exist.",
        "partition: partly-0\tlow_watermark: 2",
    ]
    assert tool("get-offsets", "--topic", "partly", "--time", "earliest").lines == ["partly:0:2"]


def test_directories_are_told_as_json(
    shared_broker: BrokerProcess, tool: Tool, filled: str
) -> None:
    first, second, text = tool("log-dirs", "--describe", "--topic-list", filled).lines
    assert first == "Querying brokers for log directories information"
    assert second == "Received log directory information from brokers 0"
    (found,) = json.loads(text)["brokers"]
    (directory,) = found["logDirs"]
    assert (found["broker"], directory["error"]) == (0, None)
    assert directory["logDir"] == str(shared_broker.data)
    sizes = {one["partition"]: one["size"] for one in directory["partitions"]}
    assert set(sizes) == {"off-0", "off-1"}
    assert sum(sizes.values()) > 0
    done = tool("log-dirs", "--describe", "--broker-list", "7", code=1)
    assert "do not exist from --broker-list: 7. Current existent brokers: 0" in done.err


def test_versions_are_listed(shared_broker: BrokerProcess, tool: Tool) -> None:
    lines = tool("broker-api-versions").lines
    assert lines[0] == f"{shared_broker.address} (id: 0 rack: null isFenced: false) -> ("
    assert lines[1].startswith("\tProduce(0): 0 to 13 [usable: 13],")
    assert lines[-1] == ")"


def test_the_files_of_a_partition_are_dumped(shared_broker: BrokerProcess, tool: Tool) -> None:
    tool("topics", "--create", "--topic", "dump")
    words = ["--topic", "dump", "--reader-property", "parse.key=true"]
    tool("console-producer", *words, stdin="k1\tv1\nk2\tv2\n")
    directory = shared_broker.partition_dir("dump")
    log, index = (directory / f"{0:020d}{suffix}" for suffix in (".log", ".index"))
    done = run("dump-log", "--files", f"{log},{index}", "--print-data-log")
    assert done.code == 0
    assert done.lines[:2] == [f"Dumping {log}", "Log starting offset: 0"]
    assert re.fullmatch(
        r"baseOffset: 0 lastOffset: 1 count: 2 baseSequence: 0 lastSequence: 1 producerId: \d+ "
        r"producerEpoch: 0 partitionLeaderEpoch: \d+ isTransactional: false isControl: false "
        r"deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: \d+ size: \d+ magic: 2 "
        r"compresscodec: none crc: \d+ isvalid: true",
        done.lines[2],
    )
    assert done.lines[3].endswith("headerKeys: [] key: k1 payload: v1")
    assert done.lines[5] == f"Dumping {index}"
