"""Loading: however large a batch of a state topic is, others get their turn in between."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

from penstock.coordination.led_shard import LedShard
from penstock.records.batch import Record, build_batch, read_header, read_records

COUNT = 5_000


class StoredState:
    """A log of one large batch."""

    def now_ms(self) -> int:
        return 0

    def replay(self, *, chunk_bytes: int) -> Iterator[Any]:
        batch = build_batch([Record(number, 0, b"%d" % number, b"") for number in range(COUNT)])
        yield [(read_header(batch), list(read_records(batch)))]


class Replayed:
    """Notes what it is given, and in which turn of the loop."""

    def __init__(self) -> None:
        self.turn = 0
        self.keys: list[bytes] = []
        self.in_turn: dict[int, int] = {}

    def replay(self, key: bytes, _value: bytes, _offset: int, _producer_id: int) -> None:
        self.keys.append(key)
        self.in_turn[self.turn] = self.in_turn.get(self.turn, 0) + 1


def test_a_large_batch_is_taken_in_over_several_turns() -> None:
    async def scene() -> Replayed:
        shard = Replayed()
        state_log: Any = StoredState()
        led: LedShard[Any] = LedShard(state_log, lambda _led: shard, logging.getLogger())
        loading = asyncio.create_task(led.read())
        while not loading.done():
            await asyncio.sleep(0)
            shard.turn += 1
        return shard

    shard = asyncio.run(scene())
    assert shard.keys == [b"%d" % number for number in range(COUNT)]
    assert max(shard.in_turn.values()) <= COUNT // 5
