"""Command lines as Kafka's tools take them."""

import pytest

from penstock.cli.parser import ToolParser, key_values, settings_from
from penstock.errors import ConfigError


@pytest.fixture
def parser() -> ToolParser:
    made = ToolParser("kafka-zork", "This tool zorks.")
    made.add_argument("--bootstrap-server", metavar="server", help="Where.")
    made.add_argument("--time", type=int)
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


def test_a_negative_number_is_a_value(parser: ToolParser) -> None:
    assert parser.parse(["--time", "-2"]).time == -2


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--zork"], "zork is not a recognized option"),
        (["extra"], "extra is not a recognized option"),
        (["--time", "soon"], "argument --time: invalid int value: 'soon'"),
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
        parser.required(parser.parse([]), "bootstrap-server")
    assert capsys.readouterr().err.startswith('Missing required argument "[bootstrap-server]"')


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
