"""The ends of a stream that write no topic."""

import pytest

from penstock.streams import StreamsBuilder, TestDriver


def test_foreach_and_print_end_a_stream(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[str, int]] = []
    builder = StreamsBuilder()
    builder.stream("in").foreach(lambda key, value: seen.append((key, value)))
    builder.stream("in").print("orders")
    driver = TestDriver(builder.build())
    driver.pipe_input("in", "k", 1, 0)
    assert seen == [("k", 1)]
    assert capsys.readouterr().out == "[orders]: k, 1\n"
