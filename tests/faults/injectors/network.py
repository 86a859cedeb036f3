"""Silent cuts between brokers, ZooKeeper and clients, by network namespaces.

Every broker and ZooKeeper gets a namespace of its own, joined by a bridge; clients stay outside. A
cut gives one side a wrong hardware address for the other, so that its packets go nowhere: no
reset, no refusal, on old connections and new ones alike, one way or both. It heals without trace.
"""

import os
import random
import shutil
import socket
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.deployment import BrokerNode, Deployment, Host
from tests.faults.injectors.fault import Target
from tests.faults.injectors.signals import mix, some_leader
from tests.support.zookeeper import ZooKeeperProcess

from penstock.meta.zookeeper.server import prepare

NOWHERE = "02:00:00:00:de:ad"
ZOOKEEPER = "zk"


def ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def missing_means() -> str | None:
    """Why namespaces cannot be had here; None: they can."""
    if os.geteuid() != 0:
        return "network namespaces take root"
    if shutil.which("ip") is None:
        return "the ip command (iproute2) is not installed"
    probe = f"psprobe{os.getpid()}"
    try:
        ip("netns", "add", probe)
        ip("netns", "del", probe)
        ip("link", "add", probe[:15], "type", "bridge")
        ip("link", "del", probe[:15])
    except OSError as error:
        return f"no network namespaces: {error}"
    return None


