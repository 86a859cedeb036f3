"""TLS below connections of both directions, with real sockets and Python's own TLS as the peer."""

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.certificates import Certificates, make_certificates
from tests.unit.net.test_listener import Peer, Slice, connected, echo, framed, serving
from tests.unit.net.test_transport import ask_many, serve_echo

from penstock.net.connection import IncomingConnection
from penstock.net.listener import Listener
from penstock.net.outgoing import TcpPeers
from penstock.net.session import Session
from penstock.net.tls_transport import TlsTransport

BODIES = [b"x", bytes(40_000), b"y" * 70_000, *[b"%d" % n for n in range(100)], bytes(300_000)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module", params=["TLSv1_2", "TLSv1_3"])
def contexts(world: Certificates, request: Any) -> Iterator[tuple[Any, Any]]:
    """The server's, and the client's that trusts it."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(world.server, world.server_key)
    client = ssl.create_default_context(cafile=str(world.ca))
    client.maximum_version = ssl.TLSVersion[request.param]
    yield server, client


def wrapped(context: ssl.SSLContext) -> Callable[[socket.socket, Session], TlsTransport]:
    return lambda sock, _session: TlsTransport(sock, context)


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

    wrap = wrapped(server)
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

    serving(mute_often, scenario, wrap=wrapped(server))


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

    serving(answer_later, scenario, wrap=wrapped(server))


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

        wrap = wrapped(server)
        serving(dispatch, scenario, send_buffer_bytes=16_384, wrap=wrap)


def test_questions_to_other_brokers_go_through_tls_from_the_first_byte(contexts: Any) -> None:
    server, client = contexts

    async def run() -> None:
        listening = await asyncio.start_server(serve_echo, "127.0.0.1", 0, ssl=server)
        port = listening.sockets[0].getsockname()[1]

        def wrap(sock: socket.socket, host: str) -> TlsTransport:
            return TlsTransport(sock, client, server_hostname=host)

        peers = TcpPeers(lambda _id: ("127.0.0.1", port), wrap=wrap)
        try:
            assert await ask_many(peers) == [1, 2, 3, 4, 5]
            assert await ask_many(peers) == [6, 7, 8, 9, 10]
        finally:
            peers.close()
            listening.close()

    asyncio.run(run())


def test_a_plaintext_client_is_told_of_in_one_line(
    contexts: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server, _client = contexts

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        peer.send(framed(b"plain"))
        assert await peer.is_closed()
        assert not listener.connections

    with caplog.at_level(logging.INFO):
        serving(echo, scenario, wrap=wrapped(server))
    (line,) = [record.getMessage() for record in caplog.records if "kafka" in record.name]
    assert "does not speak TLS" in line


def test_somebody_who_only_looks_whether_the_port_is_open_is_not_worth_a_line(
    contexts: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server, _client = contexts

    async def scenario(listener: Listener) -> None:
        peer = await connected(listener)
        peer.writer.close()
        while listener.connections or not peer.reader.at_eof():
            await asyncio.sleep(0.001)

    with caplog.at_level(logging.INFO):
        serving(echo, scenario, wrap=wrapped(server))
    assert not [record for record in caplog.records if "kafka" in record.name]


def _hello(context: ssl.SSLContext) -> bytes:
    """What a client says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1").do_handshake()
    return outgoing.read()


def test_a_handshake_cut_at_any_byte_costs_its_own_connection_alone(contexts: Any) -> None:
    server, client = contexts
    hello = _hello(client)

    async def scenario(listener: Listener) -> None:
        good = await sealed_peer(listener, client)
        for length in range(1, len(hello)):
            cut = await connected(listener)
            cut.send(hello[:length])
            await cut.writer.drain()
            cut.writer.close()
        good.send(framed(b"still here"))
        assert await good.answer() == b"still here"
        while len(listener.connections) > 1:
            await asyncio.sleep(0.001)

    serving(echo, scenario, connections_max=1000, per_ip_max=1000, wrap=wrapped(server))


def test_a_damaged_handshake_is_closed(contexts: Any) -> None:
    server, client = contexts
    hello = bytearray(_hello(client))

    async def scenario(listener: Listener) -> None:
        for at in range(5, len(hello), 7):
            peer = await connected(listener)
            peer.send(bytes(hello[:at]) + b"\xff" + bytes(hello[at + 1 :]))
            peer.writer.write_eof()
            with contextlib.suppress(ConnectionError):
                await peer.reader.read()
        while listener.connections:
            await asyncio.sleep(0.001)

    serving(echo, scenario, connections_max=1000, per_ip_max=1000, wrap=wrapped(server))


class Pump:
    """A TLS client that sends the bytes of its records one by one."""

    def __init__(self, peer: Peer, context: ssl.SSLContext) -> None:
        self.peer = peer
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="127.0.0.1")

    async def call(self, act: Callable[..., Any], *arguments: Any) -> Any:
        while True:
            try:
                result = act(*arguments)
            except ssl.SSLWantReadError:
                await self.flush()
                self.incoming.write(await self.peer.reader.read(1))
                continue
            await self.flush()
            return result

    async def flush(self) -> None:
        for byte in self.outgoing.read():
            self.peer.send(bytes([byte]))
            await self.peer.writer.drain()
            await asyncio.sleep(0)


