"""Connections in both directions over transports that are not a plain socket."""

import asyncio
import os
import socket
from collections import deque
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.unit.net.balky import Balky
from tests.unit.net.test_listener import connected, echo, framed, serving
from tests.unit.net.test_outgoing import LONG_S, Reader, Writer, echo_ids

from penstock.net.connection import IncomingConnection
from penstock.net.listener import Listener
from penstock.net.outgoing import TcpPeers
from penstock.net.transport import PlainTransport
from penstock.protocol.apis import Request
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.storage.segments.file_slice import FileSlice, LogFile


@pytest.mark.parametrize("most", [1, 3, 7])
def test_a_read_that_has_to_write_and_a_write_that_has_to_read_both_go_on(most: int) -> None:
    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        peer.send(framed(b"first request"))
        await begun.wait()
        peer.send(framed(b"second"))  # Without it the first answer could not leave.
        assert [await peer.answer() for _ in range(2)] == [b"first request", b"second"]
        for size in (1, 100, 5_000):
            peer.send(framed(bytes(size)))
            assert await peer.answer() == bytes(size)

    begun = asyncio.Event()

    def dispatch(connection: IncomingConnection, frame: memoryview) -> list[Any]:
        begun.set()
        return echo(connection, frame)

    serving(dispatch, scenario, wrap=partial(Balky, most=most))


def test_a_connection_may_be_closed_while_its_answer_waits_for_the_peer() -> None:
    begun = asyncio.Event()

    def dispatch(connection: IncomingConnection, frame: memoryview) -> list[Any]:
        begun.set()
        return echo(connection, frame)

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        peer.send(framed(b"first"))
        await begun.wait()
        (connection,) = listener.connections
        connection.close()
        assert await peer.is_closed()

    serving(dispatch, scenario, wrap=Balky)


def _beat(size: int) -> Request:
    return HeartbeatRequest(group_id="g" * size, generation_id=1, member_id="m")


async def ask_many(peers: TcpPeers) -> list[int]:
    sizes = [1, 10, 30_000, 400_000, 5]
    asked = (peers.ask(1, _beat(size), timeout_s=LONG_S, version=4) for size in sizes)
    answers = await asyncio.gather(*asked)
    return [answer.throttle_time_ms for answer in answers if isinstance(answer, HeartbeatResponse)]


async def serve_echo(reader: Reader, writer: Writer) -> None:
    try:
        await echo_ids(reader, writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def test_questions_are_asked_through_a_transport_that_balks() -> None:
    async def run() -> None:
        listening = await asyncio.start_server(serve_echo, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]

        def wrap(sock: socket.socket, host: str) -> Balky:
            return Balky(sock, host, must_hear=False)

        peers = TcpPeers(lambda _id: ("127.0.0.1", port), wrap=wrap)
        try:
            assert await ask_many(peers) == [1, 2, 3, 4, 5]
        finally:
            peers.close()
            listening.close()

    asyncio.run(run())


class SocketOfCalls:
    """A socket that takes everything, and notes how much came in each call."""

    def __init__(self) -> None:
        self.taken: list[int] = []

    def fileno(self) -> int:
        return -1

    def recv_into(self, _buffer: Any) -> int:
        raise BlockingIOError

    def send(self, data: Any, _flags: int = 0) -> int:
        self.taken.append(len(data))
        return len(data)

    def sendmsg(self, chunks: list[Any], _ancillary: Any, _flags: int) -> int:
        self.taken.append(sum(map(len, chunks)))
        return self.taken[-1]


def test_no_more_of_small_pieces_of_files_is_read_than_a_socket_is_likely_to_take(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log"
    path.write_bytes(bytes(8_000))
    file = LogFile(str(path), os.O_RDONLY)
    sock: Any = SocketOfCalls()
    transport = PlainTransport(sock)
    parts = deque[Any](part for _ in range(200) for part in (b"head", FileSlice(file, 0, 8_000)))
    while parts:
        sent = transport.send_parts(parts, 0)
        while parts and sent >= len(parts[0]):
            sent -= len(parts.popleft())
        assert sent == 0
        if parts and not isinstance(parts[0], bytes):
            parts.popleft()  # The connection sends it from the file.
    assert len(sock.taken) > 1
    assert max(sock.taken) < 150_000