@dataclass(slots=True, kw_only=True)
class Network:
    """A bridge with a namespace per member."""

    tag: str = field(default_factory=lambda: f"{random.SystemRandom().randrange(16**4):04x}")
    subnet: str = ""
    addresses: dict[str, str] = field(default_factory=dict)
    cuts: set[tuple[str, str]] = field(default_factory=set)

    @property
    def bridge(self) -> str:
        return f"psbr{self.tag}"

    def namespace(self, member: str) -> str:
        return f"ps{self.tag}-{member}"

    def create(self, members: Iterable[str]) -> None:
        chance = random.SystemRandom()
        self.subnet = f"10.{chance.randrange(100, 250)}.{chance.randrange(1, 250)}"
        ip("link", "add", self.bridge, "type", "bridge")
        ip("addr", "add", f"{self.subnet}.1/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")
        for number, member in enumerate(members, start=11):
            self._add(member, number)

    def _add(self, member: str, number: int) -> None:
        name, outside = self.namespace(member), f"psv{self.tag}{number}"
        self.addresses[member] = f"{self.subnet}.{number}"
        ip("netns", "add", name)
        ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", outside, "master", self.bridge)
        ip("link", "set", outside, "up")
        ip("-n", name, "addr", "add", f"{self.addresses[member]}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        ip("-n", name, "link", "set", "lo", "up")

    def host(self, member: str) -> Host:
        prefix = ("ip", "netns", "exec", self.namespace(member))
        return Host(address=self.addresses[member], prefix=prefix)

    def cut(self, sender: str, receiver: str) -> None:
        """From now on nothing that the sender says reaches the receiver."""
        self._neighbour("replace", sender, receiver, "lladdr", NOWHERE, "nud", "permanent")
        self.cuts.add((sender, receiver))

    def cut_both_ways(self, one: str, other: str) -> None:
        self.cut(one, other)
        self.cut(other, one)

    def _neighbour(self, verb: str, sender: str, receiver: str, *words: str) -> None:
        address = self.addresses[receiver]
        ip("-n", self.namespace(sender), "neigh", verb, address, *words, "dev", "eth0")

    def heal(self) -> None:
        for sender, receiver in sorted(self.cuts):
            self._neighbour("del", sender, receiver)
        self.cuts.clear()

    def remove(self) -> None:
        for member in self.addresses:
            with suppress(OSError):
                ip("netns", "del", self.namespace(member))
        with suppress(OSError):
            ip("link", "del", self.bridge)


class NamespacedZooKeeper(ZooKeeperProcess):
    """A ZooKeeper behind an address of its own."""

    def __init__(self, directory: Path, host: Host) -> None:
        super().__init__(directory, {"clientPortAddress": host.address})
        self.host = host

    @property
    def connect(self) -> str:
        return f"{self.host.address}:{self.port}"

    def launch(self) -> None:
        assert self.process is None, "the server runs already"
        command = [*self.host.prefix, *prepare(self.settings, my_id=self.my_id).command]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def ask(self, word: bytes) -> bytes:
        try:
            with socket.create_connection((self.host.address, self.port), timeout=5) as connection:
                connection.sendall(word)
                answer = b""
                while chunk := connection.recv(65536):
                    answer += chunk
                return answer
        except OSError:
            return b""


@dataclass(slots=True, kw_only=True)
class NetworkDeployment(Deployment):
    """A cluster whose members can be cut off from each other."""

    network: Network = field(default_factory=Network)

    def start(self) -> None:
        self.stack.callback(self.network.remove)
        self.network.create([ZOOKEEPER, *map(str, range(1, self.plan.brokers + 1))])
        super(NetworkDeployment, self).start()

    def host(self, broker_id: int) -> Host:
        return self.network.host(str(broker_id))

    def new_zookeeper(self) -> ZooKeeperProcess:
        return NamespacedZooKeeper(self.directory / "zookeeper", self.network.host(ZOOKEEPER))

    def heal(self) -> None:
        self.network.heal()
        super(NetworkDeployment, self).heal()

    def others(self, node: BrokerNode) -> list[str]:
        return [str(broker_id) for broker_id in self.brokers if broker_id != node.broker_id]


def _network(target: Target) -> NetworkDeployment:
    assert isinstance(target.deployment, NetworkDeployment)
    return target.deployment


def _hold_and_heal(target: Target, text: str, seconds: float | None = None) -> None:
    lasting = target.chance.uniform(3, 9) if seconds is None else seconds
    target.note(f"{text} for {lasting:.1f} s")
    target.hold(lasting)
    _network(target).network.heal()
    target.note("the network is whole")


def cut_leader_from_followers(target: Target) -> None:
    """ZooKeeper and clients still reach everybody."""
    deployment, leader = _network(target), some_leader(target)
    for other in deployment.others(leader):
        deployment.network.cut_both_ways(str(leader.broker_id), other)
    _hold_and_heal(target, f"broker {leader.broker_id} and the other brokers are cut apart")


def cut_leader_from_zookeeper(target: Target) -> None:
    """Its session ends, but clients and followers still talk to the old leader."""
    deployment, leader = _network(target), some_leader(target)
    deployment.network.cut_both_ways(str(leader.broker_id), ZOOKEEPER)
    _hold_and_heal(target, f"broker {leader.broker_id} and ZooKeeper are cut apart")


def cut_leader_off(target: Target) -> None:
    """Only clients still reach it: the classic way to get two who think that they lead."""
    deployment, leader = _network(target), some_leader(target)
    for other in (*deployment.others(leader), ZOOKEEPER):
        deployment.network.cut_both_ways(str(leader.broker_id), other)
    _hold_and_heal(target, f"broker {leader.broker_id} is cut off from all but clients")


def cut_one_way(target: Target) -> None:
    """A leader hears everybody, and some do not hear it; or the other way round."""
    deployment, leader = _network(target), some_leader(target)
    me = str(leader.broker_id)
    others = [*deployment.others(leader), ZOOKEEPER]
    chosen = target.chance.sample(others, target.chance.randint(1, len(others)))
    is_mute = target.chance.random() < 0.5
    for other in chosen:
        deployment.network.cut(*((me, other) if is_mute else (other, me)))
    word = "is not heard by" if is_mute else "does not hear"
    _hold_and_heal(target, f"broker {me} {word} {', '.join(chosen)}")


def cut_controller_off(target: Target) -> None:
    deployment, controller = _network(target), target.deployment.controller()
    for other in (*deployment.others(controller), ZOOKEEPER):
        deployment.network.cut_both_ways(str(controller.broker_id), other)
    _hold_and_heal(target, f"controller {controller.broker_id} is cut off from all but clients")


def cut_at_random(target: Target) -> None:
    """A few one-way cuts between any two, over and over."""
    deployment = _network(target)
    members = [ZOOKEEPER, *map(str, deployment.brokers)]
    for _ in range(3):
        for _ in range(target.chance.randint(1, 3)):
            deployment.network.cut(*target.chance.sample(members, 2))
        cuts = ", ".join(f"{a}→{b}" for a, b in sorted(deployment.network.cuts))
        _hold_and_heal(target, f"cut: {cuts}", target.chance.uniform(0.5, 4))
        target.hold(target.chance.uniform(0.1, 1))


def cut_and_kill(target: Target) -> None:
    """Some are cut off from each other while others die or hold still."""
    deployment = _network(target)
    members = [ZOOKEEPER, *map(str, deployment.brokers)]
    for _ in range(target.chance.randint(1, 4)):
        deployment.network.cut(*target.chance.sample(members, 2))
    target.note(f"cut: {', '.join(f'{a}→{b}' for a, b in sorted(deployment.network.cuts))}")
    target.hold(target.chance.uniform(0, 3))
    mix(target)
    target.note("the network is whole")
