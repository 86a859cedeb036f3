"""kafka-groups: its filters and its table."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.cli.tools import groups
from penstock.client.operations.groups import GroupListing

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
        groups.main(["--bootstrap-server", "localhost:1", *words])
    assert ended.value.code == 1
    assert capsys.readouterr().err.splitlines()[0] == sentence
