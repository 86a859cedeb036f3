"""penstock streams: what it takes, what it prints without a broker, and what it refuses."""

from pathlib import Path

import pytest

from penstock.cli.tools.pipelines import streams
from penstock.errors import CommandError

EXAMPLES = Path(__file__).parents[5] / "examples" / "streams"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_a_page_says_how_to_run_it_and_is_described(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = path.read_text()
    assert text.count("\n") <= 60
    assert f"penstock streams run examples/streams/{path.name}" in text
    assert streams.main(["describe", str(path)]) == 0
    assert capsys.readouterr().out.startswith("Topologies:\n   Sub-topology: 0\n")


def test_a_topology_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert streams.main(["describe", str(EXAMPLES / "fraud.py"), "--svg"]) == 0
    assert capsys.readouterr().out.startswith("<svg")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "has no topologies at its top level; it needs one"),
        ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
    ],
)
def test_a_file_without_a_topology_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "app.py"
    file.write_text(text)
    with pytest.raises(CommandError, match=said):
        streams.main(["describe", str(file)])
    with pytest.raises(CommandError, match="is not a file"):
        streams.main(["describe", str(tmp_path / "none.py")])


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["describe", "a.py", "b.py"],
        ["reset"],
        ["status", "--once"],
        ["describe", "a.py", "--bootstrap-server", "h:1"],
    ],
)
def test_what_does_not_go_together_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        streams.main(words)
    assert "Traceback" not in capsys.readouterr().err


def test_the_status_of_nothing_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert streams.main(["status", "--state", str(tmp_path)]) == 0
    assert "No application has run yet" in capsys.readouterr().out
    with pytest.raises(CommandError, match="No application 'x' has run"):
        streams.main(["status", "x", "--state", str(tmp_path)])
