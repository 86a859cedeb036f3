"""kafka-verifiable-producer: what it sends."""

from itertools import islice

import pytest

from penstock.cli.tools.load import verifiable_producer
from penstock.cli.tools.load.verifiable_producer import records


def test_numbers_go_up_from_zero() -> None:
    assert list(records(3, None, None)) == [(None, "0"), (None, "1"), (None, "2")]


def test_without_a_count_they_go_on_for_ever() -> None:
    assert list(islice(records(-1, None, None), 4, 6)) == [(None, "4"), (None, "5")]


def test_values_have_a_prefix_and_keys_repeat() -> None:
    assert list(records(3, 7, 2)) == [("0", "7.0"), ("1", "7.1"), ("0", "7.2")]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--max-messages", "1"], 'Missing required argument "[topic]"'),
        (["--topic", "t"], 'Missing required argument "[bootstrap-server]"'),
        (["--topic", "t", "--acks", "7"], "Cannot parse argument '7' of option acks"),
        (
            ["--topic", "t", "--repeating-keys", "0"],
            "Cannot parse argument '0' of option",
        ),
    ],
)
def test_a_bad_command_line_is_told(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        verifiable_producer.main(words)
    assert ended.value.code == 1
    assert capsys.readouterr().err.startswith(sentence)


def test_without_options_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert verifiable_producer.main([]) == 0
    assert "--repeating-keys" in capsys.readouterr().out
