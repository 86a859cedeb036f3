"""The HTTP stack over real sockets: answers, errors, bounds, and an end in good order."""

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.certificates import make_certificates
from tests.support.http import ServiceThread, running_service
from tests.support.waiting import eventually

from penstock.errors import ConfigError
from penstock.http.bodies import json_answer, read_json
from penstock.http.connection import BoundedConnection
from penstock.http.errors import HttpError
from penstock.http.handlers import Request, Response, Route, StreamingResponse
from penstock.http.health import Health
from penstock.http.server import Limits, listen
from penstock.http.service import Served, service

V1, JSON = "application/vnd.example.v1+json", "application/json"
SERVED = Served(offered=[V1, JSON], body_bytes_max=1000, body_timeout_s=30)


async def subject(request: Request) -> Response:
    return json_answer(request, {"subject": request.path_params["subject"]})


async def echo(request: Request) -> Response:
    return json_answer(request, await read_json(request), status=201)


async def missing(request: Request) -> Response:
    raise HttpError("Subject 'é' not found.", status=404, code=40401)


async def defect(request: Request) -> Response:
    raise ValueError("the secret of the house")


async def own_error(request: Request) -> Response:
    raise KeyError("orders")


async def breaking_off(request: Request) -> Response:
    async def lines() -> AsyncIterator[bytes]:
        yield b"one\n"
        raise ValueError("no more")

    return StreamingResponse(lines())


ROUTES = [
    Route("/subjects/{subject:segment}/versions", subject),
    Route("/echo", echo, methods=["POST"]),
    Route("/missing", missing),
    Route("/defect", defect),
    Route("/own", own_error),
    Route("/breaking-off", breaking_off),
]


def translate(error: Exception) -> HttpError | None:
    return HttpError(f"no {error.args[0]}", status=422) if isinstance(error, KeyError) else None


@pytest.fixture(scope="module")
def served() -> Iterator[ServiceThread]:
    with running_service(service(ROUTES, SERVED, translate=translate)) as running:
        yield running


def received(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    pieces = []
    try:
        while piece := connection.recv(65536):
            pieces.append(piece)
    except ConnectionResetError:
        pass  # It closed while we were still sending.
    return b"".join(pieces)


@pytest.mark.parametrize(
    ("path", "name"), [("orders-value", "orders-value"), ("a%2Fb%20c", "a/b c"), ("%C3%A9", "é")]
)
def test_an_encoded_slash_is_part_of_a_name(served: ServiceThread, path: str, name: str) -> None:
    answer = served.ask(f"/subjects/{path}/versions")
    assert (answer.status, answer.document) == (200, {"subject": name})


def test_the_client_chooses_among_the_media_types_offered(served: ServiceThread) -> None:
    path = "/subjects/s/versions"
    assert served.ask(path).headers["content-type"] == V1
    assert served.ask(path, headers={"accept": JSON}).headers["content-type"] == JSON
    refused = served.ask(path, headers={"accept": "text/html"})
    assert (refused.status, refused.headers["content-type"]) == (406, V1)
    assert V1 in refused.document["message"]


def test_a_body_is_read_and_answered(served: ServiceThread) -> None:
    answer = served.ask("/echo", method="POST", body='{"é": [1, null]}'.encode())
    assert (answer.status, answer.document) == (201, {"é": [1, None]})


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{broken", {}, 400),
        (b"\xff", {}, 400),
        (b"[" * 900, {}, 400),
        (b"{}", {"content-type": "text/plain"}, 415),
        (b"x" * 1001, {}, 413),
    ],
)
def test_a_body_that_cannot_be_taken_is_told(
    served: ServiceThread, body: bytes, headers: dict[str, str], status: int
) -> None:
    answer = served.ask("/echo", method="POST", body=body, headers=headers)
    assert (answer.status, answer.document["error_code"]) == (status, status)


@pytest.mark.parametrize("order", [1, -1])
def test_an_offer_to_upgrade_does_not_cost_a_request_its_body(
    served: ServiceThread, order: int
) -> None:
    """As Java's HttpClient asks unless it is told otherwise."""
    offer = [("connection", "Upgrade, HTTP2-Settings"), ("upgrade", "h2c"),
             ("http2-settings", "AAEAAEAAAAIAAAAAAAMAAAAA")][::order]  # fmt: skip
    answer = served.ask("/echo", method="POST", body=b'{"a": "h2c"}', headers=dict(offer))
    assert (answer.status, answer.document) == (201, {"a": "h2c"})


def test_a_body_without_a_length_is_bounded_as_well(served: ServiceThread) -> None:
    with served.connect() as connection:
        head = b"POST /echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        connection.sendall(head + b"400\r\n" + b"x" * 1024 + b"\r\n")
        answer = received(connection)  # It answers and closes, though the body has no end yet.
    assert answer.startswith(b"HTTP/1.1 413 ") and b"larger than 1000 bytes" in answer


