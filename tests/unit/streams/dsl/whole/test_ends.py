"""The ends of a stream that write no topic, and the guide's own example."""

import re

import pytest
from tests.support.processes import ROOT

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


def test_the_guide_tells_what_happens(capsys: pytest.CaptureFixture[str]) -> None:
    guide = (ROOT / "docs" / "streams.md").read_text()
    example, *_ = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    exec(example, {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Topologies:"
    assert lines[-2].startswith("[('all', 1), ('streams', 1),")
    assert lines[-1] == "2"
