"""kafka-server-start and kafka-server-stop: a broker from a properties file, found and stopped."""

import random
import subprocess
from pathlib import Path

import pytest
from tests.integration.cli.conftest import command, run
from tests.support.processes import HOST, ServerProcess, free_port


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    file = tmp_path / "server-1.properties"
    port = free_port()
    # An id that no other broker of the machine has: server-stop must find this one alone.
    file.write_text(
        "reserved.broker.max.id=2147483647\n"
        f"broker.id={random.SystemRandom().randrange(10_000, 2_000_000)}\n"
        f"listeners=PLAINTEXT://{HOST}:{port}\nlog.dirs={tmp_path / 'data'}\n"
    )
    return file


def setting(file: Path, name: str) -> str:
    lines = dict(line.split("=", 1) for line in file.read_text().splitlines())
    return lines[name]


def test_a_broker_starts_from_its_file_and_stops_when_asked(properties: Path) -> None:
    port = int(setting(properties, "listeners").rpartition(":")[2])
    words = command("kafka-server-start", properties, "--override", "num.partitions=3")
    broker_id = setting(properties, "broker.id")
    with ServerProcess(words, port=port, log_path=properties.parent / "log") as broker:
        broker.start()
        listed = run("broker-api-versions", "--bootstrap-server", broker.address)
        assert f"(id: {broker_id} rack: null" in listed.lines[0]
        assert "num.partitions = 3" in broker.log
        assert run("server-stop", "--node-id", broker_id).code == 0
        assert broker.wait() == 0


def test_without_such_a_broker_there_is_nothing_to_stop() -> None:
    done = run("server-stop", "--node-id", "987654321")
    assert (done.code, done.err) == (1, "No kafka server to stop\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere.properties"], "cannot read the properties file nowhere.properties"),
        (["--override", "num.partitions"], "is not of the form key=value"),
        (["--zork"], "zork is not a recognized option"),
    ],
)
def test_a_start_that_cannot_be_is_one_sentence(words: list[str], sentence: str) -> None:
    done = run("server", *words)
    assert done.code == 1
    assert sentence in done.err.splitlines()[0]


def test_a_broker_may_start_in_the_background(properties: Path) -> None:
    port = int(setting(properties, "listeners").rpartition(":")[2])
    broker_id = setting(properties, "broker.id")
    words = command("kafka-server-start", "-daemon", properties)
    done = subprocess.run(words, cwd=properties.parent, timeout=120, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    address = f"{HOST}:{port}"
    try:
        for _ in range(200):
            listed = run("topics", "--bootstrap-server", address, "--list")
            if listed.code == 0:
                break
        assert listed.code == 0
    finally:
        stopped = run("server-stop", "--node-id", broker_id)
    assert stopped.code == 0
    assert "KafkaConfig values" in (properties.parent / "logs" / "kafkaServer.out").read_text()
