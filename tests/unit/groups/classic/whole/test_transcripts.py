"""Histories of classic groups, written down in tests/golden/groups, play as they always did."""

from pathlib import Path

import pytest
from tests.support.processes import ROOT
from tests.unit.groups.transcript import Transcript

GOLDEN = ROOT / "tests" / "golden" / "groups"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.txt")), ids=lambda path: path.stem)
def test_the_group_behaves_as_written_down(path: Path) -> None:
    text = path.read_text()
    assert Transcript().play(text) == text


def test_there_are_transcripts() -> None:
    assert len(list(GOLDEN.glob("*.txt"))) >= 10
