"""The failover lab, word for word: the page's commands in the page's order, on other ports."""

import os
import re
import shutil
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from tests.support.processes import HOST, ROOT, assert_group_is_gone, free_port, python
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually

from penstock.cli.secure_files import ADMIN, SecureFiles
from penstock.config.properties import format_properties, read_properties

LAB = ROOT / "examples" / "failover"
PORTS = (2181, 9092, 9093, 9094)
CANARY = "what nobody on the way may read"
LINE = re.compile(
    r"\tTopic: my-failsafe-topic\tPartition: (\d+)\tLeader: (\S+)\tReplicas: (\S+)\tIsr: (\S+)"
)


@dataclass(frozen=True)
class Placed:
    """A line of the listing."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Lab:
    """A copy of the folder with ports of its own; remembers which commands were run.

    It lies where a checkout has it, and no environment is active: the scripts find the commands.
    """

    login: tuple[str, ...] = ()  # What tools are told beside the cluster.

    def __init__(self, directory: Path, running: ExitStack) -> None:
        self.directory = directory / "examples" / "failover"
        self.bin = Path(python()).parent
        (directory / ".venv").mkdir()
        (directory / ".venv" / "bin").symlink_to(self.bin)
        self.running = running
        self.commands: list[str] = []
        shutil.copytree(LAB, self.directory, ignore=shutil.ignore_patterns("logs"))
        self.ports = {str(port): str(self.new_port()) for port in PORTS}
        for file in self.directory.rglob("*"):
            if file.is_file():
                text = file.read_text()
                file.write_text(re.sub("|".join(self.ports), lambda m: self.ports[m[0]], text))
        words = os.environ["PATH"].split(os.pathsep)
        path = os.pathsep.join(word for word in words if not (Path(word) / "penstock").exists())
        assert shutil.which("kafka-topics", path=path) is None
        self.environment = {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1"}

    def new_port(self) -> int:
        """Where one of the servers is found."""
        return free_port()

    def check_the_wire(self) -> None:
        """See that what passed was nobody's business, where it was not."""

    def run(self, script: str) -> str:
        """A script that ends; what it printed."""
        self.commands.append(script)
        done = subprocess.run(
            [f"./{script}"],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"{script}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def start(self, script: str) -> "Terminal":
        """A script that stays; at the end it is ended as Ctrl-C ends it."""
        self.commands.append(script)
        terminal = Terminal(self, script)
        self.running.callback(terminal.close)
        return terminal

    def described(self) -> dict[int, Placed]:
        """The listing of the topic, by partition; does not count as a command of the page."""
        listing = self.run("describe-topics.sh")
        self.commands.pop()
        return {
            int(number): Placed(
                leader=-1 if leader == "none" else int(leader),
                replicas=_ids(replicas),
                isr=_ids(isr),
            )
            for number, leader, replicas, isr in LINE.findall(listing)
        }

    def has_zookeeper(self) -> bool:
        """Whether it serves, as a reader sees by what it prints."""
        try:
            with self.reach_zookeeper() as connection:
                connection.sendall(b"srvr")
                return b"Zookeeper version" in connection.recv(4096)
        except OSError:
            return False

    def reach_zookeeper(self) -> socket.socket:
        return socket.create_connection((HOST, int(self.ports["2181"])), timeout=5)

    def shares(self) -> list[int]:
        """How many partitions each consumer of the group has."""
        command = [f"{self.bin}/kafka-consumer-groups", "--describe", "--group", "mygroup"]
        command += ["--bootstrap-server", f"localhost:{self.ports['9093']}", *self.login]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=120
        )
        rows = [line.split() for line in done.stdout.splitlines() if "my-failsafe" in line]
        return sorted(Counter(row[6] for row in rows if row[6] != "-").values())

    def describe(self) -> dict[int, Placed]:
        """The page's own look at the topic."""
        self.commands.append("describe-topics.sh")
        return self.described()


