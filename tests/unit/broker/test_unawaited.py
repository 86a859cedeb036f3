"""Requests that end before all of their parts were awaited."""

import asyncio
import gc
from typing import Any

import pytest

from penstock.broker.handlers import delete_groups, offset_fetch
from penstock.broker.unawaited import close_all
from penstock.errors import ErrorCode
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)


async def never() -> Any:
    await asyncio.Event().wait()


def test_what_is_no_coroutine_is_left_alone() -> None:
    waits = never()
    close_all([ErrorCode.NONE, waits, None])
    with pytest.raises(RuntimeError, match="cannot reuse"):
        waits.send(None)


@pytest.mark.parametrize("kind", ["delete", "fetch"])
def test_a_client_that_leaves_takes_all_parts_of_its_request_along(
    kind: str, recwarn: pytest.WarningsRecorder
) -> None:
    async def scenario() -> None:
        if kind == "delete":
            answer = delete_groups._later({"a": ErrorCode.NONE, "b": never(), "c": never()})
        else:
            asked = [OffsetFetchRequestGroup(group_id=name) for name in "abc"]
            there = OffsetFetchResponseGroup(group_id="a")
            answer = offset_fetch._later([there, never(), never()], asked, 8)
        task = asyncio.create_task(answer)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(scenario())
    gc.collect()
    assert not [str(found.message) for found in recwarn if "never awaited" in str(found.message)]
