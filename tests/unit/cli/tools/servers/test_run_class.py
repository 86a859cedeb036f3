"""kafka-run-class: tools by the names of their Java classes."""

import pytest

from penstock.cli.tools.servers import run_class
from penstock.errors import CommandError


@pytest.mark.parametrize("name", ["kafka.tools.GetOffsetShell", "GetOffsetShell"])
def test_a_class_of_any_package_is_found(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run_class.main([name, "--help"])
    assert end.value.code == 0
    assert "getting topic-partition offsets" in capsys.readouterr().out


def test_an_unknown_class_is_named() -> None:
    with pytest.raises(CommandError, match=r"no tool for the class kafka\.tools\.Zork"):
        run_class.main(["kafka.tools.Zork"])


def test_without_a_class_the_list_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_class.main([]) == 1
    assert "GetOffsetShell" in capsys.readouterr().out
