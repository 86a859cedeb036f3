"""Command lines as Kafka's tools take them."""

import pytest

from penstock.cli.parser import ToolParser, key_values, settings_from
from penstock.errors import ConfigError


@pytest.fixture
def parser() -> ToolParser:
    made = ToolParser("kafka-zork", "This tool zorks.")
    made.add_argument("--bootstrap-server", metavar="server", help="Where.")
    made.add_argument("--time", type=int)
    made.add_argument("--bag", help="Also begins with b.")
    made.add_argument("--kind", choices=("good", "bad"))
    made.add_argument("--words", nargs="+", action="extend")
    made.add_argument("--property", action="append", default=[])
    made.flag("from-beginning", "Start early. " * 10)
    return made


@pytest.mark.parametrize(
    "argv",
    [
        ["--bootstrap-server", "a:1", "--from-beginning"],
        ["-bootstrap-server", "a:1", "-from-beginning"],
        ["--bootstrap-server=a:1", "--from-b"],
        ["-bootstrap-server=a:1", "--from-beginning"],
    ],
)
def test_one_dash_two_dashes_and_beginnings_are_the_same(
    parser: ToolParser, argv: list[str]
) -> None:
    options = parser.parse(argv)
    assert (options.bootstrap_server, options.from_beginning) == ("a:1", True)


def test_options_that_may_come_often_do_and_each_command_line_begins_anew(
    parser: ToolParser,
) -> None:
    for _ in range(2):
        options = parser.parse(["--property", "a=1", "--property", "b=2", "--time", "5"])
        assert (options.property[-2:], options.time) == (["a=1", "b=2"], 5)


def test_a_value_of_an_option_without_one_is_passed_over(parser: ToolParser) -> None:
    assert parser.parse(["--from-beginning=yes"]).from_beginning is True


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ([], "Zorks."),
        (["--often"], 'Missing required argument "[action]"'),
        (["dance"], "'dance' is not one of up, down"),
    ],
)
def test_actions_are_refused_in_words_of_our_own(
    capsys: pytest.CaptureFixture[str], argv: list[str], sentence: str
) -> None:
    made = ToolParser("penstock zork", "Zorks.")
    made.flag("often", "More than once.")
    made.add_argument("action", choices=("up", "down"))
    with pytest.raises(SystemExit) as end:
        made.parse(argv)
    assert (end.value.code, capsys.readouterr().err.splitlines()[0]) == (1, sentence)


def test_a_negative_number_is_a_value(parser: ToolParser) -> None:
    assert parser.parse(["--time", "-2"]).time == -2


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--zork"], "zork is not a recognized option"),
        (["extra"], "extra is not a recognized option"),
        (["--time", "soon"], "Cannot parse argument 'soon' of option time"),
        (["--time"], "Option time requires an argument"),
        (["-time"], "Option time requires an argument"),
        (["--time", "--from-beginning"], "Option time requires an argument"),
        (["--words"], "Option words requires an argument"),
        (["--b", "a:1"], "b is not a recognized option"),
        (["--kind", "odd"], "Cannot parse argument 'odd' of option kind: write good, bad"),
        (
            ["--time", "1", "-time", "2"],
            "Found multiple arguments for option time, but you asked for only one",
        ),
    ],
)
def test_a_mistake_is_a_sentence_the_table_and_code_1(
    parser: ToolParser, capsys: pytest.CaptureFixture[str], argv: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit) as end:
        parser.parse(argv)
    assert end.value.code == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == sentence
    assert lines[1].split() == ["Option", "Description"]
    assert any(line.startswith("--bootstrap-server <server>") for line in lines)
    assert max(len(line) for line in lines) <= 80


def test_a_missing_option_is_named_as_kafka_names_it(
    parser: ToolParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parser.required(parser.parse(["--time", "1"]), "bootstrap-server")
    assert capsys.readouterr().err.startswith('Missing required argument "[bootstrap-server]"')


def test_without_a_word_a_tool_that_needs_some_tells_what_it_is_for(
    parser: ToolParser, capsys: pytest.CaptureFixture[str]
) -> None:
    assert parser.parse([]).time is None
    with pytest.raises(SystemExit) as end:
        parser.required(parser.parse([]), "bootstrap-server")
    lines = capsys.readouterr().err.splitlines()
    assert (end.value.code, lines[0]) == (1, "This tool zorks.")
    assert lines[1].split() == ["Option", "Description"]


def test_help_goes_to_stdout_with_code_0(
    parser: ToolParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parser.parse(["--help"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("This tool zorks.\n")


def test_words_become_a_mapping() -> None:
    assert key_values(["a=b=c", "d="], "--p") == {"a": "b=c", "d": ""}
    with pytest.raises(ConfigError, match="--p 'word' is not of the form key=value"):
        key_values(["word"], "--p")


def test_words_beat_the_file(tmp_path: object) -> None:
    from pathlib import Path

    file = Path(str(tmp_path)) / "client.properties"
    file.write_text("acks=1\nlinger.ms=5\n")
    assert settings_from(str(file), ["acks=all"], "--p") == {"acks": "all", "linger.ms": "5"}
