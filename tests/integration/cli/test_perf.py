"""The perf tests: progress while they run, Kafka's report lines at the end."""

import re
from pathlib import Path

import pytest
from tests.integration.cli.conftest import Tool

NUMBER = r"\d+(\.\d+)?"
TOTAL = re.compile(
    rf"(\d+) records sent, {NUMBER} records/sec \({NUMBER} MB/sec\), {NUMBER} ms avg latency, "
    rf"{NUMBER} ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\."
)
WINDOW = re.compile(
    rf"(\d+) records sent, {NUMBER} records/sec \({NUMBER} MB/sec\), {NUMBER} ms avg latency, "
    rf"{NUMBER} ms max latency\."
)
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"


@pytest.fixture
def topic(tool: Tool, request: pytest.FixtureRequest) -> str:
    name = f"perf-{abs(hash(request.node.name))}"
    tool("topics", "--create", "--topic", name, "--partitions", 3)
    return name


def test_records_are_produced_at_a_pace_and_consumed(tool: Tool, topic: str) -> None:
    words = ["--topic", topic, "--num-records", 4000, "--record-size", 100, "--throughput", 4000]
    props = ["--producer-props", "acks=1", "linger.ms=5"]
    done = tool("producer-perf-test", *words, "--reporting-interval", 200, *props)
    *windows, total = done.lines
    found = TOTAL.fullmatch(total)
    assert found is not None
    assert found.group(1) == "4000"
    counts = [WINDOW.fullmatch(line) for line in windows]
    assert len(counts) >= 3
    assert all(counts)
    assert sum(int(one.group(1)) for one in counts if one) <= 4000
    done = tool("consumer-perf-test", "--topic", topic, "--num-records", 4000)
    header, line = done.lines
    assert header.startswith("start.time, end.time, data.consumed.in.MB, MB.sec,")
    columns = line.split(", ")
    assert re.fullmatch(TIME, columns[0])
    assert columns[2] == f"{4000 * 100 / 1024 / 1024:.4f}"
    assert columns[4] == "4000"
    assert len(columns) == len(header.split(", "))


def test_bytes_count_that_are_stored_only_at_the_end(tool: Tool, topic: str) -> None:
    words = ["--topic", topic, "--num-records", 50, "--record-size", 10_000, "--throughput", -1]
    # Fewer than fill a batch: nothing leaves before the last was handed over.
    props = ["--producer-props", "linger.ms=10000", "batch.size=1000000"]
    done = tool("producer-perf-test", *words, *props)
    rates = re.search(r", (\S+) records/sec \((\S+) MB/sec\)", done.lines[-1])
    assert rates is not None
    records, megabytes = map(float, rates.groups())
    assert megabytes == pytest.approx(records * 10_000 / 1024 / 1024, abs=0.006)


def test_details_are_printed_by_interval(tool: Tool, topic: str) -> None:
    words = ["--topic", topic, "--num-records", 1000, "--record-size", 10, "--throughput", -1]
    tool("producer-perf-test", *words)
    words = ["--topic", topic, "--num-records", 2000, "--timeout", 5000, "--show-detailed-stats"]
    done = tool("consumer-perf-test", *words, "--reporting-interval", 100)
    header, *lines = done.lines
    assert header.startswith("time, threadId, data.consumed.in.MB")
    assert lines[-1].startswith("WARNING: Exiting before consuming the expected number")
    assert re.match(rf"{TIME}, 0, {NUMBER}, {NUMBER}, 1000, ", lines[-2])


def test_payloads_warm_up_and_metrics(tool: Tool, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "payloads"
    file.write_text("alpha\nbeta\n")
    words = ["--topic", topic, "--num-records", 500, "--throughput", 2000]
    more = ["--payload-file", file, "--warmup-records", 100, "--print-metrics"]
    done = tool("producer-perf-test", *words, *more)
    assert "Number of records read: 2" in done.out
    assert any(TOTAL.match(line) and line.endswith("(steady state)") for line in done.lines)
    assert any(line.startswith("producer-metrics:record-send-rate:") for line in done.lines)
    read = tool("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", 500)
    assert set(read.lines) == {"alpha", "beta"}


def test_a_topic_that_does_not_exist_is_told(tool: Tool) -> None:
    done = tool("consumer-perf-test", "--topic", "nope", "--num-records", 1, code=1)
    assert done.err == "Topic nope does not exist.\n"
