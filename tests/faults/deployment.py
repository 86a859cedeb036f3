"""A cluster to be ill-treated: brokers and ZooKeeper as processes, wherever a fault needs them.

It starts, kills, pauses and heals, and looks at the cluster from outside. What is done to it, and
when, is the business of the faults; what it promised, of the clients and the checker.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.faults.view import PartitionView, View, ask_view
from tests.support.processes import HOST, ServerProcess, free_port, python
from tests.support.waiting import eventually
from tests.support.wire import RawConnection, WireError
from tests.support.zookeeper import ZooKeeperEnsemble, ZooKeeperProcess

SETTINGS = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.index.size.max.bytes": "65536",
}
CLUSTER_SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "replica.lag.time.max.ms": "4000",
    "zookeeper.session.timeout.ms": "3000",
    "zookeeper.connection.timeout.ms": "60000",
}
WHOLE_S = 240.0  # The design gives 60 s on a machine of its own.


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Where a process runs: its address, and what is put before its command."""

    address: str = HOST
    prefix: tuple[str, ...] = ()


class BrokerNode(ServerProcess):
    """One broker that can be started in another place, with other clocks and disks."""

    def __init__(
        self, directory: Path, broker_id: int, settings: Mapping[str, str], host: Host
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        super().__init__([], port=free_port(), log_path=directory / "server.log")
        self.directory = directory
        self.broker_id = broker_id
        self.host = host
        self.data = directory / "data"
        self.settings = dict(settings)
        self.environment: dict[str, str] = {}
        self.prefix: tuple[str, ...] = ()  # On top of the host's own.
        self.mutant: str | None = None
        self.is_paused = False
        self.connect: Callable[..., RawConnection] = RawConnection

    @property
    def address(self) -> str:
        return f"{self.host.address}:{self.port}"

    def launch(self) -> None:
        assert self.process is None, f"broker {self.broker_id} runs already"
        with self.log_path.open("ab") as log:
            self.started_s = time.perf_counter()
            self.process = subprocess.Popen(
                [*self.host.prefix, *self.prefix, *self._command()],
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self.environment},
                start_new_session=True,
            )

    def _command(self) -> list[str]:
        settings = {
            "broker.id": str(self.broker_id),
            "log.dirs": str(self.data),
            "listeners": f"PLAINTEXT://{self.address}",
            **self.settings,
        }
        command = [python(), "-m", "penstock.cli.main"]
        if self.mutant is not None:
            command = [python(), "-m", "tests.faults.mutant_broker", self.mutant]
        command.append("server")
        for name, value in settings.items():
            command += ["--override", f"{name}={value}"]
        return command

    def answers(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            code = self.process.returncode
            raise RuntimeError(f"broker {self.broker_id} ended with code {code}:\n{self.log_end}")
        try:
            with self.connect(self.port, host=self.host.address, timeout_s=20) as connection:
                return connection.api_versions().error_code == 0
        except (OSError, WireError):
            return False

    @property
    def is_running(self) -> bool:
        """Whether the process is there, even if it is paused."""
        return self.process is not None and self.process.poll() is None

    def pause(self) -> None:
        self.send_signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self) -> None:
        if self.is_paused and self.is_running:
            self.send_signal(signal.SIGCONT)
        self.is_paused = False

    def kill(self) -> None:
        super().kill()
        self.is_paused = False

    def guardians(self) -> list[psutil.Process]:
        """The processes that this broker started."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return list(psutil.Process(self.pid).children())
        return []

    def view(self, topics: Sequence[str] | None = None) -> View:
        """How this broker sees the cluster."""
        listed = list(topics) if topics is not None else None
        return ask_view(self.host.address, self.port, listed, connect=self.connect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a fault needs to be able to happen; runs with equal plans share a cluster."""

    brokers: int = 3
    zookeepers: int = 1  # 0: one broker with its embedded store.
    has_network: bool = False
    disk: str = "plain"  # plain, small or loop
    has_shim: bool = False
    has_slow_links: bool = False
    settings: tuple[tuple[str, str], ...] = ()
    mutant: str | None = None


