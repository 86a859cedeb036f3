"""InitProducerId: numbers that no two producers share."""

import asyncio
from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest


def ask(**fields: Any) -> InitProducerIdRequest:
    return InitProducerIdRequest(**{"transactional_id": None, **fields})


@pytest.mark.parametrize("version", range(7))
def test_every_version_gets_a_new_number(served: Any, version: int) -> None:
    first, second = served.ask(ask(), version), served.ask(ask(), version)
    assert (first.error_code, first.producer_epoch) == (ErrorCode.NONE, 0)
    assert second.producer_id == first.producer_id + 1


def test_numbers_are_never_given_twice_even_across_blocks(served: Any) -> None:
    async def many() -> list[Any]:
        return await asyncio.gather(*(served.answer(ask(), 4) for _ in range(2500)))

    numbers = [response.producer_id for response in served.run(many())]
    assert len(set(numbers)) == 2500


def test_a_producer_that_comes_back_gets_a_new_number(served: Any) -> None:
    first = served.ask(ask(), 3)
    again = served.ask(ask(producer_id=first.producer_id, producer_epoch=0), 3)
    assert (again.error_code, again.producer_epoch) == (ErrorCode.NONE, 0)
    assert again.producer_id != first.producer_id


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 5)])
def test_half_an_identity_is_refused(served: Any, producer_id: int, epoch: int) -> None:
    response = served.ask(ask(producer_id=producer_id, producer_epoch=epoch), 3)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert (response.producer_id, response.producer_epoch) == (-1, -1)


def test_an_empty_transactional_id_is_refused(served: Any) -> None:
    assert served.ask(ask(transactional_id=""), 4).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [0, 6])
def test_transactions_wait_for_their_coordinator(served: Any, version: int) -> None:
    request = ask(transactional_id="tx", transaction_timeout_ms=60_000)
    assert served.ask(request, version).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