class SecuredLab(Lab):
    """The same with TLS everywhere, passwords and rules; every byte passes by somebody curious.

    Clients, brokers and ZooKeeper find each other behind proxies. The administrator makes the topic
    and moves leaders, and alice writes and reads.
    """

    def __init__(self, directory: Path, running: ExitStack) -> None:
        self.proxies: dict[str, TcpProxy] = {}
        self.own_ports: dict[str, int] = {}
        super().__init__(directory, running)
        self.files = SecureFiles(directory / "secure")
        self._penstock("secure", "init", str(self.files.directory), "--users", "alice")
        self.login = ("--command-config", str(self.files.client(ADMIN)))
        for proxy in self.proxies.values():
            running.callback(proxy.__exit__)
        for number, port in enumerate(("9092", "9093", "9094")):
            self._secure_broker(number, self.ports[port])
        self._secure_zookeeper()
        for script in self.directory.glob("*.sh"):
            user = "alice" if "console" in script.name else ADMIN
            words = f"--command-config {self.files.client(user)} --bootstrap-server"
            script.write_text(script.read_text().replace("--bootstrap-server", words))

    def new_port(self) -> int:
        own = free_port()
        proxy = TcpProxy(own, is_recording=True)
        self.proxies[str(proxy.port)] = proxy
        self.own_ports[str(proxy.port)] = own
        return proxy.port

    def _secure_broker(self, number: int, port: str) -> None:
        file = self.directory / "config" / f"server-{number}.properties"
        settings = read_properties(file) | read_properties(self.files.broker_properties)
        settings["listeners"] = f"SASL_SSL://localhost:{self.own_ports[port]}"
        settings["advertised.listeners"] = f"SASL_SSL://localhost:{port}"
        file.write_text(format_properties(settings))

    def _secure_zookeeper(self) -> None:
        file = self.directory / "config" / "zookeeper.properties"
        settings = read_properties(file)
        settings["secureClientPort"] = str(self.own_ports[settings.pop("clientPort")])
        secure = read_properties(self.files.zookeeper_properties)
        settings |= {name: value for name, value in secure.items() if "uorum" not in name}
        file.write_text(format_properties(settings))

    def reach_zookeeper(self) -> socket.socket:
        context = self.files.zookeeper_context()
        return context.wrap_socket(super().reach_zookeeper(), server_hostname=HOST)

    def run(self, script: str) -> str:
        shown = super().run(script)
        if script == "create-replicated-topic.sh":
            servers = ("--bootstrap-server", f"localhost:{self.ports['9092']}", *self.login)
            rule = ("acls", *servers, "--add", "--allow-principal", "User:alice")
            topic = ("--topic", "my-failsafe-topic")
            self._penstock(*rule, "--producer", *topic)
            self._penstock(*rule, "--consumer", *topic, "--group", "mygroup")
        return shown

    def _penstock(self, *words: str) -> None:
        done = subprocess.run(
            [f"{self.bin}/penstock", *words], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done

    def check_the_wire(self) -> None:
        users = [read_properties(self.files.librdkafka_client(u)) for u in ("alice", ADMIN)]
        jaas = read_properties(self.files.broker_properties).values()
        passwords = {user["sasl.password"] for user in users}
        passwords |= {found for text in jaas for found in re.findall(r'password="(.*?)"', text)}
        assert len(passwords) == 3
        for proxy in self.proxies.values():
            heard = [piece for piece in proxy.heard if piece]
            assert sum(map(len, heard)) > 10_000
            for piece in heard:
                assert piece[:2] in (b"\x16\x03", b"\x15\x03"), "it begins as TLS does"
                for word in (CANARY, "my-failsafe-topic", "mygroup", "/brokers", *passwords):
                    assert word.encode() not in piece


class Terminal:
    """A window with a command in it."""

    def __init__(self, lab: Lab, script: str) -> None:
        self.path = lab.directory / f"{len(lab.commands)}-{script}.out"
        with self.path.open("wb") as out:
            self.process = subprocess.Popen(
                [f"./{script}"],
                cwd=lab.directory,
                env=lab.environment,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    @property
    def shown(self) -> str:
        return self.path.read_text(errors="replace")

    def type(self, line: str) -> None:
        keyboard: IO[str] | None = self.process.stdin
        assert keyboard is not None
        keyboard.write(f"{line}\n")
        keyboard.flush()

    def close(self) -> None:
        """Ctrl-C, and more if need be."""
        group = self.process.pid
        if self.process.poll() is None:
            os.killpg(group, signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(group, signal.SIGKILL)
                self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        assert_group_is_gone(group)


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


@pytest.fixture(params=[Lab, SecuredLab], ids=["open", "secured"])
def lab(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lab]:
    with ExitStack() as running:
        yield request.param(tmp_path, running)


def test_somebody_curious_hears_plain_text() -> None:
    """Without this, nothing would be found where nothing can be."""
    with (
        socket.create_server((HOST, 0)) as server,
        TcpProxy(server.getsockname()[1], is_recording=True) as proxy,
        socket.create_connection((HOST, proxy.port)) as client,
    ):
        client.sendall(CANARY.encode())
        taken, _ = server.accept()
        with taken:
            assert taken.recv(100)
        eventually(lambda: any(CANARY.encode() in piece for piece in proxy.heard))


def commands_of_the_page() -> list[str]:
    page = (LAB / "README.md").read_text()
    blocks = re.findall(r"```console\n(.*?)```", page, flags=re.DOTALL)
    return [
        line.removeprefix("$ ./")
        for block in blocks
        for line in block.splitlines()
        if line.startswith("$ ")
    ]


def test_a_broker_is_killed_and_nothing_is_lost(lab: Lab) -> None:
    lab.start("start-zookeeper.sh")
    eventually(lab.has_zookeeper, timeout_s=120, what="ZooKeeper")
    brokers = [lab.start(f"start-{nth}-server.sh") for nth in ("1st", "2nd", "3rd")]
    for broker in brokers:
        eventually(lambda b=broker: "started (" in b.shown, timeout_s=120, what="a broker")  # type: ignore[misc]

    assert lab.run("create-replicated-topic.sh") == "Created topic my-failsafe-topic.\n"
    eventually(lambda: all(len(p.isr) == 3 for p in lab.described().values()), timeout_s=120)
    before = lab.describe()
    assert len(before) == 13
    leads = [sum(p.leader == broker for p in before.values()) for broker in range(3)]
    assert sorted(leads) == [4, 4, 5], "leaders go round the brokers"
    assert all(p.leader == p.replicas[0] for p in before.values())
    assert len({p.replicas for p in before.values()}) == 6, "and so do followers"

    consumers = [lab.start("start-consumer-console-replicated.sh") for _ in range(3)]
    producer = lab.start("start-producer-console-replicated.sh")

    def read() -> list[str]:
        shown = "".join(consumer.shown for consumer in consumers)
        return sorted(re.findall(r"^m\d+$", shown, flags=re.MULTILINE))

    # Who comes first has all partitions for a moment; then they share.
    eventually(lambda: lab.shares() == [4, 4, 5], timeout_s=120, every_s=0.3, what="a whole group")
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        for _ in range(count):
            sent += 1
            producer.type(f"m{sent}")

    def all_sent() -> set[str]:
        return {f"m{number}" for number in range(1, sent + 1)}

    send(30)
    eventually(lambda: set(read()) == all_sent(), timeout_s=120, what="all messages")
    assert len(read()) == sent, "each message reaches one consumer"

    lab.run("kill-1st-server.sh")
    assert brokers[0].process.wait(120) == -signal.SIGKILL
    eventually(
        lambda: all(0 not in p.isr and p.leader > 0 for p in lab.described().values()),
        timeout_s=120,
        what="new leaders",
    )
    after = lab.describe()
    for number, placed in after.items():
        assert placed.replicas == before[number].replicas, "the order of replicas is kept"
        assert set(placed.isr) == {1, 2}
        if before[number].leader != 0:
            assert placed.leader == before[number].leader, "other leaders stay"
        else:
            assert placed.leader == placed.replicas[1], "the next in sync leads"

    send(30)
    eventually(lambda: set(read()) == all_sent(), timeout_s=120, what="all messages")

    lab.start("start-1st-server.sh")
    eventually(
        lambda: all(len(p.isr) == 3 for p in lab.described().values()),
        timeout_s=120,
        what="broker 0 in sync again",
    )
    assert {p.replicas for p in lab.describe().values()} == {p.replicas for p in before.values()}
    said = lab.run("elect-preferred-leaders.sh")
    assert said.startswith("Successfully completed leader election (PREFERRED) for partitions")
    eventually(
        lambda: (
            {n: p.leader for n, p in lab.described().items()}
            == {n: p.leader for n, p in before.items()}
        ),
        timeout_s=120,
        what="the leaders of the beginning",
    )
    send(5)
    producer.type(CANARY)
    eventually(lambda: set(read()) == all_sent(), timeout_s=120, what="the very last messages")
    eventually(lambda: any(CANARY in one.shown for one in consumers), timeout_s=120)
    lab.check_the_wire()
    for console in (*consumers, producer):
        assert "deprecated" not in console.shown, console.shown
    for consumer in consumers:
        # Whoever tried to reach the dead broker says so once, whatever the number of attempts.
        assert consumer.shown.count("Connection refused") <= 1, consumer.shown
    assert lab.commands == commands_of_the_page()
