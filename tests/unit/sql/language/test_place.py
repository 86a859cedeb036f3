"""The picture of an error: the line and a caret."""

from penstock.sql.language.place import Place, SqlSyntaxError


def test_the_caret_is_below_the_word() -> None:
    error = SqlSyntaxError("no", place=Place(2, 3), text="SHOW\n\tx y\n")
    assert error.picture() == " x y\n  ^"
    assert str(error) == "line 2:3: no"


def test_of_a_long_line_a_part_is_shown() -> None:
    error = SqlSyntaxError("no", place=Place(1, 1_001), text="a" * 1_000 + "b" + "a" * 1_000)
    line, caret = error.picture().split("\n")
    assert line[len(caret) - 1] == "b"
    assert len(line) <= 120


def test_without_a_line_there_is_no_picture() -> None:
    assert SqlSyntaxError("no", place=Place(3, 1), text="a").picture() == ""
