"""HTTP/2 over real sockets: curl and httpx are answered, and nobody gets more than his share."""

import asyncio
import contextlib
import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from tests.support.certificates import make_certificates
from tests.support.http import ServiceThread, running_service
from tests.support.http2 import RawHttp2
from tests.support.waiting import eventually

from penstock.http.bodies import json_answer, read_json
from penstock.http.handlers import (
    Receive,
    Request,
    Response,
    Route,
    Scope,
    Send,
    StreamingResponse,
)
from penstock.http.http2.connection import Http2Connection
from penstock.http.server import Limits
from penstock.http.service import Served, service

SERVED = Served(offered=["application/json"], body_bytes_max=8 << 20, body_timeout_s=30)
PIECE = b"x" * 10_000


class Endless:
    """An answer that never ends, and what became of it."""

    def __init__(self) -> None:
        self.sent = 0
        self.has_ended = threading.Event()

    async def answer(self, request: Request) -> Response:
        return StreamingResponse(self._pieces())

    async def _pieces(self) -> AsyncIterator[bytes]:
        try:
            while True:
                yield PIECE
                self.sent += len(PIECE)
                await asyncio.sleep(0)
        finally:
            self.has_ended.set()


async def echo(request: Request) -> Response:
    return json_answer(request, await read_json(request), status=201)


