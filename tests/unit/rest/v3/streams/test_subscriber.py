"""One reader: what waits for it, within bounds."""

import asyncio

from penstock.rest.v3.streams.frames import HEARTBEAT, Framing
from penstock.rest.v3.streams.subscriber import StreamReader, Wish


def reader(framing: Framing = Framing.SSE, buffer_bytes: int = 10) -> StreamReader:
    return StreamReader(Wish(topic="t", framing=framing), {0: 5}, buffer_bytes)


async def taken(one: StreamReader) -> bytes | None:
    return await asyncio.wait_for(one.take(), 30)


def test_all_that_waits_is_taken_at_once() -> None:
    one = reader()
    one.push(b"a", "0-6")
    one.push(b"b", "0-7")
    assert asyncio.run(taken(one)) == b"ab"
    assert one.told == "0-5", "nothing counts as sent before it has left"
    one.note_sent()
    assert one.told == "0-7"


def test_taking_waits_for_a_push() -> None:
    async def scene() -> bytes | None:
        one = reader()
        taking = asyncio.create_task(taken(one))
        await asyncio.sleep(0)
        one.push(b"a", "0-6")
        return await taking

    assert asyncio.run(scene()) == b"a"


def test_a_reader_that_is_too_far_behind_is_cut_and_knows_where_it_was() -> None:
    one = reader(buffer_bytes=2)
    one.push(b"a", "0-6")
    asyncio.run(taken(one))
    one.note_sent()
    one.push(b"bbb", "0-7")
    assert one.end_reason is None, "it waited for us, not we for it"
    one.push(b"c", "0-8")
    assert one.end_reason == "slow"
    one.push(b"d", "0-9")
    assert asyncio.run(taken(one)) is None
    assert one.told == "0-6"


def test_the_first_reason_to_end_stays() -> None:
    one = reader()
    one.end("left")
    one.end("stopping")
    assert one.end_reason == "left"


def test_only_a_quiet_event_stream_gets_a_beat() -> None:
    quiet, busy, lines = reader(), reader(), reader(Framing.NDJSON)
    busy.push(b"a", "0-6")
    for one in (quiet, busy, lines):
        one.beat()
    assert asyncio.run(taken(quiet)) == HEARTBEAT
    assert asyncio.run(taken(busy)) == b"a"
    lines.end("left")
    assert asyncio.run(taken(lines)) is None