def test_a_peer_may_send_and_take_byte_by_byte(contexts: Any) -> None:
    server, client = contexts

    async def scenario(listener: Listener) -> None:
        pump = Pump(await connected(listener), client)
        await pump.call(pump.tls.do_handshake)
        for body in (b"a", b"b" * 300):
            await pump.call(pump.tls.write, framed(body))
            answer = b""
            while len(answer) < len(body) + 4:
                answer += await pump.call(pump.tls.read, 4096)
            assert answer == framed(body)

    serving(echo, scenario, wrap=wrapped(server))


def test_whoever_does_not_finish_the_handshake_is_closed_in_time(
    contexts: Any, caplog: pytest.LogCaptureFixture
) -> None:
    server, client = contexts

    async def scenario(listener: Listener) -> None:
        good = await sealed_peer(listener, client)
        slow = await connected(listener)
        slow.send(_hello(client)[:20])
        assert await slow.is_closed()
        good.send(framed(b"good"))
        assert await good.answer() == b"good"

    with caplog.at_level(logging.INFO):
        serving(echo, scenario, wrap=wrapped(server), handshake_s_max=1.0)
    assert "no TLS handshake within" in caplog.text


def test_a_peer_that_takes_nothing_gets_all_of_it_in_the_end(contexts: Any) -> None:
    """OpenSSL must be offered the same bytes after it balked, also where a file follows."""
    server, client = contexts
    content = os.urandom(2_000_000)
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()

        def dispatch(_connection: IncomingConnection, _frame: memoryview) -> list[Any]:
            lead = len(content) * 2 + 300_000
            halves = [Slice(file, 0, 1_000_000), Slice(file, 1_000_000, 1_000_000)]
            return [lead.to_bytes(4, "big"), *halves, bytes(300_000), Slice(file, 0, 2_000_000)]

        async def scenario(listener: Listener) -> None:
            peer = await sealed_peer(listener, client)
            for _ in range(3):
                peer.send(framed(b"go"))
            await asyncio.sleep(0.05)  # The buffers fill up meanwhile, or they do not: both hold.
            for _ in range(3):
                assert await peer.answer() == content + bytes(300_000) + content

        serving(dispatch, scenario, send_buffer_bytes=16_384, wrap=wrapped(server))


def test_a_file_that_was_cut_short_ends_the_connection(contexts: Any) -> None:
    server, client = contexts
    with tempfile.TemporaryFile() as file:
        file.write(bytes(1000))
        file.flush()

        def dispatch(_connection: IncomingConnection, _frame: memoryview) -> list[Any]:
            return [(200_000).to_bytes(4, "big"), Slice(file, 0, 200_000)]

        async def scenario(listener: Listener) -> None:
            peer = await sealed_peer(listener, client)
            peer.send(framed(b"go"))
            assert len(await peer.reader.read(-1)) == 1004
            assert not listener.connections

        serving(dispatch, scenario, wrap=wrapped(server))


def test_a_certificate_is_looked_at_once_the_handshake_is_over(
    world: Certificates, contexts: Any
) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(world.server, world.server_key)
    server.load_verify_locations(world.ca)
    server.verify_mode = ssl.CERT_REQUIRED
    client = ssl.create_default_context(cafile=str(world.ca))
    client.load_cert_chain(world.client, world.client_key)
    shown: list[Any] = []

    async def scenario(listener: Listener) -> None:
        peer = await sealed_peer(listener, client)
        peer.send(framed(b"x"))
        assert await peer.answer() == b"x"
        stranger = await connected(listener)
        stranger.send(_hello(contexts[1]))
        stranger.writer.write_eof()
        await stranger.reader.read()

    def wrap(sock: socket.socket, _session: Session) -> TlsTransport:
        return TlsTransport(sock, server, on_shaken=lambda tls: shown.append(tls.getpeercert()))

    serving(echo, scenario, wrap=wrap)
    (certificate,) = shown
    assert certificate["subject"] == ((("commonName", "client"),),)
