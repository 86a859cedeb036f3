"""kafka-acls on a broker with an authorizer: what it does and what it prints."""

import io
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.apache_kafka import CURRENT
from tests.support.broker import BrokerProcess
from tests.support.outside import needs

from penstock.cli.tools.security import acls
from penstock.errors import CommandError

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
JAVA = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory: Path = tmp_path_factory.mktemp("broker")
    settings = {"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS"}
    with BrokerProcess(directory, settings) as started:
        started.start()
        yield started
        assert started.tracebacks() == {}
        started.stop()


class Tools:
    def __init__(self, broker: BrokerProcess, capsys: pytest.CaptureFixture[str]) -> None:
        self.where = ["--bootstrap-server", broker.address]
        self.capsys = capsys

    def ours(self, *words: str) -> list[str]:
        assert acls.main([*self.where, *words]) == 0
        return self.capsys.readouterr().out.splitlines()

    def theirs(self, *words: str) -> list[str]:
        command = [*JAVA, "-cp", f"{needs(CURRENT)}/*", "org.apache.kafka.tools.AclCommand"]
        done = subprocess.run(
            [*command, *self.where, *words], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return [line for line in done.stdout.splitlines() if "StatusLogger" not in line]


@pytest.fixture
def tools(broker: BrokerProcess, capsys: pytest.CaptureFixture[str]) -> Tools:
    return Tools(broker, capsys)


def sorted_lines(lines: list[str]) -> list[str]:
    """Java prints sets, in whatever order; the first line of one begins with another blank."""
    return sorted(line.strip() for line in lines)


CONSUMER = ["--allow-principal", "User:alice", "--consumer", "--topic", "t", "--group", "g"]


def test_rules_are_added_listed_and_removed(tools: Tools) -> None:
    added = tools.ours("--add", *CONSUMER)
    assert added[0] == (
        "Adding ACLs for resource `ResourcePattern(resourceType=TOPIC, name=t, "
        "patternType=LITERAL)`: "
    )
    listed = tools.ours("--list", "--principal", "User:alice", "--topic", "t")
    assert listed[0] == "ACLs for principal `User:alice`"
    assert len([line for line in listed if "User:alice, host=*" in line]) == 2
    tools.ours("--remove", "--force", "--topic", "t")
    tools.ours("--remove", "--force", "--group", "g")
    assert tools.ours("--list") == []


def test_a_removal_asks_first(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    tools.ours("--add", *CONSUMER)
    for answer, is_left in (("n\n", True), ("y\n", False)):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        words = tools.ours("--remove", *CONSUMER[:2], "--operation", "Read", "--topic", "t")
        assert words[0].startswith("Are you sure you want to remove ACLs")
        listed = tools.ours("--list", "--topic", "t")
        assert any("operation=READ" in line for line in listed) is is_left
    tools.ours("--remove", "--force", "--topic", "t", "--group", "g")


def test_a_rule_that_the_broker_refuses_is_told_in_a_sentence(tools: Tools) -> None:
    with pytest.raises(CommandError, match="invalid resource name"):
        tools.ours("--add", *CONSUMER[:2], "--operation", "Read", "--topic", "a/b")


@pytest.mark.kafka
def test_the_words_are_those_of_apache_kafka(tools: Tools) -> None:
    steps = [
        ["--add", *CONSUMER],
        ["--add", *CONSUMER[:2], "--operation", "Read", "--operation", "Write", "--topic", "t"],
        ["--add", "--deny-principal", "User:bob", "--deny-host", "h", "--cluster"],
        [
            *("--add", "--allow-principal", "User:carol", "--producer", "--idempotent"),
            *("--topic", "pre", "--resource-pattern-type", "prefixed", "--transactional-id", "x"),
        ],
        ["--list"],
        ["--list", "--topic", "prefix", "--resource-pattern-type", "match"],
        ["--list", "--principal", "User:alice"],
    ]
    printed = [tools.ours(*step) for step in steps]
    clear(tools)
    for step, ours in zip(steps, printed, strict=True):
        assert sorted_lines(ours) == sorted_lines(tools.theirs(*step)), step
    clear(tools)


def clear(tools: Tools) -> None:
    """By Kafka's own tool, and then nothing is left."""
    for kind, name in (("topic", "pre"), ("transactional-id", "x")):
        pattern = ["--resource-pattern-type", "prefixed"]
        tools.theirs("--remove", "--force", f"--{kind}", name, *pattern)
    tools.theirs("--remove", "--force", "--cluster")
    tools.theirs("--remove", "--force", "--topic", "t", "--group", "g")
    assert tools.ours("--list") == []
