"""penstock dlq: what it remembers, what it prints, which command lines it refuses."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.tools.dlq import dlq
from penstock.cli.tools.dlq.replayed import Replayed, merged
from penstock.client.values import OffsetAndMetadata
from penstock.errors import CommandError
from penstock.schemas.dead_letters import Cause

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)).map(lambda r: (r[0], sum(r))))


def offsets(replayed: Replayed) -> set[int]:
    return {offset for offset in range(100) if offset in replayed}


@given(st.integers(0, 60), RANGES)
def test_merging_ranges_changes_none_of_the_offsets(
    below: int, ranges: list[tuple[int, int]]
) -> None:
    expected = set(range(below)) | {n for a, b in ranges for n in range(a, b + 1)}
    found = merged(below, ranges)
    assert offsets(found) == expected
    bounds = [found.below, *(n for pair in found.ranges for n in pair)]
    assert bounds == sorted(bounds)


@given(st.integers(0, 60), RANGES, RANGES)
def test_what_is_noted_comes_back_and_grows(
    below: int, ranges: list[tuple[int, int]], more: list[tuple[int, int]]
) -> None:
    first = merged(below, ranges)
    committed = OffsetAndMetadata(first.below, first.metadata())
    assert Replayed.read(committed, first=0) == first
    grown = first.with_ranges(more)
    assert offsets(grown) == offsets(first) | {n for a, b in more for n in range(a, b + 1)}


def test_records_that_are_gone_count_as_replayed() -> None:
    assert Replayed.read(None, first=40) == (40, ())
    assert Replayed.read(OffsetAndMetadata(5, "replayed 7,9-50"), first=40) == (51, ())


def test_a_note_that_is_not_ours_is_not_taken_for_one() -> None:
    assert Replayed.read(OffsetAndMetadata(5, "a note of someone's"), first=0) == (5, ())
    with pytest.raises(CommandError, match="is not one of replayed records"):
        Replayed.read(OffsetAndMetadata(5, "replayed 7,x"), first=0)


def test_too_many_gaps_are_refused_before_anything_is_sent() -> None:
    gaps = merged(0, [(n, n) for n in range(10_000, 20_000, 2)])
    with pytest.raises(CommandError, match="--from-offset"):
        gaps.metadata()


@pytest.mark.parametrize(
    ("data", "text"),
    [(None, None), (b"", ""), (b"plain", "plain"), (b"\xff\x00", "0xff00"), (b"\x00", "0x00")],
)
def test_bytes_are_shown_as_text_where_they_are_some(data: bytes | None, text: str | None) -> None:
    assert dlq.text_of(data) == text


def test_dead_letters_are_counted_by_what_they_have_in_common() -> None:
    cause = Cause(topic="orders", partition=2, message="bad\n  thing", pipeline="p")
    found = [dlq.grouped_by(cause, what) for what in dlq.GROUPINGS]
    assert found == ["unknown", "bad thing", "orders", "orders-2", "p"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "penstock dlq"),
        (["look", "t"], "Say what to do"),
        (["list"], "Say of which topic"),
        (["list", "t", "--execute"], "belongs to `penstock dlq redrive`"),
        (["list", "t", "--rate", "5"], "belongs to `penstock dlq redrive`"),
        (["redrive", "t", "--value", "x"], "belongs to `penstock dlq edit`"),
        (["redrive", "t", "--schema-registry", "u"], "belongs to `penstock dlq show`"),
        (["redrive", "t", "--rate", "0"], "above 0"),
        (["redrive", "t", "--rate", "nan"], "above 0"),
        (["edit", "t", "--value", "x"], "give its --partition and --offset"),
        (["edit", "t", "--partition", "0", "--offset", "1"], "Say what is to be changed"),
        (
            ["edit", "t", "--partition", "0", "--offset", "1", "--value", "a", "--null-value"],
            "A letter has one value",
        ),
        (
            ["edit", "t", "--partition", "0", "--offset", "1", "--value-json", "1"],
            "--schema-registry",
        ),
        (["replay", "t", "--json"], "belongs to `penstock dlq show`"),
        (["replay", "t", "--execute", "--dry-run"], "contradict"),
        (["list", "t"], "bootstrap-server"),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        dlq.main(words)
    assert sentence in capsys.readouterr().err


def test_the_tool_needs_neither_spark_nor_arrow() -> None:
    code = (
        "import sys, penstock.cli.tools.dlq.dlq, penstock.cli.tools.dlq.replay; "
        "sys.exit(any(name in sys.modules for name in ('pyspark', 'pyarrow', 'fastavro')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
