"""kafka-acls: which rules a command line means, and how they are printed."""

import pytest

from penstock.cli.tools.security import acls
from penstock.cli.tools.security.acls import entry_text, filter_text, pattern_text
from penstock.errors import CommandError
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    ResourceFilter,
    ResourcePattern,
)


def wanted(*argv: str) -> set[tuple[str, str]]:
    parser = acls._parser()
    options = parser.parse(argv)
    acls._check(parser, options)
    return {
        (f"{resource.type.name} {resource.name} {resource.pattern.name}", entry_text(entry))
        for resource, entries in acls._wanted(options).items()
        for entry in entries
    }


def entry(operation: str, permission: str = "ALLOW", host: str = "*") -> str:
    return f"(principal=User:a, host={host}, operation={operation}, permissionType={permission})"


WHO = ["--allow-principal", "User:a"]


def test_a_rule_for_each_principal_host_and_operation() -> None:
    found = wanted(
        *("--add", "--topic", "t", "--resource-pattern-type", "prefixed", *WHO),
        *("--operation", "Read", "--operation", "describe_configs", "--allow-host", "h"),
    )
    resource = "TOPIC t PREFIXED"
    operations = ("READ", "DESCRIBE_CONFIGS")
    assert found == {(resource, entry(one, host="h")) for one in operations}


def test_without_an_operation_all_are_meant() -> None:
    found = wanted("--add", "--cluster", "--deny-principal", "User:a")
    assert found == {("CLUSTER kafka-cluster LITERAL", entry("ALL", "DENY"))}


def test_a_producer_and_a_consumer_get_what_they_need() -> None:
    topic = "TOPIC t LITERAL"
    producer = {(topic, entry(one)) for one in ("WRITE", "DESCRIBE", "CREATE")}
    assert wanted("--add", "--producer", "--topic", "t", *WHO) == producer
    idempotent = {("CLUSTER kafka-cluster LITERAL", entry("IDEMPOTENT_WRITE"))}
    ids = {("TRANSACTIONAL_ID x LITERAL", entry(one)) for one in ("WRITE", "DESCRIBE")}
    more = ["--idempotent", "--transactional-id", "x"]
    assert wanted("--add", "--producer", "--topic", "t", *more, *WHO) == producer | idempotent | ids
    consumer = {(topic, entry(one)) for one in ("READ", "DESCRIBE")}
    consumer |= {("GROUP g LITERAL", entry("READ"))}
    assert wanted("--add", "--consumer", "--topic", "t", "--group", "g", *WHO) == consumer


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--add", "--topic", "t"], "You must specify one of"),
        (["--add", "--topic", "t", "--operation", "Zork", *WHO], "Zork is not an operation"),
        (["--add", "--group", "g", "--operation", "Write", *WHO], "GROUP only supports"),
        (["--add", "--topic", "t", "--resource-pattern-type", "x", *WHO], "Invalid resource-pat"),
    ],
)
def test_what_cannot_be_meant_is_told(argv: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        wanted(*argv)


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--add", "--list"],
        ["--add", *WHO],
        ["--add", "--producer", "--group", "g", *WHO],
        ["--add", "--consumer", "--topic", "t", *WHO],
        ["--add", "--topic", "t", "--idempotent", *WHO],
    ],
)
def test_a_wrong_command_line_is_refused(argv: list[str]) -> None:
    with pytest.raises(SystemExit):
        wanted(*argv)


def test_rules_are_printed_as_java_prints_them() -> None:
    resource = ResourcePattern(AclResourceType.TOPIC, "t", PatternType.LITERAL)
    assert pattern_text(resource) == (
        "ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)"
    )
    assert filter_text(ResourceFilter(type=AclResourceType.GROUP)) == (
        "ResourcePattern(resourceType=GROUP, name=<any>, patternType=ANY)"
    )
    rule = AccessControlEntry("User:a", "*", AclOperation.READ, AclPermission.ALLOW)
    assert entry_text(rule) == entry("READ")
