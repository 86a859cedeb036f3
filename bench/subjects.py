"""What is measured: Penstock, Apache Kafka, and the raw limit, each as processes of their own.

A subject knows how to start, to make a topic ready, and to run a load against itself while noting
the processor time it used. Which loads make a row of the table is the business of rows/.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.apache_kafka import KafkaProcess
from tests.support.broker import BrokerProcess
from tests.support.processes import ROOT, ServerProcess, free_port, python
from tests.support.waiting import eventually
from tests.support.wire import RawConnection

LOAD_SECONDS_MAX = 900
# Both brokers keep deleted topics for a minute; here their files must go before the next round.
PROMPT_DELETION = {"log.segment.delete.delay.ms": "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One run of one load against one subject."""

    bytes: int
    requests: int
    seconds: float
    client_cpu_s: float
    server_cpu_s: float
    round_trips_us: Sequence[float]

    @property
    def mb_per_s(self) -> float:
        """Millions of bytes per second."""
        return self.bytes / self.seconds / 1e6

    def percentile_us(self, share: float) -> float:
        """The round trip that this share of all do not exceed."""
        return percentile(self.round_trips_us, share)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of all do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class RawLimit(ServerProcess):
    """The raw limit for one kind of work; ready as soon as it listens."""

    def __init__(self, directory: Path, work: str, arguments: Sequence[str]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        port = free_port()
        command = [python(), "-m", "bench.raw_limit", work, "--port", str(port)]
        command += ["--directory", str(directory), *arguments]
        super().__init__(command, port=port, log_path=directory / "raw.log")
        self.directory = directory

    def answers(self) -> bool:
        """Whether it takes connections; it does not speak Kafka."""
        try:
            RawConnection(self.port, timeout_s=5).close()
        except OSError:
            return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """How to start the brokers to compare, on data directories below `directory`."""

    directory: Path
    kafka_jars: Path | None  # None: not to be had, or not wanted.

    def starters(self) -> dict[str, Callable[[], ServerProcess]]:
        """A constructor for each broker, by its name in the table."""
        found: dict[str, Callable[[], ServerProcess]] = {"penstock": self.penstock}
        if self.kafka_jars is not None:
            found["kafka"] = self.kafka
        return found

    def penstock(self, settings: Mapping[str, str] | None = None) -> BrokerProcess:
        """A fresh Penstock with default settings but for those given."""
        settings = {**PROMPT_DELETION, **(settings or {})}
        return BrokerProcess(fresh(self.directory / "penstock"), settings)

    def kafka(self, settings: Mapping[str, str] | None = None) -> KafkaProcess:
        """A fresh Apache Kafka with default settings but for those given."""
        assert self.kafka_jars is not None
        settings = {**PROMPT_DELETION, **(settings or {})}
        return KafkaProcess(self.kafka_jars, fresh(self.directory / "kafka"), settings)


def fresh(directory: Path) -> Path:
    """The directory, empty."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def create_topic(
    server: ServerProcess, topic: str, partitions: int, configs: Mapping[str, str] | None = None
) -> None:
    """Create a topic and wait until every partition has a leader that answers."""
    with RawConnection(server.port, timeout_s=60) as connection:
        settings = {"file.delete.delay.ms": "0", **(configs or {})}
        code = connection.create_topic(topic, partitions=partitions, configs=settings)
        assert code == 0, f"creating the topic answered error {code}"
        for partition in range(partitions):
            eventually(
                lambda p=partition: connection.offset(topic, partition=p) == 0,  # type: ignore[misc]
                timeout_s=60,
                what=f"a leader for {topic}-{partition}",
            )


def delete_topic(server: ServerProcess, topic: str) -> None:
    """Delete the topic and wait until its files are gone: unwritten pages then cost nobody."""
    with RawConnection(server.port, timeout_s=60) as connection:
        connection.delete_topic(topic)
    if isinstance(server, BrokerProcess | KafkaProcess):
        data = server.data
        eventually(lambda: not list(data.glob(f"{topic}-*")), timeout_s=90, what="its deletion")


def run_load(server: ServerProcess, module: str, *arguments: str) -> Round:
    """Run a load generator in its own process against the server."""
    before_s = server.cpu_seconds()
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=LOAD_SECONDS_MAX
    )
    if done.returncode != 0:
        raise RuntimeError(f"load failed:\n{done.stderr[-2000:]}\n{server.log_end}")
    measured = json.loads(done.stdout.splitlines()[-1])
    return Round(server_cpu_s=server.cpu_seconds() - before_s, **measured)


def raw_load(server: ServerProcess, work: str, arguments: Sequence[str]) -> Round:
    """Run the generator of prebuilt bytes against the server."""
    return run_load(server, "bench.load", work, "--port", str(server.port), *arguments)
