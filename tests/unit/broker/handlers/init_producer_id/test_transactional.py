"""InitProducerId with a transactional id: each owner fences the one before."""

from typing import Any

import pytest
from tests.unit.broker.handlers.transactional_client import Client

from penstock.errors import ErrorCode


@pytest.mark.parametrize("version", range(6))
def test_each_new_owner_gets_the_next_epoch(served: Any, version: int) -> None:
    client = Client(served)
    assert client.init(version) == ErrorCode.NONE
    producer_id, epoch = client.who
    assert epoch == 0
    assert client.init(version) == ErrorCode.NONE
    assert client.who == (producer_id, 1)


@pytest.mark.parametrize("timeout_ms", [0, -5, 900_001])
def test_a_timeout_beyond_transaction_max_timeout_ms_is_refused(
    served: Any, timeout_ms: int
) -> None:
    client = Client(served)
    error = client.init(transaction_timeout_ms=timeout_ms)
    assert error == ErrorCode.INVALID_TRANSACTION_TIMEOUT


@pytest.mark.parametrize(
    ("version", "error"),
    [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (4, ErrorCode.PRODUCER_FENCED)],
)
def test_a_fenced_producer_cannot_go_on(client: Client, version: int, error: ErrorCode) -> None:
    producer_id, epoch = client.who
    assert client.init() == ErrorCode.NONE
    assert client.init(version, producer_id=producer_id, producer_epoch=epoch) == error
