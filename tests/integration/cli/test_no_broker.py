"""Every tool without a broker: one sentence, code 1, and not after minutes."""

import subprocess
from pathlib import Path

import pytest
from tests.integration.cli.conftest import command, run
from tests.support.fixtures import StartBroker
from tests.support.processes import HOST, free_port
from tests.support.waiting import eventually

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
    done = run(tool, "--bootstrap-server", address, *words, stdin="line\n")
    assert done.code == 1
    (line,) = done.err.splitlines()
    assert line.endswith(
        f"Connection to {address} could not be established. Is a broker running there?"
    )


def test_a_consumer_whose_broker_goes_says_so_once_and_says_when_it_is_back(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = start_broker()
    run("topics", "--bootstrap-server", broker.address, "--create", *TOPIC)
    run("console-producer", "--bootstrap-server", broker.address, *TOPIC, stdin="before\n")
    said, read = tmp_path / "stderr", tmp_path / "stdout"
    words = ["--bootstrap-server", broker.address, *TOPIC, "--from-beginning"]
    words += ["--consumer-property", "reconnect.backoff.max.ms=100"]
    with said.open("wb") as err, read.open("wb") as out:
        consumer = subprocess.Popen(command("console-consumer", *words), stdout=out, stderr=err)
    try:
        eventually(lambda: "before" in read.read_text(), timeout_s=120)
        broker.kill()
        eventually(lambda: "Connection refused; it is tried again" in said.read_text())
        broker.start()
        eventually(lambda: " answers again" in said.read_text(), timeout_s=120)
        run("console-producer", "--bootstrap-server", broker.address, *TOPIC, stdin="after\n")
        eventually(lambda: "after" in read.read_text(), timeout_s=120)
    finally:
        consumer.terminate()
        consumer.wait(120)
    assert said.read_text().count("Connection refused") == 1, said.read_text()


def test_a_missing_settings_file_is_named(tmp_path: Path) -> None:
    words = ["--command-config", str(tmp_path / "none.properties"), "--list"]
    done = run("topics", "--bootstrap-server", "localhost:1", *words)
    assert done.code == 1
    assert "none.properties" in done.err
