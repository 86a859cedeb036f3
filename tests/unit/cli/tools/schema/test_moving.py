"""Exports and imports: the order of versions, and lines that are none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.tools.schema.moving import import_lines, in_order
from penstock.errors import CommandError
from penstock.schemas.registry_client import RegistryClient

NOBODY = RegistryClient("http://127.0.0.1:1")


def version(number: int, *references: int) -> dict[str, Any]:
    named = [{"name": str(one), "subject": "s", "version": one} for one in references]
    return {"subject": "s", "version": number, "id": number, "references": named, "schema": "x"}


@given(st.lists(st.lists(st.integers(0, 12), max_size=4), max_size=10))
def test_versions_come_after_what_they_refer_to(references: list[list[int]]) -> None:
    given_ = [version(at, *its) for at, its in enumerate(references)]
    told = [one["version"] for one in in_order(given_)]
    assert sorted(told) == list(range(len(references)))
    if all(one < at for at, its in enumerate(references) for one in its):
        for at, its in enumerate(references):
            assert all(told.index(one) < told.index(at) for one in its)


def test_a_later_one_that_is_referred_to_comes_first() -> None:
    assert [one["version"] for one in in_order([version(1, 2), version(2)])] == [2, 1]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "Line 2 is not JSON"),
        ("[1]", "Line 2 names no subject"),
        ('{"subject": 1}', "Line 2 names no subject"),
        ('{"subject": "s", "schema": "x"}', "Line 2 has no schema with an id and a version"),
    ],
)
def test_a_line_that_is_none_is_told_before_anything_is_done(line: str, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        import_lines(NOBODY, ["", line], force=False)
