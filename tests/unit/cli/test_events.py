"""Events are lines of JSON as Kafka's tools write them."""

import pytest

from penstock.cli.events import emit, event_line


def test_time_and_name_come_first_and_there_are_no_blanks() -> None:
    line = event_line("tool_data", timestamp_ms=17, sent=3, avg_throughput=6.5)
    assert line == '{"timestamp":17,"name":"tool_data","sent":3,"avg_throughput":6.5}\n'


def test_missing_values_and_letters_of_all_languages_are_written_plainly() -> None:
    line = event_line("record_data", timestamp_ms=1, key=None, value="Größe", success=True)
    assert line.endswith('"key":null,"value":"Größe","success":true}\n')


def test_an_event_is_one_line_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    emit("startup_complete")
    out = capsys.readouterr().out
    assert out.startswith('{"timestamp":') and out.endswith(',"name":"startup_complete"}\n')
