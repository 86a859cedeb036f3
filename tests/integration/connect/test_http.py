"""HTTP connectors against a real server on the loopback, which fails in all ways it can."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from penstock.connect.connectors.http.sink import HttpSinkConnector
from penstock.connect.connectors.http.source import HttpSourceConnector
from penstock.connect.errors.kinds import ConnectError, DataError
from penstock.connect.testing import SinkRun, SourceRun
from penstock.connect.testing.checks import JSON


class Api(ThreadingHTTPServer):
    """Takes what is sent, serves a list in three ways, and answers as it is told to."""

    daemon_threads = True

    def __init__(self) -> None:
        self.taken: list[tuple[str, str, str]] = []  # Method, path, body.
        self.heads: list[dict[str, str]] = []
        self.answers: list[int | None] = []  # Statuses of the next requests; None: hang up.
        self.bad = b"poison"  # A body that holds it is refused.
        self.items: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Api
    protocol_version = "HTTP/1.1"

    def _take(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status = self.server.answers.pop(0) if self.server.answers else 200
        if status is None:
            self.close_connection = True
            return
        self.server.heads.append(dict(self.headers))
        if self.server.bad in body:
            status = 422
        if status < 300:
            self.server.taken.append((self.command, self.path, body.decode()))
        self._say(status, b'{"it":"is"}')

    do_POST = do_PUT = do_DELETE = _take  # noqa: N815

    def do_GET(self) -> None:
        status = self.server.answers.pop(0) if self.server.answers else 200
        if status is None:
            self.close_connection = True
            return
        parts = urlsplit(self.path)
        asked = {name: each[0] for name, each in parse_qs(parts.query).items()}
        found = json.dumps(self._answer(parts.path, asked)).encode()
        self._say(status, found if parts.path != "/html" else b"<html>")

    def _answer(self, path: str, asked: dict[str, str]) -> Any:
        items = self.server.items
        if path == "/count":
            return items[int(asked["from"]) :][:3]
        if path == "/chain":
            after = int(asked.get("after") or -1)
            return {"data": {"rows": [one for one in items if one["id"] > after][:3]}}
        page = int(asked.get("page") or 0)
        more = len(items) > (page + 1) * 3
        return {"rows": items[page * 3 :][:3], "next": page + 1 if more else None}

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def sink(api: Api, path: str = "/x", **more: str) -> dict[str, str]:
    return {"http.api.url": api.url + path, "retry.backoff.ms": "10", **more}


def test_a_record_is_a_request_with_its_key_in_the_url(api: Api) -> None:
    given = sink(api, "/${topic}/${key}", **{"behavior.on.null.values": "delete"})
    login = {"auth.type": "BASIC", "connection.user": "ann", "connection.password": "s:1"}
    with SinkRun(
        HttpSinkConnector, given | login | {"headers": "X-A:1|X-B: 2"}, converters=JSON
    ) as run:
        run.produce("t", b'{"n":1}', key=b'"a b"')
        run.produce("t", None, key=b'"gone"')
        run.deliver()
        run.commit()
        assert run.committed == {("t", 0): 2}
    assert api.taken == [("POST", "/t/a%20b", '{"n":1}'), ("DELETE", "/t/gone", "")]
    head = api.heads[0]
    assert (head["X-A"], head["X-B"], head["Content-Type"]) == ("1", "2", "application/json")
    assert base64.b64decode(head["Authorization"].split()[1]) == b"ann:s:1"


def test_records_go_in_batches_and_in_order(api: Api) -> None:
    given = sink(api, **{"batch.max.size": "2", "request.method": "PUT"})
    with SinkRun(HttpSinkConnector, given, converters=JSON) as run:
        for n in range(5):
            run.produce("t", str(n).encode())
        run.deliver()
    assert [body for _, _, body in api.taken] == ["[0,1]", "[2,3]", "[4]"]
    text = sink(
        api,
        **{
            "batch.max.size": "9",
            "request.body.format": "string",
            "batch.prefix": "<",
            "batch.separator": ";",
            "batch.suffix": ">",
        },
    )
    with SinkRun(HttpSinkConnector, text) as run:
        run.produce("t", b"a")
        run.produce("t", b"b")
        run.deliver()
    assert api.taken[-1] == ("POST", "/x", "<a;b>")


def test_what_may_pass_is_tried_again_without_sending_twice_what_was_taken(api: Api) -> None:
    with SinkRun(HttpSinkConnector, sink(api), converters=JSON) as run:
        for n in range(4):
            run.produce("t", str(n).encode())
        api.answers = [200, 503, None, 429, 200, 500]
        run.deliver()
        assert run.retries == 3  # A connection that was kept and is closed is made anew at once.
    assert [body for _, _, body in api.taken] == ["0", "1", "2", "3"]


def test_a_server_that_does_not_come_back_ends_the_task(api: Api) -> None:
    with SinkRun(HttpSinkConnector, sink(api, **{"max.retries": "2"}), converters=JSON) as run:
        run.produce("t", b"1")
        api.answers = [503] * 3
        with pytest.raises(ConnectError, match=r"Given up after 2 retries.*503"):
            run.deliver()
        assert run.committed == {}


def test_only_the_poisoned_record_of_a_batch_is_put_aside(api: Api) -> None:
    given = sink(api, **{"batch.max.size": "3", "errors.tolerance": "all"})
    with SinkRun(HttpSinkConnector, given, converters=JSON) as run:
        for value in (b'"a"', b'"poison"', b'"b"'):
            run.produce("t", value)
        api.answers = [200, 200, 503]  # The batch, its parts, one of them later.
        run.deliver()
        assert [one.offset for one, _ in run.dead] == [1]
    assert [body for _, _, body in api.taken] == ['["a"]', '["b"]']
    with SinkRun(HttpSinkConnector, sink(api), converters=JSON) as run:
        run.produce("t", b'"poison"')
        with pytest.raises(DataError, match=r"t-0@0.*422"):
            run.deliver()


def source(api: Api, path: str, **more: str) -> dict[str, str]:
    return {
        "url": api.url + path,
        "topic.name.pattern": "t",
        "request.interval.ms": "10",
        "retry.backoff.ms": "10",
        **more,
    }


MODES = {
    "/count?from=${offset}": {},
    "/chain?after=${offset}": {
        "http.offset.mode": "CHAINING",
        "http.offset.json.pointer": "/id",
        "http.response.data.json.pointer": "/data/rows",
    },
    "/pages?page=${offset}": {
        "http.offset.mode": "CURSOR_PAGINATION",
        "http.next.page.json.pointer": "/next",
        "http.response.data.json.pointer": "/rows",
    },
}


@pytest.mark.parametrize("path", MODES)
def test_wherever_it_is_stopped_no_record_is_lost_or_comes_twice(api: Api, path: str) -> None:
    api.items = [{"id": n} for n in range(8)]
    given = source(api, path, **MODES[path], **{"http.record.key.json.pointer": "/id"})
    with SourceRun(HttpSourceConnector, given, converters=JSON) as run:
        run.poll()
        run.crash()
        run.poll()
        run.restart()
        api.answers = [503, None]
        run.run_until(lambda: len(run.values("t")) >= 8)
        run.restart()
        api.items += [{"id": n} for n in range(8, 11)]
        run.run_until(lambda: len(run.values("t")) >= 11)
        run.poll()
        run.commit()
        assert [json.loads(one)["id"] for one in run.values("t")] == list(range(11))
        assert run.keys("t") == [f'"{n}"' for n in range(11)]


def test_answers_that_cannot_be_used_end_the_task(api: Api) -> None:
    for path, more, words in (
        ("/html?${offset}", {}, "no JSON"),
        ("/count?from=${offset}", {"http.response.data.json.pointer": "/x"}, "Nothing is at /x"),
        (
            "/count?from=${offset}",
            {"http.response.max.bytes": "10", "max.retries": "0"},
            "10 bytes",
        ),
    ):
        api.items = [{"id": 1}, {"id": 2}]
        refused = pytest.raises(ConnectError, match=words)
        with SourceRun(HttpSourceConnector, source(api, path, **more)) as run, refused:
            run.poll()
    api.answers = [404]
    refused = pytest.raises(ConnectError, match="404")
    with SourceRun(HttpSourceConnector, source(api, "/count?from=${offset}")) as run, refused:
        run.poll()


def test_entities_have_a_topic_and_an_offset_each(api: Api) -> None:
    api.items = [{"id": n} for n in range(4)]
    given = source(api, "/count?who=${entityName}&from=${offset}", **{"entity.names": "a,b"})
    given["topic.name.pattern"] = "of-${entityName}"
    with SourceRun(HttpSourceConnector, given, converters=JSON) as run:
        run.run_until(lambda: len(run.values("of-a")) == 4 == len(run.values("of-b")))
        assert [(p["entity"], o and o["offset"]) for p, o in run.offsets] == [
            ("a", "4"),
            ("b", "4"),
        ]
