"""AlterClientQuotas: limits are checked, stored where Kafka stores them, and act at once."""

import asyncio
from typing import Any

import pytest

from penstock.cluster.control.controller import EntityOverrides
from penstock.errors import ErrorCode
from penstock.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryDataRequest,
    OpData,
)

INVALID = ErrorCode.INVALID_REQUEST


def entry(entity: dict[str, str | None], **changes: float | None) -> EntryDataRequest:
    """A change of one entity; None removes a quota."""
    return EntryDataRequest(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[
            OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in changes.items()
        ],
    )


def alter(
    served: Any, *entries: EntryDataRequest, version: int = 1, validate_only: bool = False
) -> list[Any]:
    asked = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    results: list[Any] = served.ask(asked, version).entries
    return results


def quotas_of(served: Any) -> dict[Any, Any]:
    return {
        key: config for key, config in served.broker.image.configs.items() if key[0] != "brokers"
    }


def codes(results: list[Any]) -> list[int]:
    return [result.error_code for result in results]


@pytest.mark.parametrize("version", [0, 1])
def test_quotas_are_stored_where_kafka_stores_them(served: Any, version: int) -> None:
    results = alter(
        served,
        entry({"user": "al ice"}, producer_byte_rate=1024),
        entry({"user": None}, consumer_byte_rate=2048),
        entry({"client-id": "c"}, request_percentage=12.5),
        entry({"user": "al ice", "client-id": "c/1"}, controller_mutation_rate=3),
        entry({"ip": "10.0.0.1"}, connection_creation_rate=4),
        version=version,
    )
    assert codes(results) == [0] * 5
    assert [result.error_message for result in results] == [None] * 5
    first = results[0].entity[0]
    assert (first.entity_type, first.entity_name) == ("user", "al ice")
    assert quotas_of(served) == {
        ("users", "al%20ice"): {"producer_byte_rate": "1024"},
        ("users", "<default>"): {"consumer_byte_rate": "2048"},
        ("clients", "c"): {"request_percentage": "12.5"},
        ("users", "al%20ice/clients/c%2F1"): {"controller_mutation_rate": "3.0"},
        ("ips", "10.0.0.1"): {"connection_creation_rate": "4"},
    }


def test_quotas_act_at_once_and_no_longer_when_they_are_removed(served: Any) -> None:
    quotas = served.broker.quotas
    assert not quotas.is_active
    alter(served, entry({"client-id": "c"}, producer_byte_rate=1024, consumer_byte_rate=7))
    assert quotas.of("User:ANONYMOUS", "c").produce.limit == 1024
    alter(served, entry({"client-id": "c"}, producer_byte_rate=None, consumer_byte_rate=8))
    assert quotas.of("User:ANONYMOUS", "c").produce is None
    assert quotas.of("User:ANONYMOUS", "c").fetch.limit == 8
    alter(served, entry({"client-id": "c"}, consumer_byte_rate=None))
    assert not quotas.is_active
    assert quotas_of(served) == {}


def test_rates_of_addresses_act_at_once(served: Any) -> None:
    alter(served, entry({"ip": None}, connection_creation_rate=1))
    door = served.broker.connection_quotas
    assert [door.turn_away_ms("10.0.0.1") > 0 for _ in range(12)][-1]


def test_to_validate_only_changes_nothing_and_tells_what_is_wrong(served: Any) -> None:
    results = alter(
        served,
        entry({"client-id": "c"}, producer_byte_rate=1024),
        entry({"client-id": "d"}, producer_byte_rate=0),
        validate_only=True,
    )
    assert codes(results) == [0, INVALID]
    assert quotas_of(served) == {}


def test_what_is_wrong_with_one_entity_does_not_stop_the_others(served: Any) -> None:
    results = alter(
        served,
        entry({"client-id": "a"}, no_such_quota=1),
        entry({"client-id": "b"}, producer_byte_rate=1),
        entry({"client-id": "c"}, producer_byte_rate=1, connection_creation_rate=1),
    )
    assert codes(results) == [INVALID, 0, INVALID]
    assert results[0].error_message == "Invalid configuration key no_such_quota"
    assert quotas_of(served) == {("clients", "b"): {"producer_byte_rate": "1"}}


@pytest.mark.parametrize(
    "entity",
    [
        {},
        {"user": ""},
        {"group": "g"},
        {"ip": "10.0.0.1", "user": "a"},
        {"ip": "not an address"},
    ],
)
def test_what_cannot_have_quotas_is_refused(served: Any, entity: dict[str, str | None]) -> None:
    (result,) = alter(served, entry(entity, producer_byte_rate=1))
    assert result.error_code == INVALID
    assert result.error_message


def test_an_entity_of_the_same_type_twice_is_refused(served: Any) -> None:
    asked = EntryDataRequest(
        entity=[EntityData(entity_type="user", entity_name=name) for name in ("a", "b")],
        ops=[OpData(key="producer_byte_rate", value=1.0, remove=False)],
    )
    assert codes(alter(served, asked)) == [INVALID]


def test_removing_what_is_not_there_is_no_error(served: Any) -> None:
    assert codes(alter(served, entry({"user": "a"}, producer_byte_rate=None, other=None))) == [0]


def test_credentials_beside_quotas_stay(served: Any) -> None:
    stored = EntityOverrides(kind="users", name="a", config={"SCRAM-SHA-256": "salt"})
    served.run(served.broker.controller.set_configs([stored]))
    asked = entry({"user": "a"}, producer_byte_rate=5)
    asked.ops.append(OpData(key="SCRAM-SHA-256", value=0.0, remove=True))
    assert codes(alter(served, asked)) == [0]
    assert served.broker.image.config("users", "a") == {
        "SCRAM-SHA-256": "salt",
        "producer_byte_rate": "5",
    }


def test_changes_of_one_entity_at_the_same_time_are_all_kept(served: Any) -> None:
    changes = [{"producer_byte_rate": 1.0}, {"consumer_byte_rate": 2.0}, {"request_percentage": 3}]

    async def all_at_once() -> None:
        await asyncio.gather(
            *(
                served.answer(
                    AlterClientQuotasRequest(
                        entries=[entry({"user": "a", "client-id": "c"}, **change)]
                    ),
                    1,
                )
                for change in changes
            )
        )

    served.run(all_at_once())
    assert served.broker.image.config("users", "a/clients/c") == {
        "producer_byte_rate": "1",
        "consumer_byte_rate": "2",
        "request_percentage": "3.0",
    }
