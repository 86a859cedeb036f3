"""Our mirror beside MirrorMaker 2 4.3.1: bytes for a second of processor time, and memory.

Both run already and have copied something when the load comes; they copy while it comes. What
counts is the processor time of all their processes until a reader of committed records has the last
one in the target. MirrorMaker 2 copies at least once, which is its default; ours exactly once.
"""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from tests.support.broker import BrokerProcess
from tests.support.mirror_process import MirrorProcess, settings
from tests.support.outside import REPORT, missing

from bench.plan import Plan
from bench.process_tree import tree_cpu_s, tree_pss_bytes
from bench.report import OURS, Goal, Row
from bench.subjects import Subjects, create_topic, fresh
from penstock.client.producer.bulk import BulkProducer

PEER = "kafka"  # The column of the table: Apache Kafka's own mirror.
JARS = "mirror-4.3.1"
MB = 1e6
RECORD_BYTES = 1000
_TOPIC = "load"
_PARTITIONS = 2
_WAIT_S = 900


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrored:
    """One round of one mirror."""

    bytes_per_cpu_s: float
    memory_bytes: int


class Mm2Process(MirrorProcess):
    """MirrorMaker 2 with the same file."""

    def __init__(self, directory: Path, given: dict[str, str], jars: Path) -> None:
        super().__init__(directory, given)
        # As connect-mirror-maker.sh starts it.
        self.command = ["java", "-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC"]
        self.command += ["-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"]
        self.command += ["-XX:+ExplicitGCInvokesConcurrent", "-cp", f"{jars}/*"]
        self.command += ["org.apache.kafka.connect.mirror.MirrorMaker", str(self.file)]


def mirror(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Records of 1 KB, copied from one Penstock broker to another."""
    rounds: dict[str, list[Mirrored]] = {OURS: []}
    if subjects.kafka_jars is not None and not missing(JARS):
        rounds[PEER] = []
    for _ in range(plan.rounds):
        for who, found in rounds.items():
            found.append(_round(who, plan.mirror_records, subjects))
    yield Row(
        work="mirror: records of 1 KB, of the mirror's processor time",
        unit="MB/CPU s",
        rounds={who: [one.bytes_per_cpu_s / MB for one in its] for who, its in rounds.items()},
        goals=[Goal(beside=PEER, at_least=5.0)],
        note="" if PEER in rounds else f"without MirrorMaker 2: {missing(JARS) or 'not wanted'}",
    )
    yield Row(
        work="mirror: memory after that, all processes",
        unit="MB",
        rounds={who: [one.memory_bytes / MB for one in its] for who, its in rounds.items()},
        goals=[Goal(beside=PEER, at_most=0.5)],
    )


def _round(who: str, records: int, subjects: Subjects) -> Mirrored:
    with ExitStack() as running:
        source = running.enter_context(subjects.penstock())
        target = running.enter_context(BrokerProcess(fresh(subjects.directory / "target")))
        for server in (source, target):
            server.start()
        create_topic(source, _TOPIC, _PARTITIONS)
        given = settings(source.address, target.address)
        given |= {"replication.factor": "1", "A->B.topics": _TOPIC}
        internal = ("offset-syncs", "checkpoints", "heartbeats")
        given |= {f"{name}.topic.replication.factor": "1" for name in internal}
        state = ("offset", "config", "status")
        given |= {f"{name}.storage.replication.factor": "1" for name in state}
        folder = fresh(subjects.directory / "mirror")
        copying = running.enter_context(_mirror(who, folder, given))
        _produce(source, 1000)
        _read(target, 1000)
        assert copying.process is not None
        pid = copying.process.pid
        begun_s = tree_cpu_s(pid)
        _produce(source, records)
        _read(target, 1000 + records)
        spent_s = tree_cpu_s(pid) - begun_s
        found = Mirrored(
            bytes_per_cpu_s=records * RECORD_BYTES / spent_s, memory_bytes=tree_pss_bytes(pid)
        )
        _stop(copying)
        return found


def _mirror(who: str, folder: Path, given: dict[str, str]) -> MirrorProcess:
    if who == OURS:
        return MirrorProcess(folder, given)
    return Mm2Process(folder, given, REPORT.parent / "java" / JARS)


def _produce(server: BrokerProcess, records: int) -> None:
    with BulkProducer({"bootstrap.servers": server.address, "batch.size": "131072"}) as producer:
        for number in range(records):
            producer.send(_TOPIC, f"{number:0{RECORD_BYTES}d}".encode())
        left = producer.flush(_WAIT_S)
        assert not left and not producer.failures, producer.failures[:1]


def _read(server: BrokerProcess, records: int) -> None:
    """Return when so many committed records are in the target."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.address,
            "group.id": "judge",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "allow.auto.create.topics": False,
        }
    )
    consumer.assign([TopicPartition(f"A.{_TOPIC}", at, 0) for at in range(_PARTITIONS)])
    seen, waited = 0, 0
    try:
        while seen < records:
            found = [one for one in consumer.consume(10_000, 1.0) if one.error() is None]
            seen += len(found)
            waited = 0 if found else waited + 1
            assert waited < _WAIT_S, f"{seen} of {records} records were mirrored"
    finally:
        consumer.close()
    assert seen == records, f"{seen} records instead of {records}"


def _stop(copying: MirrorProcess) -> None:
    try:
        copying.stop()
    except subprocess.TimeoutExpired:
        return  # It is killed when the round is left.