def test_a_length_that_is_too_large_is_refused_before_the_body(served: ServiceThread) -> None:
    with served.connect() as connection:
        connection.sendall(b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n")
        assert received(connection).startswith(b"HTTP/1.1 413 ")


def test_errors_have_the_code_of_their_service(served: ServiceThread) -> None:
    answer = served.ask("/missing")
    assert answer.status == 404
    assert answer.document == {"error_code": 40401, "message": "Subject 'é' not found."}
    assert served.ask("/own").document == {"error_code": 422, "message": "no orders"}


def test_unknown_paths_and_methods_are_answered_in_the_same_form(served: ServiceThread) -> None:
    assert served.ask("/nowhere").document == {"error_code": 404, "message": "HTTP 404 Not Found"}
    answer = served.ask("/echo")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert answer.document["error_code"] == 405


def test_a_defect_is_logged_and_told_without_its_words(
    served: ServiceThread, caplog: pytest.LogCaptureFixture
) -> None:
    answer = served.ask("/defect")
    assert answer.document == {"error_code": 500, "message": "Internal Server Error"}
    assert "GET /defect failed" in caplog.text and "the secret of the house" in caplog.text


def test_an_answer_that_breaks_off_is_seen_to_be_incomplete(served: ServiceThread) -> None:
    with served.connect() as connection:
        connection.sendall(b"GET /breaking-off HTTP/1.1\r\nhost: x\r\n\r\n")
        answer = received(connection)
    assert b"one\n" in answer and not answer.endswith(b"0\r\n\r\n")


def test_a_service_may_write_its_errors_in_a_form_of_its_own() -> None:
    def document(error: HttpError) -> dict[str, Any]:
        return {"@type": "generic_error", "error_code": error.code, "message": str(error)}

    with running_service(service(ROUTES, SERVED, document=document)) as running:
        assert running.ask("/missing").document["@type"] == "generic_error"


def test_health_tells_what_fails_and_readiness_that_it_starts() -> None:
    health = Health(is_ready=False)
    with running_service(service([], SERVED, health=health)) as running:
        assert running.ask("/-/ready").status == 503
        health.is_ready = True
        assert running.ask("/-/ready").document == {"status": "ready"}
        assert running.ask("/-/health").document == {"status": "ok"}
        health.fail("reader", "no broker")
        answer = running.ask("/-/health")
        assert (answer.status, answer.document["problems"]) == (503, {"reader": "no broker"})
        health.recover("reader")
        assert running.ask("/-/health").status == 200


def test_a_head_without_end_is_cut_off(served: ServiceThread) -> None:
    with served.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\na: ")
        try:
            for _ in range(1000):
                connection.sendall(b"x" * 4096)
        except OSError:
            pass  # It closed while we were still sending.
        else:
            pytest.fail("four megabytes of a header were taken")


def test_what_is_no_http_is_answered_and_cut_off(served: ServiceThread) -> None:
    with served.connect() as connection:
        connection.sendall(b"\x00\x00\x00\x10 kafka, not http\r\n\r\n")
        assert received(connection).startswith(b"HTTP/1.1 400 ")
    assert served.ask("/-/ready").status == 200


def test_a_head_that_does_not_come_is_waited_for_no_longer_than_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(BoundedConnection, "head_timeout_s", 0.05)
    with running_service(service(ROUTES, SERVED)) as running:
        with running.connect() as silent:
            assert received(silent) == b""
        with running.connect() as slow:
            slow.sendall(b"GET /missing HTTP/1.1\r\nhost:")
            assert received(slow) == b""


def test_a_body_that_does_not_come_is_told_as_too_slow() -> None:
    limits = Served(offered=[JSON], body_timeout_s=0.05)
    with running_service(service(ROUTES, limits)) as running, running.connect() as slow:
        slow.sendall(b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{")
        assert received(slow).startswith(b"HTTP/1.1 408 ")


def test_stopping_lets_a_request_under_way_end_and_takes_no_new_ones() -> None:
    began, go_on = threading.Event(), threading.Event()

    async def slow(request: Request) -> Response:
        began.set()
        await asyncio.to_thread(go_on.wait, 30)
        return json_answer(request, {"done": True})

    with running_service(service([Route("/slow", slow)], SERVED)) as running:
        with running.connect() as under_way, running.connect() as idle:
            under_way.sendall(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n")
            assert began.wait(30)
            running.ask_to_stop()
            assert received(idle) == b""  # It had nothing to wait for.
            eventually(lambda: _is_refused(running), what="a closed door")
            go_on.set()
            answer = received(under_way)
        assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b'{"done":true}')
        running.wait()


def test_stopping_ends_what_does_not_end_by_itself() -> None:
    began, cancelled = threading.Event(), threading.Event()

    async def endless(request: Request) -> Response:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError("it never ends")

    app = service([Route("/endless", endless)], SERVED)
    with running_service(app, limits=Limits(stop_s=1)) as running, running.connect() as waiting:
        waiting.sendall(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n")
        assert began.wait(30)
        running.ask_to_stop()
        running.wait()
        assert cancelled.is_set()


def test_it_serves_tls_with_the_context_it_is_given(tmp_path: Path) -> None:
    world = make_certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(world.server, world.server_key)
    trusting = ssl.create_default_context(cafile=str(world.ca))
    with (
        running_service(service(ROUTES, SERVED), tls=context) as running,
        running.connect() as plain,
        trusting.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        secure.sendall(b"GET /missing HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert received(secure).startswith(b"HTTP/1.1 404 ")


def test_a_port_in_use_is_told_before_anything_starts() -> None:
    with (
        listen("127.0.0.1", 0) as taken,
        pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1:\d+: .*in use"),
    ):
        listen("127.0.0.1", taken.getsockname()[1])


def _is_refused(running: ServiceThread) -> bool:
    try:
        running.connect().close()
    except ConnectionRefusedError:
        return True
    return False


def test_no_part_of_an_answer_waits_for_the_one_before() -> None:
    with listen("127.0.0.1", 0) as listener:
        client = socket.create_connection(listener.getsockname(), timeout=60)
        listener.setblocking(True)
        accepted, _ = listener.accept()
        with client, accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
