"""Each example of Streams runs in the test driver, as its reader would test it."""

import runpy
from pathlib import Path
from typing import Any

from penstock.streams import StreamsTopology, TestDriver, TimeWindow, Windowed

EXAMPLES = Path(__file__).parents[4] / "examples"


def driver(name: str) -> TestDriver:
    topology = runpy.run_path(str(EXAMPLES / "streams" / f"{name}.py"))["topology"]
    assert isinstance(topology, StreamsTopology)
    return TestDriver(topology)


def told(driver: TestDriver, topic: str) -> list[tuple[Any, Any]]:
    return [(record.key, record.value) for record in driver.read_all(topic)]


def test_words_are_counted() -> None:
    words = driver("word_count")
    for line in (EXAMPLES / "samples" / "lines.txt").read_text().splitlines():
        words.pipe_input("lines", None, line, 1)
    assert dict(told(words, "word-counts"))["kafka"] == 3
    assert words.store("counts").get("streams") == 2


def test_a_stock_has_its_latest_price() -> None:
    prices = driver("stock_prices")
    for at, price in enumerate((10.0, 12.5, 11.0)):
        prices.pipe_input("trades", "ACME", {"price": price}, at)
    assert prices.store("prices").get("ACME") == {
        "latest": 11.0,
        "high": 12.5,
        "low": 10.0,
        "trades": 3,
    }


def test_a_visit_is_told_once_when_it_is_over() -> None:
    visits = driver("sessions")
    minute = 60_000
    for at, page in ((0, "/"), (10, "/cart"), (200, "/")):
        visits.pipe_input("page-views", "ada", {"page": page}, at * minute)
    over = Windowed("ada", TimeWindow(0, 10 * minute))
    assert told(visits, "page-visits") == [(over, ["/", "/cart"])]


def test_suspicious_payments_are_told_with_the_reasons() -> None:
    payments = driver("fraud")
    payments.pipe_input("cards", "1", {"limit": 500, "country": "NO"}, 0)
    for card, amount, country in (("1", 20, "NO"), ("1", 900, "SE"), ("2", 1, "NO")):
        payments.pipe_input("payments", card, {"amount": amount, "country": country}, 1)
    assert [(card, alert["reasons"]) for card, alert in told(payments, "alerts")] == [
        ("1", ["over the limit", "abroad"]),
        ("2", ["unknown card"]),
    ]


def test_an_order_has_its_customers_name_of_now() -> None:
    orders = driver("orders_with_customers")
    orders.pipe_input("orders", "o1", {"customer": "c1", "cents": 5}, 1)
    orders.pipe_input("customers", "c1", {"name": "Ada"}, 2)
    orders.pipe_input("customers", "c1", {"name": "Ada L."}, 3)
    names = [order["name"] for _, order in told(orders, "orders-shown")]
    assert names == [None, "Ada", "Ada L."]