class Shouting(Response):
    """Answers a body while it comes."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        async for piece in self._request.stream():
            await send({"type": "http.response.body", "body": piece.upper(), "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def shout(request: Request) -> Response:
    return Shouting(request)


async def large(request: Request) -> Response:
    return Response(b"y" * 5_000_000)


async def defect(request: Request) -> Response:
    raise ValueError("the secret of the house")


async def shape(request: Request) -> Response:
    seen = request.scope
    return json_answer(
        request,
        {
            "version": seen["http_version"],
            "scheme": seen["scheme"],
            "query": seen["query_string"].decode(),
            "host": request.headers["host"],
        },
    )


@pytest.fixture
def endless() -> Endless:
    return Endless()


@pytest.fixture
def served(endless: Endless) -> Iterator[ServiceThread]:
    with running_service(application(endless), with_http2=True, limits=Limits(stop_s=2)) as running:
        yield running


def application(endless: Endless) -> Any:
    routes = [
        Route("/echo", echo, methods=["POST"]),
        Route("/shout", shout, methods=["POST"]),
        Route("/large", large),
        Route("/defect", defect),
        Route("/shape", shape),
        Route("/endless", endless.answer),
    ]
    return service(routes, SERVED)


def curl(*words: str) -> str:
    """What curl prints, and the version and status it saw."""
    if "HTTP2" not in subprocess.run(["curl", "-V"], capture_output=True, text=True).stdout:
        pytest.skip("this curl has no HTTP/2")
    done = subprocess.run(
        ["curl", "-sS", "--max-time", "60", "-w", "\n%{http_version} %{http_code}", *words],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@needs_curl
def test_curl_speaks_http2_in_cleartext(served: ServiceThread) -> None:
    url = f"http://127.0.0.1:{served.port}"
    document, _, seen = curl("--http2-prior-knowledge", f"{url}/shape?a=b%20c").rpartition("\n")
    host = f"127.0.0.1:{served.port}"
    shown = {"version": "2", "scheme": "http", "host": host, "query": "a=b%20c"}
    assert (json.loads(document), seen) == (shown, "2 200")
    echoed = curl("--http2-prior-knowledge", f"{url}/echo", "--json", '{"a": [1]}')
    assert echoed == '{"a":[1]}\n2 201'
    assert curl("--http2-prior-knowledge", f"{url}/none").endswith("\n2 404")
    refused = curl("--http2-prior-knowledge", f"{url}/defect")
    assert refused.endswith("\n2 500") and "secret" not in refused
    head = curl("--http2-prior-knowledge", "-I", f"{url}/large")
    assert "content-length: 5000000" in head and head.endswith("\n2 200")


@needs_curl
def test_curl_with_http1_is_answered_on_the_same_port(served: ServiceThread) -> None:
    url = f"http://127.0.0.1:{served.port}"
    for word in ("--http1.1", "--http2"):  # The second one offers to upgrade, and need not.
        assert curl(word, f"{url}/echo", "--json", "[]") == "[]\n1.1 201"


@needs_curl
def test_with_tls_the_version_is_agreed_upon(endless: Endless, tmp_path: Path) -> None:
    files = make_certificates(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.server, files.server_key)
    with running_service(application(endless), tls=context, with_http2=True) as running:
        url = f"https://127.0.0.1:{running.port}/shape"
        trusted = ("--cacert", str(files.ca))
        document, _, seen = curl("--http2", *trusted, url).rpartition("\n")
        assert (json.loads(document)["scheme"], seen) == ("https", "2 200")
        assert curl("--http1.1", *trusted, url).endswith("\n1.1 200")


@needs_curl
def test_bodies_larger_than_any_window_go_both_ways(served: ServiceThread, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{served.port}"
    got = curl("--http2-prior-knowledge", f"{url}/large")
    assert got == "y" * 5_000_000 + "\n2 200"
    (tmp_path / "body").write_text(json.dumps("z" * 3_000_000))
    sent = curl("--http2-prior-knowledge", f"{url}/echo", "--json", f"@{tmp_path / 'body'}")
    assert sent == json.dumps("z" * 3_000_000) + "\n2 201"
    (tmp_path / "body").write_text("z" * (9 << 20))
    refused = curl("--http2-prior-knowledge", f"{url}/echo", "--json", f"@{tmp_path / 'body'}")
    assert refused.endswith("\n2 413")


def test_other_requests_are_answered_while_one_has_no_end(
    served: ServiceThread, endless: Endless
) -> None:
    base = f"http://127.0.0.1:{served.port}"
    with (
        httpx.Client(http1=False, http2=True, base_url=base, timeout=30) as client,
        client.stream("GET", "/endless") as answer,
    ):
        pieces = answer.iter_raw()
        assert next(pieces).startswith(b"x")
        for _ in range(3):
            other = client.post("/echo", json={"a": 1})
            assert (other.http_version, other.json()) == ("HTTP/2", {"a": 1})
        assert next(pieces).startswith(b"x")
    assert endless.has_ended.wait(30)


def test_rows_that_come_one_by_one_are_answered_one_by_one(served: ServiceThread) -> None:
    with RawHttp2(served.port) as client:
        stream = client.ask("/shout", "POST", ends=False)
        client.until(ResponseReceived)
        for word in (b"one", b"two"):
            client.h2.send_data(stream, word)
            client.flush()
            assert client.until(DataReceived).data == word.upper()
        client.h2.end_stream(stream)
        client.flush()
        client.until(StreamEnded)


def test_a_client_that_takes_nothing_holds_up_its_own_answer(
    served: ServiceThread, endless: Endless
) -> None:
    with RawHttp2(served.port) as client:
        client.ask("/endless")
        client.until(ResponseReceived)
        eventually(lambda: endless.sent >= 60_000)
        second = client.ask("/shape")  # The window of the connection is used up by the first.
        client.h2.increment_flow_control_window(10_000)
        client.flush()
        while client.until(ResponseReceived).stream_id != second:
            pass
        assert endless.sent <= 65_535 + 10_000
        client.h2.reset_stream(1)
        client.flush()
        assert endless.has_ended.wait(30)


def test_a_client_that_goes_is_noticed(served: ServiceThread, endless: Endless) -> None:
    with RawHttp2(served.port) as client:
        client.ask("/endless")
        client.until(DataReceived)
    assert endless.has_ended.wait(30)


def test_a_client_that_only_asks_and_takes_back_is_sent_away(served: ServiceThread) -> None:
    with RawHttp2(served.port) as client:
        try:
            for _ in range(3 * Http2Connection.resets_max):
                stream = client.ask("/endless")
                client.h2.reset_stream(stream)
                client.flush()
        except OSError:
            pass  # It was sent away already.
        ended = client.until(ConnectionTerminated)
        assert ended.error_code == ErrorCodes.ENHANCE_YOUR_CALM


@pytest.mark.parametrize(
    "junk",
    [
        b"\x00" * 500,
        b"GET / HTTP/1.1\r\n\r\n" * 50_000,  # A frame as long as "GET" says.
        b"\xff\xff\xff\x01\x04\x00\x00\x00\x01" + b"x" * 900_000,  # Longer than any may be.
        b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00",  # A window of nothing.
    ],
)
def test_what_is_no_frame_ends_the_connection(served: ServiceThread, junk: bytes) -> None:
    with RawHttp2(served.port) as client:
        with contextlib.suppress(OSError):  # It may close before it has all.
            client.socket.sendall(junk)
        client.until_closed()
    with RawHttp2(served.port) as client:
        client.ask("/shape")
        assert client.until(ResponseReceived)


def test_a_head_without_end_is_cut_off(served: ServiceThread) -> None:
    with RawHttp2(served.port) as client:
        head = [(":method", "GET"), (":path", "/"), (":scheme", "http"), (":authority", "x")]
        client.h2.send_headers(1, [*head, *((f"h{n}", "v" * 1000) for n in range(100))])
        client.flush()
        client.until(ConnectionTerminated)


def test_a_preface_that_does_not_come_is_not_waited_for_without_end(
    served: ServiceThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.http.http2.choosing import ChosenConnection

    monkeypatch.setattr(ChosenConnection, "first_bytes_timeout_s", 0.2)
    with served.connect() as connection:
        connection.sendall(b"PRI * HT")
        assert connection.recv(100) == b""


def test_a_server_that_stops_says_good_bye(endless: Endless) -> None:
    with running_service(application(endless), with_http2=True, limits=Limits(stop_s=1)) as running:
        with RawHttp2(running.port) as idle, RawHttp2(running.port) as busy:
            idle.ask("/shape")
            idle.until(StreamEnded)
            busy.ask("/endless")
            busy.until(ResponseReceived)
            running.ask_to_stop()
            idle.until(ConnectionTerminated)
            busy.until(StreamReset)
            running.wait()
        assert endless.has_ended.is_set()
