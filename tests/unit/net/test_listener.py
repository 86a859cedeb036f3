"""The listener and its connections, with real sockets on the loopback."""

import asyncio
import gc
import os
import socket
import tempfile
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.net.buffers import BufferPool
from penstock.net.connection import CloseConnection, ConnectionLimits, IncomingConnection
from penstock.net.crowd import Crowd, CrowdLimits
from penstock.net.listener import Listener, ListenerLimits, Turnstile, plain
from penstock.net.places import AnswerPlace
from penstock.net.session import Authentication, Session
from penstock.net.transport import Transport
from penstock.telemetry.metrics import ListenerMetrics

FRAME_BYTES_MAX = 1 << 20


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big", signed=True) + body


def echo(_connection: IncomingConnection, frame: memoryview) -> list[Any]:
    return [framed(bytes(frame))]


@dataclass
class Peer:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)

    async def is_closed(self) -> bool:
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True


def serving(
    dispatch: Callable[[IncomingConnection, memoryview], Any],
    scenario: Callable[[Listener], Awaitable[None]],
    *,
    in_flight_max: int = 8,
    connections_max: int = 100,
    per_ip_max: int = 100,
    idle_s_max: float | None = None,
    send_buffer_bytes: int | None = None,
    turnstile: Turnstile | None = None,
    wrap: Callable[[socket.socket, Session], Transport] = plain,
    handshake_s_max: float = 30.0,
    asks_who: bool = False,
) -> None:
    async def run() -> None:
        listener = Listener(
            name="PLAINTEXT",
            host="127.0.0.1",
            port=0,
            limits=ListenerLimits(
                connection=ConnectionLimits(
                    frame_bytes_max=FRAME_BYTES_MAX, in_flight_max=in_flight_max
                ),
                idle_s_max=idle_s_max,
                handshake_s_max=handshake_s_max,
                backlog=50,
                send_buffer_bytes=send_buffer_bytes,
                receive_buffer_bytes=None,
            ),
            pool=BufferPool(),
            crowd=Crowd(CrowdLimits(most=connections_max, most_per_ip=per_ip_max)),
            wrap=wrap,
            asks_who=asks_who,
        )
        listener.bind()
        listener.start(dispatch, ListenerMetrics(), turnstile)
        try:
            await asyncio.wait_for(scenario(listener), timeout=120)
        finally:
            listener.close()
        assert not listener.connections

    asyncio.run(run())


async def connected(listener: Listener) -> Peer:
    return Peer(*await asyncio.open_connection("127.0.0.1", listener.port))


