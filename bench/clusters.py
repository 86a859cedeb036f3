"""Clusters to compare: three brokers of Penstock with ZooKeeper, three of Apache Kafka with KRaft.

Both have their metadata in a process of its own that is never killed, the same settings where both
know them, and the same topics. What is measured on them is the business of rows/replication.py.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tests.support.cluster import Cluster
from tests.support.kafka_cluster import KafkaCluster
from tests.support.processes import ROOT, ServerProcess
from tests.support.waiting import eventually

from bench.failover_probe import Probe, seconds_without
from bench.subjects import LOAD_SECONDS_MAX, PROMPT_DELETION, Round, Subjects, fresh
from penstock.client.admin import Admin
from penstock.client.errors import ClientError
from penstock.client.operations.elections import ElectionType
from penstock.client.operations.topics import NewTopic, PartitionDescription
from penstock.errors import ProtocolError

BROKERS = 3
HOSTED_SECONDS_MAX = 120.0
SETTINGS = {
    **PROMPT_DELETION,
    "min.insync.replicas": "2",
    # The row is about elections that failures force, not about those of a timer.
    "auto.leader.rebalance.enable": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One running cluster, by its name in the table."""

    name: str
    cluster: Cluster | KafkaCluster

    @property
    def brokers(self) -> Sequence[ServerProcess]:
        """Broker `i` has the id `i`."""
        return self.cluster.brokers

    @property
    def bootstrap(self) -> str:
        """Addresses of all brokers."""
        return self.cluster.bootstrap

    @contextmanager
    def admin(self) -> Iterator[Admin]:
        """A client for questions that may take long with thousands of partitions."""
        settings = {
            "bootstrap.servers": self.bootstrap,
            "request.timeout.ms": 120_000,
            "default.api.timeout.ms": 240_000,
        }
        with Admin(settings) as made:
            yield made

    def create_topic(
        self,
        name: str,
        partitions: int,
        *,
        placed: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """A topic with a replica on every broker, unless placed; ready when all are in sync."""
        new = NewTopic(
            name=name,
            partitions=partitions,
            replication_factor=BROKERS,
            assignments=placed or {},
            configs={"file.delete.delay.ms": "0", **(configs or {})},
        )
        with self.admin() as admin:
            admin.create_topics([new])
        self.until_whole(name)
        self.until_hosted(name, placed or range(min(partitions, BROKERS)))

    def until_hosted(self, topic: str, numbers: Iterable[int]) -> None:
        """Wait until these partitions take writes: who is told to host many makes files first."""
        ports = [broker.port for broker in self.brokers]
        for number in numbers:
            probe = Probe(topic, number, ports, HOSTED_SECONDS_MAX)
            probe.start()
            seconds_without([probe], time.perf_counter(), timeout_s=HOSTED_SECONDS_MAX)

    def delete_topic(self, name: str) -> None:
        """Delete it and wait until no broker has files of it."""
        with self.admin() as admin:
            admin.delete_topics([name])
        data = [broker.data for broker in self.cluster.brokers]
        eventually(
            lambda: not any(list(directory.glob(f"{name}-*")) for directory in data),
            timeout_s=120,
            what=f"the deletion of {name}",
        )

    def partitions(self, topic: str) -> list[PartitionDescription]:
        """The partitions of a topic; AssertionError: nobody tells now."""
        try:
            with self.admin() as admin:
                return list(admin.describe_topics([topic])[topic].partitions)
        except (ClientError, ProtocolError) as error:
            raise AssertionError(str(error)) from error

    def leaders(self, topic: str) -> dict[int, list[int]]:
        """The partitions that each broker leads."""
        led: dict[int, list[int]] = {}
        for part in self.partitions(topic):
            if part.leader is not None:
                led.setdefault(part.leader.id, []).append(part.partition)
        return led

    def until_whole(self, topic: str, *, timeout_s: float = 300, every_s: float = 0.25) -> None:
        """Wait until every replica of the topic is in sync."""

        def whole() -> bool:
            parts = self.partitions(topic)
            return bool(parts) and all(
                len(p.isr) == len(p.replicas) and p.leader is not None for p in parts
            )

        eventually(whole, timeout_s=timeout_s, every_s=every_s, what=f"all replicas of {topic}")

    def balance(self, topic: str) -> None:
        """Give every partition of the topic its preferred leader."""

        def balanced() -> bool:
            parts = self.partitions(topic)
            if all(p.leader is not None and p.leader.id == p.replicas[0].id for p in parts):
                return True
            with self.admin() as admin:
                admin.elect_leaders(ElectionType.PREFERRED)
            return False

        eventually(balanced, timeout_s=120, every_s=0.25, what="preferred leaders")

    def cpu_seconds(self) -> float:
        """Processor time of all brokers that run."""
        return sum(b.cpu_seconds() for b in self.brokers if b.process is not None)


@contextmanager
def started(
    subjects: Subjects, name: str, settings: Mapping[str, str] | None = None
) -> Iterator[Subject]:
    """A fresh cluster; at the end whatever runs of it is killed."""
    directory = fresh(subjects.directory / f"{name}-cluster")
    chosen = {**SETTINGS, **(settings or {})}
    cluster: Cluster | KafkaCluster
    if name == "penstock":
        cluster = Cluster(directory, BROKERS, chosen)
    else:
        assert subjects.kafka_jars is not None
        topics = {
            "offsets.topic.replication.factor": "3",
            "transaction.state.log.replication.factor": "3",
            "transaction.state.log.min.isr": "2",
        }
        cluster = KafkaCluster(
            subjects.kafka_jars, directory, brokers=BROKERS, settings={**topics, **chosen}
        )
    with ExitStack() as stack:
        stack.callback(cluster.kill)
        cluster.start()
        yield Subject(name=name, cluster=cluster)


def names(subjects: Subjects) -> list[str]:
    """The clusters that can be had."""
    return ["penstock"] if subjects.kafka_jars is None else ["penstock", "kafka"]


def run_cluster_load(subject: Subject, *arguments: str) -> Round:
    """Run bench.cluster_load in its own process against a cluster."""
    before_s = subject.cpu_seconds()
    command = [sys.executable, "-m", "bench.cluster_load", *arguments]
    command += ["--address", subject.bootstrap]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=LOAD_SECONDS_MAX
    )
    if done.returncode != 0:
        ends = "\n".join(broker.log_end[-1500:] for broker in subject.brokers)
        raise RuntimeError(f"load failed:\n{done.stderr[-2000:]}\n{ends}")
    measured = json.loads(done.stdout.splitlines()[-1])
    return Round(server_cpu_s=subject.cpu_seconds() - before_s, **measured)
