"""Histories of consumer groups, written down in tests/golden/consumer_groups, play as ever."""

from pathlib import Path

import pytest
from tests.support.processes import ROOT
from tests.unit.groups.consumer_transcript import ConsumerTranscript

GOLDEN = ROOT / "tests" / "golden" / "consumer_groups"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.txt")), ids=lambda path: path.stem)
def test_the_group_behaves_as_written_down(path: Path) -> None:
    text = path.read_text()
    assert ConsumerTranscript().play(text) == text


def test_there_are_transcripts() -> None:
    assert len(list(GOLDEN.glob("*.txt"))) >= 15
