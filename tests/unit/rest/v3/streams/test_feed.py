"""A feed and its readers: whoever joins, whenever, gets each record that he lacks once."""

import asyncio
import json
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from penstock.client.aio import AsyncConsumer
from penstock.client.values import ConsumerRecord, ConsumerRecords
from penstock.rest.v3.streams.feed import TopicFeed
from penstock.rest.v3.streams.frames import Framing
from penstock.rest.v3.streams.subscriber import StreamReader, Wish


def feed(partitions: int) -> TopicFeed:
    """One whose records the test hands over itself."""
    nobody = cast("AsyncConsumer[bytes, bytes]", None)
    return TopicFeed("t", nobody, dict.fromkeys(range(partitions), 0), None)


def polled(
    feed: TopicFeed, partitions: list[int], value: bytes = b"v"
) -> ConsumerRecords[Any, Any]:
    """The next records of these partitions."""
    at = dict(feed.positions)
    found = []
    for partition in partitions:
        key = b"even" if at[partition] % 2 == 0 else b"odd"
        found.append(ConsumerRecord("t", partition, at[partition], 0, "CreateTime", key, value))
        at[partition] += 1
    return ConsumerRecords(found)


def reader(positions: dict[int, int], key: bytes | None = None) -> StreamReader:
    wish = Wish(topic="t", framing=Framing.NDJSON, key=key)
    return StreamReader(wish, positions, 1 << 30)


def got(one: StreamReader) -> list[tuple[int, int]]:
    """Partitions and offsets of all it was given."""
    one.push(b"", "")  # So that there is something to take.
    lines = (asyncio.run(one.take()) or b"").splitlines()
    documents = [json.loads(line) for line in lines]
    return [(said["partition_id"], said["offset"]) for said in documents]


@given(
    st.integers(1, 10),
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), max_size=8),
    st.integers(0, 8),
    st.lists(st.integers(0, 40), min_size=10, max_size=10),
)
def test_a_reader_gets_each_record_from_its_positions_on_once(
    count: int, polls: list[list[int]], joins_after: int, wanted: list[int]
) -> None:
    one = feed(count)
    positions = {partition: wanted[partition] for partition in range(count)}
    late = reader(dict(positions))
    has_joined = False
    for turn, partitions in enumerate([[p % count for p in poll] for poll in polls]):
        if turn == joins_after:
            has_joined = one.join(late)
        asyncio.run(one._share(one._taken_in(polled(one, partitions))))
    if not has_joined:
        assert one.join(late), "nothing was forgotten, so anybody can join"
    expected = {
        (partition, offset)
        for partition, end in one.positions.items()
        for offset in range(positions[partition], end)
    }
    found = got(late)
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_who_lacks_what_is_no_longer_kept_reads_by_himself_first() -> None:
    one = feed(1)
    for _ in range(20):
        asyncio.run(one._share(one._taken_in(polled(one, [0] * 10, b"x" * 1000))))
    late = reader({0: 0})
    assert not one.join(late)
    assert one.behind(late) == 0
    late.positions[0] = one.positions[0] - 5
    assert one.join(late)
    assert got(late) == [(0, offset) for offset in range(195, 200)]


def test_a_key_chooses_records_in_the_past_and_live() -> None:
    one = feed(1)
    asyncio.run(one._share(one._taken_in(polled(one, [0, 0, 0]))))
    picky = reader({0: 0}, key=b"odd")
    assert one.join(picky)
    asyncio.run(one._share(one._taken_in(polled(one, [0, 0, 0]))))
    assert got(picky) == [(0, 1), (0, 3), (0, 5)]


def test_who_has_left_gets_nothing() -> None:
    one = feed(1)
    gone = reader({0: 0})
    one.join(gone)
    one.leave(gone)
    asyncio.run(one._share(one._taken_in(polled(one, [0]))))
    assert got(gone) == []
    assert one.readers == []
