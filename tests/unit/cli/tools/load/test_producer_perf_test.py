"""kafka-producer-perf-test: what it sends and which command lines it refuses."""

from pathlib import Path
from typing import Any

import pytest

from penstock.cli.tools.load import producer_perf_test
from penstock.cli.tools.load.producer_perf_test import _batches, _check, _parser
from penstock.errors import CommandError

BASE = ["--topic", "t", "--throughput", "-1"]


def options(*argv: str) -> Any:
    parser = _parser()
    found = parser.parse([*BASE, *argv])
    _check(parser, found)
    return found


def sent(*argv: str) -> list[bytes]:
    return [value for values in _batches(options(*argv)) for value in values]


def test_records_have_the_size_and_number_asked_for() -> None:
    values = sent("--num-records", "1234", "--record-size", "10")
    assert len(values) == 1234
    assert {len(value) for value in values} == {10}
    assert values[0].isalpha()


def test_numbers_may_be_sent_in_order() -> None:
    assert sent("--num-records", "3", "--payload-monotonic") == [b"0", b"1", b"2"]


def test_payloads_may_come_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "payloads"
    file.write_text("one|two|")
    values = sent("--num-records", "50", "--payload-file", str(file), "--payload-delimiter", "|")
    assert set(values) == {b"one", b"two"}
    assert "Number of records read: 2" in capsys.readouterr().out
    with pytest.raises(CommandError, match="Cannot read the payload file"):
        sent("--num-records", "1", "--payload-file", str(tmp_path / "none"))


def test_a_slow_pace_is_sent_in_small_pieces() -> None:
    parser = _parser()
    slow = parser.parse(
        ["--topic", "t", "--throughput", "100", "--num-records", "5", "--record-size", "1"]
    )
    assert [len(values) for values in _batches(slow)] == [1] * 5


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--num-records", "5"], "Exactly one of --record-size"),
        (["--num-records", "5", "--record-size", "1", "--payload-monotonic"], "Exactly one of"),
        (["--num-records", "0", "--record-size", "1"], "--num-records should be greater"),
        (["--num-records", "5", "--record-size", "0"], "--record-size should be greater"),
        (
            ["--num-records", "5", "--record-size", "1", "--warmup-records", "5"],
            "The value for --warmup-records must be strictly fewer",
        ),
    ],
)
def test_a_wrong_command_line_is_refused(
    capsys: pytest.CaptureFixture[str], argv: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit):
        options(*argv)
    assert capsys.readouterr().err.startswith(sentence)


def test_settings_follow_their_option() -> None:
    found = options(
        "--num-records", "5", "--record-size", "1", "--producer-props", "acks=1", "linger.ms=5"
    )
    assert found.command_property == ["acks=1", "linger.ms=5"]
    assert producer_perf_test._own(found) == {"transactional.id": None}
