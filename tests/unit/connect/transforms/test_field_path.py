"""Paths to fields: names with dots between them, in backticks where a name has dots."""

import pytest

from penstock.connect.transforms.field_path import FieldPath
from penstock.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("a", ("a",)),
        ("a.b", ("a", "b")),
        ("`a.b`.c", ("a.b", "c")),
        ("a.`b.c`", ("a", "b.c")),
        ("a.", ("a", "")),
        ("`a`b`", ("a`b",)),
        ("`a\\`.b`", ("a`.b",)),
    ],
)
def test_a_path_of_version_2_is_cut_at_dots(text: str, steps: tuple[str, ...]) -> None:
    assert FieldPath(text, "V2").steps == steps


def test_a_path_of_version_1_is_one_name() -> None:
    assert FieldPath("a.b", "V1").steps == ("a.b",)


@pytest.mark.parametrize("text", ["`a", "`a.b", "`a\\`"])
def test_a_backtick_without_its_other_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="Incomplete backtick pair"):
        FieldPath(text, "V2")


def test_a_nested_value_is_found_in_maps() -> None:
    path = FieldPath("a.b", "V2")
    assert path.in_map({"a": {"b": 1}}) == 1
    assert path.in_map({"a": None}) is None
    assert path.in_map({}) is None
