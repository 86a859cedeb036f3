"""A registry that wants a name and a password gets them, from the broker and from its processes."""

import asyncio
import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from penstock.config.broker import load
from penstock.records.batch import Record, build_batch
from penstock.records.schema_check import SchemasAway, SchemaScope
from penstock.schemas.checking.validator import SchemaValidator

WORD = "Basic " + base64.b64encode(b"broker:secret").decode()
ANSWERS = {"/schemas/ids/3/subjects": ["t-value"], "/schemas/ids/3": {"schema": '"string"'}}


class _GuardedRegistry(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_known = self.headers["Authorization"] == WORD
        body = json.dumps(ANSWERS[self.path.partition("?")[0]] if is_known else {}).encode()
        self.send_response(200 if is_known else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _GuardedRegistry)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


async def ask(settings: dict[str, str]) -> tuple[dict[int, str], int]:
    """What is refused, and how many of two values do not decode."""
    validator = SchemaValidator.of(load(None, settings))
    values = (b"\0\0\0\0\3\x02x", b"\0\0\0\0\3\x08x")
    batch = memoryview(build_batch([Record(at, 0, None, v) for at, v in enumerate(values)]))
    try:
        refused = await validator.refusals([3], SchemaScope("t", False, "TopicNameStrategy"))
        return refused, len(await validator.undecodable(batch, [False], []))
    finally:
        await validator.close()


def test_the_password_opens_the_registry(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_LOGIN", "broker:secret")
    for login in ("broker:secret", "env:REGISTRY_LOGIN"):
        settings = {
            "confluent.schema.registry.url": url,
            "confluent.basic.auth.user.info": login,
        }
        assert asyncio.run(ask(settings)) == ({}, 1)


def test_without_it_nobody_can_tell(url: str) -> None:
    with pytest.raises(SchemasAway, match="answered 401"):
        asyncio.run(ask({"confluent.schema.registry.url": url}))
