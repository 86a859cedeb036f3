"""AddOffsetsToTxn: a group's partition of `__consumer_offsets` becomes part of a transaction."""

import pytest
from tests.unit.broker.handlers.transactional_client import GROUP, Client

from penstock.broker.handlers import add_offsets_to_txn
from penstock.broker.internal_topics import CONSUMER_OFFSETS
from penstock.errors import ErrorCode, ProtocolError


@pytest.mark.parametrize("version", range(5))
def test_the_groups_partition_joins_the_transaction_in_every_version(
    client: Client, version: int
) -> None:
    assert CONSUMER_OFFSETS not in client.served.broker.image.topics
    assert client.add_offsets(version) == ErrorCode.NONE
    state = client.describe()
    where = client.served.broker.groups.partition_of(GROUP)
    assert state.transaction_state == "Ongoing"
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [
        (CONSUMER_OFFSETS, [where])
    ]


def test_to_ask_twice_changes_nothing(client: Client) -> None:
    assert client.add_offsets() == ErrorCode.NONE
    begun = client.describe()
    assert client.add_offsets() == ErrorCode.NONE
    assert client.describe() == begun


@pytest.mark.parametrize(
    ("version", "error"),
    [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)],
)
def test_a_fenced_producer_is_told_as_its_version_knows(
    client: Client, version: int, error: ErrorCode
) -> None:
    fenced = client.who
    assert client.init() == ErrorCode.NONE
    client.who = fenced
    assert client.add_offsets(version) == error
    assert client.describe().transaction_state == "Empty"


def test_a_stranger_adds_nothing(client: Client) -> None:
    client.who = (client.who[0] + 1, 0)
    assert client.add_offsets() == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert client.describe().topics == []


def test_an_id_that_nobody_has_is_refused(client: Client) -> None:
    client.transactional_id = "unknown"
    assert client.add_offsets() == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_a_topic_that_was_made_and_is_not_known_here_yet_is_worth_another_try(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def made_elsewhere(*_: object) -> dict[str, ProtocolError]:
        return {}

    monkeypatch.setattr(add_offsets_to_txn, "create_on_use", made_elsewhere)
    assert client.add_offsets() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert client.describe().topics == []
