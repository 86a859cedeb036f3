"""TxnOffsetCommit: offsets that count when the transaction commits."""

import pytest
from tests.unit.broker.handlers.transactional_client import Client, committed_offset

from penstock.errors import ErrorCode


@pytest.mark.parametrize("version", range(6))
def test_offsets_count_when_the_transaction_commits(client: Client, version: int) -> None:
    assert committed_offset(client.served) == (-1, ErrorCode.NONE)
    if version < 5:
        assert client.add_offsets() == ErrorCode.NONE
    assert client.commit_offset(42, version=version) == ErrorCode.NONE
    assert committed_offset(client.served) == (-1, ErrorCode.NONE)
    pending = committed_offset(client.served, require_stable=True)
    assert pending == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert client.end(version=5 if version == 5 else 3) == ErrorCode.NONE
    assert committed_offset(client.served, require_stable=True) == (42, ErrorCode.NONE)


def test_offsets_of_an_aborted_transaction_never_count(client: Client) -> None:
    client.add_offsets()
    committed_offset(client.served)
    client.commit_offset(42)
    assert client.end(committed=False) == ErrorCode.NONE
    assert committed_offset(client.served, require_stable=True) == (-1, ErrorCode.NONE)


@pytest.mark.parametrize(
    ("version", "error"), [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_offsets_outside_of_the_transaction_are_refused(
    client: Client, version: int, error: ErrorCode
) -> None:
    committed_offset(client.served)
    assert client.commit_offset(42, version=version) == error


def test_offsets_of_an_old_generation_and_of_unknown_topics_are_refused(client: Client) -> None:
    committed_offset(client.served)
    client.add_offsets()
    unknown = client.commit_offset(1, topic="nowhere")
    assert unknown == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    old = client.commit_offset(1, generation_id=3, member_id="gone")
    assert old == ErrorCode.ILLEGAL_GENERATION


def test_offsets_wait_for_a_coordinator_of_the_group(client: Client) -> None:
    error = client.commit_offset(1)
    assert error == ErrorCode.COORDINATOR_NOT_AVAILABLE
