"""kafka-groups: its filters and its table."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.cli.tools.groups import groups
from penstock.client.admin import Admin
from penstock.client.operations.groups import GroupListing
from penstock.spark.sink.transactional import QueryNames

SERVER = ["--bootstrap-server", "localhost:1"]
NAMES = QueryNames(prefix="penstock-spark", query_id="0a1b2c3d-0000-4000-8000-0123456789ab")
ALL = [
    GroupListing(group_id="old", protocol="consumer", type="Classic", state="Stable"),
    GroupListing(group_id="bare", protocol="", type="Classic", state="Empty"),
    GroupListing(group_id="new", protocol="consumer", type="Consumer", state="Stable"),
    GroupListing(group_id="worker", protocol="connect", type="Classic", state="Stable"),
    GroupListing(group_id="shared", protocol="share", type="Share", state="Stable"),
    GroupListing(group_id="flow", protocol="streams", type="Streams", state="Stable"),
    GroupListing(group_id="aged", protocol="consumer", type=None, state=None),
]


def filters(**given: object) -> Any:
    nothing = {
        "group_type": None,
        "protocol": None,
        "consumer": False,
        "share": False,
        "streams": False,
    }
    return SimpleNamespace(**{**nothing, **given})


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, [group.group_id for group in ALL]),
        ({"consumer": True}, ["old", "bare", "new", "aged"]),
        ({"share": True}, ["shared"]),
        ({"streams": True}, ["flow"]),
        ({"group_type": "Classic"}, ["old", "bare", "worker"]),
        ({"group_type": "Classic", "protocol": "connect"}, ["worker"]),
        ({"protocol": "consumer"}, ["old", "new", "aged"]),
    ],
)
def test_filters_let_the_right_groups_through(given: dict[str, object], shown: list[str]) -> None:
    assert [one.group_id for one in ALL if groups.passes(one, filters(**given))] == shown


def test_groups_are_printed_in_kafkas_columns() -> None:
    assert groups.table(ALL[:2]).split("\n") == [
        "GROUP                TYPE                 PROTOCOL            ",
        "old                  Classic              consumer             ",
        "bare                 Classic                                   ",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Command must include exactly one action: --list."),
        (["--list", "--group-type", "odd"], "--group-type must be a valid group type."),
        (
            ["--list", "--consumer", "--share"],
            'Option "[consumer]" can\'t be used with option "[share]"',
        ),
        (
            ["--list", "--streams", "--protocol", "x"],
            'Option "[streams]" can\'t be used with option "[protocol]"',
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        groups.main([*SERVER, *words])
    assert ended.value.code == 1
    assert capsys.readouterr().err.splitlines()[0] == sentence


@pytest.mark.parametrize("more", [[], ["--consumer"], ["--group-type", "classic"]])
def test_groups_with_a_sinks_notes_are_listed_only_where_they_are_asked_for(
    more: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = [
        GroupListing(group_id=name, protocol="", type="Classic", state="Empty")
        for name in (NAMES.sink_group, NAMES.decision_group)
    ]
    monkeypatch.setattr(Admin, "list_groups", lambda *_, **__: [ALL[0], *notes])

    def shown(*words: str) -> list[str]:
        assert groups.main([*SERVER, "--list", *more, *words]) == 0
        return [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]

    assert shown() == ["old"]
    assert shown("--include-internal") == ["old", NAMES.sink_group, NAMES.decision_group]
