"""`penstock pipeline ...` as a process, and the topics around it."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.processes import ROOT, python

# Small enough for two cores and several tests at once.
CONF = (
    "spark.driver.memory=768m",
    "spark.sql.shuffle.partitions=2",
    "spark.sql.session.timeZone=UTC",
    "spark.driver.extraJavaOptions=-XX:+UseSerialGC",
)


def command(*words: str) -> list[str]:
    """`penstock WORDS` with the interpreter of the tests."""
    return [python(), "-m", "penstock.cli.main", *words]


def run_command(words: Sequence[str], state: Path, *, timeout_s: float = 240) -> str:
    """The output of `penstock pipeline WORDS`; AssertionError with it if it failed."""
    done = subprocess.run(
        command("pipeline", *words, "--state", str(state)),
        cwd=ROOT,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_arguments(files: Sequence[Path], address: str, *, master: str = "local[2]") -> list[str]:
    """What follows `penstock pipeline` to run files on a small Spark."""
    confs = [word for pair in CONF for word in ("--conf", pair)]
    words = [str(file) for file in files]
    return ["run", *words, "--bootstrap-server", address, "--master", master, *confs]


class PipelineProcess:
    """A supervisor that runs until it is stopped; its output goes to a file."""

    def __init__(
        self,
        files: Sequence[Path],
        address: str,
        folder: Path,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.state = folder / "state"
        self.log_path = folder / "supervisor.log"
        words = [*run_arguments(files, address), "--state", str(self.state)]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command("pipeline", *words),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def children(self) -> list[int]:
        """The processes it has started, and theirs."""
        import psutil

        return [child.pid for child in psutil.Process(self.process.pid).children(recursive=True)]


def send(address: str, topic: str, pairs: Sequence[tuple[str | None, str | None]]) -> None:
    """Records of key and value, in order, all stored when this returns."""
    from penstock import Producer

    producer: Producer[bytes, bytes] = Producer({"bootstrap.servers": address, "linger.ms": 5})
    with producer:
        futures = [
            producer.send(
                topic,
                None if value is None else value.encode(),
                key=None if key is None else key.encode(),
            )
            for key, value in pairs
        ]
        for future in futures:
            future.result(120)


def send_sample(address: str, topic: str, name: str) -> None:
    """The lines of a file of examples/samples: key, tab, value."""
    lines = (ROOT / "examples" / "samples" / name).read_text().splitlines()
    send(address, topic, [(line.split("\t")[0], line.split("\t")[1]) for line in lines])


def values_of(address: str, topic: str) -> list[Any]:
    """The committed JSON values that a topic holds now, partition after partition."""
    return [json.loads(value) for _, value in records_of(address, topic) if value is not None]


def records_of(address: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """The committed keys and values that a topic holds now, partition after partition.

    By librdkafka itself, which says when a partition ends: a position does not pass the marker of
    the last transaction.
    """
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "test-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    try:
        known = consumer.list_topics(topic, timeout=120).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in known])
        found: list[tuple[int, bytes | None, bytes | None]] = []
        ended: set[int] = set()
        while len(ended) < len(known):
            message = consumer.poll(30)
            assert message is not None, f"the end of {topic} did not come"
            error, partition = message.error(), message.partition() or 0
            if error is None:
                found.append((partition, message.key(), message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(partition)
            else:
                raise AssertionError(str(error))
    finally:
        consumer.close()
    return [(key, value) for _, key, value in sorted(found, key=lambda one: one[0])]
