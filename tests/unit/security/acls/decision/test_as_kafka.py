"""The same worlds and questions to Kafka's own StandardAuthorizer: the same answers."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.apache_kafka import CURRENT
from tests.support.java import compiled, run_java
from tests.support.outside import needs
from tests.unit.security.acls import worlds

from penstock.security.acls.audit import AuditedAction, audit_line
from penstock.security.acls.decision import DecidingRule
from penstock.security.acls.rules import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    EntryFilter,
    PatternType,
    ResourceFilter,
)
from penstock.security.principals import Principal

SOURCE = Path(__file__).with_name("Decisions.java")
WORLDS, QUESTIONS = 150, 40
Answer = Callable[[], str]


def written(rule: AclBinding) -> list[str]:
    resource, entry = rule.resource, rule.entry
    return [
        *[resource.type.name, resource.name, resource.pattern.name],
        *[entry.principal, entry.host, entry.operation.name, entry.permission.name],
    ]


class Script:
    """Commands for the Java program, and what we answer to each."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.lines: list[str] = []
        self.ours: list[str] = []
        self.asked: list[str] = []

    def command(self, *words: str) -> None:
        self.lines.append("\t".join(words))

    def question(self, answer: str, *words: str) -> None:
        self.command(*words)
        self.asked.append(self.lines[-1])
        self.ours.append(answer)

    def write_world(self) -> None:
        dice = self.dice
        rules = tuple(worlds.random_binding(dice) for _ in range(dice.randint(0, 25)))
        supers = frozenset({Principal("User", "b")} if dice.random() < 0.3 else ())
        world = worlds.World(rules=rules, super_users=supers, allow_everyone=dice.random() < 0.3)
        self.command("world", ";".join(map(str, supers)), str(world.allow_everyone).lower())
        for rule in dict.fromkeys(rules):
            self.command("rule", *written(rule))
        self._ask(world)

    def _ask(self, world: worlds.World) -> None:
        authorizer = world.authorizer()
        for _ in range(QUESTIONS):
            one = worlds.random_question(self.dice)
            permits = authorizer.permits(one.principal, one.host)
            who = (str(one.principal), one.host, one.operation.name, one.type.name)
            allowed = permits.may(one.operation, one.type, one.name)
            self.question(verdict(allowed), "ask", *who, one.name)
            somewhere = permits.may_somewhere(one.operation, one.type)
            self.question(verdict(somewhere), "any", *who)
            wanted = self._filter()
            found = sorted("|".join(written(rule)) for rule in authorizer.index.matching(wanted))
            self.question(" ".join(found), "find", *_words(wanted))

    def _filter(self) -> AclBindingFilter:
        dice = self.dice
        patterns = [one for one in PatternType if one is not PatternType.UNKNOWN]
        return AclBindingFilter(
            resource=ResourceFilter(
                type=dice.choice([AclResourceType.ANY, *worlds.TYPES]),
                name=dice.choice([None, *worlds.NAMES]),
                pattern=dice.choice(patterns),
            ),
            entry=EntryFilter(
                principal=dice.choice([None, None, *worlds.PRINCIPALS]),
                host=dice.choice([None, None, *worlds.HOSTS]),
                operation=dice.choice([AclOperation.ANY, AclOperation.ANY, AclOperation.READ]),
                permission=dice.choice([AclPermission.ANY, AclPermission.DENY]),
            ),
        )


def _words(wanted: AclBindingFilter) -> list[str]:
    resource, entry = wanted.resource, wanted.entry
    return [
        *[resource.type.name, resource.name or "-", resource.pattern.name],
        *[entry.principal or "-", entry.host or "-"],
        *[entry.operation.name, entry.permission.name],
    ]


def verdict(is_allowed: bool) -> str:
    return "ALLOWED" if is_allowed else "DENIED"


@pytest.mark.kafka
@pytest.mark.parametrize("seed", [1, 2])
def test_kafka_decides_and_finds_the_same(seed: int, tmp_path: Path) -> None:
    script = Script(seed)
    for _ in range(WORLDS):
        script.write_world()
    theirs = answers(script, tmp_path)
    differing = [
        (asked, ours, said)
        for asked, ours, said in zip(script.asked, script.ours, theirs, strict=True)
        if ours != said
    ]
    assert differing == []
    assert len({*script.ours}) > 100  # Not all the same, or nothing was compared.


@pytest.mark.kafka
def test_kafka_prints_a_rule_in_the_audit_log_as_we_do(tmp_path: Path) -> None:
    script = Script(3)
    rule = worlds.random_binding(script.dice)
    script.question("", "print", *written(rule))
    action = AuditedAction(
        principal=Principal("User", "a"),
        host="10.0.0.1",
        operation=AclOperation.READ,
        resource=rule.resource,
        request="Fetch",
    )
    line = audit_line(action, DecidingRule(is_allowed=True, rule=rule))
    assert f"based on rule MatchingAcl(acl={answers(script, tmp_path)[0]})" in line


def answers(script: Script, directory: Path) -> list[str]:
    path = directory / "script.tsv"
    path.write_text("".join(f"{line}\n" for line in script.lines))
    class_path = compiled(SOURCE, needs(CURRENT))
    return run_java(class_path, "Decisions", str(path)).split("\n")[:-1]
