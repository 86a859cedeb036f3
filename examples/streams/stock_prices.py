"""Stock prices as a table: of each stock the latest price, the highest, the lowest and how many.

    penstock streams run examples/streams/stock_prices.py

Trades come as {"price": 101.5} under the stock's name to `trades`, the table goes to `prices`. The
store `prices` can be asked while it runs, or later from another program:

    from penstock.streams import StoreFollower
    from stock_prices import topology
    follower = StoreFollower(
        topology, "stock-prices", "prices", {"bootstrap.servers": "localhost:9092"}
    )
    follower.wait_until_current()
    print(follower.get("ACME"))
"""

from typing import Any

from penstock.streams import StreamsBuilder


def nothing() -> dict[str, Any]:
    """Before the first trade."""
    return {"latest": None, "high": None, "low": None, "trades": 0}


def add_trade(stock: str, trade: dict[str, Any], sofar: dict[str, Any]) -> dict[str, Any]:
    """The row after one more trade."""
    price = trade["price"]
    return {
        "latest": price,
        "high": price if sofar["high"] is None else max(price, sofar["high"]),
        "low": price if sofar["low"] is None else min(price, sofar["low"]),
        "trades": sofar["trades"] + 1,
    }


builder = StreamsBuilder()
prices = builder.stream("trades").group_by_key().aggregate(nothing, add_trade, store="prices")
prices.to_stream().to("prices")
topology = builder.build()
