"""kafka-consumer-groups: its rules for options, and its tables."""

import pytest

from penstock.cli.tools.groups import consumer_groups
from penstock.cli.tools.groups.consumer_groups import deletion_table, listing_table
from penstock.cli.tools.groups.describe import (
    assignment_text,
    members_table,
    note_on,
    offsets_table,
    rows_of,
    state_table,
)
from penstock.cli.tools.groups.reset import why_untouched
from penstock.client.admin import Admin
from penstock.client.operations.groups import (
    CLASSIC,
    CONSUMER,
    GroupDescription,
    GroupListing,
    MemberDescription,
)
from penstock.client.values import Node, OffsetAndMetadata, TopicPartition
from penstock.errors import GroupIdNotFound, GroupSubscribedToTopic, NotCoordinator
from penstock.spark.sink.transactional import QueryNames

SERVER = ["--bootstrap-server", "localhost:1"]
NAMES = QueryNames(prefix="penstock-spark", query_id="0a1b2c3d-0000-4000-8000-0123456789ab")
ORDERS = [TopicPartition("orders", number) for number in range(4)]


def member(
    name: str,
    assigned: list[TopicPartition],
    instance: str | None = None,
    upgraded: bool | None = None,
) -> MemberDescription:
    return MemberDescription(
        member_id=f"{name}-0123456789",
        instance_id=instance,
        client_id=name,
        host="/127.0.0.1",
        assignment=tuple(assigned),
        target=tuple(assigned),
        epoch=None if upgraded is None else 7,
        is_upgraded=upgraded,
    )


def group(
    *members: MemberDescription, state: str = "Stable", kind: str = CLASSIC
) -> GroupDescription:
    new = kind == CONSUMER
    return GroupDescription(
        group_id="g",
        type=kind,
        state=state,
        coordinator=Node(0, "127.0.0.1", 9092),
        assignor="uniform" if new else "range",
        members=members,
        epoch=8 if new else None,
        target_epoch=7 if new else None,
    )


def lines(text: str) -> list[str]:
    return text.split("\n")


def test_offsets_are_printed_in_kafkas_columns() -> None:
    described = group(member("a", ORDERS[:1]), member("bb", ORDERS[1:3]))
    committed = {
        ORDERS[0]: OffsetAndMetadata(4, "", 2),
        ORDERS[1]: OffsetAndMetadata(10),
        ORDERS[3]: OffsetAndMetadata(1),
    }
    ends = {ORDERS[0]: 10, ORDERS[1]: 10, ORDERS[2]: 10}
    rows = rows_of(described, committed, ends)
    # The busiest member comes first, what nobody reads last; what is not known is a dash.
    assert lines(offsets_table(rows, verbose=False)) == [
        "",
        "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG"
        "             CONSUMER-ID     HOST            CLIENT-ID",
        "g               orders          1          10              10              0"
        "               bb-0123456789   /127.0.0.1      bb",
        "g               orders          2          -               10              -"
        "               bb-0123456789   /127.0.0.1      bb",
        "g               orders          0          4               10              6"
        "               a-0123456789    /127.0.0.1      a",
        "g               orders          3          1               -               -"
        "               -               -               -",
    ]
    epochs = [line[43:58].strip() for line in lines(offsets_table(rows, verbose=True))[1:]]
    assert epochs == ["LEADER-EPOCH", "-", "-", "2", "-"]


def test_columns_grow_with_what_they_hold() -> None:
    long = GroupDescription(
        group_id="a-very-long-group-name",
        type=CLASSIC,
        state="Empty",
        coordinator=Node(0, "h", 1),
        assignor="",
        members=(),
    )
    rows = rows_of(long, {TopicPartition("t", 0): OffsetAndMetadata(1)}, {})
    header, row = lines(offsets_table(rows, verbose=False))[1:]
    assert header.startswith("GROUP                  TOPIC")
    assert row.startswith("a-very-long-group-name t    ")


