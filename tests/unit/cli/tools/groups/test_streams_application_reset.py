"""kafka-streams-application-reset: its rules, and which topics it takes for the application's."""

import pytest

from penstock.cli.tools.groups import streams_application_reset
from penstock.cli.tools.groups.streams_application_reset import internal_topics

INTERNAL = [
    "app-store-changelog",
    "app-by-key-repartition",
    "app-x-subscription-registration-topic",
    "app-x-subscription-response-topic",
    "app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000012-topic",
    "app-y-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-7-topic",
]


def test_topics_are_the_applications_by_both_ends_of_their_name() -> None:
    others = ["app-output", "application-store-changelog", "store-changelog", "app-changelog-2"]
    assert internal_topics("app", [*INTERNAL, *others], []) == INTERNAL


def test_a_topic_that_the_user_named_is_not_the_applications() -> None:
    assert internal_topics("app", INTERNAL[:2], ["app-store-changelog"]) == INTERNAL[1:2]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--dry-run"], "Missing required option(s) [application-id]"),
        (
            ["--application-id", "a", "--to-latest", "--shift-by", "0"],
            'Option "[to-latest]" can\'t be used with option "[shift-by]"',
        ),
        (
            ["--application-id", "a", "--config-file", "x", "--command-config", "y"],
            'Option "[config-file]" can\'t be used with option "[command-config]"',
        ),
        (["--application-id", "a", "--to-offset", "x"], "Cannot parse argument"),
    ],
)
def test_a_bad_command_line_is_told(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        streams_application_reset.main(words)
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith(sentence)