@settings(max_examples=40, deadline=None)
@given(
    bodies=st.lists(
        st.one_of(st.binary(min_size=1, max_size=40), st.integers(1, 300_000).map(bytes)),
        min_size=1,
        max_size=12,
    ),
    cuts=st.lists(st.integers(0, 1 << 20), max_size=12),
)
def test_frames_arrive_whole_however_the_stream_is_cut(
    bodies: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(framed(body) for body in bodies)

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        at = 0
        for cut in sorted(cut % len(stream) for cut in cuts):
            peer.send(stream[at:cut])
            at = cut
            await asyncio.sleep(0)
        peer.send(stream[at:])
        assert [await peer.answer() for _ in bodies] == bodies

    serving(echo, scenario)


def test_answers_come_in_request_order_even_when_a_later_one_is_ready_first() -> None:
    release = {}

    def dispatch(_connection: IncomingConnection, frame: memoryview) -> Any:
        body = bytes(frame)
        if body == b"slow":
            release["slow"] = asyncio.Event()

            async def later() -> list[bytes]:
                await release["slow"].wait()
                return [framed(body)]

            return later()
        if body == b"quick last":
            release["slow"].set()
        return [framed(body)]

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        peer.send(framed(b"slow") + framed(b"quick") + framed(b"quick last"))
        assert [await peer.answer() for _ in range(3)] == [b"slow", b"quick", b"quick last"]

    serving(dispatch, scenario)


class Keeper:
    """Works on answers without tasks: keeps their places, and notes whose peer is gone."""

    def __init__(self) -> None:
        self.places: list[AnswerPlace] = []
        self.left = 0

    def dispatch(self, connection: IncomingConnection, frame: memoryview) -> Any:
        if bytes(frame) == b"slow":
            self.places.append(connection.keep_place(self))
            return None
        return [framed(bytes(frame))]

    def leave(self) -> None:
        self.left += 1

    async def kept(self, count: int) -> None:
        while len(self.places) < count:
            await asyncio.sleep(0.001)


def test_an_answer_that_comes_without_a_task_takes_its_place_among_the_others() -> None:
    keeper = Keeper()

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        peer.send(framed(b"slow") + framed(b"quick") + framed(b"slow") + framed(b"last"))
        await keeper.kept(2)
        keeper.places[1].fill([framed(b"third")])
        keeper.places[0].fill([framed(b"first")])
        assert [await peer.answer() for _ in range(4)] == [b"first", b"quick", b"third", b"last"]
        peer.send(framed(b"again"))
        assert await peer.answer() == b"again"

    serving(keeper.dispatch, scenario)
    assert keeper.left == 0


def test_whoever_works_on_an_answer_hears_that_its_peer_is_gone() -> None:
    keeper = Keeper()

    async def scenario(listener: Listener) -> None:
        gone, refused = await connected(listener), await connected(listener)
        gone.send(framed(b"slow"))
        await keeper.kept(1)
        gone.writer.close()
        while keeper.left < 1:
            await asyncio.sleep(0.001)
        keeper.places[0].fill([framed(b"too late")])
        refused.send(framed(b"slow") + framed(b"slow"))
        await keeper.kept(3)
        keeper.places[1].fail("it cannot be answered")
        assert await refused.is_closed()

    serving(keeper.dispatch, scenario)
    assert keeper.left == 3


def test_nothing_begins_behind_a_request_that_holds_the_connection() -> None:
    begun: list[bytes] = []
    gate: list[asyncio.Event] = []

    def dispatch(connection: IncomingConnection, frame: memoryview) -> Any:
        body = bytes(frame)
        begun.append(body)
        if body != b"holds":
            return [framed(body)]
        connection.hold()
        gate.append(asyncio.Event())

        async def later() -> list[bytes]:
            await gate[-1].wait()
            return [framed(body)]

        return later()

    async def scenario(listener: Listener) -> None:
        held, other = await connected(listener), await connected(listener)
        held.send(framed(b"first") + framed(b"holds") + framed(b"after") + framed(bytes(100_000)))
        other.send(framed(b"other"))
        assert await held.answer() == b"first"
        assert await other.answer() == b"other"
        held.send(framed(b"last"))
        await asyncio.sleep(0.05)
        assert sorted(begun) == [b"first", b"holds", b"other"]
        gate[0].set()
        rest = [await held.answer() for _ in range(4)]
        assert rest == [b"holds", b"after", bytes(100_000), b"last"]

    serving(dispatch, scenario)


def test_a_connection_that_ends_as_its_request_begins_leaves_no_coroutine_behind(
    recwarn: pytest.WarningsRecorder,
) -> None:
    began: list[bool] = []

    async def handled() -> list[bytes]:
        began.append(True)
        await asyncio.Event().wait()
        return []

    async def answered(handler: Coroutine[Any, Any, list[bytes]]) -> list[bytes]:
        return await handler

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        impossible = (2**31 - 1).to_bytes(4, "big")
        peer.send(framed(b"begins") + impossible)
        assert await peer.is_closed()

    serving(lambda _connection, _frame: answered(handled()), scenario)
    gc.collect()
    assert began == [True]
    assert not [str(found.message) for found in recwarn if "never awaited" in str(found.message)]


def test_no_more_requests_begin_than_the_limit_while_answers_are_owed() -> None:
    begun: list[bytes] = []
    gate: list[asyncio.Event] = []

    def dispatch(
        _connection: IncomingConnection, frame: memoryview
    ) -> Coroutine[Any, Any, list[bytes]]:
        body = bytes(frame)
        begun.append(body)
        event = asyncio.Event()
        gate.append(event)

        async def later() -> list[bytes]:
            await event.wait()
            return [framed(body)]

        return later()

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        bodies = [b"%d" % n for n in range(10)]
        peer.send(b"".join(framed(body) for body in bodies))
        while len(begun) < 3:
            await asyncio.sleep(0.001)
        # Give the listener every chance to begin a fourth one.
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert begun == bodies[:3]
        answered = []
        for n in range(10):
            while len(gate) <= n:
                await asyncio.sleep(0.001)
            gate[n].set()
            answered.append(await peer.answer())
        assert answered == bodies

    serving(dispatch, scenario, in_flight_max=3)


@pytest.mark.parametrize("size", [-1, 0, FRAME_BYTES_MAX + 1, 0x7FFFFFFF, -0x80000000])
def test_a_frame_of_a_forbidden_size_closes_only_its_own_connection(size: int) -> None:
    async def scenario(listener: Listener) -> None:
        good, bad = await connected(listener), await connected(listener)
        good.send(framed(b"before"))
        assert await good.answer() == b"before"
        bad.send(framed(b"fine") + size.to_bytes(4, "big", signed=True) + b"rest")
        assert await bad.answer() == b"fine"
        assert await bad.is_closed()
        good.send(framed(b"after"))
        assert await good.answer() == b"after"

    serving(echo, scenario)


def test_a_peer_that_sends_byte_by_byte_is_served() -> None:
    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        for byte in framed(b"patience") * 2:
            peer.send(bytes([byte]))
            await peer.writer.drain()
            await asyncio.sleep(0)
        assert await peer.answer() == b"patience"
        assert await peer.answer() == b"patience"

    serving(echo, scenario)


def test_a_peer_that_does_not_read_is_not_served_further_and_holds_no_memory() -> None:
    begun = 0
    answer = framed(bytes(100_000))

    def dispatch(_connection: IncomingConnection, _frame: memoryview) -> list[bytes]:
        nonlocal begun
        begun += 1
        return [answer]

    async def scenario(listener: Listener) -> None:
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", listener.port))
        deaf.sendall(framed(b"x") * 5_000)
        other = await connected(listener)
        for _ in range(20):
            other.send(framed(b"y"))
            await other.answer()
        assert begun < 1_000
        deaf.close()

    serving(dispatch, scenario, send_buffer_bytes=65_536)


class Slice:
    def __init__(self, file: Any, position: int, size: int) -> None:
        self.file, self.position, self.size = file, position, size

    def __len__(self) -> int:
        return self.size

    def fileno(self) -> int:
        return int(self.file.fileno())


@pytest.mark.parametrize("write_turn_bytes", [4 << 20, 7_777])
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    pieces=st.lists(
        st.tuples(st.integers(0, 200_000), st.integers(1, 400_000) | st.integers(1, 9_000)),
        min_size=1,
        max_size=6,
    )
)
def test_file_parts_and_bytes_arrive_in_order(
    monkeypatch: pytest.MonkeyPatch, write_turn_bytes: int, pieces: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr("penstock.net.connection._WRITE_TURN_BYTES", write_turn_bytes)
    content = os.urandom(600_000)
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()

        def dispatch(_connection: IncomingConnection, _frame: memoryview) -> list[Any]:
            parts: list[Any] = []
            for position, size in pieces:
                parts += [b"<", Slice(file, position, size), b">", b""]
            total = sum(len(part) for part in parts)
            return [total.to_bytes(4, "big"), *parts]

        expected = b"".join(b"<" + content[at : at + size] + b">" for at, size in pieces)

        async def scenario(listener: Listener) -> None:
            peer = await connected(listener)
            peer.send(framed(b"a") + framed(b"b"))
            assert await peer.answer() == expected
            assert await peer.answer() == expected

        serving(dispatch, scenario, send_buffer_bytes=16_384)


def test_a_peer_with_thousands_of_requests_at_once_does_not_keep_another_waiting() -> None:
    begun: list[bytes] = []
    another = socket.socket()

    def dispatch(connection: IncomingConnection, frame: memoryview) -> list[bytes]:
        if not begun:
            another.send(framed(b"modest"))  # It comes while the first request is being served.
        begun.append(bytes(frame))
        return echo(connection, frame)

    async def scenario(listener: Listener) -> None:
        another.connect(("127.0.0.1", listener.port))
        while not listener.connections:
            await asyncio.sleep(0.001)
        peer = await connected(listener)
        peer.send(framed(b"many") * 5000)
        for _ in range(5000):
            assert await peer.answer() == b"many"

    serving(dispatch, scenario)
    another.close()
    assert begun.count(b"many") == 5000
    assert begun.index(b"modest") <= 16  # Two turns.


def test_dispatch_may_close_the_connection_after_what_it_answered_before() -> None:
    def dispatch(connection: IncomingConnection, frame: memoryview) -> list[bytes]:
        if frame == b"bad":
            raise CloseConnection("that was bad")
        return echo(connection, frame)

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        peer.send(framed(b"good") + framed(b"bad") + framed(b"never"))
        assert await peer.answer() == b"good"
        assert await peer.is_closed()

    serving(dispatch, scenario)


def test_an_error_of_ours_closes_the_connection_and_not_the_listener() -> None:
    def dispatch(connection: IncomingConnection, frame: memoryview) -> list[bytes]:
        if frame == b"bug":
            raise ZeroDivisionError
        return echo(connection, frame)

    async def scenario(listener: Listener) -> None:
        peer, other = await connected(listener), await connected(listener)
        peer.send(framed(b"bug"))
        assert await peer.is_closed()
        other.send(framed(b"still here"))
        assert await other.answer() == b"still here"

    serving(dispatch, scenario)


def test_silent_connections_are_closed_and_waiting_ones_are_not() -> None:
    others_are_closed = asyncio.Event()

    def dispatch(_connection: IncomingConnection, frame: memoryview) -> Any:
        async def later() -> list[bytes]:
            await others_are_closed.wait()
            return [framed(b"late")]

        return later() if frame == b"wait" else [framed(b"now")]

    async def scenario(listener: Listener) -> None:
        silent, waiting = await connected(listener), await connected(listener)
        half = await connected(listener)
        half.send(framed(b"cut short")[:7])
        waiting.send(framed(b"wait"))
        assert await silent.is_closed()
        assert await half.is_closed()
        others_are_closed.set()
        assert await waiting.answer() == b"late"

    serving(dispatch, scenario, idle_s_max=2.0)


def test_one_address_gets_no_more_connections_than_its_share() -> None:
    async def scenario(listener: Listener) -> None:
        first, second = await connected(listener), await connected(listener)
        for peer in (first, second):
            peer.send(framed(b"in"))
            assert await peer.answer() == b"in"
        assert await (await connected(listener)).is_closed()
        first.writer.close()
        while len(listener.connections) > 1:
            await asyncio.sleep(0.001)
        third = await connected(listener)
        third.send(framed(b"in"))
        assert await third.answer() == b"in"

    serving(echo, scenario, per_ip_max=2)


def test_when_the_listener_is_full_newcomers_wait_until_somebody_leaves() -> None:
    async def scenario(listener: Listener) -> None:
        first = await connected(listener)
        first.send(framed(b"in"))
        assert await first.answer() == b"in"
        second = await connected(listener)
        second.send(framed(b"me too"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(second.reader.read(1)), timeout=0.1)
        assert len(listener.connections) == 1
        first.writer.close()
        while second.reader._buffer == b"":
            await asyncio.sleep(0.001)

    serving(echo, scenario, connections_max=1)


def test_who_does_not_say_who_they_are_in_time_has_to_go() -> None:
    def admit(connection: IncomingConnection, frame: memoryview) -> list[Any]:
        if bytes(frame) == b"alice":
            connection.session.authentication = Authentication.DONE
        return [framed(bytes(frame))]

    async def scenario(listener: Listener) -> None:
        known, chatty, silent = [await connected(listener) for _ in range(3)]
        known.send(framed(b"alice"))
        chatty.send(framed(b"hello"))
        assert (await known.answer(), await chatty.answer()) == (b"alice", b"hello")
        assert await chatty.is_closed()
        assert await silent.is_closed()
        known.send(framed(b"still"))
        assert await known.answer() == b"still"

    serving(admit, scenario, asks_who=True, handshake_s_max=1.0)


def test_draining_answers_what_was_begun_and_then_closes() -> None:
    release: list[asyncio.Event] = []

    def dispatch(_connection: IncomingConnection, _frame: memoryview) -> Any:
        event = asyncio.Event()
        release.append(event)

        async def later() -> list[bytes]:
            await event.wait()
            return [framed(b"done")]

        return later()

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        peer.send(framed(b"begin"))
        while not release:
            await asyncio.sleep(0.001)
        listener.stop_accepting()
        draining = asyncio.create_task(listener.drain(timeout_s=10))
        await asyncio.sleep(0)
        release[0].set()
        assert await peer.answer() == b"done"
        assert await peer.is_closed()
        await draining

    serving(dispatch, scenario)


def test_a_muted_connection_is_answered_first_and_read_later() -> None:
    def dispatch(connection: IncomingConnection, frame: memoryview) -> list[bytes]:
        if frame == b"too much":
            connection.mute_for(0.2)
        return echo(connection, frame)

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        loop = asyncio.get_running_loop()
        peer.send(framed(b"too much") + framed(b"next"))
        assert await peer.answer() == b"too much"
        answered_s = loop.time()
        assert await peer.answer() == b"next"
        assert loop.time() - answered_s > 0.1

    serving(dispatch, scenario)


def test_the_longest_of_several_mutes_counts() -> None:
    muted: list[IncomingConnection] = []

    def dispatch(connection: IncomingConnection, frame: memoryview) -> list[bytes]:
        if not muted:
            for seconds in (0.01, 0.3, 0.02):
                connection.mute_for(seconds)
            muted.append(connection)
        return echo(connection, frame)

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        loop = asyncio.get_running_loop()
        peer.send(framed(b"too much") + framed(b"next"))
        assert await peer.answer() == b"too much"
        answered_s = loop.time()
        assert await peer.answer() == b"next"
        assert loop.time() - answered_s > 0.15

    serving(dispatch, scenario)


def test_a_connection_closed_while_muted_is_not_kept_in_memory() -> None:
    known: list[weakref.ref[IncomingConnection]] = []

    def dispatch(connection: IncomingConnection, frame: memoryview) -> list[bytes]:
        known.append(weakref.ref(connection))
        connection.mute_for(1_000_000)
        return echo(connection, frame)

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        peer.send(framed(b"too much"))
        assert await peer.answer() == b"too much"
        for connection in tuple(listener.connections):
            connection.close()
            del connection
        gc.collect()
        assert known[0]() is None

    serving(dispatch, scenario)


def test_the_time_spent_on_a_peer_is_added_up_where_somebody_asks_for_it() -> None:
    seen: list[float] = []

    def dispatch(connection: IncomingConnection, frame: memoryview) -> list[bytes]:
        seen.append(connection.busy_s)
        if frame != b"unmetered":
            connection.is_metered = True
        return echo(connection, frame)

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        for body in (b"unmetered", b"first", b"second", b"third"):
            peer.send(framed(body))
            assert await peer.answer() == body

    serving(dispatch, scenario)
    assert seen[:3] == [0, 0, 0]  # The turn in which counting began is not counted itself.
    assert seen[3] > 0


# Turnstiles


class Porter:
    """Turns away and closes the door as the test says."""

    def __init__(self, *, turned_away_ms: list[int], closed_ms: list[int]) -> None:
        self.turned_away_ms = turned_away_ms
        self.closed_ms = closed_ms
        self.asked: list[str] = []

    def turn_away_ms(self, address: str) -> int:
        self.asked.append(address)
        return self.turned_away_ms.pop(0) if self.turned_away_ms else 0

    def close_door_ms(self, listener: str) -> int:
        self.asked.append(listener)
        return self.closed_ms.pop(0) if self.closed_ms else 0


def test_an_address_that_is_turned_away_is_held_and_then_closed() -> None:
    porter = Porter(turned_away_ms=[150], closed_ms=[])

    async def scenario(listener: Listener) -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        unwanted = await connected(listener)
        unwanted.send(framed(b"hello"))
        assert await unwanted.is_closed()
        assert loop.time() - began_s > 0.1
        assert listener._metrics.refused == 1
        welcome = await connected(listener)
        welcome.send(framed(b"hello"))
        assert await welcome.answer() == b"hello"

    serving(echo, scenario, turnstile=porter)
    assert porter.asked == ["127.0.0.1", "PLAINTEXT"] * 2


def test_those_held_are_let_go_when_the_listener_closes() -> None:
    async def scenario(listener: Listener) -> None:
        held = await connected(listener)
        while not listener._turned_away:
            await asyncio.sleep(0.001)
        listener.stop_accepting()
        assert await held.is_closed()

    serving(echo, scenario, turnstile=Porter(turned_away_ms=[1_000_000], closed_ms=[]))


def test_only_so_many_are_held_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.net.listener._TURNED_AWAY_MAX", 2)

    async def scenario(listener: Listener) -> None:
        held = [await connected(listener) for _ in range(2)]
        while len(listener._turned_away) < 2:
            await asyncio.sleep(0.001)
        one_more = await connected(listener)
        assert await one_more.is_closed()
        assert len(listener._turned_away) == len(held)

    serving(echo, scenario, turnstile=Porter(turned_away_ms=[1_000_000] * 3, closed_ms=[]))


def test_newcomers_wait_in_the_backlog_while_the_door_is_closed() -> None:
    async def scenario(listener: Listener) -> None:
        loop = asyncio.get_running_loop()
        first = await connected(listener)
        first.send(framed(b"in"))
        assert await first.answer() == b"in"
        came_in_s = loop.time()
        second = await connected(listener)
        second.send(framed(b"late"))
        first.writer.close()  # One that leaves does not open the door for the next.
        assert await second.answer() == b"late"
        assert loop.time() - came_in_s > 0.15

    serving(echo, scenario, turnstile=Porter(turned_away_ms=[], closed_ms=[300]))


def test_a_session_knows_where_its_peer_came_from_and_hears_of_its_leaving() -> None:
    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        peer.send(framed(b"hello"))
        await peer.answer()
        (connection,) = listener.connections
        session = connection.session
        host, port = peer.writer.get_extra_info("sockname")[:2]
        assert (session.listener, session.address) == ("PLAINTEXT", f"{host}:{port}")
        left = asyncio.Event()
        session.at_close("test", left.set)
        peer.writer.close()
        await left.wait()
        assert session.is_closed
        assert not listener.connections

    serving(echo, scenario)