def test_members_are_printed_in_kafkas_columns() -> None:
    described = group(member("a", ORDERS[:2]), member("b", []))
    assert lines(members_table(described, verbose=False)) == [
        "",
        "GROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     ",
        "g               a-0123456789    /127.0.0.1      a               2               ",
        "g               b-0123456789    /127.0.0.1      b               0               ",
    ]


def test_static_members_bring_a_column_of_their_own() -> None:
    described = group(member("a", ORDERS[:2], instance="static-a"), member("b", []))
    header, first, second = lines(members_table(described, verbose=False))[1:]
    assert header[32:50] == "GROUP-INSTANCE-ID "
    assert first[32:50] == "static-a          "
    assert second[32:50].isspace()


def test_verbose_members_show_epochs_and_assignments() -> None:
    described = group(member("a", ORDERS[:2], upgraded=True), kind=CONSUMER)
    header, row = lines(members_table(described, verbose=True))[1:]
    assert header[80:] == (
        "CURRENT-EPOCH   CURRENT-ASSIGNMENT   TARGET-EPOCH    TARGET-ASSIGNMENT   "
    )
    assert row[80:] == "7               orders:0,1           7               orders:0,1          "


def test_a_group_between_protocols_shows_who_was_upgraded() -> None:
    described = group(
        member("a", ORDERS[:2], upgraded=True), member("b", [], upgraded=False), kind=CONSUMER
    )
    header, first, second = lines(members_table(described, verbose=True))[1:]
    assert header.endswith(" UPGRADED")
    assert first.endswith(" true")
    assert second.endswith(" false")


def test_the_state_of_a_group_is_one_line() -> None:
    assert lines(state_table(group(member("a", [])), verbose=False)) == [
        "",
        "GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                "
        "#MEMBERS",
        "g               127.0.0.1:9092  (0)       range                Stable               1",
    ]
    header, row = lines(state_table(group(kind=CONSUMER, state="Empty"), verbose=True))[1:]
    assert header.endswith("GROUP-EPOCH     TARGET-ASSIGNMENT-EPOCH   #MEMBERS")
    assert row.endswith("8               7                         0")


def test_an_assignment_is_grouped_by_topic() -> None:
    partitions = [TopicPartition("b", 2), TopicPartition("a", 10), TopicPartition("a", 2)]
    assert assignment_text(partitions) == "a:2,10;b:2"
    assert assignment_text([]) == "-"


@pytest.mark.parametrize(
    ("state", "note"),
    [
        ("Stable", None),
        ("Empty", "Consumer group 'g' has no active members."),
        ("PreparingRebalance", "Warning: Consumer group 'g' is rebalancing."),
        ("Assigning", "Warning: Consumer group 'g' is rebalancing."),
    ],
)
def test_a_group_that_is_not_simply_at_work_is_remarked_on(state: str, note: str | None) -> None:
    assert note_on(group(state=state)) == note


def test_lists_have_the_columns_asked_for() -> None:
    groups = [
        GroupListing(group_id="g", protocol="consumer", type=CLASSIC, state="Stable"),
        GroupListing(group_id="h", protocol="", type=None, state=None),
    ]
    assert lines(listing_table(groups, with_type=True, with_state=True)) == [
        "GROUP                     TYPE                 STATE               ",
        "g                         Classic              Stable              ",
        "h                         Unknown              Unknown             ",
    ]
    assert lines(listing_table([], with_type=False, with_state=True)) == [
        "GROUP                     STATE               "
    ]


def test_deleted_offsets_are_told_one_by_one() -> None:
    table = deletion_table({ORDERS[1]: GroupSubscribedToTopic(), ORDERS[0]: None})
    assert lines(table) == [
        "",
        "TOPIC           PARTITION  STATUS         ",
        "orders          0          Successful     ",
        "orders          1          Error: Deleting offsets of a topic is forbidden while the "
        "consumer group is actively subscribed to it.",
    ]


