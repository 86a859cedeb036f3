"""Versions and ranges of plug-ins, in Maven's words; what refuses is what Maven's library does."""

import pytest

from penstock.connect.plugins.versions import BadVersionRange, unmet_range


@pytest.mark.parametrize(
    ("wanted", "offered"),
    [
        (None, "4.3.1"),
        ("", "4.3.1"),
        ("latest", "4.3.1"),
        (" 4.3.1 ", "4.3.1"),
        ("[4.3.1]", "4.3.1"),
        ("4.3.1.0", "4.3.1"),
        ("[4,5)", "4.3.1"),
        ("(4.3,)", "4.3.1"),
        ("(,4.3.1]", "4.3.1"),
        ("[1,2),[4,5)", "4.3.1"),
        ("[1,2) , [4,5)", "4.3.1"),
        ("[4.3.1-rc1,4.3.1]", "4.3.1"),
        ("[1.9,)", "1.10"),
        ("(1.0-sp,)", "1.0.1"),
        ("(,)", "1"),
    ],
)
def test_a_range_that_has_the_version_is_met(wanted: str | None, offered: str) -> None:
    assert unmet_range(wanted, offered) is None


@pytest.mark.parametrize(
    ("wanted", "offered", "told"),
    [
        ("9", "4.3.1", "[9,9]"),
        ("[9,)", "4.3.1", "[9,)"),
        ("(4.3.1,)", "4.3.1", "(4.3.1,)"),
        ("[4,4.3.1)", "4.3.1", "[4,4.3.1)"),
        ("[1,2),(2,3]", "4.3.1", "[1,2),(2,3]"),
        ("4.3.1-rc1", "4.3.1", "[4.3.1-rc1,4.3.1-rc1]"),
        ("[1.10,)", "1.9", "[1.10,)"),
        ("[1,)", "1.0-alpha", "[1,)"),
        ("garbage[", "4.3.1", "[garbage[,garbage[]"),
    ],
)
def test_a_range_without_the_version_is_told(wanted: str, offered: str, told: str) -> None:
    assert unmet_range(wanted, offered) == told


@pytest.mark.parametrize(
    "wanted", ["[1,", "(1", "(1)", "[1,1)", "[2,1]", "[1,2)x", "[1,2),3", "9" * 2_000]
)
def test_a_text_that_is_no_range_is_refused(wanted: str) -> None:
    with pytest.raises(BadVersionRange):
        unmet_range(wanted, "4.3.1")
