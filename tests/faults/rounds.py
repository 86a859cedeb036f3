"""One round: clients under load, blows and healing, then the verdict.

Everything a round leaves behind (histories, clients' output, notes) is in its own directory.
"""

import json
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tests.faults.clients.family import Place
from tests.faults.clients.foreign import EXTRAS, command_of, missing_family
from tests.faults.clients.recorder import Recorder
from tests.faults.deployment import Deployment, NotHealed
from tests.faults.injectors.fault import Fault, Target
from tests.faults.kcheck.findings import Excuse, Finding
from tests.faults.kcheck.operations import Allowed, History, Outcome, read_histories, read_lines
from tests.faults.kcheck.replicas import Replica, read_replicas
from tests.faults.kcheck.verdict import Verdict, judge
from tests.faults.last_reads import end_open_transactions, record_logs
from tests.support.processes import ROOT, python
from tests.support.waiting import eventually

FAMILIES = ("confluent-kafka", "aiokafka", "kafka-python")
STOP_S = 180.0
# Longer than any outage of a run, so that no coordinator ends a transaction by itself.
TRANSACTION_MS = 120_000
COPIED_S = 120.0  # For replicas to come to the end, once nobody writes any more.
LOOK_EVERY_S = 0.2
# What each role has done once it is at work.
_DONE_BY = {"send": "send", "watch": "poll", "join": "poll", "transact": "end", "pipe": "end"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSpec:
    """One client of a round."""

    family: str
    role: str
    acks: str = "all"
    is_idempotent: bool = True
    isolation: str = "read_uncommitted"
    rate: float = 100.0
    count: int = 1  # So many in one process, of families that bring a runtime of their own.
    stage: int = 0  # Reads the topic of this stage of the chain, and writes to the next.
    transaction_ms: int = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What came of a round."""

    fault: str
    verdict: Verdict
    notes: tuple[str, ...]
    blows: int
    gap_ms: int  # The longest time without an acknowledgement in some partition.
    directory: Path

    @property
    def is_good(self) -> bool:
        return not self.verdict.violations


def lineup(size: str, turn: int) -> list[ClientSpec]:
    """The clients of a round; over the rounds every family takes every part."""
    one, two, three = (FAMILIES[(turn + n) % 3] for n in range(3))
    small = [
        ClientSpec(family=one, role="send"),
        ClientSpec(family=two, role="send"),
        ClientSpec(family=three, role="watch"),
        ClientSpec(family=one, role="join", isolation="read_committed"),
    ]
    if size == "small":
        return small
    return [
        *small,
        ClientSpec(family=three, role="send"),
        ClientSpec(family=one, role="send", acks="1", is_idempotent=False),
        ClientSpec(family=two, role="watch", isolation="read_committed"),
        ClientSpec(family=two, role="join", isolation="read_committed"),
        ClientSpec(family=three, role="pipe", isolation="read_committed"),
    ]


def transactors(turn: int) -> list[ClientSpec]:
    """Eight producers that never pause, and chains that carry on; both protocols mixed.

    A family that is not to be had here is replaced by one that speaks the same protocol if there
    is one, and by librdkafka if not.
    """

    def one_of(*families: str) -> str:
        return next((f for f in families if not missing_family(f)), "confluent-kafka")

    newer, other = one_of("java", "franz-go"), one_of("franz-go", "java")
    older, watcher = one_of("java-3.9"), FAMILIES[turn % 3]
    carrying = [(newer, 0), (other, 0), ("confluent-kafka", 0), (newer, 1), (older, 1)]
    return [
        *_some(newer, 3),
        *_some(other, 2),
        *_some(older, 1),
        *_some("confluent-kafka", 2),
        *(
            ClientSpec(family=family, role="pipe", stage=stage, isolation="read_committed",
                       transaction_ms=TRANSACTION_MS)
            for family, stage in carrying
        ),
        ClientSpec(family=watcher, role="watch", isolation="read_committed"),
    ]  # fmt: skip


def _some(family: str, count: int) -> list[ClientSpec]:
    """Producers with transactions: in one process, or in one each."""
    one = ClientSpec(family=family, role="transact", transaction_ms=TRANSACTION_MS)
    return [replace(one, count=count)] if family in EXTRAS else [one] * count


def chosen_clients(text: str, turn: int) -> list[ClientSpec]:
    """small, pipe (small and one with transactions), full, transactions, or aiokafka:send,..."""
    if text == "transactions":
        return transactors(turn)
    if text in ("small", "full"):
        return lineup(text, turn)
    if text == "pipe":
        pipe = ClientSpec(family=FAMILIES[turn % 3], role="pipe", isolation="read_committed")
        return [*lineup("small", turn), pipe]
    pairs = [one.partition(":")[::2] for one in text.split(",")]
    return [
        ClientSpec(
            family=family,
            role=role,
            isolation="read_uncommitted" if role == "watch" else "read_committed",
        )
        for family, role in pairs
    ]


class Clients:
    """The client processes of a round."""

    def __init__(
        self,
        deployment: Deployment,
        directory: Path,
        *,
        topic: str,
        partitions: int,
        seed: str,
        specs: Sequence[ClientSpec],
    ) -> None:
        self.deployment = deployment
        self.directory = directory
        self.topic = topic
        self.partitions = partitions
        self.seed = seed
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.specs = specs
        self.transactional_ids: list[str] = []

    @property
    def topics(self) -> list[str]:
        """The chain: each pipe reads one, and writes to the next."""
        stages = max(spec.stage for spec in self.specs) + 2
        return [f"{self.topic}{'-out' * stage}" for stage in range(stages)]

    def launch(self) -> None:
        for index, spec in enumerate(self.specs, start=1):
            process = f"{self.topic}.{index}.{spec.role}.{spec.family}"
            self.transactional_ids += _transactional_ids(process, spec)
            with (self.directory / f"{process}.out").open("wb") as out:
                self.processes[process] = subprocess.Popen(
                    self._command(process, index, spec),
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )

    def _command(self, process: str, index: int, spec: ClientSpec) -> list[str]:
        group = f"{self.topic}-readers" if spec.role == "join" else f"{process}-group"
        options = {
            "role": spec.role,
            "process": process,
            "bootstrap": self.deployment.bootstrap,
            "topic": self.topics[spec.stage],
            "output": self.topics[spec.stage + 1],
            "partitions": str(self.partitions),
            "history": str(self.directory / f"{process}.jsonl"),
            "base": str(index * 100_000_000),
            "rate": str(spec.rate),
            "acks": spec.acks,
            "isolation": spec.isolation,
            "group": group,
            "seed": self.seed,
            "transaction-ms": str(spec.transaction_ms),
            "delivery-ms": "60000",
        }
        if self.deployment.client_settings:
            options["settings"] = json.dumps(self.deployment.client_settings)
        if spec.family in EXTRAS:
            command = command_of(spec.family)
            options["count"] = str(spec.count)
        else:
            command = [python(), "-m", "tests.faults.clients", "--family", spec.family]
        for option, value in options.items():
            command += [f"--{option}", value]
        return command if spec.is_idempotent else [*command, "--not-idempotent"]

    def wait_until_busy(self, *, timeout_s: float = 240) -> None:
        """Until each sender got an acknowledgement, each reader something to read, and each client
        with transactions has committed one."""

        def is_busy(process: str, spec: ClientSpec) -> bool:
            path = self.directory / f"{process}.jsonl"
            if self.processes[process].poll() is not None:
                raise RuntimeError(f"{process} has ended; its output is beside {path}")
            events = read_lines(path) if path.exists() else ()
            kind = _DONE_BY[spec.role]
            done = {e["process"] for e in events if e["type"] == "ok" and e["kind"] == kind}
            return len(done) == spec.count

        for process, spec in zip(self.processes, self.specs, strict=True):
            eventually(
                lambda process=process, spec=spec: is_busy(process, spec),  # type: ignore[misc]
                timeout_s=timeout_s,
                every_s=0.1,
                what=f"work done by {process}",
            )

    def stop(self) -> list[str]:
        """Tell all to finish; what went wrong with whom."""
        troubles = []
        for process, running in self.processes.items():
            if running.poll() is not None:
                troubles.append(f"{process} ended by itself with {running.returncode}")
            else:
                running.send_signal(signal.SIGTERM)
        give_up_s = time.monotonic() + STOP_S
        for process, running in self.processes.items():
            try:
                running.wait(max(0.1, give_up_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                troubles.append(f"{process} did not end within {STOP_S:g} s")
        self.kill()
        return troubles

    def kill(self) -> None:
        for running in self.processes.values():
            if running.poll() is None:
                running.kill()
            running.wait()


def _transactional_ids(process: str, spec: ClientSpec) -> list[str]:
    """The ids that this process uses, each of which may have a transaction open at the end."""
    if spec.role not in ("transact", "pipe"):
        return []
    if spec.family not in EXTRAS:
        return [process]
    return [f"{process}/{number}" for number in range(1, spec.count + 1)]


@contextmanager
def watching_leaders(deployment: Deployment, topics: Sequence[str], path: Path) -> Iterator[None]:
    """Ask every broker again and again who leads what, and write down each new answer."""
    recorder = Recorder(path, "leaders")
    done = threading.Event()

    def watch() -> None:
        known: set[tuple[int, str, int, int]] = set()
        while not done.wait(LOOK_EVERY_S):
            for broker_id, view in deployment.views(topics):
                fresh = [
                    (f"{t}-{p}", v.epoch, v.leader)
                    for (t, p), v in view.partitions.items()
                    if (broker_id, f"{t}-{p}", v.epoch, v.leader) not in known
                ]
                if fresh:
                    known |= {(broker_id, *one) for one in fresh}
                    recorder.look(
                        "leaders",
                        time.monotonic_ns(),
                        leaders=fresh,
                        source=f"broker {broker_id}",
                    )

    thread = threading.Thread(target=watch, name="leaders")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        recorder.close()


def play(
    deployment: Deployment,
    fault: Fault,
    directory: Path,
    *,
    topic: str,
    specs: Sequence[ClientSpec],
    seconds: float,
    seed: str,
    partitions: int = 2,
) -> Round:
    """One round with this fault on a running cluster."""
    directory.mkdir(parents=True, exist_ok=True)
    clients = Clients(
        deployment, directory, topic=topic, partitions=partitions, seed=seed, specs=specs
    )
    topics = clients.topics
    settings = {"min.insync.replicas": "2"} if deployment.plan.brokers > 1 else {}
    for name in topics:
        deployment.create_topic(name, partitions, settings)
    target = Target(
        deployment=deployment,
        topic=topic,
        partitions=partitions,
        chance=random.Random(seed),
    )
    try:
        with watching_leaders(deployment, topics, directory / "leaders.jsonl"):
            clients.launch()
            clients.wait_until_busy()
            blows = _strike(target, fault, seconds)
            troubles = _heal(deployment, topics)
            target.note("healed")
            target.hold(1.0)
            troubles += [*clients.stop()]
        ends = _last_reads(deployment, clients, directory, troubles)
    finally:
        clients.kill()
        (directory / "notes.txt").write_text("\n".join(target.notes) + "\n")
    return _judged(deployment, fault, directory, target, troubles, blows, ends)


def _strike(target: Target, fault: Fault, seconds: float) -> int:
    """Blow after blow for so long, at least one."""
    end_s = time.monotonic() + seconds
    blows = 0
    while blows == 0 or time.monotonic() < end_s:
        target.hold(target.chance.uniform(0.3, 1.0))
        fault.strike(target)
        blows += 1
        target.hold(min(fault.recovery_s, max(0.0, end_s - time.monotonic())))
    return blows


def _heal(deployment: Deployment, topics: Sequence[str]) -> list[str]:
    try:
        deployment.heal()
        deployment.wait_until_whole(topics)
    except NotHealed as error:
        return [f"NOT HEALED: {error}"]
    return []


def _last_reads(
    deployment: Deployment, clients: Clients, directory: Path, troubles: list[str]
) -> dict[str, int]:
    places: list[Place] = [
        (topic, partition) for topic in clients.topics for partition in range(clients.partitions)
    ]
    recorder = Recorder(directory / "last-reads.jsonl", "last reads")
    try:
        cluster = {"bootstrap.servers": deployment.bootstrap, **deployment.client_settings}
        end_open_transactions(cluster, clients.transactional_ids)
        return record_logs(cluster, places, recorder)
    except NotHealed as error:
        troubles.append(f"NOT HEALED: {error}")
        return {}
    finally:
        recorder.close()


def _copies(deployment: Deployment, ends: dict[str, int]) -> Mapping[str, Mapping[int, Replica]]:
    """All replicas, once each has come to the end, or had time enough to.

    A connection that a cut has silenced is quiet for as long again before the kernel tries it
    anew, and until then brokers may believe that every in-sync set is full.
    """

    def have_come() -> bool:
        return all(
            copy.batches and copy.batches[-1].last_offset + 1 >= ends[partition]
            for partition, its in read_replicas(deployment.log_dirs(), ends).items()
            for copy in its.values()
            if ends[partition]
        )

    with suppress(AssertionError):  # Who lacks something is told by the comparison.
        eventually(have_come, timeout_s=COPIED_S, every_s=0.2, what="replicas at the end")
    return read_replicas(deployment.log_dirs(), ends)


def _judged(
    deployment: Deployment,
    fault: Fault,
    directory: Path,
    target: Target,
    troubles: Sequence[str],
    blows: int,
    ends: dict[str, int],
) -> Round:
    history = read_histories(directory)
    history.allowed = Allowed(
        is_lossy=fault.is_lossy,
        has_stale_leaders=fault.has_stale_leaders,
        has_outages=fault.has_outages,
    )
    verdict = judge(history, _copies(deployment, ends))
    extra = [
        Finding(check="not-healed", text=text)
        if text.startswith("NOT HEALED")
        else Finding(check="client", text=text, excuse=Excuse.CLIENT)
        for text in troubles
    ]
    extra += _tracebacks(deployment)
    findings = tuple(
        replace(f, excuse=Excuse.ROT) if fault.has_rot and f.check == "replica-divergence" else f
        for f in (*verdict.findings, *extra)
    )
    verdict = replace(verdict, findings=findings)
    (directory / "verdict.txt").write_text("\n".join(verdict.lines()) + "\n")
    return Round(
        fault=fault.name,
        verdict=verdict,
        notes=tuple(target.notes),
        blows=blows,
        gap_ms=longest_gap_ms(history),
        directory=directory,
    )


def _tracebacks(deployment: Deployment) -> list[Finding]:
    """A broker's own errors are told of: they may be harmless, but they are never meant."""
    return [
        Finding(
            check="traceback", text=f"broker {node.broker_id}: {line}", excuse=Excuse.BROKER_LOG
        )
        for node in deployment.brokers.values()
        for line in node.tracebacks()
    ]


def longest_gap_ms(history: History) -> int:
    """The longest time in which nobody got a write to some partition acknowledged."""
    acked: dict[str, list[int]] = {}
    for send in history.sends:
        if send.outcome is Outcome.OK and send.transaction is None and send.span.completed_ns:
            acked.setdefault(send.partition, []).append(send.span.completed_ns)
    gaps = [
        later - earlier
        for times in acked.values()
        for earlier, later in zip(sorted(times), sorted(times)[1:], strict=False)
    ]
    return max(gaps, default=0) // 1_000_000
