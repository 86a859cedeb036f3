"""ListTransactions, through each of its filters."""

from typing import Any

from tests.unit.broker.handlers.transactional_client import ID, Client

from penstock.errors import ErrorCode
from penstock.protocol.messages.list_transactions import ListTransactionsRequest


def listed(client: Client, version: int = 2, **filters: Any) -> set[str]:
    answer = client.served.ask(ListTransactionsRequest(**filters), version)
    assert answer.error_code == ErrorCode.NONE
    return {state.transactional_id for state in answer.transaction_states}


def test_transactions_are_listed_through_filters(client: Client) -> None:
    other = Client(client.served, "other")
    other.init()
    other.add()
    assert listed(client) == listed(client, 0) == {ID, "other"}
    assert listed(client, state_filters=["Ongoing"]) == {"other"}
    assert listed(client, state_filters=["Ongoing", "Empty"]) == {ID, "other"}
    assert listed(client, state_filters=["Nonsense"]) == set()
    assert listed(client, producer_id_filters=[client.who[0]]) == {ID}
    assert listed(client, duration_filter=3_600_000, state_filters=["Ongoing"]) == set()
    assert listed(client, duration_filter=0, state_filters=["Empty"]) == {ID}
    assert listed(client, transactional_id_pattern="oth.*") == {"other"}
    assert listed(client, transactional_id_pattern="the") == set()
    assert listed(client, transactional_id_pattern="") == {ID, "other"}


def test_patterns_match_ids_of_any_characters(client: Client) -> None:
    for transactional_id in ("app:1/a b", "app:2/ä", "app.3"):
        Client(client.served, transactional_id).init()
    assert listed(client, transactional_id_pattern="app:.*") == {"app:1/a b", "app:2/ä"}
    assert listed(client, transactional_id_pattern=r"app\W\d") == {"app.3"}
    assert listed(client, transactional_id_pattern=r".*\s.*") == {"app:1/a b"}
    assert listed(client, transactional_id_pattern="app:2/[^a-z]") == {"app:2/ä"}


def test_a_state_nobody_knows_is_named(client: Client) -> None:
    request = ListTransactionsRequest(state_filters=["Ongoing", "Nonsense"])
    assert client.served.ask(request, 1).unknown_state_filters == ["Nonsense"]


def test_a_pattern_that_is_none_is_refused(client: Client) -> None:
    request = ListTransactionsRequest(transactional_id_pattern="(")
    error = client.served.ask(request, 2).error_code
    assert error == ErrorCode.INVALID_REGULAR_EXPRESSION