def test_only_groups_without_members_are_reset() -> None:
    assert why_untouched("g", group(state="Empty")) is None
    assert why_untouched("g", group(state="Dead")) is None
    assert why_untouched("g", GroupIdNotFound()) is None
    assert why_untouched("g", group(state="Stable")) == (
        "Assignments can only be reset if the group 'g' is inactive, but the current state is "
        "Stable."
    )
    assert why_untouched("g", NotCoordinator()) == "This is not the correct coordinator."


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Command must include exactly one action: --list, --describe, --delete"),
        (["--list", "--describe"], "Command must include exactly one action"),
        (["--describe"], "Option [describe] takes one of these options: [group], [all-groups]"),
        (["--delete"], "Option [delete] takes one of these options"),
        (["--reset-offsets", "--to-latest"], "Option [reset-offsets] takes one of these options"),
        (["--describe", "--group", "g", "--all-groups"], 'Option "[group]" can\'t be used with'),
        (["--list", "--group", "g"], 'Option "[group]" can\'t be used with option "[list]"'),
        (["--list", "--topic", "t"], 'Option "[topic]" can\'t be used with option "[list]"'),
        (["--list", "--members"], "Option(s) [members] are unavailable given other options"),
        (["--describe", "--group", "g", "--type"], "Option(s) [type] are unavailable"),
        (
            ["--describe", "--group", "g", "--members", "--state"],
            "Option [describe] takes at most one of these options: [members], [offsets], [state]",
        ),
        (
            ["--describe", "--group", "g", "--state", "stable"],
            "Option [describe] does not take a value for [state]",
        ),
        (["--list", "--state", "foo"], "Invalid state list 'foo'. Valid states are: Reconciling"),
        (["--list", "--type", "share"], "Invalid types list 'share'. Valid types are: Consumer"),
        (["--delete", "--group", "g", "--topic", "t"], "does not support topic-specific offset"),
        (
            ["--delete-offsets", "--group", "g"],
            "Option [delete-offsets] takes the following options: [topic], [group]",
        ),
        (
            ["--reset-offsets", "--group", "g", "--dry-run", "--execute"],
            "Option [reset-offsets] only accepts one of [execute] and [dry-run]",
        ),
        (
            ["--reset-offsets", "--group", "g", "--topic", "t", "--dry-run"],
            "Option '[reset-offsets]' requires one of the following scenarios",
        ),
        (
            ["--reset-offsets", "--group", "g", "--to-offset", "0", "--to-latest", "--dry-run"],
            'Option "[to-offset]" can\'t be used with option "[to-latest]"',
        ),
        (
            ["--reset-offsets", "--group", "g", "--to-latest", "--dry-run"],
            "One of the reset scopes should be defined: --all-topics, --topic.",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        consumer_groups.main([*SERVER, *words])
    assert ended.value.code == 1
    said = capsys.readouterr().err.splitlines()
    assert sentence in said[0]
    assert said[1].startswith("Option ")


def test_patterns_are_checked_without_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert consumer_groups.main(["--validate-regex", "orders-.*"]) == 0
    assert consumer_groups.main(["--validate-regex", "a(b"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "The regular expression `orders-.*` is valid.",
        "The regular expression `a(b` is invalid: missing closing ).",
    ]


@pytest.mark.parametrize("more", [[], ["--state"], ["--type"]])
def test_groups_with_a_sinks_notes_are_listed_only_where_they_are_asked_for(
    more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    people = ["orders", "my-sink", f"penstock-spark-{NAMES.query_id}", "x-decision"]
    notes = [NAMES.sink_group, NAMES.decision_group]
    listed = [
        GroupListing(group_id=name, protocol="consumer", state="Empty", type=CLASSIC)
        for name in (*people, *notes)
    ]
    monkeypatch.setattr(Admin, "list_groups", lambda *_, **__: listed)

    def shown(*words: str) -> set[str]:
        consumer_groups.main([*SERVER, "--list", *more, *words])
        return {line.split()[0] for line in capsys.readouterr().out.splitlines()} - {"GROUP"}

    assert shown() == set(people)
    assert shown("--include-internal") == {*people, *notes}
