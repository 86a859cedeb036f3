"""The demo's market: prices as the tutorial writes them, partitions, and lateness."""

import json
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.values import PartitionInfo
from penstock.demo.stocks import IMPORTANT, OPENING_CENTS, ImportantStocks, Market, StockPrice
from penstock.errors import ConfigError


class FourPartitions:
    """A cluster for a partitioner to look at."""

    def partitions_for_topic(self, topic: str, /) -> Sequence[PartitionInfo]:
        return [PartitionInfo(topic, n, None, (), ()) for n in range(4)]

    available_partitions_for_topic = partitions_for_topic


def partition_of(name: str) -> int:
    chooser = ImportantStocks()
    chooser.configure({"importantStocks": ",".join(IMPORTANT)})
    return chooser.partition("stock-prices", name, name.encode(), None, None, FourPartitions())


@given(st.integers(0, 10_000_000))
def test_a_price_is_dollars_cents_and_name_as_json(total_cents: int) -> None:
    price = StockPrice.of("IBM", total_cents)
    assert set(json.loads(price.to_json())) == {"dollars", "cents", "name"}
    assert price.total_cents == total_cents and 0 <= price.cents < 100
    assert StockPrice.from_json(price.to_json()) == price


def test_important_stocks_have_a_partition_to_themselves() -> None:
    assert {partition_of(name) for name in IMPORTANT} == {3}
    others = {partition_of(name) for name in OPENING_CENTS if name not in IMPORTANT}
    assert others <= {0, 1, 2} and len(others) > 1


def test_a_partitioner_without_its_setting_says_so() -> None:
    with pytest.raises(ConfigError, match="importantStocks"):
        ImportantStocks().configure({})


def test_no_price_is_lost_and_some_are_sent_late_with_the_time_they_were_made() -> None:
    market = Market(random.Random(4))
    sent = [
        (now_ms, quote)
        for now_ms in range(0, 60_000, 10)
        for quote in market.quotes(1 if now_ms < 30_000 else 0, now_ms=now_ms)
    ]
    assert len(sent) == 3000
    late = [now_ms - quote.at_ms for now_ms, quote in sent if now_ms > quote.at_ms]
    assert late and max(late) > 15_000 and sum(1 for delay in late if delay < 3_000) > 20


def test_a_market_goes_on_from_the_prices_it_is_given() -> None:
    market = Market(random.Random(4), {"IBM": 12_345})
    first = next(q for q in market.quotes(100, now_ms=0) if q.name == "IBM")
    assert abs(first.total_cents - 12_345) < 200
