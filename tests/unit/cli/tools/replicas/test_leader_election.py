"""kafka-leader-election: its rules for options, its file and its lines."""

import pytest

from penstock.cli.tools.replicas import leader_election as tool
from penstock.client.values import TopicPartition
from penstock.errors import CommandError, ElectionNotNeeded, PreferredLeaderNotAvailable

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def test_each_outcome_has_its_line() -> None:
    results = {T1: None, T0: None, T2: ElectionNotNeeded("")}
    assert tool.result_lines(results, "leader election (PREFERRED)") == [
        "Successfully completed leader election (PREFERRED) for partitions t-0, t-1",
        "Valid replica already elected for partitions t-2",
    ]
    failed = {T0: PreferredLeaderNotAvailable("It is down.")}
    assert tool.result_lines(failed, "leader election (PREFERRED)") == [
        "Error completing leader election (PREFERRED) for partition: t-0: "
        "PreferredLeaderNotAvailable: It is down."
    ]


def test_a_file_names_partitions() -> None:
    text = '{"partitions":[{"topic":"t","partition":1},{"topic":"t","partition":0}]}'
    assert tool.parse_partitions(text) == [T1, T0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no", "not valid JSON"),
        ("{}", 'missing "partitions" field'),
        ('{"partitions":[]}', "Replica election data is empty"),
        ('{"partitions":[{"topic":"t"}]}', "not of the form"),
        (
            '{"partitions":[{"topic":"t","partition":1},{"topic":"t","partition":1}]}',
            "duplicate partitions: t-1",
        ),
    ],
)
def test_a_bad_file_is_told(text: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        tool.parse_partitions(text)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "Missing required option(s): election-type"),
        (["--election-type", "preferred"], "One and only one of the following options is required"),
        (["--election-type", "preferred", "--topic", "t"], "Missing required option(s): partition"),
        (
            ["--election-type", "PREFERRED", "--all-topic-partitions", "--partition", "1"],
            "Option partition is only allowed if topic is used",
        ),
        (
            ["--election-type", "any", "--all-topic-partitions"],
            "Cannot parse argument 'any' of option election-type",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        tool.main(["--bootstrap-server", "localhost:1", *words])
    assert end.value.code == 1
    assert complaint in capsys.readouterr().err
