"""Which ids may stand in a topic: asked once, a no believed for seconds, a yes for good."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.unit.schemas.checking.samples import AVRO, JSON, MemoryRegistry

from penstock.records.schema_check import SchemasAway, SchemaScope
from penstock.records.schema_ids import NULL
from penstock.schemas.checking.registrations import (
    ASKED_MAX,
    AWAY_S,
    IDS_MAX,
    REFUSED_S,
    Registrations,
)

ORDERS = SchemaScope("orders", False, "TopicNameStrategy")


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry({7: ["orders-value"], 8: ["orders-key", "others-value"]})


@pytest.fixture
def known(registry: MemoryRegistry, clock: Clock) -> Iterator[Registrations]:
    made = Registrations(registry, now_s=clock)
    yield made
    made.close()


def test_a_good_id_is_asked_for_once(known: Registrations, registry: MemoryRegistry) -> None:
    assert known.good_ids(ORDERS) == {NULL}
    assert asyncio.run(known.refusals([7], ORDERS)) == {}
    assert known.good_ids(ORDERS) == {NULL, 7}
    assert asyncio.run(known.refusals([7], ORDERS)) == {}
    assert registry.asked == [7]


def test_the_reason_tells_an_unknown_id_from_one_of_another_subject(known: Registrations) -> None:
    refused = asyncio.run(known.refusals([7, 8, 9], ORDERS))
    assert set(refused) == {8, 9}
    assert refused[8].endswith("is not registered under the subject orders-value")
    assert refused[9].endswith("which the registry does not know")


def test_a_refusal_is_believed_for_some_seconds(
    known: Registrations, registry: MemoryRegistry, clock: Clock
) -> None:
    assert 9 in asyncio.run(known.refusals([9], ORDERS))
    registry.subjects[9] = ["orders-value"]
    clock.now_s += REFUSED_S - 0.1
    assert 9 in asyncio.run(known.refusals([9], ORDERS))
    clock.now_s += 0.2
    assert asyncio.run(known.refusals([9], ORDERS)) == {}
    assert registry.asked == [9, 9]


def test_many_who_wait_for_the_same_id_ask_once(
    known: Registrations, registry: MemoryRegistry
) -> None:
    async def ask() -> list[dict[int, str]]:
        return await asyncio.gather(*(known.refusals([7], ORDERS) for _ in range(20)))

    assert asyncio.run(ask()) == [{}] * 20
    assert registry.asked == [7]


def test_a_registry_that_is_away_is_left_alone_for_a_moment(
    known: Registrations, registry: MemoryRegistry, clock: Clock
) -> None:
    registry.is_away = True
    for _ in range(3):
        with pytest.raises(SchemasAway, match="no schema registry answers"):
            asyncio.run(known.refusals([7], ORDERS))
    assert registry.asked == [7]
    registry.is_away = False
    clock.now_s += AWAY_S + 0.1
    assert asyncio.run(known.refusals([7], ORDERS)) == {}


def test_a_batch_of_strange_ids_does_not_flood_the_registry(
    known: Registrations, registry: MemoryRegistry
) -> None:
    refused = asyncio.run(known.refusals(range(1000, 2000), ORDERS))
    assert len(refused) == 1000
    assert len(registry.asked) == ASKED_MAX


def test_what_is_remembered_is_bounded(known: Registrations, registry: MemoryRegistry) -> None:
    registry.subjects = {number: ["orders-value"] for number in range(IDS_MAX + 50)}

    async def ask() -> None:
        for first in range(0, IDS_MAX + 50, ASKED_MAX):
            wanted = range(first, min(first + ASKED_MAX, IDS_MAX + 50))
            assert await known.refusals(wanted, ORDERS) == {}

    asyncio.run(ask())
    assert len(known.good_ids(ORDERS)) <= IDS_MAX


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [("RecordNameStrategy", "shop.Order"), ("TopicRecordNameStrategy", "orders-shop.Order")],
)
def test_a_subject_may_be_named_after_the_record(
    known: Registrations, registry: MemoryRegistry, strategy: str, subject: str
) -> None:
    registry.subjects = {AVRO: [subject], JSON: ["orders-value"]}
    scope = SchemaScope("orders", False, strategy)
    refused = asyncio.run(known.refusals([AVRO, JSON], scope))
    assert set(refused) == {JSON}
    assert "Person" in refused[JSON]
