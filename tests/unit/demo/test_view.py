"""The demo's screen, as text."""

import pytest
from rich.console import Console

from penstock.demo.board import Board, StockWindow
from penstock.demo.stocks import StockPrice
from penstock.demo.view import ScreenFacts, commands, line, picture
from penstock.queries.status import QueryStatus


def window(end: str, average: float) -> StockWindow:
    return StockWindow(end=end, average=average, high=average + 1, low=average - 1, prices=9)


def board() -> Board:
    found = Board()
    for cents in (27_900, 27_950, 27_920):
        found.take_price(StockPrice.of("IBM", cents))
    found.take_price(StockPrice.of("AAPL", 23_000))
    found.take_window("IBM", window("2026-03-02T09:00:05.000Z", 279.25))
    return found


FACTS = ScreenFacts(
    address="localhost:9092",
    registry="http://localhost:8081",
    rest="http://localhost:8082",
    data="data",
    table="data/demo/table",
    command=".venv/bin/penstock",
    state="data/demo",
    phase="",
    sent=1234,
    queries=[
        QueryStatus(
            name="q", output="stock-averages", group="g", checkpoint="c", state="running", lag=5
        )
    ],
)


def test_the_screen_shows_prices_windows_throughput_lag_and_what_to_do_next() -> None:
    console = Console(width=150)
    with console.capture() as captured:
        console.print(picture(board(), FACTS))
    text = captured.get()
    for word in ("279.20", "279.25", "280.25", "09:00:05", "1,234", "running", "consumer-groups"):
        assert word in text
    for address in (FACTS.address, FACTS.registry, FACTS.rest):
        assert address in text


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_narrow_screen_shows_fewer_columns_but_whole_ones(width: int) -> None:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(picture(board(), FACTS))
    text = captured.get()
    for word in ("279.20", "279.25", "stock-averages", "running", "lag"):
        assert word in text
    assert "…" not in text.replace(" … │", "")  # That is a window which is still to come.


def test_what_to_do_next_is_left_out_rather_than_cut_off() -> None:
    console = Console(width=80)
    for height, is_there in ((24, False), (60, True)):
        with console.capture() as captured:
            console.print(picture(board(), FACTS, height=height))
        lines = captured.get().splitlines()
        assert len(lines) < height
        assert any("consumer-groups" in one for one in lines) == is_there
        assert any("taller terminal" in one for one in lines) != is_there


def test_a_line_says_the_same_without_a_terminal() -> None:
    assert "IBM average 279.25 high 280.25" in line(board(), FACTS)
    assert "lag 5" in line(board(), FACTS)


def test_an_older_window_does_not_replace_a_newer_one() -> None:
    found = board()
    found.take_window("IBM", window("2026-03-02T09:00:00.000Z", 1.0))
    kept = found.stocks["IBM"].window
    assert kept is not None and kept.average == 279.25


def test_the_commands_to_copy_name_the_address_and_the_table() -> None:
    text = "\n".join(command for _, command in commands(FACTS))
    assert "--bootstrap-server localhost:9092" in text and "data/demo/table" in text
