"""Questions to other brokers over real sockets: pairing, order, bounds and bad answers."""

import asyncio
import functools
import gc
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from tests.support.waiting import can_be_read

from penstock.net.outgoing import TcpPeers
from penstock.net.peers import PeerUnreachable
from penstock.net.tls_transport import TlsTransport
from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.headers import decode_request_header, encode_response_header
from penstock.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter
Serve = Callable[[Reader, Writer], Awaitable[None]]
LONG_S = 60.0


def in_a_loop(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: object, **named: object) -> None:
        asyncio.run(test(*args, **named))

    return run


class _Server:
    """A peer that answers as the test says; counts the connections it got."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self.connections = 0
        self.port = 0

    async def __aenter__(self) -> "_Server":
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _accepted(self, reader: Reader, writer: Writer) -> None:
        self.connections += 1
        try:
            await self._serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def peers(self, **options: int) -> TcpPeers:
        return TcpPeers(lambda _id: ("127.0.0.1", self.port), client_id="test", **options)


async def _request(reader: Reader) -> tuple[int, int, int]:
    """Key, version and correlation id of the next request."""
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    header, _ = decode_request_header(memoryview(await reader.readexactly(size)))
    return header.api_key, header.api_version, header.correlation_id


def _frame(key: int, version: int, correlation_id: int, response: Response) -> bytes:
    body = encode_response_header(key, version, correlation_id) + response.encode(version)
    return struct.pack(">i", len(body)) + body


async def echo_ids(reader: Reader, writer: Writer) -> None:
    """Answers every heartbeat with its correlation id as the throttle time."""
    while True:
        key, version, number = await _request(reader)
        writer.write(_frame(key, version, number, HeartbeatResponse(throttle_time_ms=number)))


def _beat() -> Request:
    return HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def _throttle(answer: Response) -> int:
    assert isinstance(answer, HeartbeatResponse)
    return answer.throttle_time_ms


@in_a_loop
async def test_questions_of_one_channel_share_a_connection_and_get_their_own_answers() -> None:
    async with _Server(echo_ids) as server:
        peers = server.peers()
        answers = await asyncio.gather(
            *(peers.ask(1, _beat(), timeout_s=LONG_S) for _ in range(50))
        )
        assert [_throttle(answer) for answer in answers] == list(range(1, 51))
        assert server.connections == 1
        peers.close()


@in_a_loop
async def test_channels_and_brokers_have_connections_of_their_own() -> None:
    async with _Server(echo_ids) as server:
        peers = server.peers()
        for broker_id, channel in ((1, "control"), (1, "fetch-0"), (2, "control")):
            await peers.ask(broker_id, _beat(), timeout_s=LONG_S, channel=channel)
        assert server.connections == 3
        peers.close()


@in_a_loop
async def test_a_large_answer_arrives_whole_and_may_be_kept() -> None:
    blocks = [bytes([number]) * 3_000_000 for number in range(4)]

    async def serve(reader: Reader, writer: Writer) -> None:
        for block in blocks:
            key, version, number = await _request(reader)
            data = PartitionData(partition_index=0, records=block)
            topics = [FetchableTopicResponse(partitions=[data])]
            writer.write(_frame(key, version, number, FetchResponse(responses=topics)))
            await writer.drain()

    async with _Server(serve) as server:
        peers = server.peers()
        kept = []
        for _ in blocks:
            answer = await peers.ask(1, FetchRequest(), timeout_s=LONG_S, channel="fetch-0")
            assert isinstance(answer, FetchResponse)
            kept.append(answer.responses[0].partitions[0].records)
        assert all(isinstance(records, memoryview) for records in kept)
        assert [bytes(records) for records in kept] == blocks
        peers.close()


@in_a_loop
async def test_memory_of_an_answer_nobody_keeps_is_used_again() -> None:
    async def serve(reader: Reader, writer: Writer) -> None:
        while True:
            key, version, number = await _request(reader)
            data = PartitionData(partition_index=0, records=b"x" * 100_000)
            topics = [FetchableTopicResponse(partitions=[data])]
            writer.write(_frame(key, version, number, FetchResponse(responses=topics)))

    async with _Server(serve) as server:
        peers = server.peers()
        buffers = set()
        for _ in range(5):
            answer = await peers.ask(1, FetchRequest(), timeout_s=LONG_S)
            assert isinstance(answer, FetchResponse)
            buffers.add(id(answer.responses[0].partitions[0].records.obj))
            del answer
            gc.collect()
        assert len(buffers) == 1
        peers.close()


@in_a_loop
async def test_nobody_listening_is_told_apart_from_silence() -> None:
    async with _Server(echo_ids) as server:
        peers = server.peers()
    with pytest.raises(PeerUnreachable) as refused:
        await peers.ask(1, _beat(), timeout_s=LONG_S)
    assert refused.value.is_refused and not refused.value.was_sent


@in_a_loop
async def test_a_late_answer_is_never_taken_for_anothers() -> None:
    asked = asyncio.Event()

    async def serve(reader: Reader, writer: Writer) -> None:
        key, version, number = await _request(reader)
        if not asked.is_set():  # The first connection answers only after its time.
            asked.set()
            await reader.read()
            return
        writer.write(_frame(key, version, number, HeartbeatResponse(throttle_time_ms=77)))
        await reader.read()

    async with _Server(serve) as server:
        peers = server.peers()
        with pytest.raises(PeerUnreachable, match="did not answer within") as silence:
            await peers.ask(1, _beat(), timeout_s=1.0)  # Time enough to connect.
        assert not silence.value.is_refused
        assert _throttle(await peers.ask(1, _beat(), timeout_s=LONG_S)) == 77
        assert server.connections == 2
        peers.close()


@in_a_loop
async def test_a_question_given_up_takes_its_connection_and_the_others_on_it_with_it() -> None:
    reached = asyncio.Event()

    async def serve(reader: Reader, _writer: Writer) -> None:
        await _request(reader)
        await _request(reader)
        reached.set()
        await reader.read()

    async with _Server(serve) as server:
        peers = server.peers()
        first = asyncio.create_task(peers.ask(1, _beat(), timeout_s=LONG_S))
        second = asyncio.create_task(peers.ask(1, _beat(), timeout_s=LONG_S))
        await reached.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        with pytest.raises(PeerUnreachable, match="given up"):
            await second


@in_a_loop
async def test_a_peer_that_hangs_up_is_unreachable_and_asked_anew_next_time() -> None:
    async def serve(reader: Reader, _writer: Writer) -> None:
        await _request(reader)

    async with _Server(serve) as server:
        peers = server.peers()
        for _ in range(2):
            with pytest.raises(PeerUnreachable, match=r"closed|lost") as gone:
                await peers.ask(1, _beat(), timeout_s=LONG_S)
            assert gone.value.was_sent and not gone.value.is_refused
        assert server.connections == 2


@in_a_loop
async def test_a_peer_that_is_gone_before_tls_begins_is_unreachable() -> None:
    def wrapped_late(sock: socket.socket, host: str) -> TlsTransport:
        reset, _ = listening.accept()
        reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        reset.close()
        can_be_read(sock, LONG_S)  # Until its reset is here.
        return TlsTransport(sock, ssl.create_default_context(), server_hostname=host)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        peers = TcpPeers(lambda _id: ("127.0.0.1", port), wrap=wrapped_late)
        for _ in range(2):
            with pytest.raises(PeerUnreachable, match="cannot be reached") as lost:
                await peers.ask(1, HeartbeatRequest(), timeout_s=LONG_S)
            assert not lost.value.is_refused and not lost.value.was_sent
        peers.close()


@in_a_loop
async def test_a_forgotten_broker_answers_no_more() -> None:
    reached = asyncio.Event()

    async def serve(reader: Reader, _writer: Writer) -> None:
        await _request(reader)
        reached.set()
        await reader.read()

    async with _Server(serve) as server:
        peers = server.peers()
        question = asyncio.create_task(peers.ask(1, _beat(), timeout_s=LONG_S))
        await reached.wait()
        peers.forget(1)
        with pytest.raises(PeerUnreachable, match="not there any more"):
            await question


@pytest.mark.parametrize(
    "answer",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 5_000_001),
        struct.pack(">ii", 4, 999),  # Another question's number.
        struct.pack(">i", 3) + b"abc",
        _frame(ApiKey.HEARTBEAT, 4, 1, HeartbeatResponse())[:-1].replace(
            struct.pack(">i", 12), struct.pack(">i", 11), 1
        ),
    ],
    ids=["negative size", "too large", "wrong number", "no header", "cut off"],
)
@in_a_loop
async def test_nonsense_ends_the_connection(answer: bytes) -> None:
    async def serve(reader: Reader, writer: Writer) -> None:
        await _request(reader)
        writer.write(answer)
        await reader.read()

    async with _Server(serve) as server:
        peers = server.peers(frame_bytes_max=5_000_000)
        with pytest.raises(PeerUnreachable, match="nonsense"):
            await peers.ask(1, _beat(), timeout_s=LONG_S)


@in_a_loop
async def test_an_unknown_broker_is_unreachable() -> None:
    peers = TcpPeers(lambda _id: None)
    with pytest.raises(PeerUnreachable, match="nobody knows where broker 9 is"):
        await peers.ask(9, _beat(), timeout_s=LONG_S)


@in_a_loop
async def test_a_question_larger_than_the_sockets_buffers_arrives() -> None:
    async with _Server(echo_ids) as server:
        peers = server.peers()
        long = HeartbeatRequest(group_id="g" * 30_000_000, generation_id=1, member_id="m")
        assert _throttle(await peers.ask(1, long, timeout_s=LONG_S, version=4)) == 1
        peers.close()


@in_a_loop
async def test_a_receive_buffer_is_as_large_as_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []
    real = socket.socket.setsockopt

    class Noting(socket.socket):
        def setsockopt(self, *options: Any) -> None:
            asked.append(options)
            real(self, *options)

    monkeypatch.setattr("penstock.net.outgoing.socket.socket", Noting)
    async with _Server(echo_ids) as server:
        peers = server.peers(receive_buffer_bytes=50_000)
        await peers.ask(1, _beat(), timeout_s=LONG_S)
        peers.close()
    assert (socket.SOL_SOCKET, socket.SO_RCVBUF, 50_000) in asked
