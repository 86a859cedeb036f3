"""Three brokers: speed with three replicas, time without a leader, catching up, and doing nothing.

Penstock's metadata is in ZooKeeper, Kafka's in a KRaft controller; both are processes of their own
that live on when a broker is killed, on the same two or more cores as everything else.
"""

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.support.processes import ROOT
from tests.support.waiting import eventually

from bench.clusters import (
    BROKERS,
    Subject,
    names,
    run_cluster_load,
    started,
)
from bench.failover_probe import Probe, seconds_without
from bench.plan import Plan, alternate, settle
from bench.report import Goal, Row, throughput_row
from bench.rows.produce import Run
from bench.subjects import Subjects, fresh, percentile
from penstock.client.admin import Admin
from penstock.client.errors import ClientError
from penstock.client.operations.topics import NewTopic
from penstock.errors import ProtocolError

PARTITIONS = 6
RECORD = ["--record-bytes", "1024"]
KILL_SECONDS_MAX = 120.0
PER_SECOND = 1_000


def produce(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """1 KB records to all replicas: as fast as it goes, then a thousand a second."""
    with ExitStack() as running:
        fast: dict[str, Run] = {}
        steady: dict[str, Run] = {}
        for name in names(subjects):
            subject = running.enter_context(started(subjects, name))
            subject.create_topic("bench-replicated", PARTITIONS)
            subject.create_topic("bench-steady", PARTITIONS)
            fast[name] = fast_run(subject, plan.replicated_bytes)
            steady[name] = steady_run(subject, plan.paced_records)
        rounds = alternate(fast, rounds=plan.rounds)
        trips = alternate(steady, rounds=plan.rounds)
    yield throughput_row(
        f"produce 1 KB records, RF 3, acks=all, {PARTITIONS} partitions, 64 KB batches",
        rounds,
        [Goal(beside="kafka", at_least=1.0)],
    )
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        yield Row(
            work=f"1 KB record, RF 3, acks=all, {PER_SECOND:,} records/s, {label}",
            unit="ms",
            rounds={
                name: [one.percentile_us(share) / 1000 for one in found]
                for name, found in trips.items()
            },
            goals=[Goal(beside="kafka", at_most=1.0)] if label == "p99" else [],
        )


def fast_run(subject: Subject, total_bytes: int) -> Run:
    """A run of the full load; older data stay, for deleting them would be measured too."""
    shape = ["--topic", "bench-replicated", "--partitions", str(PARTITIONS), *RECORD]
    amount = ["--batch-bytes", "65536", "--total-bytes", str(total_bytes), "--in-flight", "5"]
    return lambda: run_cluster_load(subject, "produce", *shape, *amount)


def steady_run(subject: Subject, count: int) -> Run:
    """A run at a fixed rate; percentiles need its every record."""
    shape = ["--topic", "bench-steady", "--partitions", str(PARTITIONS), *RECORD]
    pace = ["--batch-bytes", "1200", "--count", str(count), "--per-s", str(PER_SECOND)]
    return lambda: run_cluster_load(subject, "paced", *shape, *pace)


def failover(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """kill -9 of a broker that leads a third of all partitions, to the next acknowledged write."""
    kills: dict[str, list[list[float]]] = {}
    counts = {"penstock": plan.kills, "kafka": plan.kafka_kills}
    for name in names(subjects):
        with started(subjects, name) as subject:
            subject.create_topic("bench-failover", plan.failover_partitions)
            kills[name] = [
                leader_killed(subject, "bench-failover", number % BROKERS)
                for number in range(counts[name])
            ]
    work = f"kill -9 of a leader to the next acknowledged write, {plan.failover_partitions:,}"
    shown = ", ".join(f"{name}: {len(found)} kills" for name, found in kills.items())
    each = {name: [s for times in found for s in times] for name, found in kills.items()}
    last = {name: [max(times) for times in found] for name, found in kills.items()}
    for which, seconds in (("partitions", each), ("partitions, the last of them", last)):
        yield Row(
            work=f"{work} {which}, p50",
            unit="s",
            rounds=seconds,
            goals=[Goal(beside=None, at_most=0.3)],
            note=f"{shown}; of the dead broker's partitions the first, the middle and the last",
        )
        yield Row(
            work=f"{work} {which}, p99",
            unit="s",
            rounds={name: [percentile(found, 0.99)] for name, found in seconds.items()},
            goals=[Goal(beside=None, at_most=1.0)],
        )


def leader_killed(subject: Subject, topic: str, victim: int) -> list[float]:
    """Kill a broker, wait for writes to its partitions; then it comes back and leads again."""
    subject.until_whole(topic)
    subject.balance(topic)
    probes, _ = probes_of(subject, topic, victim)
    killed_s = kill(subject, victim, probes)
    taken_s = seconds_without(probes, killed_s, timeout_s=KILL_SECONDS_MAX)
    subject.brokers[victim].start(timeout_s=120)
    return taken_s


def probes_of(subject: Subject, topic: str, victim: int) -> tuple[list[Probe], list[int]]:
    """Probes for the first, the middle and the last partition that the broker leads."""
    led = eventually(
        lambda: sorted(subject.leaders(topic).get(victim, ())),
        timeout_s=120,
        what=f"partitions that broker {victim} leads",
    )
    chosen = sorted({led[0], led[len(led) // 2], led[-1]})
    ports = [b.port for number, b in enumerate(subject.brokers) if number != victim]
    return [Probe(topic, number, ports, KILL_SECONDS_MAX) for number in chosen], ports


def kill(subject: Subject, victim: int, probes: Sequence[Probe]) -> float:
    """kill -9; the moment of it on the clock of the probes, which start at once."""
    killed_s = time.perf_counter()
    subject.brokers[victim].kill()
    for probe in probes:
        probe.start()
    return killed_s


def controller(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """kill -9 of the controller: until its partitions take writes and topics can be created."""
    writes: list[float] = []
    orders: list[float] = []
    with started(subjects, "penstock") as subject:
        subject.create_topic("bench-controller", plan.controller_partitions)
        for number in range(plan.controller_kills):
            write_s, order_s = controller_killed(subject, f"bench-new-{number}")
            writes.append(write_s)
            orders.append(order_s)
    many = f"{plan.controller_partitions:,} partitions"
    goals = [Goal(beside=None, at_most=2.0)]
    for work, found in (("the next acknowledged write", writes), ("the next topic", orders)):
        yield Row(
            work=f"kill -9 of the controller to {work}, {many}",
            unit="s",
            rounds={"penstock": found},
            goals=goals,
            note=f"{len(found)} kills, slowest {max(found):.2f} s",
        )


def controller_killed(subject: Subject, new_topic: str) -> tuple[float, float]:
    """Seconds to the next acknowledged write, and to the next topic that is created."""
    topic = "bench-controller"
    subject.until_whole(topic)
    subject.balance(topic)
    with subject.admin() as admin:
        found = admin.describe_cluster().controller
    assert found is not None, "the cluster has no controller"
    probes, ports = probes_of(subject, topic, found.id)
    made_s: list[float] = []
    killed_s = kill(subject, found.id, probes)
    creator = threading.Thread(target=create_at_last, args=(ports, new_topic, made_s), daemon=True)
    creator.start()
    taken_s = seconds_without(probes, killed_s, timeout_s=KILL_SECONDS_MAX)
    creator.join(KILL_SECONDS_MAX)
    if not made_s:
        raise RuntimeError("no topic could be created after the controller was killed")
    subject.brokers[found.id].start(timeout_s=120)
    return max(taken_s), made_s[0] - killed_s


def create_at_last(ports: Sequence[int], topic: str, made_s: list[float]) -> None:
    """Try to create a topic until it is created; note when."""
    until_s = time.perf_counter() + KILL_SECONDS_MAX
    address = ",".join(f"127.0.0.1:{port}" for port in ports)
    while time.perf_counter() < until_s:
        try:
            with Admin(bootstrap_servers=address, default_api_timeout_ms=1000) as admin:
                admin.create_topics([NewTopic(name=topic, partitions=1, replication_factor=2)])
            made_s.append(time.perf_counter())
            return
        except (ClientError, ProtocolError):
            time.sleep(0.01)


def catch_up(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """A broker comes back with an empty disk, beside the least that copying takes."""
    speeds: dict[str, list[float]] = {}
    shape = ["--topic", "bench-copied", "--partitions", str(PARTITIONS), *RECORD]
    for name in names(subjects):
        with started(subjects, name) as subject:
            subject.create_topic("bench-copied", PARTITIONS)
            elsewhere = {number: [number % 2, (number + 1) % 2] for number in range(PARTITIONS)}
            subject.create_topic("bench-others", PARTITIONS, placed=elsewhere)
            amount = ["--batch-bytes", "1048576", "--total-bytes", str(plan.catch_up_bytes)]
            run_cluster_load(subject, "produce", *shape, *amount, "--in-flight", "2")
            settle()
            speeds[name] = [copied(subject, plan)]
            if name == "penstock":
                settle()
                directory = fresh(subjects.directory / "copy")
                words = ["--batch-bytes", "1048576", "--directory", str(directory)]
                limit = run_cluster_load(subject, "copy", *shape, *words)
                speeds["raw"] = [limit.mb_per_s]
                shutil.rmtree(directory)
    yield Row(
        work=f"follower catches up {plan.catch_up_bytes / 1e9:g} GB from nothing",
        unit="MB/s",
        rounds=speeds,
        goals=[Goal(beside="raw", at_least=0.7)],
        note="from the first byte copied; in-sync sets of other partitions held",
    )


def copied(subject: Subject, plan: Plan) -> float:
    """MB/s at which broker 2 copies everything anew while others go on undisturbed."""
    victim = subject.cluster.brokers[BROKERS - 1]
    victim.stop(timeout_s=60)
    shutil.rmtree(victim.data)
    watched = Watch(subject, "bench-others")
    with watched:
        victim.launch()
        started_s = first_byte(victim.data, "bench-copied")
        subject.until_whole("bench-copied", timeout_s=600, every_s=0.05)
        seconds = time.perf_counter() - started_s
    if watched.shrunk:
        raise RuntimeError(f"other partitions lost replicas meanwhile: {watched.shrunk}")
    return plan.catch_up_bytes / seconds / 1e6


def first_byte(data: Path, topic: str) -> float:
    """When a broker has the first bytes of a topic: how long it took to start is another row."""

    def has_some() -> bool:
        return any(file.stat().st_size for file in data.glob(f"{topic}-*/*.log"))

    eventually(has_some, timeout_s=120, every_s=0.005, what=f"a copy of {topic}")
    return time.perf_counter()


class Watch:
    """Writes to a topic all the time, and remembers which partitions were not whole meanwhile."""

    def __init__(self, subject: Subject, topic: str) -> None:
        self.subject = subject
        self.topic = topic
        self.looks = 0
        self.shrunk: list[int] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._writer: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        shape = ["--topic", self.topic, "--partitions", str(PARTITIONS), *RECORD]
        pace = ["--batch-bytes", "1200", "--count", "1000000", "--per-s", "200"]
        command = [sys.executable, "-m", "bench.cluster_load", "paced", *shape, *pace]
        self._writer = subprocess.Popen(
            [*command, "--address", self.subject.bootstrap], cwd=ROOT, stdout=subprocess.DEVNULL
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(30)
        assert self._writer is not None
        is_writing = self._writer.poll() is None
        self._writer.kill()
        self._writer.wait()
        if not is_writing or not self.looks:
            raise RuntimeError("the other partitions could not be written to or looked at")

    def _look(self) -> None:
        while not self._over.wait(0.2):
            try:
                parts = self.subject.partitions(self.topic)
            except AssertionError:
                continue  # The one that starts may be asked too early.
            self.looks += 1
            self.shrunk += [p.partition for p in parts if len(p.isr) < len(p.replicas)]


def idle(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """What three brokers cost that have a thousand partitions each and nothing to do."""
    cpu: dict[str, list[float]] = {}
    memory: dict[str, list[float]] = {}
    for name in names(subjects):
        with started(subjects, name) as subject:
            subject.create_topic("bench-idle", plan.idle_partitions)
            settle()
            time.sleep(plan.idle_seconds / 2)  # Creation has its aftermath; it is over by then.
            before = [broker.cpu_seconds() for broker in subject.brokers]
            time.sleep(plan.idle_seconds)
            after = [broker.cpu_seconds() for broker in subject.brokers]
            spent = [b - a for a, b in zip(before, after, strict=True)]
            cpu[name] = [100 * one / plan.idle_seconds for one in spent]
            memory[name] = [broker.rss_bytes() / 1e6 for broker in subject.brokers]
    work = f"idle, 3 brokers with {plan.idle_partitions:,} partitions each"
    yield Row(
        work=f"{work}: processor of each",
        unit="% of a core",
        rounds=cpu,
        goals=[Goal(beside=None, at_most=5.0)],
    )
    yield Row(
        work=f"{work}: memory of each",
        unit="MB",
        rounds=memory,
        goals=[Goal(beside=None, at_most=200.0)],
    )
