"""Every tool without a broker: one sentence, code 1, and not after minutes."""

import time
from pathlib import Path

import pytest
from tests.integration.cli.conftest import run
from tests.support.processes import HOST, free_port

TOPIC = ["--topic", "t"]
PERF = ["--num-records", "5"]


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("topics", ["--list"]),
        ("console-producer", TOPIC),
        ("console-consumer", TOPIC),
        ("get-offsets", TOPIC),
        ("configs", ["--describe", *TOPIC]),
        ("log-dirs", ["--describe"]),
        ("broker-api-versions", []),
        ("producer-perf-test", [*TOPIC, *PERF, "--record-size", "1", "--throughput", "-1"]),
        ("consumer-perf-test", [*TOPIC, *PERF]),
    ],
)
def test_a_broker_that_is_not_there_is_one_sentence(tool: str, words: list[str]) -> None:
    address = f"{HOST}:{free_port()}"
    start_s = time.monotonic()
    done = run(tool, "--bootstrap-server", address, *words, stdin="line\n")
    assert done.code == 1
    (line,) = done.err.splitlines()
    assert line.endswith(
        f"Connection to {address} could not be established. Is a broker running there?"
    )
    assert time.monotonic() - start_s < 30


def test_a_missing_settings_file_is_named(tmp_path: Path) -> None:
    words = ["--command-config", str(tmp_path / "none.properties"), "--list"]
    done = run("topics", "--bootstrap-server", "localhost:1", *words)
    assert done.code == 1
    assert "none.properties" in done.err
