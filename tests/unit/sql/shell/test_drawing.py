"""Tables fit the terminal, whatever is in them."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from penstock.sql.shell.drawing import TableFrame, fit_widths, table_lines

NAMES = ("ID", "NAME")


def test_a_table_is_as_wide_as_its_cells() -> None:
    assert list(table_lines(NAMES, [("1", "Ada"), ("2", "Grace")], 80)) == [
        "┌────┬───────┐",
        "│ ID │ NAME  │",
        "├────┼───────┤",
        "│ 1  │ Ada   │",
        "│ 2  │ Grace │",
        "└────┴───────┘",
    ]


def test_long_cells_are_broken_between_words() -> None:
    lines = list(table_lines(NAMES, [("1", "the quick brown fox")], 24))
    assert [line for line in lines if "│" in line][1:] == [
        "│ 1  │ the quick brown │",
        "│    │ fox             │",
    ]


def test_a_terminal_that_is_too_narrow_gets_names_and_values() -> None:
    names = [f"COLUMN{i}" for i in range(10)]
    lines = list(table_lines(names, [[str(i) for i in range(10)]], 40))
    assert lines[1] == "COLUMN0: 0"
    assert max(len(line) for line in lines) <= 40


def test_what_acts_on_a_terminal_is_shown_and_does_not_act() -> None:
    assert "\x1b" not in "".join(table_lines(("A",), [("\x1b[2J\x07",)], 80))


def test_columns_of_rows_to_come_share_the_width() -> None:
    frame = TableFrame.even(["A", "B", "C"], 41)
    assert sum(frame.widths) + 10 == 41
    assert max(frame.widths) - min(frame.widths) <= 1


@given(st.lists(st.integers(1, 300), min_size=1, max_size=12), st.integers(20, 200))
def test_widths_use_the_room_and_no_more(wanted: list[int], width: int) -> None:
    widths = fit_widths(wanted, width)
    if not widths:
        assert sum(min(one, 6) for one in wanted) + 3 * len(wanted) + 1 > width
        return
    total = sum(widths) + 3 * len(wanted) + 1
    assert total <= width
    assert all(have <= want for have, want in zip(widths, wanted, strict=True))
    assert total == width or widths == tuple(wanted)


@given(
    st.lists(st.lists(st.text(max_size=60), min_size=2, max_size=2), max_size=5),
    st.integers(24, 100),
)
def test_no_line_is_wider_than_the_terminal(rows: list[list[str]], width: int) -> None:
    lines = list(table_lines(NAMES, rows, width))
    assert all(cell_len(line) <= width for line in lines)
    assert all("\n" not in line for line in lines)
