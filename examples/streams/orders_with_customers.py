"""Orders with their customers: two tables joined by a foreign key, kept up to date both ways.

    penstock streams run examples/streams/orders_with_customers.py

Orders come as {"customer": "c1", "cents": 500} under their number to `orders`, customers as
{"name": "Ada"} under theirs to `customers`. When a customer changes, all its orders change.
"""

from typing import Any

from penstock.streams import StreamsBuilder


def with_customer(order: dict[str, Any], customer: dict[str, Any] | None) -> dict[str, Any]:
    """An order as it is shown; a customer may come later than its orders."""
    return {**order, "name": None if customer is None else customer["name"]}


builder = StreamsBuilder()
orders, customers = builder.table("orders"), builder.table("customers")
shown = orders.left_join_foreign_key(
    customers, lambda number, order: order["customer"], with_customer, store="orders-shown"
)
shown.to_stream().to("orders-shown")
topology = builder.build()