@dataclass(slots=True, kw_only=True)
class Deployment:
    """A running cluster of a plan."""

    directory: Path
    plan: Plan
    brokers: dict[int, BrokerNode] = field(default_factory=dict)
    zookeepers: list[ZooKeeperProcess] = field(default_factory=list)
    ensemble: ZooKeeperEnsemble | None = None
    stack: ExitStack = field(default_factory=ExitStack)
    # How clients come in, and who administers, in librdkafka's names; empty: nobody is asked.
    client_settings: dict[str, str] = field(default_factory=dict)
    admin_settings: dict[str, str] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    @property
    def zookeeper_connect(self) -> str:
        return ",".join(server.connect for server in self.zookeepers)

    def start(self) -> None:
        """ZooKeeper first, then all brokers at once."""
        self._start_zookeeper()
        settings = {**SETTINGS, **dict(self.plan.settings)}
        if self.plan.zookeepers:
            settings = {**SETTINGS, **CLUSTER_SETTINGS, **dict(self.plan.settings)}
            settings["zookeeper.connect"] = f"{self.zookeeper_connect}/kafka"
        for broker_id in range(1, self.plan.brokers + 1):
            node = BrokerNode(
                self.directory / f"broker-{broker_id}", broker_id, settings, self.host(broker_id)
            )
            node.mutant = self.plan.mutant
            self.brokers[broker_id] = node
            self.prepare(node)
        self.start_missing()
        self.wait_for_all_brokers()

    def host(self, _broker_id: int) -> Host:
        """Where this broker runs; other kinds of deployment have other places."""
        return Host()

    def prepare(self, _node: BrokerNode) -> None:
        """Give the broker its disk and whatever else the plan asks for."""

    def _start_zookeeper(self) -> None:
        if self.plan.zookeepers == 0:
            return
        if self.plan.zookeepers == 1:
            server = self.new_zookeeper()
            server.start()
            self.zookeepers = [server]
            return
        self.ensemble = ZooKeeperEnsemble(self.directory, self.plan.zookeepers)
        self.ensemble.start()
        self.zookeepers = self.ensemble.servers

    def new_zookeeper(self) -> ZooKeeperProcess:
        return ZooKeeperProcess(self.directory / "zookeeper")

    def start_missing(self) -> None:
        """Start whatever is down, and wait until it answers."""
        for server in self.zookeepers:
            if server.process is None or server.process.poll() is not None:
                server.kill()
                server.launch()
        for server in self.zookeepers:
            server.wait_until_ready()
        started = [node for node in self.brokers.values() if not node.is_running]
        for node in started:
            node.kill()  # Forgets a process that ended by itself.
            node.launch()
        for node in started:
            node.wait_until_ready(timeout_s=90)

    def heal(self) -> None:
        """Undo every fault."""
        for node in self.brokers.values():
            node.resume()
        for server in self.zookeepers:
            if server.process is not None and server.process.poll() is None:
                server.resume()
        self.start_missing()

    def running(self) -> list[BrokerNode]:
        """Brokers that run and are not paused."""
        return [n for n in self.brokers.values() if n.is_running and not n.is_paused]

    def views(self, topics: Sequence[str] | None = None) -> Iterator[tuple[int, View]]:
        """What each broker that answers says of the cluster."""
        for node in self.running():
            with contextlib.suppress(OSError):
                yield node.broker_id, node.view(topics)

    def leader_of(self, topic: str, partition: int = 0) -> BrokerNode:
        """The broker that leads the partition, by the highest epoch that anybody knows."""

        def look() -> BrokerNode | None:
            seen = [v.partitions.get((topic, partition)) for _, v in self.views([topic])]
            known = [view for view in seen if view is not None and view.leader >= 0]
            if not known:
                return None
            return self.brokers[max(known, key=lambda view: view.epoch).leader]

        return eventually(look, timeout_s=120, every_s=0.1, what=f"a leader of {topic}")

    def living_leader_of(self, topic: str, partition: int) -> BrokerNode:
        """A leader that runs, as soon as there is one: those who live learn of deaths in time."""

        def look() -> BrokerNode | None:
            node = self.leader_of(topic, partition)
            return node if node.is_running else None

        return eventually(look, timeout_s=120, every_s=0.005, what=f"a living leader of {topic}")

    def controller(self) -> BrokerNode:
        """The broker that most others take for the controller."""

        def look() -> BrokerNode | None:
            votes = [view.controller_id for _, view in self.views([])]
            known = [vote for vote in votes if vote in self.brokers]
            return self.brokers[max(set(known), key=known.count)] if known else None

        return eventually(look, timeout_s=120, every_s=0.1, what="a controller")

    def _admin(self) -> AdminClient:
        settings = {"bootstrap.servers": self.bootstrap, "log_level": 3}
        return AdminClient({**settings, **self.admin_settings})

    def create_topic(self, name: str, partitions: int, settings: Mapping[str, str]) -> None:
        admin = self._admin()
        factor = min(3, self.plan.brokers)
        new = NewTopic(name, partitions, factor, config=dict(settings))
        for future in admin.create_topics([new], operation_timeout=60, request_timeout=60).values():
            future.result(120)
        self.wait_until_whole([name])

    def elect_uncleanly(self) -> None:
        """Do as an operator does who knows that no replica can be trusted to have everything."""
        admin = self._admin()

        def leaderless() -> list[TopicPartition]:
            _, view = next(self.views())
            return [TopicPartition(*key) for key, p in view.partitions.items() if p.leader < 0]

        def elected() -> bool:
            wanted = leaderless()
            if wanted:
                admin.elect_leaders(ElectionType.UNCLEAN, wanted).result(120)
            return not leaderless()

        eventually(elected, timeout_s=120, every_s=0.5, what="a leader for every partition")

    def wait_for_all_brokers(self, *, timeout_s: float = WHOLE_S) -> None:
        """Until every broker knows every broker and a controller."""

        def all_known() -> bool:
            views = dict(self.views([]))
            return len(views) == len(self.brokers) and all(
                set(view.brokers) == set(self.brokers) and view.controller_id in self.brokers
                for view in views.values()
            )

        eventually(all_known, timeout_s=timeout_s, every_s=0.05, what="brokers that know all")

    def wait_until_whole(self, topics: Sequence[str], *, timeout_s: float = WHOLE_S) -> None:
        """Until every broker sees a leader and a full ISR for all partitions, and all agree."""

        def whole() -> bool:
            views = [view.partitions for _, view in self.views(topics)]
            if len(views) != len(self.brokers):
                return False
            assert views[0], "no partition known"
            return all(view == views[0] for view in views) and all(
                partition.is_whole for partition in views[0].values()
            )

        try:
            eventually(whole, timeout_s=timeout_s, every_s=0.1, what=f"full ISRs of {topics}")
        except AssertionError as error:
            raise NotHealed(f"{error}; seen: {self.described(topics)}") from error

    def described(self, topics: Sequence[str]) -> dict[int, dict[str, str]]:
        """Who sees what, for a message."""
        return {
            broker_id: {
                f"{t}-{p}": _told(partition) for (t, p), partition in view.partitions.items()
            }
            for broker_id, view in self.views(topics)
        }

    def log_dirs(self) -> dict[int, Path]:
        return {broker_id: node.data for broker_id, node in self.brokers.items()}

    def kill(self) -> None:
        for node in self.brokers.values():
            node.kill()
        for server in self.zookeepers:
            server.kill()
        self.stack.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()


class NotHealed(AssertionError):
    """The cluster did not become whole again in time."""


def _told(partition: PartitionView) -> str:
    return f"leader {partition.leader} epoch {partition.epoch} isr {list(partition.isr)}"
