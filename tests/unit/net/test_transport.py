"""Connections in both directions over transports that are not a plain socket."""

import asyncio
import contextlib
import os
import socket
import ssl
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.certificates import make_certificates
from tests.unit.net.sealed import Balky, Sealed
from tests.unit.net.test_listener import Peer, Slice, connected, echo, framed, serving
from tests.unit.net.test_outgoing import LONG_S, Reader, Writer, echo_ids

from penstock.net.connection import IncomingConnection
from penstock.net.listener import Listener
from penstock.net.outgoing import TcpPeers
from penstock.protocol.apis import Request
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

BODIES = [b"x", bytes(40_000), b"y" * 70_000, *[b"%d" % n for n in range(100)], bytes(300_000)]


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    """The server's, and the client's that trusts it."""
    directory: Path = tmp_path_factory.mktemp("certificates")
    made = make_certificates(directory)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(made.server, made.server_key)
    yield server, ssl.create_default_context(cafile=str(made.ca))


async def sealed_peer(listener: Listener, context: ssl.SSLContext) -> Peer:
    return Peer(*await asyncio.open_connection("127.0.0.1", listener.port, ssl=context))


@pytest.mark.parametrize("in_flight_max", [1, 8])
def test_frames_of_all_sizes_are_answered_through_tls(contexts: Any, in_flight_max: int) -> None:
    server, client = contexts

    async def scenario(listener: Listener) -> None:
        peer = await sealed_peer(listener, client)
        for body in BODIES:
            peer.send(framed(body))
        assert [await peer.answer() for _ in BODIES] == BODIES

    wrap = partial(Sealed, context=server, is_server=True)
    serving(echo, scenario, in_flight_max=in_flight_max, wrap=wrap)


def test_what_was_decrypted_while_a_peer_was_muted_is_read_after(contexts: Any) -> None:
    server, client = contexts

    def mute_often(connection: IncomingConnection, frame: memoryview) -> list[Any]:
        connection.mute_for(0.001)
        return echo(connection, frame)

    async def scenario(listener: Listener) -> None:
        peer = await sealed_peer(listener, client)
        # One record of TLS: its first frame leaves the rest behind in the transport.
        peer.send(b"".join(framed(b"%d" % n) for n in range(20)))
        assert [await peer.answer() for _ in range(20)] == [b"%d" % n for n in range(20)]
        peer.send(framed(bytes(100_000)) + framed(b"last"))
        assert [len(await peer.answer()) for _ in range(2)] == [100_000, 4]

    serving(mute_often, scenario, wrap=partial(Sealed, context=server, is_server=True))


def test_a_slow_handler_finds_the_next_frame_in_the_transport(contexts: Any) -> None:
    server, client = contexts

    def answer_later(connection: IncomingConnection, frame: memoryview) -> Any:
        body = bytes(frame)

        async def later() -> list[Any]:
            await asyncio.sleep(0)
            return [framed(body)]

        connection.hold()
        return later()

    async def scenario(listener: Listener) -> None:
        peer = await sealed_peer(listener, client)
        large = [bytes(100_000), b"between", bytes(66_000), b"end"]
        peer.send(b"".join(map(framed, large)))
        assert [await peer.answer() for _ in large] == large

    serving(answer_later, scenario, wrap=partial(Sealed, context=server, is_server=True))


def test_file_parts_go_through_tls_as_well(contexts: Any) -> None:
    server, client = contexts
    content = os.urandom(3_000_000)
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()

        def dispatch(_connection: IncomingConnection, _frame: memoryview) -> list[Any]:
            size = len(content) + 2
            return [size.to_bytes(4, "big"), b"<", Slice(file, 0, len(content)), b">"]

        async def scenario(listener: Listener) -> None:
            peer = await sealed_peer(listener, client)
            peer.send(framed(b"a"))
            assert await peer.answer() == b"<" + content + b">"

        wrap = partial(Sealed, context=server, is_server=True)
        serving(dispatch, scenario, send_buffer_bytes=16_384, wrap=wrap)


def test_a_peer_that_does_not_speak_tls_is_closed(contexts: Any) -> None:
    server, _client = contexts

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        peer.send(framed(b"plain"))
        with contextlib.suppress(ConnectionError):
            await peer.reader.read()  # Until the end; the alert that TLS sends may come first.
        assert not listener.connections

    serving(echo, scenario, wrap=partial(Sealed, context=server, is_server=True))


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


async def _ask_many(peers: TcpPeers) -> list[int]:
    sizes = [1, 10, 30_000, 400_000, 5]
    asked = (peers.ask(1, _beat(size), timeout_s=LONG_S, version=4) for size in sizes)
    answers = await asyncio.gather(*asked)
    return [answer.throttle_time_ms for answer in answers if isinstance(answer, HeartbeatResponse)]


def test_questions_to_other_brokers_go_through_tls_from_the_first_byte(contexts: Any) -> None:
    server, client = contexts

    async def run() -> None:
        listening = await asyncio.start_server(_serve_echo, "127.0.0.1", 0, ssl=server)
        port = listening.sockets[0].getsockname()[1]

        def wrap(sock: socket.socket) -> Sealed:
            client.check_hostname = False
            return Sealed(sock, client, is_server=False)

        peers = TcpPeers(lambda _id: ("127.0.0.1", port), wrap=wrap)
        try:
            assert await _ask_many(peers) == [1, 2, 3, 4, 5]
            assert await _ask_many(peers) == [6, 7, 8, 9, 10]
        finally:
            peers.close()
            listening.close()

    asyncio.run(run())


async def _serve_echo(reader: Reader, writer: Writer) -> None:
    try:
        await echo_ids(reader, writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def test_questions_are_asked_through_a_transport_that_balks() -> None:
    async def run() -> None:
        listening = await asyncio.start_server(_serve_echo, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]

        def wrap(sock: socket.socket) -> Balky:
            return Balky(sock, must_hear=False)

        peers = TcpPeers(lambda _id: ("127.0.0.1", port), wrap=wrap)
        try:
            assert await _ask_many(peers) == [1, 2, 3, 4, 5]
        finally:
            peers.close()
            listening.close()

    asyncio.run(run())
