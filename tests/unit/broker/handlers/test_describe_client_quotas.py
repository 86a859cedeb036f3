"""DescribeClientQuotas: which entities fit the conditions, strictly or not."""

from typing import Any

import pytest

from penstock.broker.quotas.entities import config_key
from penstock.cluster.control.controller import EntityOverrides
from penstock.errors import ErrorCode
from penstock.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)

EXACT, DEFAULT, ANY = range(3)
ENTITIES: list[dict[str, str | None]] = [
    {"user": "alice"},
    {"user": "bob"},
    {"user": None},
    {"client-id": "c"},
    {"client-id": None},
    {"user": "alice", "client-id": "c"},
    {"user": "alice", "client-id": None},
    {"user": None, "client-id": "c"},
    {"ip": "10.0.0.1"},
    {"ip": None},
]


@pytest.fixture
def stocked(served: Any) -> Any:
    """A broker with a quota for each of the entities, and settings of other things beside them."""
    changes = [
        EntityOverrides(
            *config_key(entity),
            config={"connection_creation_rate" if "ip" in entity else "producer_byte_rate": "5"},
        )
        for entity in ENTITIES
    ]
    changes.append(EntityOverrides("users", "carol", {"SCRAM-SHA-256": "salt"}))
    changes.append(EntityOverrides("brokers", "7", {"log.retention.ms": "5"}))
    served.run(served.broker.controller.set_configs(changes))
    return served


def ask(served: Any, *components: tuple[str, int, str | None], strict: bool, version: int) -> Any:
    return served.ask(
        DescribeClientQuotasRequest(
            components=[
                ComponentData(entity_type=kind, match_type=match, match=name)
                for kind, match, name in components
            ],
            strict=strict,
        ),
        version,
    )


def find(
    served: Any, *components: tuple[str, int, str | None], strict: bool = True, version: int = 1
) -> list[dict[str, str | None]]:
    answer = ask(served, *components, strict=strict, version=version)
    assert answer.error_code == ErrorCode.NONE, answer.error_message
    return [
        {part.entity_type: part.entity_name for part in entry.entity} for entry in answer.entries
    ]


def same(found: list[dict[str, str | None]], expected: list[dict[str, str | None]]) -> bool:
    return sorted(map(str, found)) == sorted(map(str, expected))


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("components", "strict", "expected"),
    [
        ([("user", EXACT, "alice")], True, [{"user": "alice"}]),
        ([("user", DEFAULT, None)], True, [{"user": None}]),
        ([("user", ANY, None)], True, [{"user": "alice"}, {"user": "bob"}, {"user": None}]),
        ([("client-id", ANY, None)], True, [{"client-id": "c"}, {"client-id": None}]),
        ([("ip", EXACT, "10.0.0.1")], True, [{"ip": "10.0.0.1"}]),
        ([("ip", ANY, None)], True, [{"ip": "10.0.0.1"}, {"ip": None}]),
        ([("user", EXACT, "nobody")], True, []),
        (
            [("user", EXACT, "alice")],
            False,
            [
                {"user": "alice"},
                {"user": "alice", "client-id": "c"},
                {"user": "alice", "client-id": None},
            ],
        ),
        (
            [("client-id", EXACT, "c")],
            False,
            [
                {"client-id": "c"},
                {"user": "alice", "client-id": "c"},
                {"user": None, "client-id": "c"},
            ],
        ),
        (
            [("user", EXACT, "alice"), ("client-id", ANY, None)],
            True,
            [{"user": "alice", "client-id": "c"}, {"user": "alice", "client-id": None}],
        ),
        (
            [("user", DEFAULT, None), ("client-id", EXACT, "c")],
            True,
            [{"user": None, "client-id": "c"}],
        ),
        ([], False, ENTITIES),
        ([], True, []),
    ],
)
def test_entities_are_found_by_conditions(
    stocked: Any,
    components: list[tuple[str, int, str | None]],
    strict: bool,
    expected: list[dict[str, str | None]],
    version: int,
) -> None:
    assert same(find(stocked, *components, strict=strict, version=version), expected)


def test_an_entity_comes_with_its_quotas_and_nothing_else(served: Any) -> None:
    config = {"producer_byte_rate": "5", "SCRAM-SHA-256": "x", "request_percentage": "12.5"}
    served.run(served.broker.controller.set_configs([EntityOverrides("users", "a%20b", config)]))
    (entry,) = ask(served, ("user", EXACT, "a b"), strict=True, version=1).entries
    assert {value.key: value.value for value in entry.values} == {
        "producer_byte_rate": 5.0,
        "request_percentage": 12.5,
    }
    assert entry.entity[0].entity_name == "a b"


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("group", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", ANY, None), ("user", DEFAULT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, None), ("ip", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "alice")], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, "alice")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_conditions_that_make_no_sense_are_refused(
    stocked: Any, components: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    answer = ask(stocked, *components, strict=False, version=1)
    assert (answer.error_code, answer.entries) == (code, None)
    assert answer.error_message
