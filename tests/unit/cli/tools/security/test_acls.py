"""kafka-acls: which rules a command line means, and how they are printed."""

import pytest

from penstock.cli.tools.security import acls
from penstock.cli.tools.security.acls import entry_text, filter_text, pattern_text
from penstock.errors import PenstockError
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
        (["--add", "--topic", "t", "--operation", "Any", *WHO], "operation must not be ANY"),
        (
            ["--add", "--topic", "t", "--resource-pattern-type", "x", *WHO],
            "Cannot parse argument 'x' of option resource-pattern-type",
        ),
        (["--add", "--topic", "t", "--allow-principal", "a"], "principalName but got a"),
        (["--list", "--principal", "a"], "principalName but got a"),
    ],
)
def test_what_cannot_be_meant_is_told(argv: list[str], words: str) -> None:
    with pytest.raises(PenstockError, match=words):
        wanted(*argv)


NO_RESOURCE = "You must provide at least one resource"
OF_CONSUMERS = (
    "With --consumer you must specify a --topic and a --group and no --cluster or "
    "--transactional-id option should be specified."
)
LITERAL_CLUSTER = ["--cluster", "--resource-pattern-type", "prefixed"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--topic", "t"], "Command must include exactly one action: --list, --add, --remove."),
        (["--add", "--list"], "Command must include exactly one action"),
        (["--add", *WHO], NO_RESOURCE),
        (["--remove"], NO_RESOURCE),
        (["--add", *LITERAL_CLUSTER, *WHO], NO_RESOURCE),
        (["--add", "--topic", "t"], "You must specify one of: --allow-principal, --deny-princ"),
        (["--add", "--producer", "--group", "g", *WHO], "With --producer you must specify a --to"),
        (["--add", "--consumer", "--topic", "t", *WHO], OF_CONSUMERS),
        (
            ["--add", "--consumer", "--topic", "t", "--group", "g", "--cluster", *WHO],
            OF_CONSUMERS,
        ),
        (["--add", "--topic", "t", "--idempotent", *WHO], "The --idempotent option is only avai"),
        (["--add", "--topic", "t", "--principal", "User:a"], "The --principal option is only"),
        (
            ["--add", "--producer", "--topic", "t", "--operation", "Read", *WHO],
            'Option "[producer]" can\'t be used with option "[operation]"',
        ),
        (
            ["--add", "--consumer", "--topic", "t", "--deny-principal", "User:d"],
            'Option "[consumer]" can\'t be used with option "[deny-principal]"',
        ),
        (
            ["--list", "--topic", "t", *WHO],
            'Option "[list]" can\'t be used with option "[allow-principal]"',
        ),
        (
            ["--list", "--producer", "--topic", "t"],
            'Option "[list]" can\'t be used with option "[producer]"',
        ),
        (
            ["--add", "--topic", "t", "--resource-pattern-type", "match", *WHO],
            "A '--resource-pattern-type' value of 'MATCH' is not valid when adding acls.",
        ),
        (
            ["--add", "--group", "g", "--operation", "Write", *WHO],
            "ResourceType GROUP only supports operations [ALL, READ, DELETE, DESCRIBE,",
        ),
        (
            ["--add", "--topic", "t", "--operation", "Zork", *WHO],
            "ResourceType TOPIC only supports operations [ALL, READ,",
        ),
        (
            ["--list", "--bootstrap-server", "a:1", "--bootstrap-controller", "a:2"],
            "Only one of --bootstrap-server or --bootstrap-controller must be specified",
        ),
    ],
)
def test_a_wrong_command_line_is_refused_in_the_words_of_kafka(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        wanted(*argv)
    assert capsys.readouterr().err.startswith(words)


def test_a_server_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        acls.main(["--list"])
    assert capsys.readouterr().err.startswith(
        "One of --bootstrap-server or --bootstrap-controller must be specified"
    )


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
