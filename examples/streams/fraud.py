"""Fraud: each payment meets what is known of its card, and the suspicious ones go to `alerts`.

    penstock streams run examples/streams/fraud.py

Cards come as {"limit": 500, "country": "NO"} to `cards`, payments as
{"amount": 20, "country": "SE"} to `payments`, both under the card's number and in as many
partitions.
"""

from typing import Any

from penstock.streams import StreamsBuilder


def judged(payment: dict[str, Any], card: dict[str, Any] | None) -> dict[str, Any]:
    """The payment with the reasons to doubt it."""
    reasons = []
    if card is None:
        reasons.append("unknown card")
    else:
        reasons += ["over the limit"] if payment["amount"] > card["limit"] else []
        reasons += ["abroad"] if payment["country"] != card["country"] else []
    return {**payment, "reasons": reasons}


builder = StreamsBuilder()
cards = builder.table("cards")
payments = builder.stream("payments").left_join_table(cards, judged)
payments.filter(lambda card, payment: bool(payment["reasons"])).to("alerts")
topology = builder.build()
