"""`penstock streams` as its users run it: processes against a broker, signals, resets, a replay."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cli.conftest import Done, command, run, start
from tests.integration.spark.crashing import consumed
from tests.support.broker import BrokerProcess
from tests.support.streams_spark import Feed, create, long_of
from tests.support.waiting import eventually

from penstock.client.operations.offsets import OffsetSpec, list_offsets
from penstock.client.values import OffsetAndTimestamp, TopicPartition
from penstock.client.wire.raw_cluster import cluster_for

pytestmark = pytest.mark.timeout(1800)
WAIT_S = 400  # Spark is started three times.
APP = "counting"
FILE = """
from penstock.streams import LONG, STRING, StreamsBuilder

builder = StreamsBuilder(value=STRING)
words = builder.stream("lines").flat_map_values(str.split).group_by(lambda key, word: word)
words.count(store="counts").to_stream().to("word-counts", value=LONG)
topology = builder.build()
"""
SPARK = [
    "--conf=spark.driver.memory=512m",
    "--conf=spark.driver.extraJavaOptions=-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "--master=local[2]",
]


class Commands:
    """One application, and the words about it."""

    def __init__(self, address: str, directory: Path) -> None:
        self.address, self.state = address, directory / "state"
        self.file = directory / f"{APP}.py"
        self.file.write_text(FILE)
        self.broker = ("--bootstrap-server", address)
        each = "--setting=statestore.cache.max.bytes=0"  # Every count, not one a batch.
        self.runs = ["run", self.file, *self.broker, "--state", self.state, each, *SPARK]

    def say(self, *words: object, code: int = 0) -> Done:
        ended = subprocess.run(
            command("streams", *words), capture_output=True, text=True, timeout=WAIT_S
        )
        done = Done(ended.returncode, ended.stdout, ended.stderr)
        assert done.code == code and "Traceback" not in done.err, done
        return done

    def status(self) -> str:
        return self.say("status", APP, "--state", self.state).out

    def counts(self) -> list[tuple[str, int]]:
        """What was committed to the output, in order."""
        found = consumed(self.address, "word-counts")
        return [(record.key().decode(), long_of(record.value())) for record in found]

    def first_offset(self, topic: str) -> int:
        at = TopicPartition(topic, 0)
        with cluster_for({"bootstrap.servers": self.address}) as cluster:
            found = list_offsets(cluster, {at: int(OffsetSpec.EARLIEST)}, timeout_ms=30_000)[at]
        assert isinstance(found, OffsetAndTimestamp)
        return found.offset


@pytest.fixture
def commands(shared_broker: BrokerProcess, tmp_path: Path) -> Commands:
    create(shared_broker.address, "lines", "word-counts")
    return Commands(shared_broker.address, tmp_path)


@pytest.fixture
def running(commands: Commands) -> Iterator[subprocess.Popen[str]]:
    """The application, which purges its repartition topic five times a second."""
    often = "--setting=repartition.purge.interval.ms=200"
    process = start(command("streams", *commands.runs, often))
    yield process
    process.kill()
    process.communicate()


def feed(address: str, lines: int) -> None:
    writer = Feed(address)
    for number in range(lines):
        writer.put("lines", None, "a stream of streams", 1_000 + number)
    writer.flush()


def test_an_application_is_run_stopped_gone_on_with_and_reset(
    commands: Commands, running: subprocess.Popen[str]
) -> None:
    feed(commands.address, 10)
    eventually(
        lambda: running.poll() is not None or len(commands.counts()) == 40,
        timeout_s=WAIT_S,
        every_s=0.5,
        what="all words are counted",
    )
    _look_at(commands)
    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=WAIT_S)
    assert running.returncode == 0, err
    assert "PENDING_SHUTDOWN → NOT_RUNNING" in out and "Created the topic" in out
    assert f"{APP}: NOT_RUNNING" in commands.status()
    _go_on(commands)
    _refuse_another_plan(commands)
    _begin_anew(commands)


def _look_at(commands: Commands) -> None:
    """While it runs: its status, its purged topic, and what is refused meanwhile."""
    eventually(lambda: "lag 0" in commands.status(), timeout_s=WAIT_S, what="the lag is told")
    status = commands.status()
    assert f"{APP}: RUNNING" in status and f"{APP}-stage-1: running" in status
    eventually(
        lambda: commands.first_offset(f"{APP}-counts-repartition") >= 40,
        timeout_s=WAIT_S,
        what="the repartition topic is purged",
    )
    assert "runs already, in process" in commands.say(*commands.runs, code=1).err
    reset = ["reset", APP, "--execute", *commands.broker, "--state", commands.state]
    assert "stop it first" in commands.say(*reset, code=1).err


def _go_on(commands: Commands) -> None:
    """The second start goes on where the first was."""
    feed(commands.address, 10)
    commands.say(*commands.runs, "--once")
    found = commands.counts()
    assert len(found) == 80
    assert [count for word, count in found if word == "streams"] == list(range(1, 21))


def _refuse_another_plan(commands: Commands) -> None:
    commands.file.write_text(FILE.replace('"counts"', '"other"'))
    said = commands.say(*commands.runs, code=1).err
    assert "with counts is gone" in said and f"penstock streams reset {APP}" in said
    commands.file.write_text(FILE)


def _begin_anew(commands: Commands) -> None:
    """Kafka's own tool leaves the state here, which is then refused; ours takes it along."""
    words = ["--application-id", APP, "--input-topics", "lines"]
    told = run("streams-application-reset", *commands.broker, *words).out
    assert "Topic: lines Partition: 0 Offset: 0" in told and f"{APP}-counts-changelog" in told
    assert f"but its topic {APP}-" in commands.say(*commands.runs, code=1).err
    asked = commands.say("reset", APP, *commands.broker, "--state", commands.state).out
    assert "Nothing was removed" in asked and str(commands.state / APP) in asked
    commands.say("reset", APP, "--execute", *commands.broker, "--state", commands.state)
    assert not (commands.state / APP).exists()
    commands.say(*commands.runs, "--once")
    found = commands.counts()
    assert [count for word, count in found if word == "streams"] == [*range(1, 21), *range(1, 21)]
